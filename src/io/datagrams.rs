//! Decides what becomes of one datagram, and of one socket, when the system says no: again, lost and counted, or a pause.
//!
//! Fed by: a socket, or what stands for one in a test. Yields: datagrams received, counters of what went wrong.
//! Never: ends because of an error. On UDP an error tells of one datagram, mostly another one than the current.

use super::fault::{Fault, FaultCounters};
use crate::base::limits::MAX_DATAGRAM;
use crate::base::{Addr, Instant};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Datagrams read from one socket before others get their turn and answers are sent.
pub(super) const RECEIVES_PER_TURN: usize = 64;
/// A call that signals interrupt again and again is given up after so many.
const INTERRUPTS: u32 = 16;
/// A socket that yields nothing but errors is left alone for this long at first, twice as long each time, up to the last.
const PAUSES: std::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_millis(128);

/// A receive buffer: one byte more than a datagram may have, so that a longer one shows.
pub(super) type Buffer = [u8; MAX_DATAGRAM + 1];

/// What is asked of a socket.
pub(super) trait Datagrams {
    fn receive(&self, buffer: &mut Buffer) -> io::Result<(usize, SocketAddr)>;
    fn send(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize>;
}

impl Datagrams for UdpSocket {
    fn receive(&self, buffer: &mut Buffer) -> io::Result<(usize, SocketAddr)> {
        self.recv_from(buffer)
    }

    fn send(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.send_to(bytes, to)
    }
}

/// What happened on the sockets of a mesh.
#[derive(Debug, Default)]
pub struct Counters {
    /// Datagrams sent.
    pub sent: AtomicU64,
    /// Datagrams that were lost because the system did not take them, by what it said.
    pub send_failed: FaultCounters,
    /// Datagrams sent a second time at once, because the first try was refused for something else or for how it was made.
    pub sent_again: AtomicU64,
    /// Datagrams for a family or kind of address that no socket of ours has.
    pub no_socket: AtomicU64,
    /// Datagrams received.
    pub received: AtomicU64,
    /// Errors while receiving, such as "port unreachable" for an earlier datagram.
    pub receive_errors: FaultCounters,
    /// Datagrams dropped because they were empty.
    pub empty: AtomicU64,
    /// Datagrams dropped because they were longer than any of ours.
    pub oversized: AtomicU64,
    /// Pauses of a socket that yielded nothing but errors.
    pub pauses: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// What a socket is like after it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// Nothing waits any more.
    Empty,
    /// More may wait; others get their turn first.
    More,
    /// Nothing but errors: it is not to be read before this.
    Pause(Instant),
}

/// Reads one socket, and leaves it alone for a while when it yields nothing but errors.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pause: Option<Duration>,
}

impl Reader {
    /// Reads what has come, up to a bound, and hands it to `deliver`.
    pub(super) fn read(
        &mut self,
        socket: &impl Datagrams,
        now: Instant,
        buffer: &mut Buffer,
        counters: &Counters,
        deliver: &mut impl FnMut(Addr, &mut [u8]),
    ) -> Read {
        let mut works = false;
        for _ in 0..RECEIVES_PER_TURN {
            match socket.receive(buffer) {
                Ok((size, from)) => {
                    works = true;
                    match size {
                        0 => count(&counters.empty),
                        1..=MAX_DATAGRAM => {
                            count(&counters.received);
                            deliver(Addr::ip(from), &mut buffer[..size]);
                        }
                        _ => count(&counters.oversized),
                    }
                }
                Err(error) => match Fault::of(&error) {
                    Fault::NotNow => {
                        self.pause = None;
                        return Read::Empty;
                    }
                    // Windows says so of one that is longer than the buffer, and has taken it from the queue.
                    Fault::TooLong => {
                        works = true;
                        count(&counters.oversized);
                    }
                    fault => {
                        counters.receive_errors.count(fault);
                        log::trace!("io: an error while receiving: {error}");
                    }
                },
            }
        }
        if works {
            self.pause = None;
            return Read::More;
        }
        let pause = self.pause.map_or(*PAUSES.start(), |before| (before * 2).min(*PAUSES.end()));
        if self.pause.is_none() {
            log::warn!(
                "io: a socket yields nothing but errors; it is read at longer intervals until it works again"
            );
        }
        self.pause = Some(pause);
        count(&counters.pauses);
        Read::Pause(now + pause)
    }
}

/// Sends one datagram. What the system says against it is a loss, except where a second try is worth it: an error that an
/// earlier datagram brought about is gone once it was told, and one about the way of sending may not come twice.
pub(super) fn send(socket: &impl Datagrams, bytes: &[u8], to: SocketAddr, counters: &Counters) {
    let (mut interrupts, mut tried_again) = (0, false);
    loop {
        let Err(error) = socket.send(bytes, to) else { return count(&counters.sent) };
        match Fault::of(&error) {
            Fault::Interrupted if interrupts < INTERRUPTS => interrupts += 1,
            Fault::Refused | Fault::Odd if !tried_again => {
                tried_again = true;
                count(&counters.sent_again);
            }
            fault => {
                counters.send_failed.count(fault);
                return log::trace!("io: {} bytes to {to} not sent: {error}", bytes.len());
            }
        }
    }
}

#[cfg(test)]
mod tests;
