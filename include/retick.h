/* retick.h - deterministic multiplayer for any game engine: rollback netcode over a serverless UDP mesh.
 *
 * Generated from src/ffi by `cargo run -p retick-gen -- --bless`; do not edit. MIT OR Apache-2.0
 *
 * The contract, for every function:
 *
 *  - Results are int32_t: 0 is ok, above 0 is ok with information, below 0 is an error. retick_last_error has the
 *    sentence for a person: which argument, what is wrong, what to do. Nothing is printed, nothing aborts.
 *  - Handles are numbers by value; { 0 } is null. A null, destroyed, random or foreign handle is
 *    RETICK_ERR_INVALID_HANDLE. Destroying null is ok.
 *  - Any thread may call. One handle is used by one thread at a time; a second one gets RETICK_ERR_BUSY.
 *  - The game's functions run only inside a call that the game made, on its thread; never on a thread of the library.
 *    The allocator of retick_set_allocator is the one exception.
 *  - Structs with struct_size: call retick_..._init, or set it to sizeof before each call where the field says so.
 *    Programs built with an older or newer header work: the library reads and writes as many bytes as both know.
 *  - Texts are UTF-8 and NUL-terminated. Texts and structs that go in are copied. A pointer that comes out says until
 *    when it lives. There is nothing to free, ever.
 *  - Pointers must be null or valid for the bytes that the function names; null where it is not allowed is
 *    RETICK_ERR_INVALID_ARGUMENT.
 *  - Units are in the names: _us are microseconds, _ms milliseconds, _ppm millionths. Frames are int32_t from 0.
 *
 * The smallest use: retick_mesh_create, _host or _join; retick_session_create; retick_mesh_set_ready, _start; then once a
 * picture: retick_mesh_poll and its events, and retick_session_advance as often as retick_session_frames_due says.
 */
#ifndef RETICK_H
#define RETICK_H

#include <stdint.h>

#if !defined(RETICK_API)
#  if defined(RETICK_STATIC)
#    define RETICK_API
#  elif defined(_WIN32)
#    define RETICK_API __declspec(dllimport)
#  elif defined(__GNUC__)
#    define RETICK_API __attribute__((visibility("default")))
#  else
#    define RETICK_API
#  endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- library: versions, errors, log, allocator, shutdown ------------------------------------------------- */

/**
 * What a call returned: 0 ok, above 0 ok with information, below 0 an error.
 */
typedef int32_t retick_result;

/** Done. */
#define RETICK_OK 0
/** Done; there was nothing to return (an empty queue, a value that is not held). */
#define RETICK_NONE 1
/** No new frame: something is missing (see retick_stats). Run the steps, repeat the last picture. */
#define RETICK_STALL 2
/** No new frame, but corrected ones: run the steps, draw. */
#define RETICK_RESIMULATE_ONLY 3
/** An argument makes no sense; retick_last_error says which and why. */
#define RETICK_ERR_INVALID_ARGUMENT (-1)
/** The handle is null, destroyed, of another kind, or was never made. */
#define RETICK_ERR_INVALID_HANDLE (-2)
/** Another thread is in this handle, or the call makes no sense inside a callback or while a step list is open. */
#define RETICK_ERR_BUSY (-3)
/** The text or list was cut to fit; the full length was reported. */
#define RETICK_ERR_BUFFER_TOO_SMALL (-4)
/** A callback of the game returned non-zero; the frame was aborted. */
#define RETICK_ERR_CALLBACK (-5)
/** A bug in retick: this handle is unusable, destroy it. The others go on. */
#define RETICK_ERR_PANIC (-6)
/** The operating system refused something; retick_last_error has its words. */
#define RETICK_ERR_SYSTEM (-7)
/** Not available in this build or mode. */
#define RETICK_ERR_UNSUPPORTED (-8)
/** Header and library do not fit together. */
#define RETICK_ERR_VERSION (-9)
/** Not now: the call comes too early or too late. */
#define RETICK_ERR_INVALID_STATE (-10)
/** A queue is full; try again after the next poll. */
#define RETICK_ERR_WOULD_BLOCK (-11)
/** More bytes than the documented limit. */
#define RETICK_ERR_TOO_LARGE (-12)
/** retick_shutdown was called while this handle was in use. */
#define RETICK_ERR_SHUT_DOWN (-13)

/** Version of the binary interface that this header describes. */
#define RETICK_ABI_VERSION 1u
/** Version of the library that this header came with. */
#define RETICK_VERSION_MAJOR 0u
/** Version of the library that this header came with. */
#define RETICK_VERSION_MINOR 1u
/** Version of the library that this header came with. */
#define RETICK_VERSION_PATCH 0u

/** retick_struct_size: retick_mesh_config. */
#define RETICK_STRUCT_MESH_CONFIG 1u
/** retick_struct_size: retick_link. */
#define RETICK_STRUCT_LINK 2u
/** retick_struct_size: retick_peer_stats. */
#define RETICK_STRUCT_PEER_STATS 3u
/** retick_struct_size: retick_event. */
#define RETICK_STRUCT_EVENT 4u
/** retick_struct_size: retick_session_config. */
#define RETICK_STRUCT_SESSION_CONFIG 5u
/** retick_struct_size: retick_start_info. */
#define RETICK_STRUCT_START_INFO 6u
/** retick_struct_size: retick_step. */
#define RETICK_STRUCT_STEP 7u
/** retick_struct_size: retick_callbacks. */
#define RETICK_STRUCT_CALLBACKS 8u
/** retick_struct_size: retick_stats. */
#define RETICK_STRUCT_STATS 9u
/** retick_struct_size: retick_sample. */
#define RETICK_STRUCT_SAMPLE 10u

/** log level: nothing. */
#define RETICK_LOG_OFF 0u
/** log level: something failed. */
#define RETICK_LOG_ERROR 1u
/** log level: something is odd. */
#define RETICK_LOG_WARN 2u
/** log level: milestones of a match. */
#define RETICK_LOG_INFO 3u
/** log level: decisions. */
#define RETICK_LOG_DEBUG 4u
/** log level: packets. */
#define RETICK_LOG_TRACE 5u

/**
 * Takes one log line; target and message are UTF-8, NUL-terminated, and live until it returns. level is RETICK_LOG_*.
 */
typedef void (*retick_log_fn)(void *user, uint32_t level, const char *target, const char *message);

/**
 * Gives size bytes at a multiple of align (a power of two), or NULL.
 */
typedef void *(*retick_alloc_fn)(void *user, uint64_t size, uint64_t align);

/**
 * Takes memory of a retick_alloc_fn back, with the size and align it was asked for.
 */
typedef void (*retick_free_fn)(void *user, void *memory, uint64_t size, uint64_t align);

/**
 * The binary interface that the loaded library has. Compare it with RETICK_ABI_VERSION at start-up.
 *
 * \returns a number that is raised only when an old caller would break.
 *
 * Thread: any, at any time.
 * Since: 0.1
 */
RETICK_API uint32_t retick_abi_version(void);

/**
 * The version of the loaded library, such as "0.1.0".
 *
 * \returns a static text.
 *
 * Thread: any, at any time.
 * Since: 0.1
 */
RETICK_API const char *retick_version(void);

/**
 * The name of a result, such as "RETICK_ERR_BUSY".
 *
 * \param result any number.
 * \returns a static text; "RETICK_ERR_UNKNOWN" for a number that is none.
 *
 * Thread: any, at any time.
 * Since: 0.1
 */
RETICK_API const char *retick_result_name(retick_result result);

/**
 * Why the newest failed call of this thread failed: a sentence that says which argument, what is wrong, what to do.
 *
 * \param buffer where to write the text, UTF-8 and NUL-terminated; may be NULL when capacity is 0.
 * \param capacity bytes at buffer; a longer text is cut.
 * \returns bytes of the whole text without NUL; 0 when no call of this thread has failed yet.
 *
 * Thread: any; each thread has its own.
 * Since: 0.1
 */
RETICK_API uint32_t retick_last_error(char *buffer, uint32_t capacity);

/**
 * The size that the loaded library has for a struct, so that a binding can check its own layout.
 *
 * \param which RETICK_STRUCT_*.
 * \returns bytes; 0 for a struct that this version does not have.
 *
 * Thread: any, at any time.
 * Since: 0.1
 */
RETICK_API uint32_t retick_struct_size(uint32_t which);

/**
 * Where log lines go. They are delivered inside calls of the game: retick_mesh_poll, retick_session_begin_frame,
 * retick_session_advance, retick_simnet_advance and destroy; lines of the IO thread wait for that in a bounded queue.
 *
 * \param log the function, or NULL to drop all lines. It may call retick, except retick_set_log and retick_shutdown.
 * \param user handed to log.
 * \param max_level RETICK_LOG_OFF to RETICK_LOG_TRACE.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_BUSY from inside log, or while another thread is in it.
 *
 * Thread: any. log is called by one thread at a time, inside that thread's own calls.
 * Lifetime: log and user are used until the next retick_set_log or retick_shutdown returns.
 * Since: 0.1
 */
RETICK_API retick_result retick_set_log(retick_log_fn log, void *user, uint32_t max_level);

/**
 * Makes every allocation of the library go through the game's functions. Only before any other call that can fail.
 *
 * \param alloc gives size bytes at a multiple of align (a power of two), or NULL, which ends the process.
 * \param release takes memory of alloc back, with the same size and align.
 * \param user handed to both.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT for a NULL function; RETICK_ERR_BUSY when the library was used before.
 *
 * Thread: any. The functions may be called on any thread, several at once: they must be thread-safe and must not call retick.
 * Lifetime: alloc, release and user are used until the process ends; retick_shutdown does not change that.
 * Since: 0.1
 */
RETICK_API retick_result retick_set_allocator(retick_alloc_fn alloc, retick_free_fn release, void *user);

/**
 * Ends everything: every mesh says goodbye, every handle dies, every thread of the library is joined, the log function
 * is forgotten. Call it before the library's code or the game's callbacks go away (hot reload, plug-in unload).
 * May be called twice; afterwards everything works as in a fresh process. Not needed before the process exits.
 *
 * \returns RETICK_OK; RETICK_ERR_BUSY from inside a callback.
 *
 * Thread: any, outside of callbacks. A call that runs on another thread is waited for.
 * Lifetime: the memory of an open step list stays until it is closed (RETICK_ERR_SHUT_DOWN); all other pointers end here.
 * Since: 0.1
 */
RETICK_API retick_result retick_shutdown(void);

/* ---- handles --------------------------------------------------------------------------------------------- */

/**
 * Names one peer's place in a room: who is there, on which path, who coordinates. Zero names nothing.
 */
typedef struct retick_mesh {
    /** Opaque; 0 is null. */
    uint64_t id;
} retick_mesh;

/**
 * Names the timeline of one game. Zero names nothing.
 */
typedef struct retick_session {
    /** Opaque; 0 is null. */
    uint64_t id;
} retick_session;

/**
 * Names a simulated network. Zero names nothing.
 */
typedef struct retick_simnet {
    /** Opaque; 0 is null. */
    uint64_t id;
} retick_simnet;

/* ---- events: what meshes and sessions tell --------------------------------------------------------------- */

/** Mesh: we are in the room; peer = our index. retick_mesh_room works from here on. */
#define RETICK_EVENT_JOINED 1u
/** Mesh: somebody was not let in: reason = RETICK_REFUSE_*, value0 ours, value1 theirs; stream = 1 when it is us who were refused. */
#define RETICK_EVENT_REFUSED 2u
/** Mesh: a member was admitted. */
#define RETICK_EVENT_PEER_JOINED 3u
/** Mesh: the direct channel to a member is up. */
#define RETICK_EVENT_PEER_CONNECTED 4u
/** Mesh: a member is ready; value0 = how many slots it plays. */
#define RETICK_EVENT_PEER_READY 5u
/** Mesh: the start was refused because a member's session settings differ; value0 our digest, value1 theirs. */
#define RETICK_EVENT_SETTINGS_DIFFER 6u
/** Mesh: the match starts; value0 = mesh time of frame 0 in microseconds. */
#define RETICK_EVENT_STARTING 7u
/** Mesh: nothing was heard of a member for suspect_ms. */
#define RETICK_EVENT_INTERRUPTED 8u
/** Mesh: a member is heard again; value0 = how many milliseconds it was silent. */
#define RETICK_EVENT_RESUMED 9u
/** Mesh: a member's game stopped calling in, though its network is alive. */
#define RETICK_EVENT_PEER_STALLED 10u
/** Mesh: a member's game calls in again. */
#define RETICK_EVENT_PEER_UNSTALLED 11u
/** Mesh: a member is gone; reason = RETICK_LEAVE_*. With our own index: the others went on without us. */
#define RETICK_EVENT_LEFT 12u
/** Mesh: one message; peer, stream, value0 = the delivery, data, data_size. */
#define RETICK_EVENT_MESSAGE 13u
/**
 * Mesh: the network half of this mesh no longer runs, and all others see silence: it failed (the log says why), or its simulated
 * network was destroyed. Destroy the mesh; another one can be created.
 */
#define RETICK_EVENT_FAILED 14u
/** Session: the match begins; read the roster with retick_session_start_info. */
#define RETICK_EVENT_STARTED 20u
/** Session: from `frame` on the slot uses the disconnect input, on every peer alike. */
#define RETICK_EVENT_SLOT_LEFT 21u
/** Session: two digests of one confirmed frame differ; value0 ours, value1 the other peer's. */
#define RETICK_EVENT_DESYNC 22u
/** Session: the others went on without us; nothing will be confirmed any more. */
#define RETICK_EVENT_CUT_OFF 23u
/** value0 events were dropped because the game did not read them. */
#define RETICK_EVENT_OVERFLOW 24u

/** reason of RETICK_EVENT_LEFT: it said goodbye. */
#define RETICK_LEAVE_GOODBYE 1u
/** reason of RETICK_EVENT_LEFT: silence. */
#define RETICK_LEAVE_TIMED_OUT 2u
/** reason of RETICK_EVENT_LEFT: the others went on without it. */
#define RETICK_LEAVE_CUT_OFF 3u
/**
 * reason of RETICK_EVENT_LEFT: another process joins from its very address, so its own is gone. Told by the coordinator; the
 * others say RETICK_LEAVE_TIMED_OUT.
 */
#define RETICK_LEAVE_RESTARTED 4u

/** reason of RETICK_EVENT_REFUSED: another game_id. */
#define RETICK_REFUSE_GAME_ID 1u
/** reason of RETICK_EVENT_REFUSED: another build_id. */
#define RETICK_REFUSE_BUILD_ID 2u
/** reason of RETICK_EVENT_REFUSED: another version of the wire protocol. */
#define RETICK_REFUSE_WIRE_VERSION 3u
/** reason of RETICK_EVENT_REFUSED: session settings differ. */
#define RETICK_REFUSE_SETTINGS 4u
/** reason of RETICK_EVENT_REFUSED: all places are taken. */
#define RETICK_REFUSE_ROOM_FULL 5u
/** reason of RETICK_EVENT_REFUSED: the match is running. */
#define RETICK_REFUSE_ALREADY_STARTED 6u
/** reason of RETICK_EVENT_REFUSED: the secret, the room key or a certificate is wrong. */
#define RETICK_REFUSE_BAD_ROOM 7u
/** reason of RETICK_EVENT_REFUSED: nobody answered at that address. */
#define RETICK_REFUSE_NO_ANSWER 8u
/** reason of RETICK_EVENT_REFUSED: that member does not admit; join through the room's coordinator. */
#define RETICK_REFUSE_NOT_COORDINATOR 9u

/**
 * News for the game. Fields that a kind does not name are 0 (peer, slot: RETICK_NO_PEER, RETICK_NO_SLOT; frame: -1).
 */
typedef struct retick_event {
    /** Set by the caller: sizeof(retick_event). */
    uint32_t struct_size;
    /** RETICK_EVENT_*; ignore kinds that you do not know. */
    uint32_t kind;
    /** Which peer, or RETICK_NO_PEER. */
    uint32_t peer;
    /** Which slot, or RETICK_NO_SLOT. */
    uint32_t slot;
    /** Which frame, or -1. */
    int32_t frame;
    /** RETICK_LEAVE_* or RETICK_REFUSE_*. */
    uint32_t reason;
    /** See the kind. */
    int64_t value0;
    /** See the kind. */
    int64_t value1;
    /** MESSAGE: its stream. */
    uint32_t stream;
    /** Bytes at data. */
    uint32_t data_size;
    /** The event as a sentence, UTF-8; never NULL. Lives until the next poll (mesh) or begin of a frame (session) of this handle. */
    const char *text;
    /** MESSAGE: its bytes. Lives as long as text. */
    const uint8_t *data;
} retick_event;

/* ---- mesh: who is there, on which path, who coordinates -------------------------------------------------- */

/** io_mode: one thread of the library serves the sockets of every mesh of the process. The default. */
#define RETICK_IO_THREAD 0u
/** io_mode: the game drives sockets and timers by calling retick_io_turn; no thread exists. */
#define RETICK_IO_MANUAL 1u
/** io_mode: the game carries the datagrams (retick_mesh_receive, retick_mesh_next_outgoing); no socket, no thread. */
#define RETICK_IO_CUSTOM 2u
/** io_mode: the mesh is attached to a simulated network and runs in its virtual time. */
#define RETICK_IO_SIMNET 3u

/** Most members of a mesh, and most slots of a session. */
#define RETICK_MAX_PEERS 16u
/** Bytes of a room: 16 secret, then 16 fingerprint of the room's key. */
#define RETICK_ROOM_SIZE 32u
/** Most bytes of one message. */
#define RETICK_MAX_MESSAGE 1024u
/** Every other peer (retick_mesh_send), or every node (retick_simnet_set_link). */
#define RETICK_ALL_PEERS 0xFFFFFFFFu
/** No peer: what an event says when it is about none, or about one that has no index. */
#define RETICK_NO_PEER 0xFFFFFFFFu
/** No slot. */
#define RETICK_NO_SLOT 0xFFFFFFFFu

/** delivery: exactly once, in order within its stream. */
#define RETICK_RELIABLE 0u
/** delivery: at most once, in any order. */
#define RETICK_UNRELIABLE 1u
/** delivery: at most once; one older than the newest delivered of its stream is dropped. */
#define RETICK_UNRELIABLE_NEWEST 2u

/**
 * How a mesh is set up. Fill it with retick_mesh_config_init, then change what you need.
 */
typedef struct retick_mesh_config {
    /** Set by retick_mesh_config_init: the size that the caller was compiled with. */
    uint32_t struct_size;
    /** RETICK_IO_THREAD (default), _MANUAL, _CUSTOM or _SIMNET. */
    uint32_t io_mode;
    /** Most members of the room, 2 to 16; default 8. */
    uint32_t max_peers;
    /** UDP port to bind, 0 to 65535; 0 (default) = any. THREAD and MANUAL. */
    uint32_t bind_port;
    /** Peers with another value are refused, with that reason. Default 0. */
    uint64_t game_id;
    /** Likewise: two builds of one game do not meet. Default 0. */
    uint64_t build_id;
    /** Milliseconds of silence after which a peer is suspected (RETICK_EVENT_INTERRUPTED), 100 to 600000; 0 = never; default 150. */
    uint32_t suspect_ms;
    /** Milliseconds of silence after which a peer's slots leave the match, suspect_ms to 600000; 0 = never; default 400. */
    uint32_t cut_after_ms;
    /** A peer whose game hands in nothing for this many milliseconds is cut; 0 (default) = the others wait. */
    uint32_t stall_cut_ms;
    /** Milliseconds of silence after which a member of the lobby is forgotten; 0 = never; default 15000. */
    uint32_t forget_after_ms;
    /** Largest datagram in bytes, 600 to 1200; default 1200. */
    uint32_t max_datagram;
    /** CUSTOM: bytes of local_address, 1 to 64. */
    uint32_t local_address_size;
    /** SIMNET: the network to attach to. */
    retick_simnet simnet;
    /** Local address to bind, as text ("0.0.0.0", "::1"); NULL (default) = every address, IPv4 and IPv6. Copied. */
    const char *bind_address;
    /** CUSTOM: the address under which the other peers reach this one; bytes that only the game understands. Copied. */
    const uint8_t *local_address;
} retick_mesh_config;

/**
 * What a directed link does to datagrams. Fill it with retick_link_init (a perfect link), then change what you need.
 */
typedef struct retick_link {
    /** Set by retick_link_init. */
    uint32_t struct_size;
    /** One-way delay in microseconds. */
    uint32_t latency_us;
    /** Uniform extra delay, 0 to this many microseconds. */
    uint32_t jitter_us;
    /** Independent loss, of a million datagrams (20000 = 2 %). */
    uint32_t loss_ppm;
    /** Chance, of a million for each datagram, that a burst of loss begins. */
    uint32_t burst_ppm;
    /** Microseconds for which a burst loses everything. */
    uint32_t burst_us;
    /** Datagrams that arrive twice, of a million. */
    uint32_t duplicate_ppm;
    /** Datagrams delayed by one more latency and jitter, of a million. */
    uint32_t reorder_ppm;
    /** 1: nothing passes. */
    uint32_t down;
    /** 0. */
    uint32_t reserved;
    /** UDP payload bytes that pass in a second, one datagram after the other (1250000 = 10 Mbit/s); 0 = no limit. */
    uint32_t rate_bytes_s;
    /** Bytes that may wait for it; a datagram that finds no room is lost. 0 = no limit. */
    uint32_t queue_bytes;
    /** Longer datagrams vanish; 0 = no limit. */
    uint32_t mtu_bytes;
    /** 0. */
    uint32_t reserved2;
} retick_link;

/**
 * What was measured on the link to one peer. Rates are over the last second, totals since the link came up.
 */
typedef struct retick_peer_stats {
    /** Set by the caller: sizeof(retick_peer_stats). */
    uint32_t struct_size;
    /** 1 while a link is up. */
    uint32_t connected;
    /** Smoothed round trip. */
    uint32_t rtt_us;
    /** Its smoothed variation. */
    uint32_t jitter_us;
    /** Packets of ours that were lost, of a million. */
    uint32_t loss_sent_ppm;
    /** Packets of theirs that were lost, of a million. */
    uint32_t loss_received_ppm;
    /** Reliable messages that wait for their acknowledgement. */
    uint32_t reliable_waiting;
    /** 0. */
    uint32_t reserved;
    /** Packets sent. */
    uint64_t packets_sent;
    /** Packets received and authenticated. */
    uint64_t packets_received;
    /** UDP payload bytes sent. */
    uint64_t bytes_sent;
    /** UDP payload bytes received. */
    uint64_t bytes_received;
    /** Reliable messages sent again. */
    uint64_t reliable_resent;
    /** Packets dropped because they were duplicates or too old. */
    uint64_t dropped_replayed;
    /** Packets dropped because they did not authenticate. */
    uint64_t dropped_forged;
    /** Packets or parts of them dropped because they made no sense. */
    uint64_t dropped_malformed;
} retick_peer_stats;

/**
 * Fills a mesh configuration with the defaults.
 *
 * \param config what to fill.
 * \param struct_size sizeof(retick_mesh_config).
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT.
 *
 * Thread: any, at any time.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_config_init(retick_mesh_config *config, uint32_t struct_size);

/**
 * Makes a peer that is in no room yet; opens its sockets.
 *
 * \param config filled by retick_mesh_config_init first. Copied, texts included.
 * \param out_mesh the new mesh.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE (simnet); RETICK_ERR_BUSY;
 *   RETICK_ERR_SYSTEM when the address cannot be bound.
 *
 * Thread: any. From then on one thread at a time.
 * Lifetime: until retick_mesh_destroy or retick_shutdown.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_create(const retick_mesh_config *config, retick_mesh *out_mesh);

/**
 * Opens a new room and makes this peer its first member. RETICK_EVENT_JOINED follows.
 *
 * \param mesh the mesh.
 * \returns RETICK_OK; RETICK_ERR_INVALID_STATE when it is in a room, joining one, or has left one; RETICK_ERR_INVALID_HANDLE;
 *   RETICK_ERR_BUSY; RETICK_ERR_WOULD_BLOCK.
 *
 * Thread: any; one thread at a time for one mesh.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_host(retick_mesh mesh);

/**
 * The room that this peer is in: a secret. Whoever has it and the address of a member can join.
 *
 * \param mesh the mesh.
 * \param out_room RETICK_ROOM_SIZE bytes.
 * \returns RETICK_OK; RETICK_ERR_INVALID_STATE before the event RETICK_EVENT_JOINED; RETICK_ERR_INVALID_ARGUMENT;
 *   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one mesh.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_room(retick_mesh mesh, uint8_t out_room[32]);

/**
 * Joins the room of a member that listens at an address. RETICK_EVENT_JOINED or RETICK_EVENT_REFUSED follows.
 *
 * \param mesh the mesh.
 * \param address "203.0.113.5:7000", "[2001:db8::1]:7000", or "sim:0" for the first node of a simulated network. Copied.
 * \param room RETICK_ROOM_SIZE bytes. Copied.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_STATE when it is in a room, joining one, or has left one;
 *   RETICK_ERR_UNSUPPORTED in custom mode; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_WOULD_BLOCK.
 *
 * Thread: any; one thread at a time for one mesh.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_join(retick_mesh mesh, const char *address, const uint8_t room[32]);

/**
 * Joins the room of a member over the game's own transport (RETICK_IO_CUSTOM).
 *
 * \param mesh the mesh.
 * \param address that member's address as the game's transport knows it. Copied.
 * \param address_size 1 to 64.
 * \param room RETICK_ROOM_SIZE bytes. Copied.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_STATE when it is in a room, joining one, or has left one;
 *   RETICK_ERR_UNSUPPORTED in another mode; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_WOULD_BLOCK.
 *
 * Thread: any; one thread at a time for one mesh.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_join_custom(
    retick_mesh mesh, const uint8_t *address, uint32_t address_size, const uint8_t room[32]);

/**
 * The address that this mesh is bound to, with its real port, such as "0.0.0.0:51234".
 *
 * \param mesh the mesh.
 * \param buffer where to write the text, UTF-8 and NUL-terminated; may be NULL when capacity is 0.
 * \param capacity bytes at buffer.
 * \param out_len bytes of the whole text without NUL; may be NULL.
 * \returns RETICK_OK; RETICK_ERR_BUFFER_TOO_SMALL (the text was cut); RETICK_ERR_INVALID_ARGUMENT;
 *   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one mesh.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_local_address(
    retick_mesh mesh, char *buffer, uint32_t capacity, uint32_t *out_len);

/**
 * Says that this peer is ready to start, and how many slots it plays. Create its session first.
 *
 * \param mesh the mesh.
 * \param local_slots 1 to 16.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_STATE outside of a room;
 *   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_WOULD_BLOCK.
 *
 * Thread: any; one thread at a time for one mesh.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_set_ready(retick_mesh mesh, uint32_t local_slots);

/**
 * Starts the match as soon as every member is ready. RETICK_EVENT_STARTING and the session's RETICK_EVENT_STARTED follow.
 * Only the coordinator (the member with the lowest index) can; call it once all are in.
 *
 * \param mesh the mesh.
 * \param countdown_ms milliseconds from the moment all are ready to frame 0, 0 to 60000.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_STATE outside of a room or on another member than
 *   the coordinator; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_WOULD_BLOCK.
 *
 * Thread: any; one thread at a time for one mesh.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_start(retick_mesh mesh, uint32_t countdown_ms);

/**
 * Says goodbye to the room, for good: the handle stays to read what is left, and another mesh is needed to enter a room.
 *
 * \param mesh the mesh.
 * \returns RETICK_OK (also outside of a room); RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_WOULD_BLOCK.
 *
 * Thread: any; one thread at a time for one mesh.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_leave(retick_mesh mesh);

/**
 * Takes the news of the network half in and delivers log lines; in custom mode also runs the network half. Never blocks.
 * Call it once a frame, then read retick_mesh_next_event until RETICK_NONE.
 *
 * \param mesh the mesh.
 * \returns RETICK_OK; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one mesh.
 * Lifetime: pointers of earlier events and outgoing datagrams of this mesh end here.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_poll(retick_mesh mesh);

/**
 * The next event that the last poll brought. Events that are not read wait; while 1024 wait, poll takes in no more.
 *
 * \param mesh the mesh.
 * \param out_event where to write it; set its struct_size first.
 * \returns RETICK_OK; RETICK_NONE when there is none; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE;
 *   RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one mesh.
 * Lifetime: text and data live until the next retick_mesh_poll of this mesh.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_next_event(retick_mesh mesh, retick_event *out_event);

/**
 * Sends a message to one peer or all others. It arrives there as RETICK_EVENT_MESSAGE.
 *
 * \param mesh the mesh.
 * \param peer 0 to 15, or RETICK_ALL_PEERS.
 * \param stream 0 to 7; reliable messages are ordered within a stream, and no stream waits for another.
 * \param delivery RETICK_RELIABLE, RETICK_UNRELIABLE or RETICK_UNRELIABLE_NEWEST.
 * \param data the message. Copied.
 * \param size 1 to RETICK_MAX_MESSAGE bytes.
 * \returns RETICK_OK; RETICK_ERR_WOULD_BLOCK when a queue is full, or about 1 MB of reliable messages waits for that peer (for
 *   any, if to all) because it takes them too slowly: nothing was queued, try again after a poll; RETICK_ERR_TOO_LARGE;
 *   RETICK_ERR_INVALID_STATE outside of a room; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one mesh.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_send(
    retick_mesh mesh, uint32_t peer, uint32_t stream, uint32_t delivery, const void *data, uint32_t size);

/**
 * What was measured on the link to one peer; refreshed every 100 ms.
 *
 * \param mesh the mesh.
 * \param peer 0 to 15.
 * \param out_stats where to write it; set its struct_size first.
 * \returns RETICK_OK; RETICK_NONE when there is no link to that peer (all 0); RETICK_ERR_INVALID_ARGUMENT;
 *   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one mesh.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_peer_stats(retick_mesh mesh, uint32_t peer, retick_peer_stats *out_stats);

/**
 * For tests and demonstrations: everything that this mesh sends passes a bad link first.
 *
 * \param mesh the mesh.
 * \param link filled by retick_link_init first; NULL takes the conditioner off. Copied.
 * \param seed any number; decides which datagrams are hit.
 * \returns RETICK_OK; RETICK_ERR_UNSUPPORTED in custom mode (use your transport) and on a simulated network
 *   (retick_simnet_set_link); RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one mesh.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_set_conditioner(retick_mesh mesh, const retick_link *link, uint64_t seed);

/**
 * RETICK_IO_CUSTOM: a datagram came over the game's transport. Taken in by the next retick_mesh_poll.
 *
 * \param mesh the mesh.
 * \param address the sender, as its own local_address says. Copied.
 * \param address_size 1 to 64.
 * \param data the datagram. Copied.
 * \param size 1 to 1200 bytes; larger ones are refused.
 * \returns RETICK_OK; RETICK_ERR_WOULD_BLOCK when too many wait for a poll (drop it, as a network would);
 *   RETICK_ERR_UNSUPPORTED in another mode; RETICK_ERR_TOO_LARGE; RETICK_ERR_INVALID_ARGUMENT;
 *   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one mesh.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_receive(
    retick_mesh mesh, const uint8_t *address, uint32_t address_size, const void *data, uint32_t size);

/**
 * RETICK_IO_CUSTOM: the next datagram that the game must carry. Read until RETICK_NONE after retick_mesh_poll, and after
 * retick_session_begin_frame or retick_session_advance, which put new inputs on the way.
 *
 * \param mesh the mesh.
 * \param out_address where it goes: another peer's local_address.
 * \param out_address_size bytes of it.
 * \param out_data the datagram.
 * \param out_size bytes of it.
 * \returns RETICK_OK; RETICK_NONE when there is none; RETICK_ERR_UNSUPPORTED in another mode;
 *   RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one mesh.
 * Lifetime: address and data live until the next call of this function or retick_mesh_poll for this mesh.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_next_outgoing(
    retick_mesh mesh, const uint8_t **out_address, uint32_t *out_address_size, const uint8_t **out_data,
    uint32_t *out_size);

/**
 * RETICK_IO_MANUAL: one turn of the network half: receives, fires timers, sends.
 *
 * \param mesh the mesh.
 * \param timeout_us how long to wait for a datagram or timer at most, 0 to 1000000; 0 never waits.
 * \returns RETICK_OK; RETICK_ERR_UNSUPPORTED in another mode; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_SYSTEM;
 *   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one mesh.
 * Since: 0.1
 */
RETICK_API retick_result retick_io_turn(retick_mesh mesh, uint32_t timeout_us);

/**
 * Mesh time now: the clock that all members share. As good as the last poll's news of it.
 *
 * \param mesh the mesh.
 * \param out_us microseconds.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one mesh.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_time_us(retick_mesh mesh, uint64_t *out_us);

/**
 * Says goodbye to the room and closes the sockets. A session on this mesh stays, but hears of nobody any more.
 *
 * \param mesh the mesh; null is ok.
 * \returns RETICK_OK; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one mesh.
 * Lifetime: pointers of its events and datagrams end here.
 * Since: 0.1
 */
RETICK_API retick_result retick_mesh_destroy(retick_mesh mesh);

/* ---- session: the game's timeline ------------------------------------------------------------------------ */

/** predictor: a missing remote input is the slot's newest one. The default. */
#define RETICK_PREDICT_REPEAT 0u
/** predictor: a missing remote input is zero bytes. */
#define RETICK_PREDICT_ZERO 1u
/** predictor: the game's own function, in the field predict. */
#define RETICK_PREDICT_GAME 2u

/** state_mode: the game writes its state as bytes into a buffer of the library. The default. */
#define RETICK_STATE_BYTES 0u
/** state_mode: the library copies and hashes memory regions registered with retick_session_add_region. */
#define RETICK_STATE_REGIONS 1u
/** state_mode: the game keeps its own copies in numbered slots (retick_session_state_slots). */
#define RETICK_STATE_SLOTS 2u

/** step: write the state of `frame` to state (at most state_size bytes) and set saved_size. */
#define RETICK_STEP_SAVE 1u
/** step: bring the state of `frame` back from state (state_size bytes). */
#define RETICK_STEP_LOAD 2u
/** step: simulate `frame` with inputs. */
#define RETICK_STEP_ADVANCE 3u
/** step, numbered slots only: write slot_index as bytes. Not used by this version. */
#define RETICK_STEP_EXPORT 4u
/** step, numbered slots only: the bytes become the current state. Not used by this version. */
#define RETICK_STEP_IMPORT 5u

/** flag of ADVANCE: the frame was simulated before; play no sounds, spawn no particles. */
#define RETICK_ADVANCE_RESIMULATING 1u
/** flag of ADVANCE: every input is confirmed; this result is final. */
#define RETICK_ADVANCE_CONFIRMED 2u
/** flag of SAVE and LOAD: call retick_session_run_step for this step instead of doing it yourself (RETICK_STATE_REGIONS). */
#define RETICK_STEP_BY_LIBRARY 4u
/** flag of SAVE (RETICK_STATE_SLOTS): set checksum to the game's digest of the state. In the other modes the bytes are hashed. */
#define RETICK_SAVE_CHECKSUM 8u

/** slot_status: the input is a guess. */
#define RETICK_SLOT_PREDICTED 1u
/** slot_status: the slot's player has left; its input is zero bytes. */
#define RETICK_SLOT_DISCONNECTED 2u
/** slot_status: nobody plays this slot. */
#define RETICK_SLOT_UNUSED 4u

/** stall_reason: no stall so far. */
#define RETICK_STALL_NONE 0u
/** stall_reason: the match has not begun. */
#define RETICK_STALL_NOT_STARTED 1u
/** stall_reason: the prediction window is full; stall_peer's input is the oldest one missing. */
#define RETICK_STALL_WINDOW 2u
/** stall_reason: the others are agreeing on the last frame of stall_peer, who left. */
#define RETICK_STALL_CUT 3u
/** stall_reason: the others went on without us. */
#define RETICK_STALL_CUT_OFF 4u

/**
 * The game's own prediction of a missing input: write at most capacity bytes to out and their number to out_size.
 * `last` is the slot's newest input, of the frame before or earlier. Called inside begin_frame and advance, on their
 * thread; must give the same answer for the same arguments, and must not call retick.
 */
typedef void (*retick_predict_fn)(void *user,
                                  uint32_t slot,
                                  int32_t frame,
                                  const uint8_t *last,
                                  uint32_t last_size,
                                  uint8_t *out,
                                  uint32_t capacity,
                                  uint32_t *out_size);

/**
 * How a session is set up. Fill it with retick_session_config_init, then change what you need.
 * input_max, frame_rate, desync_level and game_settings must be equal on all peers.
 */
typedef struct retick_session_config {
    /** Set by retick_session_config_init. */
    uint32_t struct_size;
    /** Most bytes of one slot's input for one frame, 1 to 64; default 4. */
    uint32_t input_max;
    /** Frames per second, 1 to 1000; default 60. */
    uint32_t frame_rate;
    /** Frames between handing in a local input and using it, 0 to 32; default 2. */
    uint32_t input_delay;
    /** Most frames simulated past the confirmed one, 0 to 64; 0 = lockstep; default 16. */
    uint32_t prediction_window;
    /** RETICK_PREDICT_REPEAT (default), _ZERO or _GAME. */
    uint32_t predictor;
    /** RETICK_STATE_BYTES (default), _REGIONS or _SLOTS. */
    uint32_t state_mode;
    /** 0 off; 1 (default) compare digests every 60 frames; 2 every frame (tests, development). */
    uint32_t desync_level;
    /** BYTES: room for a saved state in bytes, 0 to 1 GiB; it can grow (retick_session_grow_state); default 65536. */
    uint64_t state_capacity;
    /** The game's own digest of its rules, level and the like. Default 0. */
    uint64_t game_settings;
    /** Without a mesh: how many slots are played here, 1 to 16; default 1. */
    uint32_t local_slots;
    /** 0. */
    uint32_t reserved;
    /** RETICK_PREDICT_GAME: the function. */
    retick_predict_fn predict;
    /** Handed to predict. */
    void *predict_user;
} retick_session_config;

/**
 * The roster of a match that has begun.
 */
typedef struct retick_start_info {
    /** Set by the caller: sizeof(retick_start_info). */
    uint32_t struct_size;
    /** How many slots are in use: 0 to slot_count - 1. */
    uint32_t slot_count;
    /** Our own peer index. */
    uint32_t us;
    /** Bit i is set when slot i is played here. */
    uint32_t local_slots;
    /** Random, equal on all peers. */
    uint64_t seed;
    /** Mesh time of frame 0, in microseconds. */
    uint64_t frame0_mesh_time_us;
    /** The peer that plays each slot; 255 = nobody. */
    uint8_t slot_peer[16];
} retick_start_info;

/**
 * One thing that the game must do now, in the order of the list.
 */
typedef struct retick_step {
    /** RETICK_STEP_SAVE, _LOAD or _ADVANCE. */
    uint32_t kind;
    /** Its frame. The state of frame f is the state before f's inputs. */
    int32_t frame;
    /** RETICK_ADVANCE_*, RETICK_STEP_BY_LIBRARY, RETICK_SAVE_CHECKSUM. */
    uint32_t flags;
    /** RETICK_STATE_SLOTS: which of the game's numbered copies to write or read. */
    uint32_t slot_index;
    /** ADVANCE: bytes at inputs: slot count * input_max. */
    uint32_t inputs_size;
    /** ADVANCE: bytes at events; 0 in this version. */
    uint32_t events_size;
    /** ADVANCE: 4 bits a slot, slot 0 lowest: RETICK_SLOT_*. */
    uint64_t slot_status;
    /** LOAD: bytes of the state. SAVE: room at state. */
    uint64_t state_size;
    /** SAVE: set it to the bytes written. More room: retick_session_grow_state. */
    uint64_t saved_size;
    /** SAVE with RETICK_SAVE_CHECKSUM: set it to the game's own digest, else it is ignored; 0 is an ordinary value. */
    uint64_t checksum;
    /** ADVANCE: input_max bytes for each slot; those past a slot's length are 0. */
    const uint8_t *inputs;
    /** ADVANCE: length of each slot's input. */
    const uint16_t *input_sizes;
    /** ADVANCE: input events of this frame; NULL in this version. */
    const uint8_t *events;
    /** SAVE: write here. LOAD: read here. NULL where the library does the step, and with RETICK_STATE_SLOTS. */
    uint8_t *state;
} retick_step;

/**
 * Does one step of the game. 0 = done; anything else aborts the frame. Must not throw, longjmp or unwind out.
 */
typedef int32_t (*retick_step_fn)(void *user, retick_step *step);

/**
 * The game's three functions for retick_session_advance.
 */
typedef struct retick_callbacks {
    /** Set by the caller: sizeof(retick_callbacks). */
    uint32_t struct_size;
    /** 0. */
    uint32_t reserved;
    /** Handed to the functions. */
    void *user;
    /** RETICK_STEP_SAVE. May be NULL with RETICK_STATE_REGIONS. */
    retick_step_fn save;
    /** RETICK_STEP_LOAD. May be NULL with RETICK_STATE_REGIONS. */
    retick_step_fn load;
    /** RETICK_STEP_ADVANCE. */
    retick_step_fn advance;
} retick_callbacks;

/**
 * What a session has done so far, and what holds now.
 */
typedef struct retick_stats {
    /** Set by the caller: sizeof(retick_stats). */
    uint32_t struct_size;
    /** The next frame to simulate for the first time. */
    int32_t frame;
    /** The newest frame whose inputs are all confirmed; -1 = none. */
    int32_t confirmed_frame;
    /** In frames. */
    uint32_t prediction_window;
    /** Of the first local slot, in frames. */
    uint32_t input_delay;
    /** Most frames simulated again in one list. */
    uint32_t longest_rollback;
    /** Why the newest stall happened: RETICK_STALL_*. */
    uint32_t stall_reason;
    /** The peer who caused it, or RETICK_NO_PEER. */
    uint32_t stall_peer;
    /** 1 when the last call began no new frame. */
    uint32_t is_stalled;
    /** Calls in a row, up to now, that began no new frame. */
    uint32_t stalled_calls;
    /** How far the next frame is ahead of the mesh's schedule (negative: behind), in frames; 0 in normal play. */
    float frames_ahead;
    /** States kept now. */
    uint32_t states_live;
    /** Microseconds between begin_frame and end_frame of the last list. */
    uint32_t sim_us;
    /** The most so far. */
    uint32_t sim_us_max;
    /** Its sum. */
    uint64_t sim_us_total;
    /** Calls that began a new frame. */
    uint64_t advanced;
    /** Calls that began no new frame because something was missing. */
    uint64_t stalls;
    /** Lists that corrected a wrong prediction. */
    uint64_t rollbacks;
    /** Frames simulated again. */
    uint64_t resimulated_frames;
    /** SAVE steps. */
    uint64_t saves;
    /** LOAD steps. */
    uint64_t loads;
    /** Confirmed frames whose digest differed from another peer's. */
    uint64_t desyncs;
} retick_stats;

/**
 * One call of begin_frame or advance in the net graph.
 */
typedef struct retick_sample {
    /** The next frame to simulate, after this call. */
    int32_t frame;
    /** How many frames were simulated again. */
    uint16_t rollback;
    /** 1: no new frame was begun. */
    uint16_t stalled;
    /** The slowest link's round trip. */
    uint16_t rtt_ms;
    /** The worst link's lost packets, of a thousand. */
    uint16_t lost;
    /** Bytes received per frame, all links together. */
    uint32_t bytes_in;
    /** Bytes sent per frame, all links together. */
    uint32_t bytes_out;
    /** Microseconds between begin_frame and end_frame. */
    uint32_t sim_us;
} retick_sample;

/**
 * Fills a session configuration with the defaults.
 *
 * \param config what to fill.
 * \param struct_size sizeof(retick_session_config).
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT.
 *
 * Thread: any, at any time.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_config_init(retick_session_config *config, uint32_t struct_size);

/**
 * Opens the timeline of a match. Create it before retick_mesh_set_ready, so that the settings can be compared.
 *
 * \param config filled by retick_session_config_init first. Copied.
 * \param mesh the mesh whose members play, or null for a local session that starts at once. One session for one mesh.
 * \param out_session the new session.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_INVALID_STATE
 *   when the mesh has a session; RETICK_ERR_WOULD_BLOCK.
 *
 * Thread: any. From then on one thread at a time.
 * Lifetime: until retick_session_destroy or retick_shutdown.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_create(
    const retick_session_config *config, retick_mesh mesh, retick_session *out_session);

/**
 * RETICK_STATE_REGIONS: registers memory that is part of the state. The library saves, loads and hashes it, inside
 * retick_session_run_step and retick_session_advance only. The same regions in the same order on all peers.
 *
 * \param session the session.
 * \param memory where it is.
 * \param size bytes; all regions together at most 1 GiB.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_STATE after the first frame or in another state
 *   mode; RETICK_ERR_TOO_LARGE; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one session.
 * Lifetime: memory must stay valid until the session is destroyed or retick_shutdown returns.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_add_region(retick_session session, void *memory, uint64_t size);

/**
 * RETICK_STATE_SLOTS: how many numbered copies of its state the game must keep; slot_index is below it.
 *
 * \param session the session.
 * \param out_count how many; 0 in the other state modes.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one session.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_state_slots(retick_session session, uint32_t *out_count);

/**
 * The roster, the shared random seed and the time of frame 0 of a match that has begun.
 *
 * \param session the session.
 * \param out_info where to write it; set its struct_size first.
 * \returns RETICK_OK; RETICK_ERR_INVALID_STATE before the event RETICK_EVENT_STARTED; RETICK_ERR_INVALID_ARGUMENT;
 *   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one session. Allowed while a step list is open.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_start_info(retick_session session, retick_start_info *out_info);

/**
 * How many frames should begin now by the mesh's clock (usually 0 or 1), and how far the next one is. Call begin_frame
 * or advance that often; more than one catches up.
 *
 * \param session the session.
 * \param out_frames frames that are due.
 * \param out_alpha 0.0 to 1.0: the part of the next frame that has passed, for interpolation; may be NULL.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one session.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_frames_due(retick_session session, uint32_t *out_frames, float *out_alpha);

/**
 * Hands in the input of a slot that is played here. It overwrites the slot's earlier one; the begin_frame (or advance)
 * that starts a new frame stamps and sends it, and it takes effect input_delay frames later. Without a new one, the
 * last is used again.
 *
 * \param session the session.
 * \param slot a slot of local_slots (retick_start_info), 0 to 15.
 * \param input its bytes; may be NULL when size is 0. Copied.
 * \param size 0 to input_max.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT for a slot that is not played here; RETICK_ERR_TOO_LARGE;
 *   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one session.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_add_local_input(
    retick_session session, uint32_t slot, const void *input, uint32_t size);

/**
 * Runs one frame through the game's functions: the same steps in the same order as retick_session_begin_frame lists
 * them. Steps with RETICK_STEP_BY_LIBRARY are done by the library. Inside a function only retick_session_grow_state,
 * _stats, _samples, _start_info and _state_slots may be called for this session; everything else is RETICK_ERR_BUSY.
 *
 * \param session the session.
 * \param callbacks the functions; set its struct_size. Copied.
 * \returns RETICK_OK, RETICK_RESIMULATE_ONLY or RETICK_STALL as retick_session_begin_frame; RETICK_ERR_CALLBACK when a
 *   function returned non-zero (the frame is aborted, the next one begins with a load); RETICK_ERR_INVALID_ARGUMENT;
 *   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_SHUT_DOWN.
 *
 * Thread: any; one thread at a time for one session. The functions are called on this thread, before it returns.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_advance(retick_session session, const retick_callbacks *callbacks);

/**
 * Begins a frame: lists what the game must do now. Do the steps in order, then retick_session_end_frame. While the list
 * is open only retick_session_run_step, _grow_state, _end_frame, _abort_frame, _stats, _samples, _start_info and
 * _state_slots may be called for this session; everything else is RETICK_ERR_BUSY. The call that learns of the match's
 * start is a RETICK_STALL, so that frame 0 has the inputs of slots that the game knows only now.
 *
 * \param session the session.
 * \param step_size sizeof(retick_step); step i begins at (char *)*out_steps + i * step_size.
 * \param out_steps the list.
 * \param out_count how many steps.
 * \returns RETICK_OK: a new frame is among the steps; RETICK_RESIMULATE_ONLY: no new frame, but corrected ones;
 *   RETICK_STALL: no new frame, repeat the last picture. A list with steps must be run and closed in each case; closing
 *   an empty one is allowed. RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one session.
 * Lifetime: the list and what it points to live until end_frame or abort_frame, also through retick_shutdown.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_begin_frame(
    retick_session session, uint32_t step_size, retick_step **out_steps, uint32_t *out_count);

/**
 * Does a step with RETICK_STEP_BY_LIBRARY: copies the registered regions out or back.
 *
 * \param session the session.
 * \param index which step of the open list.
 * \returns RETICK_OK; RETICK_ERR_INVALID_STATE without an open list; RETICK_ERR_INVALID_ARGUMENT for a step that is not
 *   by the library; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_SHUT_DOWN.
 *
 * Thread: any; one thread at a time for one session.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_run_step(retick_session session, uint32_t index);

/**
 * Makes more room for a SAVE step: its state moves (its content is kept) and its state_size grows.
 *
 * \param session the session.
 * \param index which step of the open list.
 * \param size bytes that are needed, at most 1 GiB.
 * \returns RETICK_OK; RETICK_ERR_INVALID_STATE without an open list; RETICK_ERR_INVALID_ARGUMENT for another kind of
 *   step; RETICK_ERR_TOO_LARGE; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_SHUT_DOWN.
 *
 * Thread: any; one thread at a time for one session. Also from inside the save function of retick_session_advance.
 * Lifetime: the step's old state pointer ends here.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_grow_state(retick_session session, uint32_t index, uint64_t size);

/**
 * Closes the list: every step was done. saved_size and checksum are read from the steps now.
 *
 * \param session the session.
 * \returns RETICK_OK; RETICK_ERR_INVALID_STATE without an open list, or when a step by the library was not run;
 *   RETICK_ERR_INVALID_ARGUMENT when a saved_size is 0 or larger than its state_size (in both cases the list is aborted); RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_PANIC or
 *   RETICK_ERR_SHUT_DOWN (the list is closed and its memory freed).
 *
 * Thread: any; one thread at a time for one session.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_end_frame(retick_session session);

/**
 * Closes the list without having done its steps, also after doing some: the next list begins with a load.
 *
 * \param session the session.
 * \returns RETICK_OK; RETICK_ERR_INVALID_STATE without an open list; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY;
 *   RETICK_ERR_PANIC or RETICK_ERR_SHUT_DOWN (the list is closed and its memory freed).
 *
 * Thread: any; one thread at a time for one session.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_abort_frame(retick_session session);

/**
 * The next event of this session. Read until RETICK_NONE once a frame.
 *
 * \param session the session.
 * \param out_event where to write it; set its struct_size first.
 * \returns RETICK_OK; RETICK_NONE when there is none; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE;
 *   RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one session.
 * Lifetime: text lives until the next retick_session_begin_frame or retick_session_advance of this session.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_next_event(retick_session session, retick_event *out_event);

/**
 * What the session has done so far.
 *
 * \param session the session.
 * \param out_stats where to write it; set its struct_size first.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one session. Allowed while a step list is open.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_stats(retick_session session, retick_stats *out_stats);

/**
 * The newest frames of the net graph, oldest first.
 *
 * \param session the session.
 * \param out_samples where to write them.
 * \param sample_size sizeof(retick_sample); sample i is written to (char *)out_samples + i * sample_size.
 * \param capacity how many fit; the last 512 frames are held.
 * \param out_count how many were written.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one session. Allowed while a step list is open.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_samples(
    retick_session session, retick_sample *out_samples, uint32_t sample_size, uint32_t capacity, uint32_t *out_count);

/**
 * Changes the input delay of a local slot in play, one frame per change, at least 15 frames apart, until it is reached.
 *
 * \param session the session.
 * \param slot a slot that is played here, 0 to 15.
 * \param frames 0 to 32.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one session.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_set_input_delay(retick_session session, uint32_t slot, uint32_t frames);

/**
 * The digest of a confirmed frame's state, for tests and reports: two peers that have the same one agree.
 *
 * \param session the session.
 * \param frame which frame. desync_level 2 holds the last 600 frames, level 1 the last multiples of 60.
 * \param out_checksum its digest.
 * \returns RETICK_OK; RETICK_NONE when it is not confirmed or not held; RETICK_ERR_INVALID_ARGUMENT;
 *   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one session.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_confirmed_checksum(
    retick_session session, int32_t frame, uint64_t *out_checksum);

/**
 * Ends the timeline. The member stays in the room: with another session and retick_mesh_set_ready it can play the next
 * match there.
 *
 * \param session the session; null is ok.
 * \returns RETICK_OK; RETICK_ERR_BUSY while a step list is open; RETICK_ERR_INVALID_HANDLE.
 *
 * Thread: any; one thread at a time for one session.
 * Since: 0.1
 */
RETICK_API retick_result retick_session_destroy(retick_session session);

/* ---- simulated network: whole matches in virtual time, in one process ------------------------------------ */

/**
 * A simulated network: meshes with io_mode RETICK_IO_SIMNET attach to it and run in its virtual time, on the caller's
 * thread. The same seed and the same calls give the same match. Its time starts at 0.
 *
 * \param seed any number.
 * \param out_net the new network.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT.
 *
 * Thread: any.
 * Lifetime: until retick_simnet_destroy or retick_shutdown.
 * Since: 0.1
 */
RETICK_API retick_result retick_simnet_create(uint64_t seed, retick_simnet *out_net);

/**
 * Fills a link with "perfect": no delay, no loss.
 *
 * \param link what to fill.
 * \param struct_size sizeof(retick_link).
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT.
 *
 * Thread: any, at any time.
 * Since: 0.1
 */
RETICK_API retick_result retick_link_init(retick_link *link, uint32_t struct_size);

/**
 * Sets what a directed link does to datagrams from now on. Until then links are perfect.
 *
 * \param net the network.
 * \param from, to nodes in the order in which their meshes were created on this network, from 0; RETICK_ALL_PEERS = every one.
 * \param link filled by retick_link_init first. Copied.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one network.
 * Since: 0.1
 */
RETICK_API retick_result retick_simnet_set_link(retick_simnet net, uint32_t from, uint32_t to, const retick_link *link);

/**
 * Stops or resumes a node: a paused one sends and hears nothing, as if its process hung.
 *
 * \param net the network.
 * \param index the node, in the order of creation, from 0.
 * \param paused 1 or 0.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one network.
 * Since: 0.1
 */
RETICK_API retick_result retick_simnet_set_paused(retick_simnet net, uint32_t index, uint32_t paused);

/**
 * Lets virtual time pass: runs the network half of every mesh on this network. Sessions are driven by the game as ever.
 *
 * \param net the network.
 * \param microseconds how long, 0 to 3600000000.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one network.
 * Since: 0.1
 */
RETICK_API retick_result retick_simnet_advance(retick_simnet net, uint64_t microseconds);

/**
 * Virtual time.
 *
 * \param net the network.
 * \param out_us microseconds since the network was created.
 * \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one network.
 * Since: 0.1
 */
RETICK_API retick_result retick_simnet_time_us(retick_simnet net, uint64_t *out_us);

/**
 * Removes a network. Meshes that are attached to it stay, but nothing reaches them any more.
 *
 * \param net the network; null is ok.
 * \returns RETICK_OK; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
 *
 * Thread: any; one thread at a time for one network.
 * Since: 0.1
 */
RETICK_API retick_result retick_simnet_destroy(retick_simnet net);

#ifdef __cplusplus
}
#endif

/* Layout, checked where the header is compiled. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#  define RETICK_ASSERT_LAYOUT(what) static_assert(what, #what)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#  define RETICK_ASSERT_LAYOUT(what) _Static_assert(what, #what)
#else
#  define RETICK_ASSERT_LAYOUT(what) struct retick_layout_check
#endif
RETICK_ASSERT_LAYOUT(sizeof(retick_callbacks) == 8 + 4 * sizeof(void *));
RETICK_ASSERT_LAYOUT(sizeof(retick_event) == 48 + 2 * sizeof(void *));
RETICK_ASSERT_LAYOUT(sizeof(retick_link) == 56);
RETICK_ASSERT_LAYOUT(sizeof(retick_mesh) == 8);
RETICK_ASSERT_LAYOUT(sizeof(retick_mesh_config) == 64 + 2 * sizeof(void *));
RETICK_ASSERT_LAYOUT(sizeof(retick_peer_stats) == 96);
RETICK_ASSERT_LAYOUT(sizeof(retick_sample) == 24);
RETICK_ASSERT_LAYOUT(sizeof(retick_session) == 8);
RETICK_ASSERT_LAYOUT(sizeof(retick_session_config) == 56 + 2 * sizeof(void *));
RETICK_ASSERT_LAYOUT(sizeof(retick_simnet) == 8);
RETICK_ASSERT_LAYOUT(sizeof(retick_start_info) == 48);
RETICK_ASSERT_LAYOUT(sizeof(retick_stats) == 120);
RETICK_ASSERT_LAYOUT(sizeof(retick_step) == 56 + 4 * sizeof(void *));
#undef RETICK_ASSERT_LAYOUT

#endif /* RETICK_H */
