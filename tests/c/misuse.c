/* misuse.c - handles that name nothing, sizes of other versions, calls at the wrong time. Clean under ASan and UBSan. */
#include "common.h"

static uint64_t random_state = 88172645463325252u;
static uint64_t next_random(void) {
    random_state ^= random_state << 13; random_state ^= random_state >> 7; random_state ^= random_state << 17;
    return random_state;
}

/* E13: destroy twice, use after destroy, a handle of another kind, random handles. */
static void a_handle_that_names_nothing_is_refused(void) {
    retick_mesh mesh, mesh_from_session, wild_mesh;
    retick_session session, stale, wild_session;
    retick_simnet net, wild_net;
    retick_mesh_config config;
    retick_session_config session_config;
    uint32_t frames;
    uint64_t us, i;
    OK(retick_simnet_create(1, &net));
    OK(retick_mesh_config_init(&config, sizeof config));
    config.io_mode = RETICK_IO_SIMNET;
    config.simnet = net;
    OK(retick_mesh_create(&config, &mesh));
    OK(retick_session_config_init(&session_config, sizeof session_config));
    OK(retick_session_create(&session_config, mesh, &session));
    mesh_from_session.id = session.id;
    EXPECT(retick_mesh_poll(mesh_from_session), RETICK_ERR_INVALID_HANDLE);
    EXPECT(retick_mesh_destroy(mesh_from_session), RETICK_ERR_INVALID_HANDLE);
    OK(retick_session_frames_due(session, &frames, NULL));
    stale = session;
    OK(retick_session_destroy(session));
    EXPECT(retick_session_destroy(stale), RETICK_ERR_INVALID_HANDLE);
    EXPECT(retick_session_frames_due(stale, &frames, NULL), RETICK_ERR_INVALID_HANDLE);
    /* The place is used again; the old number still names nothing. */
    OK(retick_session_create(&session_config, mesh, &session));
    CHECK(session.id != stale.id);
    EXPECT(retick_session_frames_due(stale, &frames, NULL), RETICK_ERR_INVALID_HANDLE);
    for (i = 0; i < 100000; i++) {
        uint64_t wild = i < 1000 ? i + 1 : i % 3 ? next_random() : session.id ^ (1ull << next_random() % 64);
        if (wild == session.id || wild == mesh.id || wild == net.id) continue;
        wild_mesh.id = wild_session.id = wild_net.id = wild;
        EXPECT(retick_mesh_time_us(wild_mesh, &us), RETICK_ERR_INVALID_HANDLE);
        EXPECT(retick_session_frames_due(wild_session, &frames, NULL), RETICK_ERR_INVALID_HANDLE);
        EXPECT(retick_simnet_time_us(wild_net, &us), RETICK_ERR_INVALID_HANDLE);
        EXPECT(retick_session_destroy(wild_session), RETICK_ERR_INVALID_HANDLE);
    }
    OK(retick_session_destroy(session));
    OK(retick_mesh_destroy(mesh));
    EXPECT(retick_mesh_destroy(mesh), RETICK_ERR_INVALID_HANDLE);
    OK(retick_simnet_destroy(net));
    wild_mesh.id = wild_session.id = wild_net.id = 0;
    OK(retick_mesh_destroy(wild_mesh));
    OK(retick_session_destroy(wild_session));
    OK(retick_simnet_destroy(wild_net));
}

static void structs_of_older_and_newer_callers_work(void) {
    struct { retick_mesh_config config; uint64_t newer[8]; } big;
    struct { retick_session_config config; uint64_t newer[8]; } big_session;
    struct { retick_event event; uint64_t newer[8]; } big_event;
    struct { retick_stats stats; uint64_t newer[4]; } big_stats;
    retick_mesh_config config;
    retick_session_config session_config;
    retick_mesh mesh;
    retick_session session;
    retick_simnet net;
    uint32_t size;
    const uint32_t garbage[] = { 0, 1, 4, 7, 9, 17, 65537, 65540, 0x7fffffff, 0x80000000u, 0xffffffffu, 0xfffffffcu };
    OK(retick_simnet_create(1, &net));

    /* Older: fields that the caller does not have keep their defaults, and no byte of them is read. */
    for (size = 8; size < sizeof config; size += 8) {
        uint8_t *old = malloc(size); /* ASan sees every byte past it */
        retick_mesh_config *as_config = (retick_mesh_config *)(void *)old;
        OK(retick_mesh_config_init(as_config, size));
        EXPECT(as_config->struct_size, size);
        as_config->io_mode = size > 72 ? RETICK_IO_SIMNET : RETICK_IO_MANUAL;
        if (size > 72) as_config->simnet = net;
        OK(retick_mesh_create(as_config, &mesh));
        OK(retick_mesh_destroy(mesh));
        free(old);
    }
    for (size = 8; size < sizeof session_config; size += 8) {
        uint8_t *old = malloc(size);
        retick_session_config *as_config = (retick_session_config *)(void *)old;
        const retick_mesh none = { 0 };
        OK(retick_session_config_init(as_config, size));
        as_config->input_max = 9;
        OK(retick_session_create(as_config, none, &session));
        OK(retick_session_add_local_input(session, 0, "123456789", 9));
        OK(retick_session_destroy(session));
        free(old);
    }
    /* Newer: what this library does not know is ignored going in, and 0 coming out. */
    memset(&big, 0xee, sizeof big);
    OK(retick_mesh_config_init(&big.config, sizeof big));
    CHECK(big.config.struct_size == sizeof big && big.config.max_peers == 8 && big.newer[0] == 0 && big.newer[7] == 0);
    memset(big.newer, 0xee, sizeof big.newer);
    big.config.io_mode = RETICK_IO_SIMNET;
    big.config.simnet = net;
    OK(retick_mesh_create(&big.config, &mesh));
    OK(retick_session_config_init(&big_session.config, sizeof big_session));
    memset(big_session.newer, 0xee, sizeof big_session.newer);
    OK(retick_session_create(&big_session.config, mesh, &session));
    memset(&big_stats, 0xee, sizeof big_stats);
    big_stats.stats.struct_size = sizeof big_stats;
    OK(retick_session_stats(session, &big_stats.stats));
    CHECK(big_stats.stats.struct_size == sizeof big_stats && big_stats.newer[0] == 0 && big_stats.newer[3] == 0);
    CHECK(big_stats.stats.confirmed_frame == -1 && big_stats.stats.prediction_window == 16);
    for (size = 8; size <= sizeof big_stats; size += 8) {
        uint8_t *old = malloc(size);
        retick_stats *stats = (retick_stats *)(void *)old;
        stats->struct_size = size;
        OK(retick_session_stats(session, stats));
        EXPECT(stats->struct_size, size);
        free(old);
    }
    OK(retick_mesh_host(mesh));
    OK(retick_simnet_advance(net, 100000));
    OK(retick_mesh_poll(mesh));
    memset(&big_event, 0xee, sizeof big_event);
    big_event.event.struct_size = sizeof big_event;
    OK(retick_mesh_next_event(mesh, &big_event.event));
    CHECK(big_event.event.kind == RETICK_EVENT_JOINED && big_event.newer[0] == 0 && big_event.newer[7] == 0);

    for (size = 0; size < sizeof garbage / sizeof *garbage; size++) {
        retick_link link;
        OK(retick_link_init(&link, sizeof link));
        link.struct_size = config.struct_size = garbage[size];
        session_config.struct_size = big_event.event.struct_size = big_stats.stats.struct_size = garbage[size];
        EXPECT(retick_mesh_config_init(&config, garbage[size]), RETICK_ERR_INVALID_ARGUMENT);
        EXPECT(retick_mesh_create(&config, &mesh), RETICK_ERR_INVALID_ARGUMENT);
        EXPECT(retick_session_create(&session_config, mesh, &session), RETICK_ERR_INVALID_ARGUMENT);
        EXPECT(retick_simnet_set_link(net, 0, 1, &link), RETICK_ERR_INVALID_ARGUMENT);
        EXPECT(retick_mesh_next_event(mesh, &big_event.event), RETICK_ERR_INVALID_ARGUMENT);
        EXPECT(retick_session_stats(session, &big_stats.stats), RETICK_ERR_INVALID_ARGUMENT);
    }
    OK(retick_session_destroy(session));
    OK(retick_mesh_destroy(mesh));
    OK(retick_simnet_destroy(net));
}

/* Each: a config field out of range, and a word that the sentence must have. */
static void every_refused_field_is_named(void) {
    const retick_mesh none = { 0 };
    retick_session session;
    retick_mesh mesh;
    char text[512];
    uint32_t i;
    for (i = 0; i < 9; i++) {
        static const char *const names[] = { "input_max", "frame_rate", "input_delay", "prediction_window", "predictor",
                                             "state_mode", "desync_level", "state_capacity", "predict" };
        retick_session_config c;
        OK(retick_session_config_init(&c, sizeof c));
        switch (i) {
        case 0: c.input_max = 65; break;
        case 1: c.frame_rate = 0; break;
        case 2: c.input_delay = 33; break;
        case 3: c.prediction_window = 65; break;
        case 4: c.predictor = 3; break;
        case 5: c.state_mode = 0xffffffffu; break;
        case 6: c.desync_level = 3; break;
        case 7: c.state_capacity = 1ull << 40; break;
        default: c.predictor = RETICK_PREDICT_GAME; break;
        }
        EXPECT(retick_session_create(&c, none, &session), RETICK_ERR_INVALID_ARGUMENT);
        retick_last_error(text, sizeof text);
        CHECK(strncmp(text, "retick_session_create: ", 23) == 0 && strstr(text, names[i]) && text[strlen(text) - 1] == '.');
    }
    for (i = 0; i < 8; i++) {
        static const char *const names[] = { "io_mode", "max_peers", "bind_port", "cut_after_ms", "max_datagram",
                                             "bind_address", "local_address", "net" };
        retick_mesh_config c;
        OK(retick_mesh_config_init(&c, sizeof c));
        switch (i) {
        case 0: c.io_mode = 4; break;
        case 1: c.max_peers = 17; break;
        case 2: c.bind_port = 65536; break;
        case 3: c.cut_after_ms = 120; break;
        case 4: c.max_datagram = 1201; break;
        case 5: c.bind_address = "somewhere"; break;
        case 6: c.io_mode = RETICK_IO_CUSTOM; break;
        default: c.io_mode = RETICK_IO_SIMNET; break;
        }
        EXPECT(retick_mesh_create(&c, &mesh), i == 7 ? RETICK_ERR_INVALID_HANDLE : RETICK_ERR_INVALID_ARGUMENT);
        retick_last_error(text, sizeof text);
        CHECK(strncmp(text, "retick_mesh_create: ", 20) == 0 && strstr(text, names[i]));
    }
    /* The text can be cut, and its length is that of the whole. */
    i = retick_last_error(NULL, 0);
    CHECK(i == strlen(text));
    memset(text, 'x', sizeof text);
    EXPECT(retick_last_error(text, 7), i);
    CHECK(strcmp(text, "retick") == 0 && text[7] == 'x');
    CHECK(strcmp(retick_result_name(RETICK_ERR_WOULD_BLOCK), "RETICK_ERR_WOULD_BLOCK") == 0);
    CHECK(strcmp(retick_result_name(-99), "RETICK_ERR_UNKNOWN") == 0);
    CHECK(strcmp(retick_version(), "0.1.0") == 0 && retick_abi_version() == RETICK_ABI_VERSION);
    EXPECT(retick_struct_size(0), 0);
    EXPECT(retick_struct_size(RETICK_STRUCT_STEP), sizeof(retick_step));
}

static void calls_at_the_wrong_time_say_so(void) {
    retick_mesh_config config;
    retick_session_config session_config;
    retick_simnet net;
    retick_mesh mesh, other;
    retick_session session, second;
    retick_start_info info;
    uint8_t room[32] = { 0 };
    const uint8_t *bytes;
    uint32_t size;
    retick_step *steps;
    OK(retick_simnet_create(3, &net));
    OK(retick_mesh_config_init(&config, sizeof config));
    config.io_mode = RETICK_IO_SIMNET;
    config.simnet = net;
    OK(retick_mesh_create(&config, &mesh));
    EXPECT(retick_mesh_room(mesh, room), RETICK_ERR_INVALID_STATE);
    EXPECT(retick_mesh_set_ready(mesh, 1), RETICK_ERR_INVALID_STATE);
    EXPECT(retick_mesh_set_ready(mesh, 17), RETICK_ERR_INVALID_ARGUMENT);
    EXPECT(retick_mesh_start(mesh, 0), RETICK_ERR_INVALID_STATE);
    EXPECT(retick_mesh_start(mesh, 60001), RETICK_ERR_INVALID_ARGUMENT);
    EXPECT(retick_mesh_send(mesh, 1, 0, RETICK_RELIABLE, "x", 1), RETICK_ERR_INVALID_STATE);
    EXPECT(retick_mesh_join(mesh, "127.0.0.1:80", room), RETICK_ERR_INVALID_ARGUMENT);
    EXPECT(retick_mesh_join(mesh, "\xff\xfe", room), RETICK_ERR_INVALID_ARGUMENT);
    EXPECT(retick_mesh_join_custom(mesh, room, 4, room), RETICK_ERR_UNSUPPORTED);
    EXPECT(retick_mesh_receive(mesh, room, 4, "x", 1), RETICK_ERR_UNSUPPORTED);
    EXPECT(retick_mesh_next_outgoing(mesh, &bytes, &size, &bytes, &size), RETICK_ERR_UNSUPPORTED);
    EXPECT(retick_mesh_set_conditioner(mesh, NULL, 1), RETICK_ERR_UNSUPPORTED);
    EXPECT(retick_io_turn(mesh, 0), RETICK_ERR_UNSUPPORTED);
    EXPECT(retick_io_turn(mesh, 1000001), RETICK_ERR_INVALID_ARGUMENT);
    EXPECT(retick_simnet_set_paused(net, 1, 1), RETICK_ERR_INVALID_ARGUMENT);
    EXPECT(retick_simnet_set_paused(net, 0, 2), RETICK_ERR_INVALID_ARGUMENT);
    EXPECT(retick_simnet_advance(net, 3600000001u), RETICK_ERR_INVALID_ARGUMENT);
    OK(retick_mesh_host(mesh));
    EXPECT(retick_mesh_host(mesh), RETICK_ERR_INVALID_STATE);
    EXPECT(retick_mesh_join(mesh, "sim:0", room), RETICK_ERR_INVALID_STATE);
    OK(retick_session_config_init(&session_config, sizeof session_config));
    OK(retick_session_create(&session_config, mesh, &session));
    EXPECT(retick_session_create(&session_config, mesh, &second), RETICK_ERR_INVALID_STATE);
    info.struct_size = sizeof info;
    EXPECT(retick_session_start_info(session, &info), RETICK_ERR_INVALID_STATE);
    EXPECT(retick_session_add_region(session, room, sizeof room), RETICK_ERR_INVALID_STATE);
    EXPECT(retick_session_begin_frame(session, sizeof *steps, &steps, &size), RETICK_STALL);
    EXPECT(size, 0);
    OK(retick_session_end_frame(session)); /* an empty list may be closed, and need not */
    OK(retick_session_destroy(session));
    OK(retick_session_create(&session_config, mesh, &session));
    OK(retick_session_destroy(session));
    OK(retick_mesh_leave(mesh));
    OK(retick_mesh_leave(mesh));
    EXPECT(retick_mesh_host(mesh), RETICK_ERR_INVALID_STATE);
    OK(retick_mesh_create(&config, &other));
    OK(retick_simnet_destroy(net));
    OK(retick_mesh_poll(mesh));
    OK(retick_mesh_poll(other));
    EXPECT(retick_mesh_host(other), RETICK_ERR_SHUT_DOWN);
    OK(retick_mesh_destroy(mesh));
    OK(retick_mesh_destroy(other));
}

/* A frame is never split over packets, and a message is one packet: what does not fit is refused by the call itself. */
static void what_fits_no_packet_is_refused_with_the_sizes(void) {
    retick_mesh_config config;
    retick_session_config session_config;
    retick_simnet net;
    retick_mesh mesh;
    retick_session session;
    uint8_t room[32], message[600] = { 0 };
    char text[256];
    OK(retick_simnet_create(3, &net));
    OK(retick_mesh_config_init(&config, sizeof config));
    config.io_mode = RETICK_IO_SIMNET;
    config.simnet = net;
    config.max_datagram = 600;
    OK(retick_mesh_create(&config, &mesh));
    OK(retick_session_config_init(&session_config, sizeof session_config));
    session_config.input_max = 64;
    OK(retick_session_create(&session_config, mesh, &session));
    OK(retick_mesh_host(mesh));
    OK(retick_simnet_advance(net, 1000));
    OK(retick_mesh_poll(mesh));
    OK(retick_mesh_room(mesh, room));
    EXPECT(retick_mesh_set_ready(mesh, 9), RETICK_ERR_INVALID_ARGUMENT);
    retick_last_error(text, sizeof text);
    CHECK(strstr(text, "local_slots is 9") && strstr(text, "600 bytes") && strstr(text, "input_max"));
    OK(retick_mesh_set_ready(mesh, 8));
    EXPECT(retick_mesh_send(mesh, 1, 0, RETICK_RELIABLE, message, sizeof message), RETICK_ERR_TOO_LARGE);
    retick_last_error(text, sizeof text);
    CHECK(strstr(text, "max_datagram 600"));
    OK(retick_session_destroy(session));
    OK(retick_mesh_destroy(mesh));
    OK(retick_simnet_destroy(net));
}

/* Destroy with an open list; a list that outlives retick_shutdown. */
static void an_open_list_keeps_its_memory(void) {
    const retick_mesh none = { 0 };
    retick_session_config config;
    retick_session s;
    retick_step *steps;
    uint32_t count, i, frames;
    OK(retick_session_config_init(&config, sizeof config));
    OK(retick_session_create(&config, none, &s));
    OK(retick_session_begin_frame(s, sizeof *steps, &steps, &count));
    CHECK(count > 0);
    EXPECT(retick_session_destroy(s), RETICK_ERR_BUSY);
    EXPECT(retick_session_frames_due(s, &frames, NULL), RETICK_ERR_BUSY);
    EXPECT(retick_session_add_local_input(s, 0, "x", 1), RETICK_ERR_BUSY);
    EXPECT(retick_session_begin_frame(s, sizeof *steps, &steps, &count), RETICK_ERR_BUSY);
    OK(retick_shutdown());
    for (i = 0; i < count; i++) {
        if (steps[i].kind == RETICK_STEP_SAVE) {
            memset(steps[i].state, 1, (size_t)steps[i].state_size);
            steps[i].saved_size = steps[i].state_size;
        }
        if (steps[i].kind == RETICK_STEP_ADVANCE) CHECK(steps[i].inputs_size == 4 && steps[i].inputs[3] == 0);
    }
    EXPECT(retick_session_grow_state(s, 0, 100), RETICK_ERR_SHUT_DOWN);
    EXPECT(retick_session_destroy(s), RETICK_ERR_BUSY);
    OK(retick_shutdown());
    EXPECT(retick_session_end_frame(s), RETICK_ERR_SHUT_DOWN);
    EXPECT(retick_session_end_frame(s), RETICK_ERR_INVALID_HANDLE);
    OK(retick_session_create(&config, none, &s));
    OK(retick_session_destroy(s));
}

/* Who plays another game, or another build of it, learns so, and so does the host: both values, and words for the log. */
static void another_build_is_refused_at_both_ends(uint64_t game_id, uint64_t build_id, uint32_t reason, uint64_t ours, uint64_t theirs) {
    retick_mesh_config config;
    retick_simnet net;
    retick_mesh meshes[2];
    retick_event event;
    uint8_t room[32];
    uint32_t i, turn, refused[2] = { 0, 0 };
    OK(retick_simnet_create(4, &net));
    for (i = 0; i < 2; i++) {
        OK(retick_mesh_config_init(&config, sizeof config));
        config.io_mode = RETICK_IO_SIMNET;
        config.simnet = net;
        config.game_id = i == 0 ? 1 : game_id;
        config.build_id = i == 0 ? 2 : build_id;
        OK(retick_mesh_create(&config, &meshes[i]));
    }
    OK(retick_mesh_host(meshes[0]));
    OK(retick_simnet_advance(net, 1000));
    OK(retick_mesh_poll(meshes[0]));
    OK(retick_mesh_room(meshes[0], room));
    OK(retick_mesh_join(meshes[1], "sim:0", room));
    for (turn = 0; turn < 60; turn++) {
        OK(retick_simnet_advance(net, 100000));
        for (i = 0; i < 2; i++) {
            OK(retick_mesh_poll(meshes[i]));
            event.struct_size = sizeof event;
            while (retick_mesh_next_event(meshes[i], &event) == RETICK_OK) {
                CHECK(i == 0 || event.kind != RETICK_EVENT_JOINED);
                if (event.kind != RETICK_EVENT_REFUSED) continue;
                refused[i]++;
                EXPECT(event.reason, reason);
                EXPECT(event.stream, i);
                EXPECT(event.value0, i == 0 ? ours : theirs);
                EXPECT(event.value1, i == 0 ? theirs : ours);
                CHECK(strstr(event.text, reason == RETICK_REFUSE_GAME_ID ? "game" : "build") != NULL);
            }
        }
    }
    EXPECT(refused[0], 1);
    EXPECT(refused[1], 1);
    for (i = 0; i < 2; i++) OK(retick_mesh_destroy(meshes[i]));
    OK(retick_simnet_destroy(net));
}

static void more_than_1024_handles_are_refused(void) {
    static retick_simnet nets[1025];
    uint32_t i;
    for (i = 0; i < 1024; i++) OK(retick_simnet_create(i, &nets[i]));
    EXPECT(retick_simnet_create(i, &nets[i]), RETICK_ERR_TOO_LARGE);
    OK(retick_shutdown());
    for (i = 0; i < 1024; i++) EXPECT(retick_simnet_destroy(nets[i]), RETICK_ERR_INVALID_HANDLE);
    OK(retick_simnet_create(1, &nets[0]));
}

int main(void) {
    a_handle_that_names_nothing_is_refused();
    structs_of_older_and_newer_callers_work();
    every_refused_field_is_named();
    calls_at_the_wrong_time_say_so();
    what_fits_no_packet_is_refused_with_the_sizes();
    an_open_list_keeps_its_memory();
    another_build_is_refused_at_both_ends(8, 2, RETICK_REFUSE_GAME_ID, 1, 8);
    another_build_is_refused_at_both_ends(1, 9, RETICK_REFUSE_BUILD_ID, 2, 9);
    more_than_1024_handles_are_refused();
    OK(retick_shutdown());
    OK(retick_shutdown());
    return 0;
}
