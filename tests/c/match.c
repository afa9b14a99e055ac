/* match.c - whole matches on a simulated network: both forms of a frame, all state modes, aborted frames, a predictor. */
#include "common.h"

static uint32_t mode_to_use, predictions;

static void predict(void *user, uint32_t slot, int32_t frame, const uint8_t *last, uint32_t last_size, uint8_t *out,
                    uint32_t capacity, uint32_t *out_size) {
    CHECK(user == &predictions && slot < 16 && frame >= 0 && capacity == 4 && last_size <= 4);
    if (last_size > 0) memcpy(out, last, last_size);
    *out_size = last_size;
    predictions++;
}

static void configure(retick_session_config *config, peer *p) {
    (void)p;
    config->state_mode = mode_to_use;
}

static void configure_predictor(retick_session_config *config, peer *p) {
    (void)p;
    config->predictor = RETICK_PREDICT_GAME;
    config->predict = predict;
    config->predict_user = &predictions;
}

static world play(uint32_t players, enum form form, configure_fn how, uint32_t frames) {
    static world w;
    retick_link link = bad_link(60000, 10000, 20000);
    open_world(&w, players, 42, &link, form, how);
    run_world(&w, frames);
    CHECK(compare_world(&w, frames) >= frames / 2);
    return w;
}

static void both_forms_give_the_same_steps(void) {
    static world lists, callbacks;
    uint32_t i;
    for (mode_to_use = RETICK_STATE_BYTES; mode_to_use <= RETICK_STATE_SLOTS; mode_to_use++) {
        lists = play(3, FORM_LIST, configure, 400);
        close_world(&lists);
        callbacks = play(3, FORM_CALLBACKS, configure, 400);
        close_world(&callbacks);
        for (i = 0; i < 3; i++) {
            CHECK(lists.peers[i].loads > 10 && lists.peers[i].now.frame > 200);
            EXPECT(callbacks.peers[i].now.frame, lists.peers[i].now.frame);
            CHECK(memcmp(&callbacks.peers[i].now, &lists.peers[i].now, sizeof(game)) == 0);
            if (mode_to_use != RETICK_STATE_REGIONS) { /* there the callbacks do not see saves and loads */
                EXPECT(callbacks.peers[i].trace, lists.peers[i].trace);
                EXPECT(callbacks.peers[i].steps, lists.peers[i].steps);
            }
        }
    }
}

/* E05: nothing of what was before can be seen after a shutdown. */
static void after_a_shutdown_everything_works_as_in_a_fresh_process(void) {
    static world before, after;
    uint32_t i;
    mode_to_use = RETICK_STATE_BYTES;
    before = play(3, FORM_LIST, configure, 200);
    OK(retick_shutdown());
    EXPECT(retick_mesh_poll(before.peers[0].mesh), RETICK_ERR_INVALID_HANDLE);
    after = play(3, FORM_LIST, configure, 200);
    for (i = 0; i < 3; i++) EXPECT(after.peers[i].trace, before.peers[i].trace);
    close_world(&after);
}

static void an_aborted_frame_is_made_up_for(void) {
    static world w;
    retick_link link = bad_link(60000, 10000, 20000);
    open_world(&w, 2, 7, &link, FORM_LIST, NULL);
    w.peers[0].abort_every = 5;
    run_world(&w, 300);
    CHECK(w.peers[0].lists > 100 && w.peers[0].now.frame > 100);
    CHECK(compare_world(&w, 300) >= 100);
    close_world(&w);
}

static void a_failing_callback_aborts_the_frame_and_the_next_begins_with_a_load(void) {
    static world w;
    retick_step *steps;
    retick_result verdict;
    uint32_t count, failures = 0, turn;
    open_world(&w, 2, 7, NULL, FORM_CALLBACKS, NULL);
    run_world(&w, 100);
    for (turn = 0; turn < 60; turn++) {
        uint32_t frame_before = w.peers[1].now.frame;
        w.peers[1].fail_at = turn % 6 == 0;
        run_world(&w, 1);
        failures += turn % 6 == 0 && w.peers[1].now.frame <= frame_before;
    }
    CHECK(failures >= 5);
    w.peers[1].fail_at = 1;
    verdict = RETICK_OK;
    for (turn = 0; turn < 10 && verdict != RETICK_ERR_CALLBACK; turn++) verdict = frame_by_callbacks(&w.peers[1]);
    EXPECT(verdict, RETICK_ERR_CALLBACK);
    CHECK(retick_session_begin_frame(w.peers[1].session, sizeof *steps, &steps, &count) >= 0);
    CHECK(count > 0 && steps[0].kind == RETICK_STEP_LOAD);
    OK(retick_session_abort_frame(w.peers[1].session));
    w.peers[1].fail_at = 0;
    run_world(&w, 60);
    CHECK(compare_world(&w, 220) >= 100);
    close_world(&w);
}

static void the_games_own_predictor_is_asked(void) {
    static world w;
    w = play(2, FORM_CALLBACKS, configure_predictor, 300);
    CHECK(predictions > 20);
    close_world(&w);
}

static void messages_stats_samples_and_times_are_told(void) {
    static world w;
    retick_link link = bad_link(30000, 0, 0);
    retick_peer_stats stats;
    retick_stats session_stats;
    retick_sample samples[16];
    retick_start_info info;
    uint32_t count, i;
    uint64_t times[2];
    char text[64];
    open_world(&w, 2, 9, &link, FORM_LIST, NULL);
    run_world(&w, 120);
    for (i = 0; i < 50; i++) OK(retick_mesh_send(w.peers[0].mesh, i % 2 ? 1 : RETICK_ALL_PEERS, i % 8, RETICK_RELIABLE, "hello", 6));
    EXPECT(retick_mesh_send(w.peers[0].mesh, 0, 0, RETICK_RELIABLE, "hello", 6), RETICK_ERR_INVALID_ARGUMENT);
    EXPECT(retick_mesh_send(w.peers[0].mesh, 1, 8, RETICK_RELIABLE, "hello", 6), RETICK_ERR_INVALID_ARGUMENT);
    EXPECT(retick_mesh_send(w.peers[0].mesh, 1, 0, 3, "hello", 6), RETICK_ERR_INVALID_ARGUMENT);
    EXPECT(retick_mesh_send(w.peers[0].mesh, 1, 0, RETICK_RELIABLE, "hello", 0), RETICK_ERR_INVALID_ARGUMENT);
    EXPECT(retick_mesh_send(w.peers[0].mesh, 1, 0, RETICK_RELIABLE, "hello", 1025), RETICK_ERR_TOO_LARGE);
    run_world(&w, 120);
    EXPECT(w.peers[1].messages, 50);
    stats.struct_size = sizeof stats;
    OK(retick_mesh_peer_stats(w.peers[0].mesh, 1, &stats));
    CHECK(stats.connected == 1 && stats.rtt_us > 55000 && stats.rtt_us < 120000 && stats.packets_received > 50);
    EXPECT(retick_mesh_peer_stats(w.peers[0].mesh, 7, &stats), RETICK_NONE);
    session_stats.struct_size = sizeof session_stats;
    OK(retick_session_stats(w.peers[0].session, &session_stats));
    CHECK(session_stats.frame > 100 && session_stats.saves > 50 && session_stats.desyncs == 0);
    OK(retick_session_samples(w.peers[0].session, samples, sizeof *samples, 16, &count));
    EXPECT(count, 16);
    EXPECT(samples[15].frame, session_stats.frame);
    CHECK(samples[14].frame <= samples[15].frame);
    info.struct_size = sizeof info;
    OK(retick_session_start_info(w.peers[1].session, &info));
    CHECK(info.slot_count == 2 && info.us == 1 && info.local_slots == 2);
    CHECK(info.slot_peer[0] == 0 && info.slot_peer[1] == 1 && info.slot_peer[2] == 255);
    for (i = 0; i < 2; i++) OK(retick_mesh_time_us(w.peers[i].mesh, &times[i]));
    CHECK(times[0] > 1000000 && (times[0] > times[1] ? times[0] - times[1] : times[1] - times[0]) < 5000);
    EXPECT(retick_mesh_local_address(w.peers[1].mesh, text, sizeof text, &count), RETICK_OK);
    CHECK(strcmp(text, "sim:1") == 0 && count == 5);
    EXPECT(retick_mesh_local_address(w.peers[1].mesh, text, 3, &count), RETICK_ERR_BUFFER_TOO_SMALL);
    CHECK(strcmp(text, "si") == 0 && count == 5);
    EXPECT(retick_mesh_start(w.peers[1].mesh, 0), RETICK_ERR_INVALID_STATE);
    OK(retick_session_set_input_delay(w.peers[0].session, 0, 4));
    EXPECT(retick_session_set_input_delay(w.peers[0].session, 1, 4), RETICK_ERR_INVALID_ARGUMENT);
    EXPECT(retick_session_set_input_delay(w.peers[0].session, 0, 33), RETICK_ERR_INVALID_ARGUMENT);
    run_world(&w, 120);
    OK(retick_session_stats(w.peers[0].session, &session_stats));
    EXPECT(session_stats.input_delay, 4);
    CHECK(compare_world(&w, 360) > 200);
    /* One leaves; the other hears of it and plays on. */
    OK(retick_mesh_leave(w.peers[1].mesh));
    for (i = 0; i < 60; i++) {
        OK(retick_simnet_advance(w.net, FRAME_US));
        run_peer(&w.peers[0]);
    }
    CHECK(w.peers[0].events[RETICK_EVENT_LEFT] == 1 && w.peers[0].events[RETICK_EVENT_SLOT_LEFT] == 1);
    OK(retick_session_stats(w.peers[0].session, &session_stats));
    CHECK(session_stats.is_stalled == 0);
    close_world(&w);
}

static void a_destroyed_session_frees_its_slots_and_the_room_plays_another_match(void) {
    static world w;
    uint32_t i, frame, round;
    open_world(&w, 2, 21, NULL, FORM_LIST, NULL);
    for (round = 0; round < 3; round++) {
        run_world(&w, 200);
        CHECK(w.peers[0].now.frame > 100 && compare_world(&w, 200) > 80);
        OK(retick_session_destroy(w.peers[1].session));
        frame = w.peers[0].now.frame;
        for (i = 0; i < 90; i++) {
            OK(retick_simnet_advance(w.net, FRAME_US));
            run_peer(&w.peers[0]);
            OK(retick_mesh_poll(w.peers[1].mesh));
            read_events(&w.peers[1]);
        }
        EXPECT(w.peers[0].events[RETICK_EVENT_SLOT_LEFT], round + 1);
        CHECK(w.peers[0].now.frame > frame + 60);
        OK(retick_session_destroy(w.peers[0].session));
        for (i = 0; i < 2; i++) {
            memset(&w.peers[i].now, 0, sizeof(game));
            open_session(&w.peers[i], NULL);
        }
        run_world(&w, 10);
        for (i = 0; i < 2; i++) OK(retick_mesh_set_ready(w.peers[i].mesh, 1));
        OK(retick_mesh_start(w.peers[0].mesh, 0));
    }
    close_world(&w);
}

/* 20 messages of 1000 bytes through 20 kB/s take a second; through a link for small datagrams none comes. */
static void a_link_has_a_rate_and_a_largest_datagram(void) {
    static world w;
    static const uint8_t big[1000];
    retick_link link = bad_link(5000, 0, 0);
    uint32_t i;
    open_world(&w, 2, 5, &link, FORM_LIST, NULL);
    run_world(&w, 120);
    CHECK(w.peers[0].now.frame > 30);
    link.rate_bytes_s = 20000;
    link.queue_bytes = 60000;
    OK(retick_simnet_set_link(w.net, 0, 1, &link));
    for (i = 0; i < 20; i++) OK(retick_mesh_send(w.peers[0].mesh, 1, 0, RETICK_UNRELIABLE, big, sizeof big));
    run_world(&w, 30);
    CHECK(w.peers[1].messages >= 5 && w.peers[1].messages <= 11);
    run_world(&w, 120);
    EXPECT(w.peers[1].messages, 20);
    link.mtu_bytes = 900;
    OK(retick_simnet_set_link(w.net, 0, 1, &link));
    for (i = 0; i < 5; i++) OK(retick_mesh_send(w.peers[0].mesh, 1, 0, RETICK_UNRELIABLE, big, sizeof big));
    run_world(&w, 60);
    EXPECT(w.peers[1].messages, 20);
    for (i = 0; i < 5; i++) OK(retick_mesh_send(w.peers[0].mesh, 1, 0, RETICK_UNRELIABLE, big, 10));
    run_world(&w, 60);
    EXPECT(w.peers[1].messages, 25);
    close_world(&w);
}

static void a_local_session_needs_no_mesh(void) {
    retick_session_config config;
    const retick_mesh none = { 0 };
    static peer p;
    uint32_t i;
    uint64_t checksum;
    OK(retick_session_config_init(&config, sizeof config));
    config.local_slots = 2;
    config.desync_level = 2;
    OK(retick_session_create(&config, none, &p.session));
    for (i = 0; i < 50; i++) {
        OK(retick_session_add_local_input(p.session, i % 2, &i, 4));
        OK(i % 2 ? frame_by_list(&p) : frame_by_callbacks(&p));
    }
    EXPECT(p.now.frame, 50);
    OK(retick_session_confirmed_checksum(p.session, 30, &checksum));
    EXPECT(retick_session_confirmed_checksum(p.session, 3000, &checksum), RETICK_NONE);
    EXPECT(retick_session_add_local_input(p.session, 2, &i, 4), RETICK_ERR_INVALID_ARGUMENT);
    EXPECT(retick_session_add_local_input(p.session, 1, &i, 5), RETICK_ERR_TOO_LARGE);
    OK(retick_session_destroy(p.session));
}

static void a_step_list_keeps_the_callers_stride_and_its_mistakes_are_told(void) {
    retick_session_config config;
    const retick_mesh none = { 0 };
    retick_session s;
    retick_step *steps;
    uint32_t count, i, saves = 0;
    uint64_t big = 300000;
    struct { retick_step step; uint64_t newer[3]; } *padded;
    OK(retick_session_config_init(&config, sizeof config));
    config.state_capacity = 100;
    OK(retick_session_create(&config, none, &s));
    EXPECT(retick_session_begin_frame(s, sizeof(retick_step) - 8, &steps, &count), RETICK_ERR_INVALID_ARGUMENT);
    EXPECT(retick_session_begin_frame(s, sizeof(retick_step) + 4, &steps, &count), RETICK_ERR_INVALID_ARGUMENT);
    EXPECT(retick_session_begin_frame(s, 1u << 20, &steps, &count), RETICK_ERR_INVALID_ARGUMENT);
    OK(retick_session_begin_frame(s, sizeof *padded, &steps, &count));
    padded = (void *)steps;
    CHECK(count >= 2);
    for (i = 0; i < count; i++) {
        CHECK(padded[i].step.kind >= 1 && padded[i].step.kind <= 3);
        CHECK(padded[i].newer[0] == 0 && padded[i].newer[2] == 0);
        if (padded[i].step.kind != RETICK_STEP_SAVE) {
            EXPECT(retick_session_grow_state(s, i, 1000), RETICK_ERR_INVALID_ARGUMENT);
            continue;
        }
        saves++;
        CHECK(padded[i].step.state_size >= 100);
        OK(retick_session_grow_state(s, i, big));
        EXPECT(retick_session_grow_state(s, i, 1ull << 31), RETICK_ERR_TOO_LARGE);
        CHECK(padded[i].step.state_size >= big);
        memset(padded[i].step.state, 3, big);
        padded[i].step.saved_size = big;
        EXPECT(retick_session_run_step(s, i), RETICK_ERR_INVALID_ARGUMENT);
    }
    CHECK(saves > 0);
    EXPECT(retick_session_grow_state(s, 9999, 1000), RETICK_ERR_INVALID_ARGUMENT);
    OK(retick_session_end_frame(s));
    EXPECT(retick_session_end_frame(s), RETICK_ERR_INVALID_STATE);
    EXPECT(retick_session_abort_frame(s), RETICK_ERR_INVALID_STATE);
    EXPECT(retick_session_grow_state(s, 0, 1000), RETICK_ERR_INVALID_STATE);
    EXPECT(retick_session_run_step(s, 0), RETICK_ERR_INVALID_STATE);
    /* A save that says nothing, or too much. */
    for (i = 0; i < 2; i++) {
        uint32_t at;
        do {
            CHECK(retick_session_begin_frame(s, sizeof *steps, &steps, &count) >= 0);
            for (at = 0; at < count && steps[at].kind != RETICK_STEP_SAVE; at++) {}
            if (at == count) OK(retick_session_end_frame(s));
        } while (at == count);
        steps[at].saved_size = i ? steps[at].state_size + 1 : 0;
        EXPECT(retick_session_end_frame(s), RETICK_ERR_INVALID_ARGUMENT);
        OK(retick_session_begin_frame(s, sizeof *steps, &steps, &count));
        CHECK(steps[0].kind == RETICK_STEP_LOAD);
        OK(retick_session_abort_frame(s));
    }
    OK(retick_session_destroy(s));
}

int main(void) {
    a_local_session_needs_no_mesh();
    a_step_list_keeps_the_callers_stride_and_its_mistakes_are_told();
    both_forms_give_the_same_steps();
    after_a_shutdown_everything_works_as_in_a_fresh_process();
    an_aborted_frame_is_made_up_for();
    a_failing_callback_aborts_the_frame_and_the_next_begins_with_a_load();
    the_games_own_predictor_is_asked();
    messages_stats_samples_and_times_are_told();
    a_destroyed_session_frees_its_slots_and_the_room_plays_another_match();
    a_link_has_a_rate_and_a_largest_datagram();
    OK(retick_shutdown());
    return 0;
}
