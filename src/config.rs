//! Configuration: what the caller asked for, and what makes sense. Parse, don't validate.
//!
//! Fed by: the C edge or a Rust caller. Yields: `ValidMeshConfig` and `ValidSessionConfig`, which no code below checks again.
//! Never: reads a file or the environment.

use crate::base::Addr;
use crate::base::limits::{MAX_DATAGRAM, MAX_INPUT, MAX_INPUT_DELAY, MAX_PEERS, MAX_WINDOW, MIN_DATAGRAM};
use std::fmt;
use std::time::Duration;

/// The 32 bytes that peers of a room share: 16 secret, then 16 fingerprint of the room's Ed25519 key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RoomKey(pub [u8; 32]);

impl fmt::Debug for RoomKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RoomKey(redacted)")
    }
}

/// A field that makes no sense: which, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The field's name as in the C struct.
    pub field: &'static str,
    /// What was wrong and what to do, without the field's name.
    pub problem: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.problem)
    }
}
impl std::error::Error for ConfigError {}

fn in_range<T: Copy + PartialOrd + fmt::Display>(
    field: &'static str,
    value: T,
    low: T,
    high: T,
) -> Result<T, ConfigError> {
    if value < low || value > high {
        return Err(ConfigError { field, problem: format!("is {value}; use {low} to {high}") });
    }
    Ok(value)
}

/// What a mesh needs to know; see the C struct `retick_mesh_config` for the meaning of each field.
#[derive(Clone, Debug)]
pub struct MeshConfig {
    /// 2..=16.
    pub max_peers: u32,
    /// Peers with another are refused, with that reason.
    pub game_id: u64,
    /// Likewise.
    pub build_id: u64,
    /// Silence after which a peer is suspected; 0 = never.
    pub suspect_ms: u32,
    /// Silence after which a peer's slots leave the timeline even without a quorum (two peers); 0 = never.
    pub cut_after_ms: u32,
    /// A peer whose game hands in nothing for this long is cut; 0 = others wait.
    pub stall_cut_ms: u32,
    /// Silence after which a member of the lobby is forgotten; 0 = never.
    pub forget_after_ms: u32,
    /// Largest UDP payload.
    pub max_datagram: u32,
    /// Our own address as others reach it, where it cannot be observed (custom transport).
    pub local_address: Option<Addr>,
    /// Wall clock for certificates; 0 = not checked (simulation).
    pub unix_time_s: u64,
    /// Whether this machine has AES in hardware: packets are sealed with it where both ends do.
    pub has_aes: bool,
}

impl Default for MeshConfig {
    fn default() -> Self {
        Self {
            max_peers: 8,
            game_id: 0,
            build_id: 0,
            suspect_ms: 150,
            cut_after_ms: 400,
            stall_cut_ms: 0,
            forget_after_ms: 15_000,
            max_datagram: MAX_DATAGRAM as u32,
            local_address: None,
            unix_time_s: 0,
            has_aes: true,
        }
    }
}

/// A mesh configuration that makes sense.
#[derive(Clone, Debug)]
pub struct ValidMeshConfig {
    /// See [`MeshConfig::max_peers`].
    pub max_peers: usize,
    /// See [`MeshConfig::game_id`].
    pub game_id: u64,
    /// See [`MeshConfig::build_id`].
    pub build_id: u64,
    /// `None` = never.
    pub suspect: Option<Duration>,
    /// `None` = never.
    pub cut_after: Option<Duration>,
    /// `None` = others wait.
    pub stall_cut: Option<Duration>,
    /// `None` = never.
    pub forget_after: Option<Duration>,
    /// Bytes.
    pub max_datagram: usize,
    /// See [`MeshConfig::local_address`].
    pub local_address: Option<Addr>,
    /// See [`MeshConfig::unix_time_s`].
    pub unix_time_s: u64,
    /// See [`MeshConfig::has_aes`].
    pub has_aes: bool,
}

impl TryFrom<MeshConfig> for ValidMeshConfig {
    type Error = ConfigError;

    fn try_from(config: MeshConfig) -> Result<Self, ConfigError> {
        let limit = |ms: u32| (ms > 0).then(|| Duration::from_millis(u64::from(ms)));
        for (field, ms) in [
            ("suspect_ms", config.suspect_ms),
            ("cut_after_ms", config.cut_after_ms),
            ("stall_cut_ms", config.stall_cut_ms),
            ("forget_after_ms", config.forget_after_ms),
        ] {
            if ms > 0 {
                in_range(field, ms, 100, 600_000)?;
            }
        }
        if config.suspect_ms > 0 && config.cut_after_ms > 0 && config.cut_after_ms < config.suspect_ms {
            return Err(ConfigError {
                field: "cut_after_ms",
                problem: format!(
                    "is {}, below suspect_ms ({}); a peer is suspected before it is cut",
                    config.cut_after_ms, config.suspect_ms
                ),
            });
        }
        Ok(Self {
            max_peers: in_range("max_peers", config.max_peers, 2, MAX_PEERS as u32)? as usize,
            game_id: config.game_id,
            build_id: config.build_id,
            suspect: limit(config.suspect_ms),
            cut_after: limit(config.cut_after_ms),
            stall_cut: limit(config.stall_cut_ms),
            forget_after: limit(config.forget_after_ms),
            max_datagram: in_range(
                "max_datagram",
                config.max_datagram,
                MIN_DATAGRAM as u32,
                MAX_DATAGRAM as u32,
            )? as usize,
            local_address: config.local_address,
            unix_time_s: config.unix_time_s,
            has_aes: config.has_aes,
        })
    }
}

/// What a missing remote input is taken to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predictor {
    /// The slot's newest confirmed input.
    RepeatLast,
    /// Zero bytes.
    Zero,
    /// The game's own function.
    Game,
}

/// Who keeps the saved states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateMode {
    /// The game writes bytes into a buffer of the library.
    Bytes,
    /// The library copies registered memory regions.
    Regions,
    /// The game keeps its own copies in numbered slots.
    Slots,
}

/// What every peer of a match must have alike; a digest of it is compared before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSettings {
    /// Most bytes of one slot's input, 1..=64.
    pub input_max: u8,
    /// Frames per second, 1..=1000.
    pub frame_rate: u16,
    /// The game's own digest of its rules, level, …
    pub game_settings: u64,
    /// 0 off, 1 marks, 2 every frame.
    pub desync_level: u8,
    /// The prediction window: decides how often a node must send, not compared between peers.
    pub window: u8,
}

impl SessionSettings {
    /// What is compared: equal digests mean that the peers can play one match.
    pub fn digest(&self) -> u64 {
        let mut bytes = [0; 12];
        bytes[0] = self.input_max;
        bytes[1] = self.desync_level;
        bytes[2..4].copy_from_slice(&self.frame_rate.to_le_bytes());
        bytes[4..].copy_from_slice(&self.game_settings.to_le_bytes());
        crate::kit::hash::digest(&bytes)
    }

    /// Length of a frame, rounded down to ns.
    pub fn frame_ns(&self) -> u64 {
        1_000_000_000 / u64::from(self.frame_rate)
    }
}

/// What a session needs to know; see the C struct `retick_session_config`.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// 1..=64.
    pub input_max: u32,
    /// 1..=1000.
    pub frame_rate: u32,
    /// Frames, 0..=32, for every local slot at the start.
    pub input_delay: u32,
    /// Frames, 0..=64; 0 = lockstep.
    pub prediction_window: u32,
    /// See [`Predictor`].
    pub predictor: Predictor,
    /// See [`StateMode`].
    pub state_mode: StateMode,
    /// Bytes that a saved state takes at first; it may grow.
    pub state_capacity: u64,
    /// 0, 1 or 2.
    pub desync_level: u32,
    /// Compared between peers.
    pub game_settings: u64,
    /// Without a mesh: how many slots are played here.
    pub local_slots: u32,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            input_max: 4,
            frame_rate: 60,
            input_delay: 2,
            prediction_window: 16,
            predictor: Predictor::RepeatLast,
            state_mode: StateMode::Bytes,
            state_capacity: 64 * 1024,
            desync_level: 1,
            game_settings: 0,
            local_slots: 1,
        }
    }
}

/// A session configuration that makes sense.
#[derive(Clone, Debug)]
pub struct ValidSessionConfig {
    /// What all peers must agree on.
    pub settings: SessionSettings,
    /// Frames.
    pub input_delay: i32,
    /// Frames; 0 = lockstep.
    pub window: i32,
    /// See [`Predictor`].
    pub predictor: Predictor,
    /// See [`StateMode`].
    pub state_mode: StateMode,
    /// Bytes.
    pub state_capacity: usize,
    /// 0, 1 or 2.
    pub desync_level: u8,
    /// Slots of a session without a mesh.
    pub local_slots: usize,
}

/// Most bytes of one saved state: 1 GiB.
pub const MAX_STATE: u64 = 1 << 30;

impl TryFrom<SessionConfig> for ValidSessionConfig {
    type Error = ConfigError;

    fn try_from(config: SessionConfig) -> Result<Self, ConfigError> {
        let input_max = in_range("input_max", config.input_max, 1, MAX_INPUT as u32)?;
        let frame_rate = in_range("frame_rate", config.frame_rate, 1, 1000)?;
        let desync_level = in_range("desync_level", config.desync_level, 0, 2)? as u8;
        let window = in_range("prediction_window", config.prediction_window, 0, MAX_WINDOW as u32)?;
        Ok(Self {
            settings: SessionSettings {
                input_max: input_max as u8,
                frame_rate: frame_rate as u16,
                game_settings: config.game_settings,
                desync_level,
                window: window as u8,
            },
            input_delay: in_range("input_delay", config.input_delay, 0, MAX_INPUT_DELAY as u32)? as i32,
            window: window as i32,
            predictor: config.predictor,
            state_mode: config.state_mode,
            state_capacity: in_range("state_capacity", config.state_capacity, 0, MAX_STATE)? as usize,
            desync_level,
            local_slots: in_range("local_slots", config.local_slots, 1, 16)? as usize,
        })
    }
}
