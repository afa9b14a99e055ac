//! Waiting by the crate `polling`: for systems other than Unix, where a wait is more than a call.
//!
//! Fed by: sockets that are watched. Yields: the keys of those that can be read. Never: reads a datagram.

use polling::{Event, Events, PollMode, Poller};
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

/// Waits for the sockets watched by its [`Bell`].
pub(in crate::io) struct Waiter {
    poller: Arc<Poller>,
    events: Events,
}

/// Wakes a [`Waiter`], from any thread, and lets sockets be watched by it.
#[derive(Clone)]
pub(in crate::io) struct Bell(Arc<Poller>);

/// A socket whose readability a [`Waiter`] tells.
pub(in crate::io) struct Watched {
    socket: UdpSocket,
    poller: Arc<Poller>,
    key: usize,
    /// Whether the poller knows it now.
    is_known: bool,
}

impl Waiter {
    pub(in crate::io) fn new() -> io::Result<Self> {
        Ok(Self { poller: Arc::new(Poller::new()?), events: Events::new() })
    }

    pub(in crate::io) fn bell(&self) -> Bell {
        Bell(Arc::clone(&self.poller))
    }

    /// Returns when a socket is readable, the bell rang, or the time is over (`None`: never).
    pub(in crate::io) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.events.clear();
        self.poller.wait(&mut self.events, timeout).map(drop)
    }

    /// The keys of the sockets that the last `wait` found readable.
    pub(in crate::io) fn readable(&self) -> impl Iterator<Item = usize> {
        self.events.iter().map(|event| event.key)
    }
}

impl Bell {
    /// Ends the current or the next `wait`.
    pub(in crate::io) fn ring(&self) {
        if let Err(error) = self.0.notify() {
            log::warn!("io: the driver could not be woken: {error}");
        }
    }
}

impl Watched {
    pub(in crate::io) fn new(socket: UdpSocket, bell: &Bell, key: usize) -> io::Result<Self> {
        let mut watched = Self { socket, poller: Arc::clone(&bell.0), key, is_known: false };
        watched.watch()?;
        Ok(watched)
    }

    fn watch(&mut self) -> io::Result<()> {
        // SAFETY: the socket must be deleted from the poller before it is closed. `Watched` owns it, never gives it out
        // by value, keeps the poller alive, and deletes it in `drop`, which runs before the socket's own.
        unsafe { self.poller.add_with_mode(&self.socket, Event::readable(self.key), mode(&self.poller))? };
        self.is_known = true;
        Ok(())
    }

    /// Tells nothing of it any more, until `rearm`: a socket with an error would end every `wait` at once.
    pub(in crate::io) fn unwatch(&mut self) {
        if self.is_known
            && let Err(error) = self.poller.delete(&self.socket)
        {
            log::warn!("io: a socket could not be taken from the poller: {error}");
        }
        self.is_known = false;
    }

    pub(in crate::io) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// To be called after the socket was read: where the system only tells once, asks to be told again. Whether that went
    /// well; if not, nothing will be told of the socket until the next call.
    pub(in crate::io) fn rearm(&mut self) -> bool {
        let result = if !self.is_known {
            self.watch()
        } else if mode(&self.poller) == PollMode::Oneshot {
            self.poller.modify(&self.socket, Event::readable(self.key))
        } else {
            return true;
        };
        if let Err(error) = &result {
            log::warn!("io: a socket could not be watched any longer: {error}");
        }
        result.is_ok()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.unwatch();
    }
}

fn mode(poller: &Poller) -> PollMode {
    if poller.supports_level() { PollMode::Level } else { PollMode::Oneshot }
}
