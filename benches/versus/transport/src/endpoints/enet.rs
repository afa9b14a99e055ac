//! ENet 1.3.18, as `rusty_enet` has it: its C code, transpiled. In the clear, with its defaults.
//!
//! Fed by: messages on channel 0 (unreliable) and 1 (reliable). Yields: the same. Never: turns on the checksum.

use super::{Endpoint, Listening};
use crate::system::wait_readable;
use rusty_enet::{Event, Host, HostSettings, Packet, PeerID};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

struct Enet {
    host: Host<UdpSocket>,
    descriptor: RawFd,
    /// By our number.
    peers: Vec<PeerID>,
}

fn open(peers: usize) -> Result<(Enet, Listening), String> {
    let socket = super::socket()?;
    let at = super::address(&socket)?;
    let descriptor = socket.as_raw_fd();
    let settings = HostSettings { peer_limit: peers, channel_limit: 2, ..HostSettings::default() };
    let host = Host::new(socket, settings).map_err(|error| format!("enet: {error:?}"))?;
    Ok((Enet { host, descriptor, peers: Vec::new() }, at))
}

pub fn listen(peers: usize) -> Result<(Box<dyn Endpoint>, Listening), String> {
    let (end, at) = open(peers)?;
    Ok((Box::new(end), at))
}

pub fn connect(to: SocketAddr) -> Result<Box<dyn Endpoint>, String> {
    let (mut end, _) = open(1)?;
    end.host.connect(to, 2, 0).map_err(|error| format!("enet: {error:?}"))?;
    Ok(Box::new(end))
}

impl Endpoint for Enet {
    fn turn(&mut self, take: &mut dyn FnMut(usize, &[u8])) {
        let peers = &mut self.peers;
        while let Ok(Some(event)) = self.host.service() {
            match event {
                Event::Connect { peer, .. } => peers.push(peer.id()),
                Event::Receive { peer, packet, .. } => {
                    if let Some(number) = peers.iter().position(|id| *id == peer.id()) {
                        take(number, packet.data());
                    }
                }
                Event::Disconnect { .. } => {}
            }
        }
    }

    fn send(&mut self, peer: usize, reliable: bool, bytes: &[u8]) -> bool {
        let packet = if reliable { Packet::reliable(bytes) } else { Packet::unreliable(bytes) };
        self.host.peer_mut(self.peers[peer]).send(u8::from(reliable), &packet).is_ok()
    }

    fn flush(&mut self) {
        self.host.flush();
    }

    fn wait(&mut self, at_most: Duration) {
        wait_readable(&[self.descriptor], at_most);
    }

    fn peers(&self) -> usize {
        self.peers.len()
    }
}
