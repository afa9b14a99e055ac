/* exit.c - E04: the process ends with everything alive: a match on real sockets, or what was created a moment ago.
 * The argument: "young", "match", "exit" (by exit() on another thread). */
#include "common.h"
#include <pthread.h>

/* From here on the clock of the test runs. */
static void say(void) {
    puts("leaving");
    fflush(stdout);
}

static void *leave(void *argument) {
    (void)argument;
    say();
    exit(0);
}

int main(int count, char **arguments) {
    static peer peers[2];
    retick_mesh_config config;
    const char *how = count > 1 ? arguments[1] : "young";
    uint8_t room[32];
    char address[64];
    uint32_t i;
    for (i = 0; i < 2; i++) {
        peer *p = &peers[i];
        p->index = i;
        p->players = 2;
        p->is_host = p->wants_start = i == 0;
        OK(retick_mesh_config_init(&config, sizeof config));
        config.bind_address = "127.0.0.1";
        OK(retick_mesh_create(&config, &p->mesh));
        open_session(p, NULL);
    }
    OK(retick_mesh_host(peers[0].mesh));
    if (strcmp(how, "young") == 0) {
        say();
        return 0;
    }
    while (retick_mesh_room(peers[0].mesh, room) != RETICK_OK) run_peer(&peers[0]);
    OK(retick_mesh_local_address(peers[0].mesh, address, sizeof address, NULL));
    OK(retick_mesh_join(peers[1].mesh, address, room));
    while (peers[0].now.frame < 20 || peers[1].now.frame < 20) for (i = 0; i < 2; i++) run_peer(&peers[i]);
    if (strcmp(how, "exit") == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, leave, NULL) == 0);
        for (;;) for (i = 0; i < 2; i++) run_peer(&peers[i]);
    }
    {
        /* Even with a step list open. */
        retick_step *steps;
        uint32_t steps_count;
        (void)retick_session_begin_frame(peers[0].session, sizeof *steps, &steps, &steps_count);
    }
    say();
    return 0;
}
