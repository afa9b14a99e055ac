//! The caller's numbers as the library's types, and back: every range check of the C ABI that is not a null check.
//!
//! Fed by: integers and structs of the header. Yields: typed values, or a failure that names the argument.
//! Never: lets a value out of range through.

use super::event_types::retick_event;
use super::guard::{Failure, Outcome};
use super::handles::retick_simnet;
use super::mesh_types::{
    RETICK_ALL_PEERS, RETICK_IO_CUSTOM, RETICK_IO_MANUAL, RETICK_IO_SIMNET, RETICK_IO_THREAD,
    RETICK_RELIABLE, RETICK_UNRELIABLE, RETICK_UNRELIABLE_NEWEST, retick_link, retick_mesh_config,
    retick_peer_stats,
};
use super::ptr::{self, Sized32};
use super::session_types::{
    RETICK_PREDICT_GAME, RETICK_PREDICT_REPEAT, RETICK_PREDICT_ZERO, RETICK_STATE_BYTES,
    RETICK_STATE_REGIONS, RETICK_STATE_SLOTS, retick_callbacks, retick_session_config, retick_start_info,
    retick_stats,
};
use crate::base::limits::{APP_STREAMS, MAX_DATAGRAM, MAX_MESSAGE};
use crate::base::{Addr, PeerIndex, Slot};
use crate::bridge::Delivery;
use crate::config::{MeshConfig, Predictor, SessionConfig, StateMode, ValidMeshConfig, ValidSessionConfig};
use crate::io::BindConfig;
use crate::netem::Link;
use std::net::IpAddr;
use std::ptr::{null, null_mut};
use std::time::Duration;

/// Largest stride of a step or a sample; larger ones are taken for garbage.
const MAX_STRIDE: u32 = 4096;
/// Longest time of a link's parameter: a minute.
const MAX_LINK_US: u32 = 60_000_000;

macro_rules! sized32 {
    ($($name:ident $defaults:expr;)+) => {$(
        // SAFETY: `repr(C)`, first field is `struct_size`, no padding (checked by bindings/gen), integers, floats, raw
        // pointers and nullable functions only.
        unsafe impl Sized32 for $name {
            const NAME: &'static str = stringify!($name);
            fn defaults() -> Self {
                $defaults
            }
        }
    )+};
}

/// Zero bytes.
fn zeroed<T: Copy>() -> T {
    // SAFETY: only called below, for structs of integers, floats, raw pointers and nullable functions: 0 is valid.
    unsafe { std::mem::zeroed() }
}

sized32! {
    retick_mesh_config default_mesh_config();
    retick_session_config default_session_config();
    retick_link zeroed();
    retick_peer_stats zeroed();
    retick_event zeroed();
    retick_start_info zeroed();
    retick_callbacks zeroed();
    retick_stats zeroed();
}

fn default_mesh_config() -> retick_mesh_config {
    let MeshConfig {
        max_peers,
        game_id,
        build_id,
        suspect_ms,
        cut_after_ms,
        stall_cut_ms,
        forget_after_ms,
        max_datagram,
        ..
    } = MeshConfig::default();
    retick_mesh_config {
        struct_size: size_of::<retick_mesh_config>() as u32,
        io_mode: RETICK_IO_THREAD,
        max_peers,
        bind_port: 0,
        game_id,
        build_id,
        suspect_ms,
        cut_after_ms,
        stall_cut_ms,
        forget_after_ms,
        max_datagram,
        local_address_size: 0,
        simnet: retick_simnet { id: 0 },
        bind_address: null(),
        local_address: null(),
    }
}

fn default_session_config() -> retick_session_config {
    let defaults = SessionConfig::default();
    retick_session_config {
        struct_size: size_of::<retick_session_config>() as u32,
        input_max: defaults.input_max,
        frame_rate: defaults.frame_rate,
        input_delay: defaults.input_delay,
        prediction_window: defaults.prediction_window,
        predictor: RETICK_PREDICT_REPEAT,
        state_mode: RETICK_STATE_BYTES,
        desync_level: defaults.desync_level,
        state_capacity: defaults.state_capacity,
        game_settings: defaults.game_settings,
        local_slots: defaults.local_slots,
        reserved: 0,
        predict: None,
        predict_user: null_mut(),
    }
}

/// Where a mesh runs.
pub(super) enum IoMode {
    Thread(BindConfig),
    Manual(BindConfig),
    Custom(Addr),
    Simnet(retick_simnet),
}

/// A mesh to be made.
pub(super) struct MeshSetup {
    pub(super) io: IoMode,
    pub(super) config: ValidMeshConfig,
}

/// Reads a mesh configuration.
///
/// # Safety
///
/// Its pointers are null or valid as the header demands.
pub(super) unsafe fn mesh_setup(config: &retick_mesh_config) -> Outcome<MeshSetup> {
    let io = match config.io_mode {
        // SAFETY: by this function's contract.
        RETICK_IO_THREAD => IoMode::Thread(unsafe { bind(config) }?),
        // SAFETY: by this function's contract.
        RETICK_IO_MANUAL => IoMode::Manual(unsafe { bind(config) }?),
        RETICK_IO_CUSTOM => {
            // SAFETY: by this function's contract.
            let address = unsafe {
                ptr::custom_address("local_address", config.local_address, config.local_address_size)
            }?;
            IoMode::Custom(address)
        }
        RETICK_IO_SIMNET => IoMode::Simnet(config.simnet),
        other => {
            return Err(Failure::argument(format!(
                "io_mode is {other}; use RETICK_IO_THREAD, _MANUAL, _CUSTOM or _SIMNET (0 to 3)"
            )));
        }
    };
    let local_address = if let IoMode::Custom(address) = io { Some(address) } else { None };
    let config = ValidMeshConfig::try_from(MeshConfig {
        max_peers: config.max_peers,
        game_id: config.game_id,
        build_id: config.build_id,
        suspect_ms: config.suspect_ms,
        cut_after_ms: config.cut_after_ms,
        stall_cut_ms: config.stall_cut_ms,
        forget_after_ms: config.forget_after_ms,
        max_datagram: config.max_datagram,
        local_address,
        ..MeshConfig::default()
    })
    .map_err(|error| Failure::argument(error.to_string()))?;
    Ok(MeshSetup { io, config })
}

unsafe fn bind(config: &retick_mesh_config) -> Outcome<BindConfig> {
    let port = u16::try_from(config.bind_port)
        .map_err(|_| Failure::argument(format!("bind_port is {}; use 0 (any) to 65535", config.bind_port)))?;
    if config.bind_address.is_null() {
        return Ok(BindConfig { port, address: None });
    }
    // SAFETY: not null, and a text by the caller's contract.
    let text = unsafe { ptr::text("bind_address", config.bind_address) }?;
    let address: IpAddr = text.parse().map_err(|_| {
        Failure::argument(format!(
            "bind_address is \"{text}\"; use an IP address such as \"0.0.0.0\", or NULL"
        ))
    })?;
    Ok(BindConfig { port, address: Some(address) })
}

/// Reads a session configuration.
pub(super) fn session_config(config: &retick_session_config) -> Outcome<ValidSessionConfig> {
    let predictor = match config.predictor {
        RETICK_PREDICT_REPEAT => Predictor::RepeatLast,
        RETICK_PREDICT_ZERO => Predictor::Zero,
        RETICK_PREDICT_GAME if config.predict.is_none() => {
            return Err(Failure::argument(
                "predict is NULL; RETICK_PREDICT_GAME needs the game's function there",
            ));
        }
        RETICK_PREDICT_GAME => Predictor::Game,
        other => {
            return Err(Failure::argument(format!(
                "predictor is {other}; use RETICK_PREDICT_REPEAT, _ZERO or _GAME (0 to 2)"
            )));
        }
    };
    let state_mode = match config.state_mode {
        RETICK_STATE_BYTES => StateMode::Bytes,
        RETICK_STATE_REGIONS => StateMode::Regions,
        RETICK_STATE_SLOTS => StateMode::Slots,
        other => {
            return Err(Failure::argument(format!(
                "state_mode is {other}; use RETICK_STATE_BYTES, _REGIONS or _SLOTS (0 to 2)"
            )));
        }
    };
    ValidSessionConfig::try_from(SessionConfig {
        input_max: config.input_max,
        frame_rate: config.frame_rate,
        input_delay: config.input_delay,
        prediction_window: config.prediction_window,
        predictor,
        state_mode,
        state_capacity: config.state_capacity,
        desync_level: config.desync_level,
        game_settings: config.game_settings,
        local_slots: config.local_slots,
    })
    .map_err(|error| Failure::argument(error.to_string()))
}

/// Reads a link.
pub(super) fn link(link: &retick_link) -> Outcome<Link> {
    for (name, us) in
        [("latency_us", link.latency_us), ("jitter_us", link.jitter_us), ("burst_us", link.burst_us)]
    {
        if us > MAX_LINK_US {
            return Err(Failure::argument(format!("{name} is {us}; use 0 to {MAX_LINK_US} (a minute)")));
        }
    }
    for (name, ppm) in [
        ("loss_ppm", link.loss_ppm),
        ("burst_ppm", link.burst_ppm),
        ("duplicate_ppm", link.duplicate_ppm),
        ("reorder_ppm", link.reorder_ppm),
    ] {
        if ppm > 1_000_000 {
            return Err(Failure::argument(format!("{name} is {ppm}; use 0 to 1000000")));
        }
    }
    if link.down > 1 {
        return Err(Failure::argument(format!("down is {}; use 0 or 1", link.down)));
    }
    let time = |us: u32| Duration::from_micros(u64::from(us));
    Ok(Link {
        latency: time(link.latency_us),
        jitter: time(link.jitter_us),
        loss_ppm: link.loss_ppm,
        burst_ppm: link.burst_ppm,
        burst: time(link.burst_us),
        duplicate_ppm: link.duplicate_ppm,
        reorder_ppm: link.reorder_ppm,
        down: link.down == 1,
        rate_bytes_s: link.rate_bytes_s,
        queue_bytes: link.queue_bytes,
        mtu_bytes: link.mtu_bytes,
    })
}

/// A slot's number.
pub(super) fn slot(slot: u32) -> Outcome<Slot> {
    u8::try_from(slot)
        .ok()
        .and_then(Slot::new)
        .ok_or_else(|| Failure::argument(format!("slot is {slot}; use 0 to 15")))
}

/// A peer's number.
pub(super) fn peer(peer: u32) -> Outcome<PeerIndex> {
    u8::try_from(peer)
        .ok()
        .and_then(PeerIndex::new)
        .ok_or_else(|| Failure::argument(format!("peer is {peer}; use 0 to 15")))
}

/// A peer's number, or all.
pub(super) fn peer_or_all(number: u32) -> Outcome<Option<PeerIndex>> {
    if number == RETICK_ALL_PEERS { Ok(None) } else { peer(number).map(Some) }
}

/// An application stream.
pub(super) fn stream(stream: u32) -> Outcome<u8> {
    u8::try_from(stream)
        .ok()
        .filter(|&stream| stream < APP_STREAMS)
        .ok_or_else(|| Failure::argument(format!("stream is {stream}; use 0 to {}", APP_STREAMS - 1)))
}

/// How a message travels.
pub(super) fn delivery(delivery: u32) -> Outcome<Delivery> {
    match delivery {
        RETICK_RELIABLE => Ok(Delivery::Reliable),
        RETICK_UNRELIABLE => Ok(Delivery::Unreliable),
        RETICK_UNRELIABLE_NEWEST => Ok(Delivery::UnreliableNewest),
        other => Err(Failure::argument(format!(
            "delivery is {other}; use RETICK_RELIABLE, RETICK_UNRELIABLE or RETICK_UNRELIABLE_NEWEST (0 to 2)"
        ))),
    }
}

/// The number of a delivery kind.
pub(super) fn delivery_number(delivery: Delivery) -> u32 {
    match delivery {
        Delivery::Reliable => RETICK_RELIABLE,
        Delivery::Unreliable => RETICK_UNRELIABLE,
        Delivery::UnreliableNewest => RETICK_UNRELIABLE_NEWEST,
    }
}

/// Bytes of a message.
pub(super) fn message_size(size: u32) -> Outcome<()> {
    match size as usize {
        0 => Err(Failure::argument("size is 0; a message has at least one byte")),
        1..=MAX_MESSAGE => Ok(()),
        _ => Err(Failure::large(format!("size is {size}; a message has at most {MAX_MESSAGE} bytes"))),
    }
}

/// Bytes of a datagram.
pub(super) fn datagram_size(size: u32) -> Outcome<()> {
    match size as usize {
        0 => Err(Failure::argument("size is 0; a datagram has at least one byte")),
        1..=MAX_DATAGRAM => Ok(()),
        _ => Err(Failure::large(format!("size is {size}; a datagram has at most {MAX_DATAGRAM} bytes"))),
    }
}

/// The caller's distance between two records of ours.
pub(super) fn stride(name: &'static str, size: u32, least: usize) -> Outcome<usize> {
    if (size as usize) < least || size > MAX_STRIDE || !size.is_multiple_of(8) {
        return Err(Failure::argument(format!(
            "{name} is {size}; use the sizeof of the struct, which is {least} here, or more"
        )));
    }
    Ok(size as usize)
}
