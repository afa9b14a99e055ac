//! A stand-in for the node: says what it is told to say, and tells the test what it hears.
//!
//! Fed by: the same commands as a node, with other meanings. Yields: [`Heard`] records. Never: part of the library.

use crate::base::{Addr, Instant};
use crate::bridge::{Command, Delivery, MeshPort, NodePort};
use crate::config::RoomKey;
use crate::io::OpenError;
use crate::node::Output;
use crate::simnet::Drive;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Longer than any test may take; no test waits for it when all is well.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a stand-in tells the test.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Datagram(Addr, Vec<u8>),
    Tick(Instant),
    Dropped,
}

pub(super) struct Parrot {
    port: NodePort,
    heard: Sender<Heard>,
    say: Vec<u8>,
    outbox: VecDeque<(Addr, Vec<u8>)>,
    now_sending: Vec<u8>,
    tick_at: Option<Instant>,
    echoes: bool,
    /// Where it last said something, whenever that was asked of it.
    said_to: Option<Addr>,
    life: Life,
    /// The last field: all others, the bridge above all, are gone when it tells.
    _farewell: Farewell,
}

struct Farewell(Sender<Heard>);

#[derive(PartialEq)]
enum Life {
    Lives,
    /// `Leave` came: "bye" goes to the last address, then it is finished.
    Leaving(Option<Addr>),
    /// Never finishes, whatever happens.
    Stubborn,
}

/// The test's end.
pub(super) struct Ears(Receiver<Heard>);

impl Parrot {
    /// What the `open` functions want, and where its news come out.
    pub(super) fn nest() -> (impl FnOnce(NodePort) -> Result<Box<dyn Drive>, OpenError>, Ears) {
        let (heard, ears) = unbounded();
        let farewell = heard.clone();
        let make = |port| {
            Ok(Box::new(Self {
                port,
                heard,
                say: b"hello".to_vec(),
                outbox: VecDeque::new(),
                now_sending: Vec::new(),
                tick_at: None,
                echoes: false,
                said_to: None,
                life: Life::Lives,
                _farewell: Farewell(farewell),
            }) as Box<dyn Drive>)
        };
        (make, Ears(ears))
    }
}

impl Ears {
    pub(super) fn next(&self) -> Heard {
        self.0.recv_timeout(PATIENCE).expect("the stand-in hears something in time")
    }

    /// What is there now.
    pub(super) fn try_next(&self) -> Option<Heard> {
        self.0.try_recv().ok()
    }

    /// Skips to the next datagram.
    pub(super) fn datagram(&self) -> (Addr, Vec<u8>) {
        loop {
            if let Heard::Datagram(from, bytes) = self.next() {
                return (from, bytes);
            }
        }
    }
}

/// Tells a stand-in what to say from now on.
pub(super) fn teach(port: &MeshPort, words: &[u8]) {
    let data = words.to_vec();
    let command = Command::Send { to: None, stream: 0, delivery: Delivery::Unreliable, data };
    port.send(command).expect("the stand-in is alive");
}

/// Tells a stand-in to say it to `to`.
pub(super) fn say(port: &MeshPort, to: SocketAddr) {
    let command = Command::Join { address: Addr::ip(to), room: RoomKey([0; 32]) };
    port.send(command).expect("the stand-in is alive");
}

/// Tells a stand-in to tick once, so many ms from now.
pub(super) fn tick(port: &MeshPort, countdown_ms: u32) {
    port.send(Command::Start { countdown_ms }).expect("the stand-in is alive");
}

/// Tells a stand-in to answer whatever it hears.
pub(super) fn echo(port: &MeshPort) {
    port.send(Command::Host).expect("the stand-in is alive");
}

/// Tells a stand-in to panic.
pub(super) fn crash(port: &MeshPort) {
    port.send(Command::SetReady { local_slots: 13 }).expect("the stand-in is alive");
}

/// Tells a stand-in never to finish.
pub(super) fn be_stubborn(port: &MeshPort) {
    port.send(Command::CloseSession { session: 1 }).expect("the stand-in is alive");
}

/// A port on the loopback.
pub(super) fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

impl Drive for Parrot {
    fn new(
        _: crate::config::ValidMeshConfig,
        _: NodePort,
        _: Box<dyn crate::base::Entropy>,
        _: Instant,
    ) -> Self {
        unreachable!("tests use `nest`")
    }

    fn handle_commands(&mut self, now: Instant) {
        loop {
            match self.port.next_command() {
                Ok(Command::Send { data, .. }) => self.say = data,
                Ok(Command::Join { address, .. }) => {
                    self.outbox.push_back((address, self.say.clone()));
                    self.said_to = Some(address);
                }
                Ok(Command::Start { countdown_ms }) => {
                    self.tick_at = Some(now + Duration::from_millis(countdown_ms.into()));
                }
                Ok(Command::Host) => self.echoes = true,
                Ok(Command::SetReady { .. }) => panic!("told to"),
                Ok(Command::CloseSession { .. }) => self.life = Life::Stubborn,
                Ok(Command::Leave) => self.life = Life::Leaving(self.said_to),
                Ok(_) => {}
                Err(gone) => {
                    if gone && self.life == Life::Lives {
                        self.life = Life::Leaving(None);
                    }
                    return;
                }
            }
        }
    }

    fn handle_datagram(&mut self, from: Addr, bytes: &mut [u8], _: Instant) {
        let _ = self.heard.send(Heard::Datagram(from, bytes.to_vec()));
        if self.echoes {
            self.outbox.push_back((from, bytes.to_vec()));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.tick_at.take_if(|at| *at <= now).is_some() {
            let _ = self.heard.send(Heard::Tick(now));
        }
    }

    fn poll_output(&mut self) -> Output<'_> {
        if let Some((to, bytes)) = self.outbox.pop_front() {
            self.now_sending = bytes;
            return Output::Transmit { to, bytes: &self.now_sending };
        }
        match &mut self.life {
            Life::Leaving(to) => match to.take() {
                Some(to) => Output::Transmit { to, bytes: b"bye" },
                None => Output::Finished,
            },
            _ => Output::Wait { until: self.tick_at, reason: "tick" },
        }
    }
}

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.0.send(Heard::Dropped);
    }
}
