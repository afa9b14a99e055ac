//! One iteration of the driver, the same for the IO thread and for the caller's: wait, receive, run, send.
//!
//! Fed by: endpoints (a node with its sockets). Yields: calls of each node's contract, at the time it asked for.
//! Never: lets one node's panic, silence or flood end or starve the others; allocates in steady state.

use super::clock;
use super::conditioner::{Conditioner, Setting};
use super::datagrams::Buffer;
use super::poll::{Bell, Waiter};
use super::socket::{Ready, Sockets};
use crate::base::Instant;
use crate::base::limits::MAX_DATAGRAM;
use crate::bridge::Waker;
use crate::node::Output;
use crate::simnet::Drive;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A node whose handle is gone has this long to say goodbye: two repeats at an RTT of 100 ms.
const LINGER: Duration = Duration::from_millis(300);
/// Between two tries when the system cannot wait at all, so that the thread does not spin.
const AFTER_FAILED_WAIT: Duration = Duration::from_millis(1);

/// Time-outs of one node at one instant.
const ROUNDS: usize = 4;
/// How long a node waits that used them up.
const AFTER_IDLE_ROUNDS: Duration = Duration::from_millis(1);

/// What the game's thread tells an endpoint directly.
#[derive(Default)]
pub(super) struct Line {
    /// Something was queued since the node last looked.
    called: AtomicBool,
    setting: Mutex<Option<Setting>>,
}

/// What the game half calls after it queued something: one system call, and none while the driver has yet to look.
pub(super) fn waker(bell: Bell, line: Arc<Line>) -> Waker {
    Arc::new(move || line.call(&bell))
}

impl Line {
    fn call(&self, bell: &Bell) {
        if !self.called.swap(true, Ordering::AcqRel) {
            bell.ring();
        }
    }

    /// What is sent because of later commands passes a link like this.
    pub(super) fn condition(&self, setting: Setting, bell: &Bell) {
        *self.setting.lock() = Some(setting);
        self.call(bell);
    }
}

/// A node with its sockets.
pub(super) struct Endpoint {
    id: usize,
    node: Box<dyn Drive>,
    sockets: Sockets,
    line: Arc<Line>,
    conditioner: Option<Conditioner>,
    wake_at: Option<Instant>,
    /// Its handle is gone; so is the endpoint from then on.
    ends_at: Option<Instant>,
    ready: Ready,
}

/// Whether an endpoint is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    GoesOn,
    Finished,
}

impl Endpoint {
    pub(super) fn new(id: usize, node: Box<dyn Drive>, sockets: Sockets, line: Arc<Line>) -> Self {
        // What was queued or received before the first turn is looked at in it.
        line.called.store(true, Ordering::Release);
        Self { id, node, sockets, line, conditioner: None, wake_at: None, ends_at: None, ready: Ready::BOTH }
    }

    fn condition(&mut self, setting: Setting) {
        match &mut self.conditioner {
            Some(conditioner) => conditioner.change(setting),
            None => self.conditioner = Some(Conditioner::new(setting)),
        }
    }

    /// When it has to run again, if nothing happens before.
    fn due(&self) -> Option<Instant> {
        if self.line.called.load(Ordering::Acquire) || self.ready != Ready::NONE {
            return Some(Instant::ZERO);
        }
        let conditioned = self.conditioner.as_ref().and_then(Conditioner::poll_timeout);
        [self.wake_at, self.ends_at, conditioned, self.sockets.poll_timeout()].into_iter().flatten().min()
    }

    fn run(&mut self, now: Instant, buffer: &mut Buffer) -> Life {
        let mut touched = false;
        if self.line.called.swap(false, Ordering::AcqRel) {
            self.node.handle_commands(now);
            // Looked at after the commands: whatever was told before one of them is in force for it.
            let setting = self.line.setting.lock().take();
            if let Some(setting) = setting {
                self.condition(setting);
            }
            touched = true;
        }
        self.ready = self.ready.and(self.sockets.end_pauses(now));
        if self.ready != Ready::NONE {
            let node = &mut self.node;
            self.ready = self.sockets.receive(self.ready, now, buffer, |from, bytes| {
                node.handle_datagram(from, bytes, now);
                touched = true;
            });
        }
        let mut life = if touched { self.drain(now) } else { Life::GoesOn };
        for _ in 0..ROUNDS {
            if life == Life::Finished || self.wake_at.is_none_or(|at| at > now) {
                break;
            }
            self.node.handle_timeout(now);
            life = self.drain(now);
        }
        // A node that again and again asks for a time that has passed must not keep the thread busy.
        self.wake_at = self.wake_at.map(|at| if at > now { at } else { now + AFTER_IDLE_ROUNDS });
        if let Some(conditioner) = &mut self.conditioner {
            conditioner.deliver(now, |to, bytes| self.sockets.send(to, bytes));
        }
        if self.ends_at.is_some_and(|at| at <= now) { Life::Finished } else { life }
    }

    fn drain(&mut self, now: Instant) -> Life {
        loop {
            match self.node.poll_output() {
                Output::Transmit { to, bytes } => match &mut self.conditioner {
                    Some(conditioner) => conditioner.submit(to, bytes, now),
                    None => self.sockets.send(to, bytes),
                },
                Output::Wait { until, .. } => {
                    self.wake_at = until;
                    return Life::GoesOn;
                }
                Output::Finished => return Life::Finished,
            }
        }
    }
}

/// Endpoints and what is needed to run them.
pub(super) struct Driver {
    waiter: Waiter,
    endpoints: Vec<Endpoint>,
    buffer: Box<Buffer>,
}

impl Driver {
    pub(super) fn new(waiter: Waiter) -> Self {
        Self { waiter, endpoints: Vec::new(), buffer: Box::new([0; MAX_DATAGRAM + 1]) }
    }

    pub(super) fn add(&mut self, endpoint: Endpoint) {
        self.endpoints.push(endpoint);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.endpoints.is_empty()
    }

    /// The handle of an endpoint is gone: it may say goodbye, and then ends.
    pub(super) fn close(&mut self, id: usize, now: Instant) {
        if let Some(endpoint) = self.endpoints.iter_mut().find(|endpoint| endpoint.id == id) {
            endpoint.ends_at = Some(now + LINGER);
            endpoint.line.called.store(true, Ordering::Release);
        }
    }

    /// Waits until something is to be done, at most for `limit`, and does it.
    pub(super) fn turn(&mut self, limit: Option<Duration>) {
        // What the game queued leaves before the sockets are asked for anything.
        if self.endpoints.iter().any(|endpoint| endpoint.line.called.load(Ordering::Acquire)) {
            self.run_all();
        }
        let now = clock::now();
        let due = self.endpoints.iter().filter_map(Endpoint::due).min().map(|at| at.since(now));
        let timeout = [due, limit].into_iter().flatten().min();
        if let Err(error) = self.waiter.wait(timeout) {
            log::error!("io: the driver could not wait for its sockets: {error}");
            thread::sleep(AFTER_FAILED_WAIT);
        }
        for (id, ready) in self.waiter.readable().map(Ready::of_key) {
            if let Some(endpoint) = self.endpoints.iter_mut().find(|endpoint| endpoint.id == id) {
                endpoint.ready = endpoint.ready.and(ready);
            }
        }
        self.run_all();
    }

    /// Drops every endpoint.
    pub(super) fn bury_all(&mut self) {
        while let Some(endpoint) = self.endpoints.pop() {
            bury(endpoint);
        }
    }

    /// Runs every endpoint once, without waiting for anything.
    pub(super) fn run_all(&mut self) {
        let now = clock::now();
        let mut index = 0;
        while let Some(endpoint) = self.endpoints.get_mut(index) {
            let id = endpoint.id;
            // The endpoint of a node that panicked is not looked at again, so nothing half-done is seen.
            match catch_unwind(AssertUnwindSafe(|| endpoint.run(now, &mut self.buffer))) {
                Ok(Life::GoesOn) => index += 1,
                Ok(Life::Finished) => bury(self.endpoints.remove(index)),
                Err(panic) => {
                    log::error!("io: mesh {id} failed and was closed: {}", text_of(panic.as_ref()));
                    bury(self.endpoints.remove(index));
                }
            }
        }
    }
}

/// Drops an endpoint; a panic in there is its own.
pub(super) fn bury(endpoint: Endpoint) {
    if catch_unwind(AssertUnwindSafe(|| drop(endpoint))).is_err() {
        log::error!("io: a mesh failed while it was closed");
    }
}

/// What a panic says.
pub(super) fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without text")
}
