//! The UDP sockets of one mesh: IPv4 and IPv6 on one port number, whatever of both the machine has.
//!
//! Fed by: datagrams to send. Yields: datagrams received.
//! Never: decides what an error means; `datagrams` does.

use super::OpenError;
use super::datagrams::{self, Buffer, Counters, Read, Reader};
use super::poll::{Bell, Watched};
use crate::base::{Addr, Instant};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// Kernel memory asked for: with the default of 208 kB a burst of 200 clients lost datagrams.
const SOCKET_BUFFER: usize = 1 << 20;
/// A socket that the system would not watch is read, and offered to it again, after this long.
const UNWATCHED_FOR: Duration = Duration::from_millis(10);
/// Any-port binds tried until one number is free for both families.
const PORT_TRIES: usize = 16;

/// Where to listen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BindConfig {
    /// 0 = any.
    pub port: u16,
    /// `None` (or `::`) = every address of both families.
    pub address: Option<IpAddr>,
}

/// Where a mesh listens; the address is unspecified when it listens on all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalAddrs {
    /// IPv4, where the machine has it.
    pub v4: Option<SocketAddr>,
    /// IPv6, likewise.
    pub v6: Option<SocketAddr>,
}

impl LocalAddrs {
    /// The port, which is the same for both families.
    pub fn port(&self) -> u16 {
        self.v4.or(self.v6).map_or(0, |addr| addr.port())
    }
}

/// The sockets of one mesh.
pub(super) struct Sockets {
    v4: Option<Served>,
    v6: Option<Served>,
    counters: Arc<Counters>,
}

/// One socket, and how reading it goes.
struct Served {
    watched: Watched,
    reader: Reader,
    /// It yielded nothing but errors; until then it is not watched.
    paused_until: Option<Instant>,
}

/// Which of two sockets may have something to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ready {
    v4: bool,
    v6: bool,
}

impl Ready {
    pub(super) const NONE: Self = Self { v4: false, v6: false };
    pub(super) const BOTH: Self = Self { v4: true, v6: true };

    /// Whose socket has this key, and which it is.
    pub(super) const fn of_key(key: usize) -> (usize, Self) {
        let v6 = key % 2 == 1;
        (key / 2, Self { v4: !v6, v6 })
    }

    #[must_use]
    pub(super) const fn and(self, other: Self) -> Self {
        Self { v4: self.v4 || other.v4, v6: self.v6 || other.v6 }
    }
}

/// Bound, but not yet watched.
pub(super) struct Bound {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
}

impl Bound {
    /// Opens what the machine has: both families, IPv4 alone, or IPv6 alone.
    pub(super) fn bind(config: BindConfig) -> Result<Self, OpenError> {
        let BindConfig { port, address } = config;
        let Some(address) = address.filter(|address| *address != Ipv6Addr::UNSPECIFIED) else {
            return Self::bind_any(port, open);
        };
        let address = SocketAddr::new(address, port);
        let socket = Some(open(address).map_err(|error| refused(address, &error))?);
        Ok(if address.is_ipv4() { Self { v4: socket, v6: None } } else { Self { v4: None, v6: socket } })
    }

    fn bind_any(port: u16, open: impl Fn(SocketAddr) -> io::Result<UdpSocket>) -> Result<Self, OpenError> {
        let (any_v4, any_v6) = (IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED));
        for tries_left in (0..PORT_TRIES).rev() {
            let first = SocketAddr::new(any_v4, port);
            let v4 = match open(first) {
                Ok(socket) => socket,
                // Taken by another program: IPv6 alone would listen where nobody looks.
                Err(error) if error.kind() == ErrorKind::AddrInUse => return Err(refused(first, &error)),
                Err(no_v4) => {
                    let v6 = open(SocketAddr::new(any_v6, port)).map_err(|_| refused(first, &no_v4))?;
                    return Ok(Self { v4: None, v6: Some(v6) });
                }
            };
            let bound = v4.local_addr().map_err(|error| refused(first, &error))?.port();
            match open(SocketAddr::new(any_v6, bound)) {
                Ok(v6) => return Ok(Self { v4: Some(v4), v6: Some(v6) }),
                Err(error) if port == 0 && error.kind() == ErrorKind::AddrInUse && tries_left > 0 => {}
                Err(error) => {
                    log::info!("io: no IPv6 on port {bound} ({error}); going on with IPv4 alone");
                    return Ok(Self { v4: Some(v4), v6: None });
                }
            }
        }
        unreachable!("the last try returns")
    }

    pub(super) fn local_addrs(&self) -> LocalAddrs {
        let addr = |socket: &Option<UdpSocket>| socket.as_ref().and_then(|socket| socket.local_addr().ok());
        LocalAddrs { v4: addr(&self.v4), v6: addr(&self.v6) }
    }

    /// Has both sockets watched; their keys tell `id` (see [`Ready::of_key`]).
    pub(super) fn watch(self, bell: &Bell, id: usize, counters: Arc<Counters>) -> io::Result<Sockets> {
        let watch = |socket: Option<UdpSocket>, family| -> io::Result<_> {
            let watched = socket.map(|socket| Watched::new(socket, bell, id * 2 + family)).transpose()?;
            Ok(watched.map(|watched| Served { watched, reader: Reader::default(), paused_until: None }))
        };
        Ok(Sockets { v4: watch(self.v4, 0)?, v6: watch(self.v6, 1)?, counters })
    }
}

impl Sockets {
    /// Reads what has come on the sockets that are `ready`, up to a bound, and hands it to `deliver`; what remains ready is
    /// to be read again before anything is waited for.
    pub(super) fn receive(
        &mut self,
        ready: Ready,
        now: Instant,
        buffer: &mut Buffer,
        mut deliver: impl FnMut(Addr, &mut [u8]),
    ) -> Ready {
        let Self { v4, v6, counters } = self;
        let mut read = |served: &mut Option<Served>, ready| {
            let Some(served) = served.as_mut().filter(|_| ready) else { return false };
            served.read(now, buffer, counters, &mut deliver)
        };
        Ready { v4: read(v4, ready.v4), v6: read(v6, ready.v6) }
    }

    /// Which sockets have waited long enough after nothing but errors.
    pub(super) fn end_pauses(&mut self, now: Instant) -> Ready {
        let end = |served: &mut Option<Served>| {
            let due = served.as_mut().and_then(|served| served.paused_until.take_if(|at| *at <= now));
            due.is_some()
        };
        Ready { v4: end(&mut self.v4), v6: end(&mut self.v6) }
    }

    /// When the next pause is over.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        [&self.v4, &self.v6].into_iter().flatten().filter_map(|served| served.paused_until).min()
    }

    /// Sends one datagram; whatever the system says against it is at worst a loss.
    pub(super) fn send(&self, to: Addr, bytes: &[u8]) {
        match (to, self.socket_for(to)) {
            (Addr::Ip(to), Some(served)) => {
                datagrams::send(served.watched.socket(), bytes, to, &self.counters);
            }
            _ => datagrams::count(&self.counters.no_socket),
        }
    }

    fn socket_for(&self, to: Addr) -> Option<&Served> {
        match to {
            Addr::Ip(SocketAddr::V4(_)) => self.v4.as_ref(),
            Addr::Ip(SocketAddr::V6(_)) => self.v6.as_ref(),
            Addr::Opaque(_) => None,
        }
    }
}

impl Served {
    /// Whether more may wait.
    fn read(
        &mut self,
        now: Instant,
        buffer: &mut Buffer,
        counters: &Counters,
        deliver: &mut impl FnMut(Addr, &mut [u8]),
    ) -> bool {
        if self.paused_until.is_some() {
            return false;
        }
        let read = self.reader.read(self.watched.socket(), now, buffer, counters, deliver);
        match read {
            Read::Pause(until) => {
                self.watched.unwatch();
                self.paused_until = Some(until);
            }
            // Nobody would tell that something came: it is looked at again after a while.
            Read::Empty | Read::More if !self.watched.rearm() => {
                self.paused_until = Some(now + UNWATCHED_FOR);
            }
            Read::Empty | Read::More => {}
        }
        read == Read::More
    }
}

/// One socket of one family.
fn open(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        // IPv4 has a socket of its own, which also works where dual-stack sockets do not.
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    // The system may give less; a smaller buffer only loses more in a burst.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
    socket.bind(&SockAddr::from(address))?;
    let socket = UdpSocket::from(socket);
    #[cfg(windows)]
    super::poll::hide_resets(&socket);
    Ok(socket)
}

fn refused(address: SocketAddr, error: &io::Error) -> OpenError {
    let advice = match error.kind() {
        ErrorKind::AddrInUse => "another program uses it; choose another bind_port, or 0 for any",
        ErrorKind::AddrNotAvailable => {
            "bind_address is not an address of this machine; leave it empty for all"
        }
        ErrorKind::PermissionDenied => {
            "ports below 1024 need privileges; choose a higher bind_port, or 0 for any"
        }
        _ => "check that the machine has a network and the program may open sockets",
    };
    OpenError { message: format!("UDP {address} could not be opened ({error}): {advice}.") }
}

#[cfg(test)]
mod tests;
