/* One peer of a match: its mesh, its session, its copy of the arena. The whole use of retick is in peer.c.
 *
 * A peer never blocks and never asks the time: `arena_peer_turn` is called again and again with what the clock says. So the same
 * code plays over sockets, a turn each millisecond, and over a simulated network, where a match takes as long as it computes.
 */
#ifndef ARENA_PEER_H
#define ARENA_PEER_H

#include "bot.h"
#include "retick.h"
#include "sim.h"

#include <stdio.h>

/* How a peer ends; also the exit code of the program. */
#define ARENA_OK 0
#define ARENA_FAILED 1  /* wrong options, or a call failed */
#define ARENA_DESYNC 2  /* the peers did not compute the same */
#define ARENA_REFUSED 3 /* not let in, no progress for too long, or cut off by the others */
#define ARENA_GARBLED 4 /* a reliable message was lost, doubled or out of order */
#define ARENA_CRASHED 9 /* on purpose: --exit-at */

#define ARENA_MAX_PEERS 16u
#define ARENA_HISTORY 256u /* frames whose checksums are kept; more than the largest window and delay together */

typedef struct arena_options {
    const char *join; /* address of any peer in the room; NULL = open the room */
    uint8_t room[32];
    uint32_t port, peers, slots, rate, delay, window, desync_level, suspect_ms, cut_ms, timeout_ms;
    int32_t frames;
    uint32_t latency_us, jitter_us, loss_ppm, duplicate_ppm;
    uint64_t seed;
    uint32_t busy, play, quiet, view, callbacks, simnet;
    const char *trace;
    int32_t exit_at, hang_at; /* -1 = never */
    uint32_t hang_ms;
} arena_options;

typedef enum arena_phase {
    ARENA_JOINING, /* until the room has taken us in */
    ARENA_LOBBY,   /* until frame 0 is agreed */
    ARENA_PLAYING, /* until the last frame is confirmed here */
    ARENA_WAITING, /* until it is confirmed at the others too */
    ARENA_LEAVING, /* goodbye is on its way */
    ARENA_ENDED
} arena_phase;

/* What one other peer told us. */
typedef struct arena_other {
    uint32_t is_here, is_done;
    uint32_t received, bad; /* numbered messages */
    uint64_t final_checksum, history;
} arena_other;

typedef struct arena_peer {
    const arena_options *options;
    retick_mesh mesh;
    retick_session session;
    arena_phase phase;
    int outcome;
    uint32_t index;        /* in the mesh */
    uint32_t number;       /* in this process */
    uint32_t ready, local; /* bit masks: ready peers, slots played here */
    uint32_t is_hosting, has_asked_start, has_hung;
    uint64_t phase_since_us, progress_at_us, hang_until_us, stall_since_us, longest_stall_us;

    arena_state state;
    arena_bot bots[ARENA_PLAYERS];
    uint8_t inputs[ARENA_PLAYERS][ARENA_INPUT_SIZE];
    int32_t sampled_for; /* the frame that `inputs` were made for */
    uint8_t keys[ARENA_INPUT_SIZE], held[6]; /* a human's */

    uint64_t checksums[ARENA_HISTORY]; /* of frame f at f % ARENA_HISTORY; rewritten by a rollback */
    int32_t next_final;                /* the first frame that is not yet in `history` */
    uint64_t history;                  /* digest of the checksums of all frames 0..frames */
    uint64_t final_checksum;
    retick_stats stats, final_stats;
    uint32_t rtt_ms, depth, depth_now; /* frames computed again: the most since the last status line, and in this frame */

    arena_other others[ARENA_MAX_PEERS];
    uint32_t sequence, unsent, is_done_sent; /* our own numbered messages */
    FILE *trace;
} arena_peer;

/* Opens a mesh, and hosts or joins as `options` say. `net` is a null handle for real sockets. Returns an ARENA_… code. */
int arena_peer_open(arena_peer *peer, const arena_options *options, retick_simnet net, uint32_t number);

/* Does what is due. Returns whether the peer goes on. */
int arena_peer_turn(arena_peer *peer, uint64_t now_us);

/* Says goodbye as soon as possible. */
void arena_peer_quit(arena_peer *peer, uint64_t now_us);

/* The line of figures. */
void arena_peer_figures(const arena_peer *peer, FILE *out);

void arena_peer_close(arena_peer *peer);

#endif
