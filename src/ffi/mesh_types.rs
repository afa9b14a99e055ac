//! Structs and constants of the mesh group, as the header shows them.
//!
//! Fed by: the caller's memory, field by field as far as its `struct_size` says. Yields: nothing by itself.
//! Never: a bool, an enum, a `usize` or a bit-field; padding has a name.

use super::handles::retick_simnet;
use std::ffi::c_char;

/// io_mode: one thread of the library serves the sockets of every mesh of the process. The default.
pub const RETICK_IO_THREAD: u32 = 0;
/// io_mode: the game drives sockets and timers by calling retick_io_turn; no thread exists.
pub const RETICK_IO_MANUAL: u32 = 1;
/// io_mode: the game carries the datagrams (retick_mesh_receive, retick_mesh_next_outgoing); no socket, no thread.
pub const RETICK_IO_CUSTOM: u32 = 2;
/// io_mode: the mesh is attached to a simulated network and runs in its virtual time.
pub const RETICK_IO_SIMNET: u32 = 3;

/// Most members of a mesh, and most slots of a session.
pub const RETICK_MAX_PEERS: u32 = 16;
/// Bytes of a room: 16 secret, then 16 fingerprint of the room's key.
pub const RETICK_ROOM_SIZE: u32 = 32;
/// Most bytes of one message.
pub const RETICK_MAX_MESSAGE: u32 = 1024;
/// Every other peer (retick_mesh_send), or every node (retick_simnet_set_link).
pub const RETICK_ALL_PEERS: u32 = 0xFFFF_FFFF;
/// No peer: what an event says when it is about none, or about one that has no index.
pub const RETICK_NO_PEER: u32 = 0xFFFF_FFFF;
/// No slot.
pub const RETICK_NO_SLOT: u32 = 0xFFFF_FFFF;

/// delivery: exactly once, in order within its stream.
pub const RETICK_RELIABLE: u32 = 0;
/// delivery: at most once, in any order.
pub const RETICK_UNRELIABLE: u32 = 1;
/// delivery: at most once; one older than the newest delivered of its stream is dropped.
pub const RETICK_UNRELIABLE_NEWEST: u32 = 2;

/// How a mesh is set up. Fill it with retick_mesh_config_init, then change what you need.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct retick_mesh_config {
    /// Set by retick_mesh_config_init: the size that the caller was compiled with.
    pub struct_size: u32,
    /// RETICK_IO_THREAD (default), _MANUAL, _CUSTOM or _SIMNET.
    pub io_mode: u32,
    /// Most members of the room, 2 to 16; default 8.
    pub max_peers: u32,
    /// UDP port to bind, 0 to 65535; 0 (default) = any. THREAD and MANUAL.
    pub bind_port: u32,
    /// Peers with another value are refused, with that reason. Default 0.
    pub game_id: u64,
    /// Likewise: two builds of one game do not meet. Default 0.
    pub build_id: u64,
    /// Milliseconds of silence after which a peer is suspected (RETICK_EVENT_INTERRUPTED), 100 to 600000; 0 = never; default 150.
    pub suspect_ms: u32,
    /// Milliseconds of silence after which a peer's slots leave the match, suspect_ms to 600000; 0 = never; default 400.
    pub cut_after_ms: u32,
    /// A peer whose game hands in nothing for this many milliseconds is cut; 0 (default) = the others wait.
    pub stall_cut_ms: u32,
    /// Milliseconds of silence after which a member of the lobby is forgotten; 0 = never; default 15000.
    pub forget_after_ms: u32,
    /// Largest datagram in bytes, 600 to 1200; default 1200.
    pub max_datagram: u32,
    /// CUSTOM: bytes of local_address, 1 to 64.
    pub local_address_size: u32,
    /// SIMNET: the network to attach to.
    pub simnet: retick_simnet,
    /// Local address to bind, as text ("0.0.0.0", "::1"); NULL (default) = every address, IPv4 and IPv6. Copied.
    pub bind_address: *const c_char,
    /// CUSTOM: the address under which the other peers reach this one; bytes that only the game understands. Copied.
    pub local_address: *const u8,
}

/// What a directed link does to datagrams. Fill it with retick_link_init (a perfect link), then change what you need.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct retick_link {
    /// Set by retick_link_init.
    pub struct_size: u32,
    /// One-way delay in microseconds.
    pub latency_us: u32,
    /// Uniform extra delay, 0 to this many microseconds.
    pub jitter_us: u32,
    /// Independent loss, of a million datagrams (20000 = 2 %).
    pub loss_ppm: u32,
    /// Chance, of a million for each datagram, that a burst of loss begins.
    pub burst_ppm: u32,
    /// Microseconds for which a burst loses everything.
    pub burst_us: u32,
    /// Datagrams that arrive twice, of a million.
    pub duplicate_ppm: u32,
    /// Datagrams delayed by one more latency and jitter, of a million.
    pub reorder_ppm: u32,
    /// 1: nothing passes.
    pub down: u32,
    /// 0.
    pub reserved: u32,
    /// UDP payload bytes that pass in a second, one datagram after the other (1250000 = 10 Mbit/s); 0 = no limit.
    pub rate_bytes_s: u32,
    /// Bytes that may wait for it; a datagram that finds no room is lost. 0 = no limit.
    pub queue_bytes: u32,
    /// Longer datagrams vanish; 0 = no limit.
    pub mtu_bytes: u32,
    /// 0.
    pub reserved2: u32,
}

/// What was measured on the link to one peer. Rates are over the last second, totals since the link came up.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct retick_peer_stats {
    /// Set by the caller: sizeof(retick_peer_stats).
    pub struct_size: u32,
    /// 1 while a link is up.
    pub connected: u32,
    /// Smoothed round trip.
    pub rtt_us: u32,
    /// Its smoothed variation.
    pub jitter_us: u32,
    /// Packets of ours that were lost, of a million.
    pub loss_sent_ppm: u32,
    /// Packets of theirs that were lost, of a million.
    pub loss_received_ppm: u32,
    /// Reliable messages that wait for their acknowledgement.
    pub reliable_waiting: u32,
    /// 0.
    pub reserved: u32,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received and authenticated.
    pub packets_received: u64,
    /// UDP payload bytes sent.
    pub bytes_sent: u64,
    /// UDP payload bytes received.
    pub bytes_received: u64,
    /// Reliable messages sent again.
    pub reliable_resent: u64,
    /// Packets dropped because they were duplicates or too old.
    pub dropped_replayed: u64,
    /// Packets dropped because they did not authenticate.
    pub dropped_forged: u64,
    /// Packets or parts of them dropped because they made no sense.
    pub dropped_malformed: u64,
}
