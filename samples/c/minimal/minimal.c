/* minimal.c - the smallest complete retick program: two peers on one machine, over real UDP, in one process.
 * Each would normally be a process of its own; what one peer does is everything between the two marks, twice.
 *
 *   cargo build --release
 *   cc -std=c11 -I include samples/c/minimal/minimal.c target/release/libretick.a -lpthread -lm -ldl -o minimal && ./minimal
 */
#include "retick.h"
#include <stdio.h>
#include <string.h>

typedef struct game { int32_t x[2]; uint32_t frames; } game; /* the whole state: two players on a line */

static int32_t save(void *user, retick_step *step) {
    memcpy(step->state, user, sizeof(game));
    step->saved_size = sizeof(game);
    return 0;
}
static int32_t load(void *user, retick_step *step) {
    memcpy(user, step->state, sizeof(game));
    return 0;
}
static int32_t advance(void *user, retick_step *step) {
    game *g = (game *)user;
    g->x[0] += (int8_t)step->inputs[0]; /* one byte of input for each slot: -1, 0 or 1 */
    g->x[1] += (int8_t)step->inputs[1];
    g->frames++;
    return 0;
}

/* ---- netcode ------------------------------------------------------------------------------------------------- */
typedef struct peer { retick_mesh mesh; retick_session session; uint32_t members; int ready, started; game game; } peer;

static void open_peer(peer *p) {
    retick_mesh_config mesh;
    retick_session_config session;
    memset(p, 0, sizeof *p);
    retick_mesh_config_init(&mesh, sizeof mesh);
    mesh.bind_address = "127.0.0.1";
    retick_session_config_init(&session, sizeof session);
    session.input_max = 1;
    session.desync_level = 2;
    retick_mesh_create(&mesh, &p->mesh);
    retick_session_create(&session, p->mesh, &p->session);
}

static void run_peer(peer *p, int is_host) {
    const retick_callbacks callbacks = { sizeof callbacks, 0, &p->game, save, load, advance };
    retick_start_info info;
    retick_event event;
    uint32_t due = 0, slot;
    retick_mesh_poll(p->mesh);
    for (event.struct_size = sizeof event; retick_mesh_next_event(p->mesh, &event) == RETICK_OK;) {
        printf("%s: %s\n", is_host ? "host " : "guest", event.text);
        if (event.kind == RETICK_EVENT_JOINED) p->ready = retick_mesh_set_ready(p->mesh, 1) == RETICK_OK;
        if (event.kind == RETICK_EVENT_PEER_CONNECTED && is_host) retick_mesh_start(p->mesh, 100);
    }
    info.struct_size = sizeof info;
    if (retick_session_start_info(p->session, &info) == RETICK_OK) p->started = 1;
    for (retick_session_frames_due(p->session, &due, NULL); due > 0; due--) {
        int8_t input = p->started && p->game.frames / 30 % 2 ? -1 : 1; /* here: a bot; else: the keys of the player */
        for (slot = 0; slot < 2; slot++)
            if (info.local_slots >> slot & 1) retick_session_add_local_input(p->session, slot, &input, 1);
        retick_session_advance(p->session, &callbacks);
    }
}
/* ---- end of netcode ------------------------------------------------------------------------------------------ */

int main(void) {
    peer host, guest;
    char address[64];
    uint8_t room[32];
    uint64_t ours = 0, theirs = 1;
    open_peer(&host);
    open_peer(&guest);
    retick_mesh_host(host.mesh);
    while (retick_mesh_room(host.mesh, room) != RETICK_OK) run_peer(&host, 1);
    retick_mesh_local_address(host.mesh, address, sizeof address, NULL);
    retick_mesh_join(guest.mesh, address, room);
    while (host.game.frames < 180 || guest.game.frames < 180) {
        run_peer(&host, 1);
        run_peer(&guest, 0);
    }
    retick_session_confirmed_checksum(host.session, 120, &ours);
    retick_session_confirmed_checksum(guest.session, 120, &theirs);
    printf("frame 120: %016llx %016llx %s\n", (unsigned long long)ours, (unsigned long long)theirs, ours == theirs ? "agree" : "DIFFER");
    retick_shutdown();
    return ours != theirs;
}
