//! One end of a transport, the same for all of them.
//!
//! Fed by: rows and the far end. Yields: messages that came. Never: helps one library where it does not help all.

mod enet;
mod raw;
mod renet;
mod retick;

use std::net::SocketAddr;
use std::time::Duration;

/// One end: the program calls `turn` often, and `wait` when it has nothing to do.
pub trait Endpoint {
    /// Runs the library and hands on what came, with the number of the peer it is from.
    fn turn(&mut self, take: &mut dyn FnMut(usize, &[u8]));
    /// Queues a message; `false` when the library takes none now.
    fn send(&mut self, peer: usize, reliable: bool, bytes: &[u8]) -> bool;
    /// What was queued leaves now.
    fn flush(&mut self);
    /// Returns when something may have come, or after so long.
    fn wait(&mut self, at_most: Duration);
    /// Peers that messages can be sent to.
    fn peers(&self) -> usize;
    /// Most bytes of a reliable message.
    fn largest(&self) -> usize {
        usize::MAX
    }
}

/// Where a far end listens, and what else must be known to connect.
#[derive(Clone, Debug)]
pub struct Listening {
    /// Its socket.
    pub address: SocketAddr,
    /// retick's room as hex; empty for the others.
    pub room: String,
}

/// Whether the endpoint's user waits for messages, or looks for them again and again, as a game does that has no time to lose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Sleeps at most so long between two looks, where the library cannot wait.
    Sleeps(Duration),
    /// Only yields.
    Yields,
}

/// The libraries, by name.
pub const LIBRARIES: &str =
    "raw, enet, renet, retick (its IO thread), retick-turn (the same turns on the caller's thread)";

/// An end that others connect to.
pub fn listen(
    library: &str,
    peers: usize,
    patience: Patience,
) -> Result<(Box<dyn Endpoint>, Listening), String> {
    match library {
        "raw" => raw::listen(),
        "enet" => enet::listen(peers),
        "renet" => renet::listen(peers),
        "retick" => retick::listen(true, patience),
        "retick-turn" => retick::listen(false, patience),
        _ => Err(format!("{library}: no such library; there are {LIBRARIES}")),
    }
}

/// An end that connects there. `number` tells the ends of one process apart.
pub fn connect(
    library: &str,
    to: &Listening,
    number: u64,
    patience: Patience,
) -> Result<Box<dyn Endpoint>, String> {
    match library {
        "raw" => raw::connect(to.address),
        "enet" => enet::connect(to.address),
        "renet" => renet::connect(to.address, number),
        "retick" => retick::connect(to, true, patience),
        "retick-turn" => retick::connect(to, false, patience),
        _ => Err(format!("{library}: no such library; there are {LIBRARIES}")),
    }
}

/// A socket of this machine alone.
fn socket() -> Result<std::net::UdpSocket, String> {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").map_err(|error| format!("no socket: {error}"))?;
    socket.set_nonblocking(true).map_err(|error| error.to_string())?;
    Ok(socket)
}

/// Its address.
fn address(socket: &std::net::UdpSocket) -> Result<Listening, String> {
    let address = socket.local_addr().map_err(|error| error.to_string())?;
    Ok(Listening { address, room: String::new() })
}
