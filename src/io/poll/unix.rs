//! Waiting by `poll`: one system call a turn, for a handful of sockets cheaper than a set kept by the kernel, which
//! `polling` arms, times and disarms by four more.
//!
//! Fed by: sockets that are watched. Yields: the keys of those that can be read. Never: reads a datagram.

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, FdFlags, fcntl_setfd, read, write};
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Waits for the sockets watched by its [`Bell`].
pub(in crate::io) struct Waiter {
    shared: Arc<Shared>,
    /// What is waited for: the rope, then each of `sockets`.
    waits: Vec<PollFd<'static>>,
    /// Held here, so that none is closed while it is waited for.
    sockets: Vec<Listed>,
}

/// Wakes a [`Waiter`], from any thread, and lets sockets be watched by it.
#[derive(Clone)]
pub(in crate::io) struct Bell(Arc<Shared>);

/// A socket whose readability a [`Waiter`] tells.
pub(in crate::io) struct Watched {
    socket: Arc<UdpSocket>,
    shared: Arc<Shared>,
    key: usize,
    is_listed: bool,
}

#[derive(Clone)]
struct Listed {
    key: usize,
    socket: Arc<UdpSocket>,
}

struct Shared {
    list: Mutex<Vec<Listed>>,
    /// The waiter's copy of the list is old.
    is_changed: AtomicBool,
    /// Rung since the waiter last looked.
    is_rung: AtomicBool,
    /// The waiter waits, or is about to, and sees only what comes through the pipe.
    is_waiting: AtomicBool,
    /// What a ring is written to, and where the waiter sees it. Both are here: a write to a pipe that nobody could read would
    /// end the process by a signal.
    clapper: OwnedFd,
    rope: OwnedFd,
}

impl Waiter {
    pub(in crate::io) fn new() -> io::Result<Self> {
        // Not `pipe2`, which macOS lacks.
        let (rope, clapper) = rustix::pipe::pipe()?;
        for end in [&rope, &clapper] {
            fcntl_setfl(end, fcntl_getfl(end)? | OFlags::NONBLOCK)?;
            fcntl_setfd(end, FdFlags::CLOEXEC)?;
        }
        let shared = Arc::new(Shared {
            list: Mutex::new(Vec::new()),
            is_changed: AtomicBool::new(true),
            is_rung: AtomicBool::new(false),
            is_waiting: AtomicBool::new(false),
            clapper,
            rope,
        });
        Ok(Self { shared, waits: Vec::new(), sockets: Vec::new() })
    }

    pub(in crate::io) fn bell(&self) -> Bell {
        Bell(Arc::clone(&self.shared))
    }

    /// Returns when a socket is readable, the bell rang, or the time is over (`None`: never).
    pub(in crate::io) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.shared.is_waiting.store(true, SeqCst);
        // Who rings from here on writes to the pipe; who rang before is seen now.
        let timeout = if self.shared.is_rung.swap(false, SeqCst) { Some(Duration::ZERO) } else { timeout };
        if self.shared.is_changed.swap(false, SeqCst) {
            self.list();
        }
        // An overlong time is as good as none.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let result = poll(&mut self.waits, timeout.as_ref());
        self.shared.is_waiting.store(false, SeqCst);
        match result {
            // A signal: whatever the caller waits for, it looks again.
            Err(Errno::INTR) => self.waits.iter_mut().for_each(PollFd::clear_revents),
            Err(error) => {
                self.waits.iter_mut().for_each(PollFd::clear_revents);
                return Err(error.into());
            }
            Ok(_) => {}
        }
        if self.waits.first().is_some_and(|rope| !rope.revents().is_empty()) {
            self.silence();
        }
        Ok(())
    }

    /// Takes over the list of sockets.
    fn list(&mut self) {
        // Of the old ones first: what is waited for never outlives what holds it open.
        self.waits.clear();
        self.sockets.clear();
        self.sockets.extend(self.shared.list.lock().iter().cloned());
        let raw = self.sockets.iter().map(|listed| listed.socket.as_raw_fd());
        self.waits.extend([self.shared.rope.as_raw_fd()].into_iter().chain(raw).map(|raw| {
            // SAFETY: `self` has a share of the rope, and of each socket until `waits` was cleared, above or when it drops.
            let open = unsafe { BorrowedFd::borrow_raw(raw) };
            PollFd::from_borrowed_fd(open, PollFlags::IN)
        }));
    }

    /// Empties the pipe.
    fn silence(&mut self) {
        let mut rings = [0; 64];
        while matches!(read(&self.shared.rope, &mut rings), Ok(64) | Err(Errno::INTR)) {}
        self.shared.is_rung.store(false, SeqCst);
    }

    /// The keys of the sockets that the last `wait` found readable.
    pub(in crate::io) fn readable(&self) -> impl Iterator<Item = usize> {
        let waits = self.waits.iter().skip(1).zip(&self.sockets);
        waits.filter(|(wait, _)| !wait.revents().is_empty()).map(|(_, listed)| listed.key)
    }
}

impl Bell {
    /// Ends the current or the next `wait`; a system call only while one is going on.
    pub(in crate::io) fn ring(&self) {
        self.0.ring();
    }
}

impl Shared {
    fn ring(&self) {
        if self.is_rung.swap(true, SeqCst) || !self.is_waiting.load(SeqCst) {
            return;
        }
        match write(&self.clapper, &[1]) {
            // A full pipe wakes as well.
            Ok(_) | Err(Errno::AGAIN) => {}
            Err(error) => log::warn!("io: the driver could not be woken: {error}"),
        }
    }

    /// The waiter takes it over in its current or next `wait`, and only then lets go of a socket that was taken out.
    fn change(&self, change: impl FnOnce(&mut Vec<Listed>)) {
        change(&mut self.list.lock());
        self.is_changed.store(true, SeqCst);
        self.ring();
    }
}

impl Watched {
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    pub(in crate::io) fn new(socket: UdpSocket, bell: &Bell, key: usize) -> io::Result<Self> {
        let mut watched =
            Self { socket: Arc::new(socket), shared: Arc::clone(&bell.0), key, is_listed: false };
        watched.rearm();
        Ok(watched)
    }

    /// Tells nothing of it any more, until `rearm`: a socket with an error would end every `wait` at once.
    pub(in crate::io) fn unwatch(&mut self) {
        if std::mem::take(&mut self.is_listed) {
            let key = self.key;
            self.shared.change(|list| list.retain(|listed| listed.key != key));
        }
    }

    pub(in crate::io) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// To be called after the socket was read. Whether its readability is told from now on; here it always is.
    pub(in crate::io) fn rearm(&mut self) -> bool {
        if !std::mem::replace(&mut self.is_listed, true) {
            let listed = Listed { key: self.key, socket: Arc::clone(&self.socket) };
            self.shared.change(|list| list.push(listed));
        }
        true
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.unwatch();
    }
}
