//! The link between both ends, for all libraries the same: a UDP proxy with retick's own seeded conditioner.
//!
//! Fed by: datagrams of both ends. Yields: those that are not lost, when they are due, and how many of which size came.
//! Never: looks into a datagram.

use crate::system::{now_ns, wait_readable};
use retick::base::Instant;
use retick::netem::{Link, Netem};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The far end's number; those that connect count from 1.
const FAR: u32 = 0;
const LARGEST: usize = 65_536;
const SOCKET_BUFFER: libc::c_int = 8 << 20;

/// What one direction was given.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Datagrams.
    pub packets: u64,
    /// UDP payload bytes.
    pub bytes: u64,
    /// Of each size, as far as there were some.
    pub sizes: std::collections::BTreeMap<usize, u64>,
}

impl Traffic {
    /// The most frequent size of at least so many bytes.
    pub fn usual_size(&self, least: usize) -> usize {
        self.sizes.range(least..).max_by_key(|(_, count)| **count).map_or(0, |(size, _)| *size)
    }

    fn note(&mut self, size: usize) {
        self.packets += 1;
        self.bytes += size as u64;
        *self.sizes.entry(size).or_default() += 1;
    }
}

/// A running proxy; it ends when dropped.
pub struct Proxy {
    /// Where to connect instead of to the far end.
    pub address: SocketAddr,
    /// Towards the far end, and back.
    traffic: Arc<Mutex<[Traffic; 2]>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Begins to carry datagrams to and from the far end.
    pub fn start(far: SocketAddr, link: Link, seed: u64) -> Result<Self, String> {
        let socket = open(None)?;
        let address = socket.local_addr().map_err(|error| error.to_string())?;
        let (traffic, ends) = (Arc::<Mutex<[Traffic; 2]>>::default(), Arc::<AtomicBool>::default());
        let mut netem = Netem::new(seed);
        netem.set_default_link(link);
        let mut running = Running {
            far,
            netem,
            descriptors: vec![socket.as_raw_fd()],
            socket,
            flows: Vec::new(),
            traffic: Arc::clone(&traffic),
            buffer: vec![0; LARGEST],
        };
        let thread = std::thread::spawn({
            let ends = Arc::clone(&ends);
            move || {
                while !ends.load(Relaxed) {
                    running.turn();
                }
            }
        });
        Ok(Self { address, traffic, ends, thread: Some(thread) })
    }

    /// Forgets what was counted so far and yields it: towards the far end, and back.
    pub fn take_traffic(&self) -> [Traffic; 2] {
        self.traffic.lock().map(|mut traffic| std::mem::take(&mut *traffic)).unwrap_or_default()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

struct Running {
    far: SocketAddr,
    netem: Netem,
    socket: UdpSocket,
    /// Who connected, and the socket that stands for it at the far end.
    flows: Vec<(SocketAddr, UdpSocket)>,
    descriptors: Vec<RawFd>,
    traffic: Arc<Mutex<[Traffic; 2]>>,
    buffer: Vec<u8>,
}

impl Running {
    fn turn(&mut self) {
        let now = time();
        let wait = self.netem.poll_timeout().map_or(Duration::from_millis(20), |at| at.since(now));
        wait_readable(&self.descriptors, wait.min(Duration::from_millis(20)));
        self.receive();
        let now = time();
        while let Some(delivery) = self.netem.poll(now) {
            // What a full socket does not take is lost, as on any network.
            let _ = if delivery.to == FAR {
                self.flows[delivery.from as usize - 1].1.send(&delivery.bytes)
            } else {
                self.socket.send_to(&delivery.bytes, self.flows[delivery.to as usize - 1].0)
            };
            self.netem.recycle(delivery.bytes);
        }
    }

    fn receive(&mut self) {
        let Ok(mut traffic) = self.traffic.lock() else { return };
        while let Ok((size, from)) = self.socket.recv_from(&mut self.buffer) {
            let known = self.flows.iter().position(|(address, _)| *address == from);
            let flow = match known {
                Some(flow) => flow,
                None => {
                    let Ok(socket) = open(Some(self.far)) else { continue };
                    self.descriptors.push(socket.as_raw_fd());
                    self.flows.push((from, socket));
                    self.flows.len() - 1
                }
            };
            traffic[0].note(size);
            self.netem.submit(flow as u32 + 1, FAR, &self.buffer[..size], time());
        }
        for (number, (_, socket)) in self.flows.iter().enumerate() {
            while let Ok(size) = socket.recv(&mut self.buffer) {
                traffic[1].note(size);
                self.netem.submit(FAR, number as u32 + 1, &self.buffer[..size], time());
            }
        }
    }
}

fn time() -> Instant {
    Instant(now_ns() / 1000)
}

/// A socket whose own buffers lose nothing.
fn open(peer: Option<SocketAddr>) -> Result<UdpSocket, String> {
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(|error| format!("no socket: {error}"))?;
    socket.set_nonblocking(true).map_err(|error| error.to_string())?;
    if let Some(peer) = peer {
        socket.connect(peer).map_err(|error| error.to_string())?;
    }
    for option in [libc::SO_RCVBUF, libc::SO_SNDBUF] {
        let size = SOCKET_BUFFER;
        // SAFETY: the value lives through the call and is as long as said. The system may give less.
        unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                std::ptr::from_ref(&size).cast(),
                size_of_val(&size) as libc::socklen_t,
            );
        }
    }
    Ok(socket)
}
