/* See peer.h. Read from the bottom: arena_peer_turn is what a game does each time around its loop. */
#include "peer.h"
#include "term.h"
#include "view.h"

#include <string.h>

#define GAME_ID UINT64_C(0x6172656e61) /* "arena" */
#define BUILD_ID 1u                    /* raise it when the rules change: two builds of a game must not meet */
#define COUNTDOWN_MS 500u
#define MESSAGE_EVERY 60
#define MESSAGE_SIZE 24u
#define GRACE_US 2000000u  /* how long we wait for others to confirm the last frame */
#define HOLD_FRAMES 10
#define GOODBYE_US 100000u /* how long a goodbye may take to leave the machine */

enum { MESSAGE_NUMBER = 1, MESSAGE_DONE = 2 };

/* small helpers ------------------------------------------------------------------------------------------------------------ */

/* The status line stays where it is until something overwrites it. */
static const char *clear_line(const arena_peer *peer) { return peer->options->quiet || peer->options->simnet ? "" : "\033[K"; }

static int fail(arena_peer *peer, int outcome, const char *what)
{
    fprintf(stderr, "%sarena peer=%u: %s\n", clear_line(peer), peer->number, what);
    peer->outcome = outcome;
    peer->phase = ARENA_ENDED;
    return outcome;
}

/* Turns an error code into the end of the match. Codes above zero are information, not errors. */
static int check(arena_peer *peer, retick_result result, const char *call)
{
    char detail[200], text[320];
    if (result >= 0)
        return 1;
    retick_last_error(detail, sizeof detail);
    snprintf(text, sizeof text, "%s: %s: %s", call, retick_result_name(result), detail);
    fail(peer, ARENA_FAILED, text);
    return 0;
}

static void enter(arena_peer *peer, arena_phase phase, uint64_t now_us)
{
    peer->phase = phase;
    peer->phase_since_us = peer->progress_at_us = now_us;
}

static void store_u64(uint8_t *out, uint64_t value)
{
    uint32_t i;
    for (i = 0; i < 8u; i++)
        out[i] = (uint8_t)(value >> (8u * i));
}

static uint64_t load_u64(const uint8_t *in)
{
    uint64_t value = 0;
    uint32_t i;
    for (i = 0; i < 8u; i++)
        value |= (uint64_t)in[i] << (8u * i);
    return value;
}

static uint32_t count_bits(uint32_t mask)
{
    uint32_t count = 0;
    for (; mask != 0; mask &= mask - 1u)
        count++;
    return count;
}

/* the three things that retick asks of a game ------------------------------------------------------------------------------ */

static int32_t save(void *user, retick_step *step)
{
    arena_peer *peer = user;
    if (step->state_size < sizeof peer->state)
        return -1; /* cannot be: state_capacity says how much we write */
    memcpy(step->state, &peer->state, sizeof peer->state);
    step->saved_size = sizeof peer->state;
    return 0;
}

static int32_t load(void *user, retick_step *step)
{
    arena_peer *peer = user;
    if (step->state_size != sizeof peer->state)
        return -1;
    memcpy(&peer->state, step->state, sizeof peer->state);
    return 0;
}

static int32_t advance(void *user, retick_step *step)
{
    arena_peer *peer = user;
    if (step->frame != (int32_t)peer->state.frame)
        return -1; /* the state we hold is not the one that the step starts from */
    arena_step(&peer->state, step->inputs, step->input_sizes, step->slot_status);
    /* A frame that is computed again overwrites what was guessed, so the last entry written is the confirmed one. */
    peer->checksums[peer->state.frame % ARENA_HISTORY] = arena_checksum(&peer->state);
    /* Sounds and sparks would be played only when a frame is computed for the first time; we only count. */
    if (step->flags & RETICK_ADVANCE_RESIMULATING)
        peer->depth_now++;
    return 0;
}

/* input -------------------------------------------------------------------------------------------------------------------- */

/* Terminals tell of presses, not of releases: a key counts as held for some frames after each press or repeat. */
static void read_keys(arena_peer *peer)
{
    static const char keys[6] = {'w', 's', 'a', 'd', ' ', 'x'}; /* in the order of the button bits */
    uint32_t i;
    int key;
    while ((key = term_read_key()) >= 0) {
        for (i = 0; i < sizeof keys; i++)
            if (key == keys[i])
                peer->held[i] = HOLD_FRAMES;
        if (key == 'q' || key == 'e')
            peer->keys[1] = (uint8_t)(peer->keys[1] + (key == 'e' ? 8 : 248));
        if (key >= '1' && key <= '3')
            peer->keys[3] = (uint8_t)(key - '1');
    }
    peer->keys[0] = 0;
    peer->keys[2] = 255;
    for (i = 0; i < sizeof keys; i++)
        if (peer->held[i] > 0) {
            peer->held[i]--;
            peer->keys[0] |= (uint8_t)(1u << i);
        }
}

/* Once for each new frame, also when the library lets us wait with it: what is pressed during a stall must not be lost. */
static void make_inputs(arena_peer *peer)
{
    uint32_t slot, is_first = 1;
    if (peer->sampled_for == peer->stats.frame)
        return;
    peer->sampled_for = peer->stats.frame;
    for (slot = 0; slot < ARENA_PLAYERS; slot++) {
        if (!(peer->local >> slot & 1u))
            continue;
        if (is_first && peer->options->play) {
            read_keys(peer);
            memcpy(peer->inputs[slot], peer->keys, ARENA_INPUT_SIZE);
        } else {
            arena_bot_think(&peer->bots[slot], &peer->state, peer->inputs[slot]);
        }
        is_first = 0;
    }
}

/* a frame ------------------------------------------------------------------------------------------------------------------ */

static retick_result run_by_callbacks(arena_peer *peer)
{
    retick_callbacks callbacks;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.struct_size = sizeof callbacks;
    callbacks.user = peer;
    callbacks.save = save;
    callbacks.load = load;
    callbacks.advance = advance;
    return retick_session_advance(peer->session, &callbacks);
}

static retick_result run_by_list(arena_peer *peer)
{
    retick_step *steps;
    uint32_t count, i;
    retick_result closed, result = retick_session_begin_frame(peer->session, sizeof *steps, &steps, &count);
    if (result < 0)
        return result;
    for (i = 0; i < count; i++) {
        int32_t bad = steps[i].kind == RETICK_STEP_SAVE ? save(peer, &steps[i])
            : steps[i].kind == RETICK_STEP_LOAD         ? load(peer, &steps[i])
                                                        : advance(peer, &steps[i]);
        if (bad != 0) {
            retick_session_abort_frame(peer->session);
            return RETICK_ERR_CALLBACK;
        }
    }
    closed = retick_session_end_frame(peer->session);
    return closed < 0 ? closed : result;
}

/* The slowest round trip to another peer. */
static uint32_t measure_rtt_ms(const arena_peer *peer)
{
    uint32_t i, slowest_us = 0;
    for (i = 0; i < ARENA_MAX_PEERS; i++) {
        retick_peer_stats link;
        memset(&link, 0, sizeof link);
        link.struct_size = sizeof link;
        if (peer->others[i].is_here && retick_mesh_peer_stats(peer->mesh, i, &link) == RETICK_OK && link.rtt_us > slowest_us)
            slowest_us = link.rtt_us;
    }
    return slowest_us / 1000u;
}

/* Takes over the frames that became final: their checksums will not change any more. */
static void note_confirmed(arena_peer *peer, uint64_t now_us)
{
    /* All inputs before `confirmed_frame` are known, so the state that it begins with is final, as far as we have computed it. */
    int32_t last = peer->stats.confirmed_frame;
    if (last > (int32_t)peer->state.frame)
        last = (int32_t)peer->state.frame;
    for (; peer->next_final <= last && peer->next_final <= peer->options->frames; peer->next_final++) {
        uint64_t checksum = peer->checksums[(uint32_t)peer->next_final % ARENA_HISTORY];
        peer->history = (peer->history ^ checksum) * UINT64_C(0x9fb21c651e98df25);
        peer->history ^= peer->history >> 29;
        peer->final_checksum = checksum;
        peer->final_stats = peer->stats;
        peer->progress_at_us = now_us;
        if (peer->trace) {
            fprintf(peer->trace, "%d %016llx\n", (int)peer->next_final, (unsigned long long)checksum);
            if (peer->next_final % 60 == 0)
                fflush(peer->trace); /* so that a crash leaves something to compare */
        }
    }
    if (peer->phase == ARENA_PLAYING && peer->next_final > peer->options->frames) {
        if (peer->trace)
            fflush(peer->trace);
        peer->rtt_ms = measure_rtt_ms(peer);
        enter(peer, ARENA_WAITING, now_us);
    }
}

static void show(arena_peer *peer)
{
    const arena_options *options = peer->options;
    uint32_t i;
    if (peer->stats.frame % (options->view ? 5 : 10) != 0)
        return;
    peer->rtt_ms = measure_rtt_ms(peer);
    if (options->view)
        arena_draw(&peer->state, peer->local);
    if (!options->quiet) {
        printf("frame=%d lag=%d rollback=%u rtt_ms=%u stalls=%u score=", (int)peer->stats.frame,
            (int)(peer->stats.frame - peer->stats.confirmed_frame), peer->depth, peer->rtt_ms, (unsigned)peer->stats.stalls);
        for (i = 0; i < peer->state.player_count; i++)
            printf("%s%d", i == 0 ? "" : "/", (int)peer->state.ships[i].score);
        fputs("\033[K\r", stdout);
        fflush(stdout);
    }
    peer->depth = 0;
}

/* One frame: inputs in, steps run, figures out. Returns whether a new frame came of it. */
static int run_frame(arena_peer *peer, uint64_t now_us)
{
    const arena_options *options = peer->options;
    retick_result result;
    uint32_t slot;
    make_inputs(peer);
    for (slot = 0; slot < ARENA_PLAYERS; slot++)
        if ((peer->local >> slot & 1u) &&
            !check(peer, retick_session_add_local_input(peer->session, slot, peer->inputs[slot], ARENA_INPUT_SIZE), "add_local_input"))
            return 0;
    peer->depth_now = 0;
    result = options->callbacks ? run_by_callbacks(peer) : run_by_list(peer);
    peer->depth = peer->depth_now > peer->depth ? peer->depth_now : peer->depth;
    if (!check(peer, result, "the frame") ||
        !check(peer, retick_session_stats(peer->session, &peer->stats), "retick_session_stats"))
        return 0;
    note_confirmed(peer, now_us);
    if (result != RETICK_OK) { /* a frame was due, and others keep us from it */
        if (peer->stall_since_us == 0)
            peer->stall_since_us = now_us;
        return 0;
    }
    if (peer->stall_since_us != 0 && now_us - peer->stall_since_us > peer->longest_stall_us)
        peer->longest_stall_us = now_us - peer->stall_since_us;
    peer->stall_since_us = 0;
    if (peer->state.frame % MESSAGE_EVERY == 0 && (int32_t)peer->state.frame <= options->frames)
        peer->unsent++;
    if (!options->simnet)
        show(peer);
    return 1;
}

static void play(arena_peer *peer, uint32_t due, uint64_t now_us)
{
    const arena_options *options = peer->options;
    for (; due > 0 && run_frame(peer, now_us); due--) {
        int32_t frame = (int32_t)peer->state.frame;
        if (options->exit_at >= 0 && frame >= options->exit_at) {
            if (!options->simnet)
                term_die(ARENA_CRASHED);
            fail(peer, ARENA_CRASHED, "crashed on purpose");
            return;
        }
        if (options->hang_at >= 0 && frame >= options->hang_at && !peer->has_hung) {
            peer->has_hung = 1;
            peer->hang_until_us = now_us + (uint64_t)options->hang_ms * 1000u;
            return;
        }
    }
}

/* messages: numbered ones each second, and one at the end ------------------------------------------------------------------ */

static void send_messages(arena_peer *peer)
{
    uint8_t message[MESSAGE_SIZE] = {0};
    while (peer->unsent > 0 || (peer->phase == ARENA_WAITING && !peer->is_done_sent)) {
        retick_result result;
        uint32_t number = peer->sequence + (peer->unsent > 0);
        message[0] = peer->unsent > 0 ? MESSAGE_NUMBER : MESSAGE_DONE;
        message[4] = (uint8_t)number;
        message[5] = (uint8_t)(number >> 8);
        message[6] = (uint8_t)(number >> 16);
        store_u64(message + 8, peer->final_checksum);
        store_u64(message + 16, peer->history);
        result = retick_mesh_send(peer->mesh, RETICK_ALL_PEERS, 0, RETICK_RELIABLE, message, sizeof message);
        if (result == RETICK_ERR_WOULD_BLOCK)
            return; /* the queue is full: next turn */
        if (!check(peer, result, "retick_mesh_send"))
            return;
        if (peer->unsent > 0) {
            peer->unsent--;
            peer->sequence++;
        } else {
            peer->is_done_sent = 1;
        }
    }
}

static void on_message(arena_peer *peer, const retick_event *event)
{
    arena_other *other = &peer->others[event->peer % ARENA_MAX_PEERS];
    uint32_t number;
    if (event->data_size != MESSAGE_SIZE) {
        other->bad++;
        return;
    }
    number = event->data[4] | (uint32_t)event->data[5] << 8 | (uint32_t)event->data[6] << 16;
    if (event->data[0] == MESSAGE_NUMBER) {
        other->received++;
        other->bad += number != other->received || other->is_done;
        return;
    }
    /* How many there were in all: a lost last one shows here. */
    other->bad += number != other->received || other->is_done;
    other->is_done = 1;
    other->final_checksum = load_u64(event->data + 8);
    other->history = load_u64(event->data + 16);
}

/* Once we know the end ourselves: whether all who got there computed the same, at the last frame and at every one before. */
static void compare_results(arena_peer *peer)
{
    uint32_t i;
    for (i = 0; i < ARENA_MAX_PEERS; i++) {
        const arena_other *other = &peer->others[i];
        if (other->is_done && (other->final_checksum != peer->final_checksum || other->history != peer->history))
            peer->outcome = ARENA_DESYNC;
        if (other->bad > 0 && peer->outcome == ARENA_OK)
            peer->outcome = ARENA_GARBLED;
    }
}

/* events ------------------------------------------------------------------------------------------------------------------- */

static void say(const arena_peer *peer, const char *text)
{
    if (!peer->options->quiet)
        fprintf(stderr, "%sarena peer=%u: %s\n", clear_line(peer), peer->number, text);
}

static void on_joined(arena_peer *peer, const retick_event *event, uint64_t now_us)
{
    retick_session_config config;
    const arena_options *options = peer->options;
    peer->index = event->peer;
    retick_session_config_init(&config, sizeof config);
    config.input_max = ARENA_INPUT_SIZE;
    config.frame_rate = options->rate;
    config.input_delay = options->delay;
    config.prediction_window = options->window;
    config.desync_level = options->desync_level;
    config.state_capacity = sizeof(arena_state);
    /* All must agree on when the match ends, so it is part of what is compared before the start. */
    config.game_settings = (uint64_t)options->frames;
    if (!check(peer, retick_session_create(&config, peer->mesh, &peer->session), "retick_session_create") ||
        !check(peer, retick_mesh_set_ready(peer->mesh, options->slots), "retick_mesh_set_ready"))
        return;
    peer->ready |= 1u << event->peer;
    enter(peer, ARENA_LOBBY, now_us);
}

static void on_mesh_event(arena_peer *peer, const retick_event *event, uint64_t now_us)
{
    char text[160];
    switch (event->kind) {
    case RETICK_EVENT_JOINED:
        on_joined(peer, event, now_us);
        break;
    case RETICK_EVENT_REFUSED:
        snprintf(text, sizeof text, "%s (reason %u, ours %llx, theirs %llx)", event->text, event->reason,
            (unsigned long long)event->value0, (unsigned long long)event->value1);
        if (event->stream == 1u) /* it is us who may not come in */
            fail(peer, ARENA_REFUSED, text);
        else
            say(peer, text);
        break;
    case RETICK_EVENT_PEER_READY:
        peer->ready |= 1u << (event->peer % ARENA_MAX_PEERS);
        break;
    case RETICK_EVENT_SETTINGS_DIFFER:
        fail(peer, ARENA_REFUSED, "a peer has other settings (rate, desync level or number of frames)");
        break;
    case RETICK_EVENT_INTERRUPTED:
    case RETICK_EVENT_RESUMED:
        say(peer, event->text);
        break;
    case RETICK_EVENT_LEFT:
        peer->others[event->peer % ARENA_MAX_PEERS].is_here = 0;
        peer->ready &= ~(1u << (event->peer % ARENA_MAX_PEERS));
        if (peer->phase < ARENA_WAITING) /* after the end everybody goes */
            say(peer, event->text);
        break;
    case RETICK_EVENT_MESSAGE:
        on_message(peer, event);
        break;
    default:
        break;
    }
}

/* Frame 0 is agreed: all peers build the same arena from the seed that they drew together. */
static void on_started(arena_peer *peer, uint64_t now_us)
{
    retick_start_info info;
    uint32_t slot;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    if (!check(peer, retick_session_start_info(peer->session, &info), "retick_session_start_info") ||
        !check(peer, retick_session_stats(peer->session, &peer->stats), "retick_session_stats"))
        return;
    arena_init(&peer->state, info.seed, info.slot_count);
    peer->checksums[0] = arena_checksum(&peer->state);
    peer->local = info.local_slots;
    peer->sampled_for = -1;
    for (slot = 0; slot < info.slot_count && slot < ARENA_PLAYERS; slot++) {
        arena_bot_init(&peer->bots[slot], peer->options->seed, slot, peer->options->busy);
        if (info.slot_peer[slot] < ARENA_MAX_PEERS && info.slot_peer[slot] != peer->index)
            peer->others[info.slot_peer[slot]].is_here = 1;
    }
    enter(peer, ARENA_PLAYING, now_us);
}

static void on_session_event(arena_peer *peer, const retick_event *event, uint64_t now_us)
{
    char text[160];
    switch (event->kind) {
    case RETICK_EVENT_STARTED:
        on_started(peer, now_us);
        break;
    case RETICK_EVENT_SLOT_LEFT:
        if (peer->phase < ARENA_WAITING)
            say(peer, event->text);
        break;
    case RETICK_EVENT_DESYNC:
        snprintf(text, sizeof text, "desync with peer %u at frame %d", event->peer, (int)event->frame);
        fail(peer, ARENA_DESYNC, text);
        break;
    case RETICK_EVENT_CUT_OFF:
        if (peer->phase == ARENA_LEAVING) /* it is we who go */
            break;
        fail(peer, ARENA_REFUSED, "the others went on without us");
        break;
    default:
        break;
    }
}

static void drain_events(arena_peer *peer, uint64_t now_us)
{
    retick_event event;
    memset(&event, 0, sizeof event);
    event.struct_size = sizeof event;
    if (!check(peer, retick_mesh_poll(peer->mesh), "retick_mesh_poll"))
        return;
    while (peer->phase != ARENA_ENDED && retick_mesh_next_event(peer->mesh, &event) == RETICK_OK)
        on_mesh_event(peer, &event, now_us);
    while (peer->phase != ARENA_ENDED && peer->session.id != 0 && retick_session_next_event(peer->session, &event) == RETICK_OK)
        on_session_event(peer, &event, now_us);
}

/* the life of a peer ------------------------------------------------------------------------------------------------------- */

int arena_peer_open(arena_peer *peer, const arena_options *options, retick_simnet net, uint32_t number)
{
    retick_mesh_config config;
    retick_link link;
    memset(peer, 0, sizeof *peer);
    peer->options = options;
    peer->number = number;
    peer->stats.struct_size = sizeof peer->stats;
    if (options->trace) {
        char name[512];
        if (options->simnet)
            snprintf(name, sizeof name, "%s.%u", options->trace, number);
        else
            snprintf(name, sizeof name, "%s", options->trace);
        peer->trace = fopen(name, "w");
        if (!peer->trace)
            return fail(peer, ARENA_FAILED, "the trace file cannot be written");
    }
    retick_mesh_config_init(&config, sizeof config);
    config.game_id = GAME_ID;
    config.build_id = BUILD_ID;
    config.max_peers = options->peers > 2u ? options->peers : 2u;
    config.suspect_ms = options->suspect_ms;
    config.cut_after_ms = options->cut_ms;
    config.bind_port = options->port;
    if (options->simnet) {
        config.io_mode = RETICK_IO_SIMNET;
        config.simnet = net;
    }
    if (!check(peer, retick_mesh_create(&config, &peer->mesh), "retick_mesh_create"))
        return peer->outcome;
    if (!options->simnet && (options->latency_us | options->jitter_us | options->loss_ppm | options->duplicate_ppm) != 0) {
        retick_link_init(&link, sizeof link);
        link.latency_us = options->latency_us;
        link.jitter_us = options->jitter_us;
        link.loss_ppm = options->loss_ppm;
        link.duplicate_ppm = options->duplicate_ppm;
        if (!check(peer, retick_mesh_set_conditioner(peer->mesh, &link, options->seed), "retick_mesh_set_conditioner"))
            return peer->outcome;
    }
    peer->is_hosting = options->join == NULL;
    if (peer->is_hosting)
        check(peer, retick_mesh_host(peer->mesh), "retick_mesh_host");
    else
        check(peer, retick_mesh_join(peer->mesh, options->join, options->room), "retick_mesh_join");
    return peer->outcome;
}

/* The host starts when enough are ready. */
static void start_when_ready(arena_peer *peer)
{
    retick_result result;
    if (!peer->is_hosting || peer->has_asked_start || count_bits(peer->ready) < peer->options->peers)
        return;
    result = retick_mesh_start(peer->mesh, COUNTDOWN_MS);
    if (result == RETICK_ERR_INVALID_STATE)
        return; /* not all are connected to each other yet: again next turn */
    peer->has_asked_start = (uint32_t)check(peer, result, "retick_mesh_start");
}

static void wait_for_others(arena_peer *peer, uint64_t now_us)
{
    uint32_t i, waiting = 0;
    for (i = 0; i < ARENA_MAX_PEERS; i++)
        waiting += peer->others[i].is_here && !peer->others[i].is_done;
    if (!peer->is_done_sent || (waiting > 0 && now_us - peer->phase_since_us < GRACE_US))
        return;
    compare_results(peer);
    arena_peer_quit(peer, now_us);
}

void arena_peer_quit(arena_peer *peer, uint64_t now_us)
{
    if (peer->phase >= ARENA_LEAVING)
        return;
    if (check(peer, retick_mesh_leave(peer->mesh), "retick_mesh_leave"))
        enter(peer, ARENA_LEAVING, now_us);
}

int arena_peer_turn(arena_peer *peer, uint64_t now_us)
{
    uint32_t due = 0; /* frames */
    if (peer->phase == ARENA_ENDED || now_us < peer->hang_until_us)
        return peer->phase != ARENA_ENDED;
    if (peer->phase_since_us == 0)
        enter(peer, peer->phase, now_us);
    /* First of all, also before the start: this is where the session hears what its network half has for it. A game that draws more
     * often than it computes would ask for alpha too. */
    if (peer->session.id != 0 && !check(peer, retick_session_frames_due(peer->session, &due, NULL), "retick_session_frames_due"))
        return 0;
    drain_events(peer, now_us);
    if (peer->phase == ARENA_LOBBY)
        start_when_ready(peer);
    if (peer->phase == ARENA_PLAYING || peer->phase == ARENA_WAITING) {
        play(peer, due, now_us); /* goes on while we wait: others still need our inputs */
        send_messages(peer);
    }
    if (peer->phase == ARENA_WAITING)
        wait_for_others(peer, now_us);
    if (peer->phase == ARENA_LEAVING && now_us - peer->phase_since_us > GOODBYE_US)
        peer->phase = ARENA_ENDED;
    if (peer->phase < ARENA_LEAVING && now_us > peer->progress_at_us + (uint64_t)peer->options->timeout_ms * 1000u)
        fail(peer, ARENA_REFUSED, peer->phase < ARENA_PLAYING ? "the match did not start in time" : "no frame was confirmed in time");
    return peer->phase != ARENA_ENDED;
}

void arena_peer_figures(const arena_peer *peer, FILE *out)
{
    const retick_stats *stats = &peer->final_stats;
    uint32_t i, received = 0, bad = 0;
    int32_t confirmed = peer->next_final - 1;
    for (i = 0; i < ARENA_MAX_PEERS; i++) {
        received += peer->others[i].received;
        bad += peer->others[i].bad;
    }
    fprintf(out,
        "arena peer=%u frames=%d confirmed=%d rollbacks=%llu resimulated=%llu longest=%u stalls=%llu longest_stall_ms=%u rtt_ms=%u "
        "messages=%u/%u/%u checksum=%016llx history=%016llx outcome=%d\n",
        peer->index, (int)peer->options->frames, (int)confirmed, (unsigned long long)stats->rollbacks,
        (unsigned long long)stats->resimulated_frames, (unsigned)stats->longest_rollback, (unsigned long long)stats->stalls,
        (unsigned)(peer->longest_stall_us / 1000u), peer->rtt_ms, peer->sequence, received, bad,
        (unsigned long long)peer->final_checksum, (unsigned long long)peer->history, peer->outcome);
    fflush(out);
}

void arena_peer_close(arena_peer *peer)
{
    retick_session_destroy(peer->session);
    retick_mesh_destroy(peer->mesh);
    if (peer->trace)
        fclose(peer->trace);
    peer->trace = NULL;
}
