/* common.h - what the C tests share: checks that end the program, and whole matches over a simulated network. */
#ifndef RETICK_TESTS_COMMON_H
#define RETICK_TESTS_COMMON_H

#include "retick.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void fail(const char *file, int line, const char *what, long long found) {
    char text[512];
    retick_last_error(text, sizeof text);
    fprintf(stderr, "%s:%d: %s (found %lld); last error: %s\n", file, line, what, found, text);
    exit(1);
}
#define CHECK(what) do { if (!(what)) fail(__FILE__, __LINE__, #what, 0); } while (0)
#define EXPECT(call, wanted) \
    do { long long found_ = (long long)(call); if (found_ != (long long)(wanted)) fail(__FILE__, __LINE__, #call " == " #wanted, found_); } while (0)
#define OK(call) EXPECT(call, RETICK_OK)

#define MAX_PLAYERS 10
#define FRAME_US 16667u

/* A game whose state depends on every input of every slot, in order. */
typedef struct game {
    uint32_t frame;
    uint32_t reserved;
    uint64_t cells[30];
} game;

static inline uint64_t mix(uint64_t x) {
    x ^= x >> 30; x *= 0xbf58476d1ce4e5b9u; x ^= x >> 27; x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* How a peer runs its frames. */
enum form { FORM_LIST, FORM_CALLBACKS };

typedef struct peer {
    retick_mesh mesh;
    retick_session session;
    enum form form;
    uint32_t state_mode;
    uint32_t index;
    int is_host, joined, connected, started, wants_start;
    uint32_t players;
    game now;
    game slots[128];           /* RETICK_STATE_SLOTS */
    uint64_t trace;            /* of every step: kind, frame, flags, inputs, status, state */
    uint64_t steps, loads;
    uint32_t fail_at;          /* callbacks: the n-th advance returns 7 */
    uint32_t abort_every;      /* list: every n-th list is aborted */
    uint32_t lists;
    uint32_t changing;         /* inputs change every n frames; 0 = never */
    uint32_t events[32];       /* by kind */
    uint32_t messages;
    uint32_t local_slots;
    uint64_t last_checksum_frame;
} peer;

static inline void note(peer *p, uint64_t value) { p->trace = mix(p->trace * 31 + value + 1); }

static inline void simulate(peer *p, const retick_step *step) {
    uint32_t i;
    CHECK((uint32_t)step->frame == p->now.frame);
    for (i = 0; i < step->inputs_size; i++) {
        uint64_t *cell = &p->now.cells[(i + p->now.frame) % 30];
        *cell = mix(*cell + step->inputs[i] + 257 * i);
    }
    p->now.cells[p->now.frame % 30] ^= step->slot_status & 0x2222222222222222u;
    p->now.frame++;
}

static inline int32_t do_save(void *user, retick_step *step) {
    peer *p = (peer *)user;
    p->steps++;
    note(p, step->kind); note(p, (uint64_t)step->frame); note(p, p->now.cells[0]);
    CHECK((uint32_t)step->frame == p->now.frame);
    if (p->state_mode == RETICK_STATE_SLOTS) {
        CHECK(step->slot_index < 128 && step->state == NULL);
        p->slots[step->slot_index] = p->now;
        if (step->flags & RETICK_SAVE_CHECKSUM) {
            uint32_t i;
            step->checksum = p->now.frame;
            for (i = 0; i < 30; i++) step->checksum = mix(step->checksum + p->now.cells[i]);
        }
    } else {
        CHECK(step->state != NULL && step->state_size >= sizeof(game));
        memcpy(step->state, &p->now, sizeof(game));
        step->saved_size = sizeof(game);
    }
    return 0;
}

static inline int32_t do_load(void *user, retick_step *step) {
    peer *p = (peer *)user;
    p->steps++;
    p->loads++;
    note(p, step->kind); note(p, (uint64_t)step->frame);
    if (p->state_mode == RETICK_STATE_SLOTS) {
        CHECK(step->slot_index < 128);
        p->now = p->slots[step->slot_index];
    } else {
        CHECK(step->state != NULL && step->state_size == sizeof(game));
        memcpy(&p->now, step->state, sizeof(game));
    }
    CHECK((uint32_t)step->frame == p->now.frame);
    return 0;
}

static inline int32_t do_advance(void *user, retick_step *step) {
    peer *p = (peer *)user;
    uint32_t i;
    p->steps++;
    if (p->fail_at && --p->fail_at == 0) return 7;
    note(p, step->kind); note(p, (uint64_t)step->frame); note(p, step->flags); note(p, step->slot_status);
    for (i = 0; i < step->inputs_size; i++) note(p, step->inputs[i]);
    simulate(p, step);
    return 0;
}

static inline retick_result frame_by_list(peer *p) {
    retick_step *steps = NULL;
    uint32_t count = 0, i;
    retick_result verdict = retick_session_begin_frame(p->session, sizeof(retick_step), &steps, &count);
    if (verdict < 0) return verdict;
    p->lists++;
    for (i = 0; i < count; i++) {
        retick_step *step = &steps[i];
        if (p->abort_every && p->lists % p->abort_every == 0 && i + 1 == count) {
            OK(retick_session_abort_frame(p->session));
            return verdict;
        }
        if (step->flags & RETICK_STEP_BY_LIBRARY) {
            note(p, step->kind); note(p, (uint64_t)step->frame);
            if (step->kind == RETICK_STEP_LOAD) p->loads++;
            p->steps++;
            OK(retick_session_run_step(p->session, i));
        } else if (step->kind == RETICK_STEP_SAVE) CHECK(do_save(p, step) == 0);
        else if (step->kind == RETICK_STEP_LOAD) CHECK(do_load(p, step) == 0);
        else CHECK(do_advance(p, step) == 0);
    }
    if (count > 0) OK(retick_session_end_frame(p->session));
    return verdict;
}

static inline retick_result frame_by_callbacks(peer *p) {
    retick_callbacks callbacks;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.struct_size = sizeof callbacks;
    callbacks.user = p;
    callbacks.save = do_save;
    callbacks.load = do_load;
    callbacks.advance = do_advance;
    return retick_session_advance(p->session, &callbacks);
}

static inline void read_events(peer *p) {
    retick_event event;
    event.struct_size = sizeof event;
    while (retick_mesh_next_event(p->mesh, &event) == RETICK_OK) {
        CHECK(event.kind < 32 && event.text != NULL && strlen(event.text) > 8);
        if (getenv("SHOW")) printf("%u: %s\n", p->index, event.text);
        p->events[event.kind]++;
        if (event.kind == RETICK_EVENT_JOINED) {
            p->joined = 1;
            OK(retick_mesh_set_ready(p->mesh, p->local_slots ? p->local_slots : 1));
        }
        if (event.kind == RETICK_EVENT_PEER_CONNECTED) p->connected++;
        if (event.kind == RETICK_EVENT_MESSAGE) p->messages++;
    }
    if (p->is_host && p->wants_start && p->connected + 1 == (int)p->players) {
        p->wants_start = 0;
        OK(retick_mesh_start(p->mesh, 100));
    }
}

static inline void read_session_events(peer *p) {
    retick_event event;
    event.struct_size = sizeof event;
    while (retick_session_next_event(p->session, &event) == RETICK_OK) {
        CHECK(event.kind < 32 && event.text != NULL && strlen(event.text) > 8);
        if (getenv("SHOW")) printf("%u: %s\n", p->index, event.text);
        p->events[event.kind]++;
        if (event.kind == RETICK_EVENT_STARTED) p->started = 1;
    }
}

/* One picture of one peer. */
static inline void run_peer(peer *p) {
    uint32_t due = 0, slot;
    retick_start_info info;
    OK(retick_mesh_poll(p->mesh));
    read_events(p);
    read_session_events(p);
    OK(retick_session_frames_due(p->session, &due, NULL));
    info.struct_size = sizeof info;
    if (retick_session_start_info(p->session, &info) != RETICK_OK) return;
    for (; due > 0; due--) {
        retick_result verdict;
        uint32_t input = p->changing ? (uint32_t)mix(p->now.frame / p->changing + 1000 * p->index) : 5;
        for (slot = 0; slot < 16; slot++)
            if (info.local_slots >> slot & 1) OK(retick_session_add_local_input(p->session, slot, &input, 4));
        verdict = p->form == FORM_LIST ? frame_by_list(p) : frame_by_callbacks(p);
        CHECK(verdict >= 0 || verdict == RETICK_ERR_CALLBACK);
        read_session_events(p);
    }
}

typedef struct world {
    retick_simnet net;
    uint32_t players;
    peer peers[MAX_PLAYERS];
} world;

typedef void (*configure_fn)(retick_session_config *config, peer *p);

static inline void open_session(peer *p, configure_fn configure) {
    retick_session_config config;
    OK(retick_session_config_init(&config, sizeof config));
    config.desync_level = 2;
    config.state_mode = p->state_mode;
    if (configure) configure(&config, p);
    p->state_mode = config.state_mode;
    OK(retick_session_create(&config, p->mesh, &p->session));
    if (config.state_mode == RETICK_STATE_REGIONS) OK(retick_session_add_region(p->session, &p->now, sizeof p->now));
}

/* Peers that have met on a simulated network; the match has not started. */
static inline void open_world(world *w, uint32_t players, uint64_t seed, const retick_link *link, enum form form,
                              configure_fn configure) {
    uint32_t i, turn;
    uint8_t room[32];
    memset(w, 0, sizeof *w);
    w->players = players;
    OK(retick_simnet_create(seed, &w->net));
    if (link) OK(retick_simnet_set_link(w->net, RETICK_ALL_PEERS, RETICK_ALL_PEERS, link));
    for (i = 0; i < players; i++) {
        peer *p = &w->peers[i];
        retick_mesh_config config;
        p->index = i;
        p->players = players;
        p->form = form;
        p->changing = 3;
        p->is_host = p->wants_start = i == 0;
        OK(retick_mesh_config_init(&config, sizeof config));
        config.io_mode = RETICK_IO_SIMNET;
        config.simnet = w->net;
        config.max_peers = 16;
        OK(retick_mesh_create(&config, &p->mesh));
        open_session(p, configure);
    }
    OK(retick_mesh_host(w->peers[0].mesh));
    for (turn = 0; retick_mesh_room(w->peers[0].mesh, room) != RETICK_OK; turn++) {
        CHECK(turn < 100);
        OK(retick_simnet_advance(w->net, 10000));
        run_peer(&w->peers[0]);
    }
    for (i = 1; i < players; i++) OK(retick_mesh_join(w->peers[i].mesh, "sim:0", room));
}

static inline void run_world(world *w, uint32_t frames) {
    uint32_t turn, i;
    for (turn = 0; turn < frames; turn++) {
        OK(retick_simnet_advance(w->net, FRAME_US));
        for (i = 0; i < w->players; i++) run_peer(&w->peers[i]);
    }
}

static inline int32_t confirmed(const peer *p) {
    retick_stats stats;
    stats.struct_size = sizeof stats;
    OK(retick_session_stats(p->session, &stats));
    return stats.confirmed_frame;
}

/* Every confirmed frame that all hold is the same for all; says how many were compared. */
static inline uint32_t compare_world(world *w, uint32_t frames) {
    uint32_t frame, i, compared = 0;
    for (frame = 0; frame < frames; frame++) {
        uint64_t first = 0, other = 0;
        if (retick_session_confirmed_checksum(w->peers[0].session, (int32_t)frame, &first) != RETICK_OK) continue;
        for (i = 1; i < w->players; i++) {
            if (retick_session_confirmed_checksum(w->peers[i].session, (int32_t)frame, &other) != RETICK_OK) break;
            EXPECT(other, first);
        }
        compared += i == w->players;
    }
    return compared;
}

static inline void close_world(world *w) {
    uint32_t i;
    for (i = 0; i < w->players; i++) {
        OK(retick_session_destroy(w->peers[i].session));
        OK(retick_mesh_destroy(w->peers[i].mesh));
    }
    OK(retick_simnet_destroy(w->net));
}

static inline retick_link bad_link(uint32_t latency_us, uint32_t jitter_us, uint32_t loss_ppm) {
    retick_link link;
    OK(retick_link_init(&link, sizeof link));
    link.latency_us = latency_us;
    link.jitter_us = jitter_us;
    link.loss_ppm = loss_ppm;
    return link;
}

#endif
