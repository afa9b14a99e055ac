/* chaos.c - calls in any order, with anything that the header's contract allows: any number, any handle, null or valid
 * pointers, also from inside callbacks and while step lists are open. Arguments: seed, number of calls. */
#include "common.h"

static uint64_t random_state;
static uint64_t next_random(void) {
    random_state ^= random_state << 13; random_state ^= random_state >> 7; random_state ^= random_state << 17;
    return random_state;
}

/* Handles that were made, live or not. */
#define POOL 24
static uint64_t pool[3][POOL];
static void *made[3];
static uint64_t made_ids[3];

static uint64_t any_id(uint32_t kind) {
    switch (next_random() % 16) {
    case 0: return 0;
    case 1: return next_random();
    case 2: return pool[(kind + 1) % 3][next_random() % POOL];
    default: return pool[kind][next_random() % (kind == 2 ? 2 : POOL)]; /* few networks, so that peers meet */
    }
}
static retick_mesh any_retick_mesh(void) { retick_mesh h; h.id = any_id(0); return h; }
static retick_session any_retick_session(void) { retick_session h; h.id = any_id(1); return h; }
static retick_simnet any_retick_simnet(void) { retick_simnet h; h.id = any_id(2); return h; }

/* Memory that outlives every handle. */
static uint8_t memory[8][1 << 19];
static void *any_bytes(void) {
    return next_random() % 16 == 0 ? NULL : memory[next_random() % 8];
}
static const char *any_address(void) {
    static const char *const texts[] = { "sim:0", "sim:1", "127.0.0.1:9", "[::1]:9", "nowhere", "", "sim:x", "\xc3\x28" };
    return next_random() % 16 == 0 ? NULL : texts[next_random() % 8];
}

static uint64_t any_edge(void) {
    static const uint64_t edges[] = { 0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 60, 64, 88, 100, 255, 256, 1024, 65536,
                                      0x7fffffff, 0x80000000u, 0xffffffffu, 0xffffffffffffffffu };
    return edges[next_random() % (sizeof edges / sizeof *edges)];
}

static uint64_t any_number(const char *name) {
    uint64_t n = any_edge();
    /* Numbers that say how much memory is at a pointer must be true; some others would only take long. */
    if (strcmp(name, "size") == 0 || strcmp(name, "capacity") == 0 || strcmp(name, "address_size") == 0) return n % 121;
    if (strcmp(name, "struct_size") == 0 && n > 4096) return n > 65536 ? n : 4096;
    if (strcmp(name, "microseconds") == 0) return n % 50000;
    if (strcmp(name, "timeout_us") == 0) return n % 50 ? n % 50 : n;
    if (strcmp(name, "step_size") == 0 || strcmp(name, "sample_size") == 0) return n % 2 ? sizeof(retick_step) : n;
    return n;
}

static void any_call(void);
static uint32_t depth;
static unsigned long steps_done, guesses, lines, shared;

static int32_t any_step(void *user, retick_step *step) {
    (void)user;
    steps_done++;
    if (step->state != NULL && step->kind == RETICK_STEP_SAVE) {
        memset(step->state, (int)next_random(), (size_t)step->state_size);
        step->saved_size = next_random() % 8 ? step->state_size : any_edge();
    }
    if (depth < 2) {
        depth++;
        any_call();
        depth--;
    }
    return next_random() % 32 == 0;
}
static void any_guess(void *user, uint32_t slot, int32_t frame, const uint8_t *last, uint32_t last_size, uint8_t *out,
                      uint32_t capacity, uint32_t *out_size) {
    (void)user; (void)slot; (void)frame; (void)last; (void)last_size;
    guesses++;
    memset(out, 9, capacity);
    *out_size = (uint32_t)any_edge();
}
static void log_line(void *user, uint32_t level, const char *target, const char *message) {
    (void)user;
    lines++;
    CHECK(level >= 1 && level <= 5 && strlen(target) > 0 && strlen(message) > 0);
    if (depth < 2) {
        depth++;
        any_call();
        depth--;
    }
}
static retick_log_fn any_log(void) { return next_random() % 2 ? log_line : NULL; }

/* A struct: mostly of the right size, with numbers that make sense or do not. Handles come out where they are noted. */
static void *any_struct(size_t size, const char *name) {
    static union { uint64_t align; uint8_t bytes[1 << 17]; } structs[4];
    static uint32_t turn;
    uint8_t *it = structs[turn++ % 4].bytes;
    uint32_t *words = (uint32_t *)(void *)it;
    const struct { const char *name; uint32_t kind; } handles[] = { { "retick_mesh", 0 }, { "retick_session", 1 }, { "retick_simnet", 2 } };
    uint32_t i;
    if (next_random() % 16 == 0) return NULL;
    memset(it, 0, 4096);
    for (i = 0; i < 3; i++) if (strcmp(name, handles[i].name) == 0) {
        made[i] = &made_ids[i];
        return &made_ids[i];
    }
    if (strcmp(name, "retick_mesh_config") == 0) OK(retick_mesh_config_init((retick_mesh_config *)(void *)it, (uint32_t)size));
    if (strcmp(name, "retick_session_config") == 0) OK(retick_session_config_init((retick_session_config *)(void *)it, (uint32_t)size));
    words[0] = (uint32_t)(next_random() % 8 ? size : any_edge());
    if (words[0] > 65536 && words[0] % 4 == 0) words[0] += 1;
    if (strcmp(name, "retick_mesh_config") == 0) {
        retick_mesh_config *c = (retick_mesh_config *)(void *)it;
        c->io_mode = (uint32_t)(next_random() % 8 ? RETICK_IO_SIMNET : next_random() % 4 ? RETICK_IO_CUSTOM : any_edge() % 6);
        c->simnet = any_retick_simnet();
        c->local_address = memory[next_random() % 8];
        c->local_address_size = (uint32_t)(next_random() % 66);
        c->bind_address = next_random() % 8 ? "127.0.0.1" : any_address();
        if (next_random() % 4 == 0) words[2 + next_random() % 11] = (uint32_t)any_edge();
    } else if (strcmp(name, "retick_session_config") == 0) {
        retick_session_config *c = (retick_session_config *)(void *)it;
        c->state_mode = (uint32_t)(next_random() % 3);
        c->predict = any_guess;
        c->predictor = (uint32_t)(next_random() % 3);
        if (next_random() % 2 == 0) words[1 + next_random() % 12] = (uint32_t)any_edge();
        c->state_capacity %= 1 << 20;
    } else if (strcmp(name, "retick_callbacks") == 0) {
        retick_callbacks *c = (retick_callbacks *)(void *)it;
        c->save = c->load = c->advance = any_step;
        if (next_random() % 8 == 0) c->load = NULL;
    } else if (strcmp(name, "retick_link") == 0) {
        for (i = 1; i < 9; i++) words[i] = (uint32_t)(next_random() % 4 ? next_random() % 20000 : any_edge());
        if (next_random() % 4) words[8] = 0;
    }
    return it;
}

#include "chaos_calls.h"

static void remember(void) {
    uint32_t i;
    for (i = 0; i < 3; i++) if (made_ids[i]) {
        pool[i][next_random() % (i == 2 ? 2 : POOL)] = made_ids[i];
        made_ids[i] = 0;
    }
}

/* Without a little help few matches would begin. */
static void help(void) {
    retick_mesh mesh = any_retick_mesh();
    retick_session session = any_retick_session();
    retick_event event;
    retick_start_info info;
    uint8_t room[32];
    char address[64];
    uint32_t due = 0, i;
    event.struct_size = sizeof event;
    (void)retick_simnet_advance(any_retick_simnet(), 1000 * (next_random() % 40));
    if (next_random() % 4 == 0) (void)retick_mesh_host(mesh);
    (void)retick_mesh_poll(mesh);
    while (retick_mesh_next_event(mesh, &event) == RETICK_OK) {
        CHECK(strlen(event.text) > 8);
        if (event.kind == RETICK_EVENT_JOINED) {
            retick_session made_now = { 0 };
            retick_session_config config;
            OK(retick_session_config_init(&config, sizeof config));
            config.predictor = RETICK_PREDICT_GAME;
            config.predict = any_guess;
            if (retick_session_create(&config, mesh, &made_now) == RETICK_OK) pool[1][next_random() % POOL] = made_now.id;
            (void)retick_mesh_set_ready(mesh, 1);
        }
        if (event.kind == RETICK_EVENT_PEER_CONNECTED) (void)retick_mesh_start(mesh, 0);
    }
    if (retick_mesh_room(mesh, room) == RETICK_OK && retick_mesh_local_address(mesh, address, sizeof address, NULL) == RETICK_OK)
        (void)retick_mesh_join(any_retick_mesh(), address, room);
    info.struct_size = sizeof info;
    if (retick_session_start_info(session, &info) == RETICK_OK) shared += info.slot_peer[1] != 255 && info.slot_peer[1] != info.slot_peer[0];
    (void)retick_session_frames_due(session, &due, NULL);
    for (i = 0; i < due && i < 4; i++) {
        retick_callbacks callbacks;
        memset(&callbacks, 0, sizeof callbacks);
        callbacks.struct_size = sizeof callbacks;
        callbacks.save = callbacks.load = callbacks.advance = any_step;
        (void)retick_session_advance(session, &callbacks);
    }
    for (i = 0; i < 8; i++) {
        retick_step *steps;
        uint32_t count, at;
        retick_result verdict = retick_session_begin_frame(session, sizeof *steps, &steps, &count);
        if (verdict < 0) break;
        depth += 2; /* a call in between may close this list */
        for (at = 0; at < count; at++) {
            if (steps[at].flags & RETICK_STEP_BY_LIBRARY) (void)retick_session_run_step(session, at);
            else (void)any_step(NULL, &steps[at]);
        }
        depth -= 2;
        if (next_random() % 4) (void)retick_session_end_frame(session);
        else any_call();
        (void)retick_session_abort_frame(session);
    }
}

int main(int count, char **arguments) {
    unsigned long calls = count > 2 ? strtoul(arguments[2], NULL, 10) : 10000, i, panics = 0;
    char text[512];
    random_state = mix(count > 1 ? strtoul(arguments[1], NULL, 10) : 1);
    for (i = 0; i < calls; i++) {
        if (next_random() % 4 == 0) help();
        any_call();
        remember();
        if (next_random() % 8192 == 0) OK(retick_shutdown());
        retick_last_error(text, sizeof text);
        panics += strstr(text, "a bug in retick") != NULL;
        if (panics == 1) {
            puts(text);
            panics = 2;
        }
    }
    OK(retick_shutdown());
    EXPECT(panics, 0);
    printf("%lu steps, %lu guesses, %lu log lines, %lu looks at shared matches\n", steps_done, guesses, lines, shared);
    CHECK(steps_done > 1000);
    return 0;
}
