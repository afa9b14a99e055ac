//! How a library is played: the contract, and one file per library.
//!
//! Fed by: a library's name. Yields: its peers. Never: lets a library see anything but its socket and the clock.

mod fortress;
mod ggrs;
mod ideal;
mod retick;

use crate::game::Game;
use crate::match_up::Scenario;
use crate::network::Socket;
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Debug;
use std::net::SocketAddr;

/// What a library did.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    /// New frames.
    pub frames: u64,
    /// Frames simulated again.
    pub resimulated: u64,
    /// Ticks without a new frame.
    pub stalls: u64,
    /// Reports that checksums differ.
    pub desyncs: u64,
    /// Reports that a peer left.
    pub left: u64,
    /// Calls that failed.
    pub errors: u64,
}

impl Counts {
    /// Both together.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            frames: self.frames + other.frames,
            resimulated: self.resimulated + other.resimulated,
            stalls: self.stalls + other.stalls,
            desyncs: self.desyncs + other.desyncs,
            left: self.left + other.left,
            errors: self.errors + other.errors,
        }
    }
}

/// One peer of a match. Whatever the library does runs under `meter::run(Doer::GameHalf | Doer::IoHalf, …)`.
pub trait Peer {
    /// One tick of the time before the match; true once this peer may step.
    fn lobby(&mut self) -> bool;
    /// One tick of a game at 60 Hz, as the library's own example does it.
    fn tick(&mut self, game: &mut Game, counts: &mut Counts);
    /// The next frame to be simulated for the first time.
    fn frame(&self) -> i32;
    /// Whether the library has a thread of its own, which is called between ticks.
    fn is_driven(&self) -> bool {
        false
    }
    /// When that thread has to be called though no datagram arrives.
    fn wake_at_ns(&self) -> Option<u64> {
        None
    }
    /// What that thread does when a datagram is there or its time has come.
    fn wake(&mut self) {}
}

/// One peer per socket.
pub fn seat(library: &str, scenario: &Scenario, sockets: &[Socket]) -> Result<Vec<Box<dyn Peer>>, String> {
    let sockets = sockets.iter().cloned().enumerate();
    Ok(match (library, scenario.input_size) {
        ("ideal", _) => sockets.map(|(us, socket)| ideal::seat(us, socket, scenario)).collect(),
        ("ggrs", 4) => sockets.map(|(us, socket)| ggrs::seat::<[u32; 1]>(us, socket, scenario)).collect(),
        ("ggrs", _) => sockets.map(|(us, socket)| ggrs::seat::<[u32; 4]>(us, socket, scenario)).collect(),
        ("fortress", 4) => {
            sockets.map(|(us, socket)| fortress::seat::<[u32; 1]>(us, socket, scenario)).collect()
        }
        ("fortress", _) => {
            sockets.map(|(us, socket)| fortress::seat::<[u32; 4]>(us, socket, scenario)).collect()
        }
        ("retick", _) => retick::seat(sockets, scenario, true),
        ("retick-manual", _) => retick::seat(sockets, scenario, false),
        _ => return Err(format!("{library}: no such library")),
    })
}

/// Bytes of each packet that are only there for sealing, and are neither filled nor checked here.
pub fn tag_bytes(library: &str) -> f64 {
    if library.starts_with("retick") { ::retick::base::limits::TAG_SIZE as f64 } else { 0.0 }
}

/// An input as the generic libraries want it: a plain value that serde knows.
pub trait Words: Copy + Eq + Default + Serialize + DeserializeOwned + Debug + 'static {
    /// From bytes.
    fn of(bytes: &[u8]) -> Self;
    /// Appends the bytes.
    fn append_to(&self, bytes: &mut Vec<u8>);
}

macro_rules! words {
    ($count:literal) => {
        impl Words for [u32; $count] {
            fn of(bytes: &[u8]) -> Self {
                let mut words =
                    bytes.chunks_exact(4).map(|word| word.try_into().map_or(0, u32::from_le_bytes));
                std::array::from_fn(|_| words.next().unwrap_or(0))
            }
            fn append_to(&self, bytes: &mut Vec<u8>) {
                self.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
            }
        }
    };
}
words!(1);
words!(4);

/// The addresses that libraries which insist on IP see.
fn address(peer: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], FIRST_PORT + peer as u16))
}

/// Whose address that is.
fn peer_at(address: &SocketAddr) -> usize {
    usize::from(address.port() - FIRST_PORT)
}

const FIRST_PORT: u16 = 7000;
