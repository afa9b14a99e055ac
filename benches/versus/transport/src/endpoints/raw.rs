//! Bare UDP: the limit of what any library on it can reach. Nothing is repeated, hidden or put in order.
//!
//! Fed by: messages. Yields: datagrams, one for one. Never: is reliable.

use super::{Endpoint, Listening};
use crate::system::wait_readable;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

struct Raw {
    socket: UdpSocket,
    peers: Vec<SocketAddr>,
    takes_new: bool,
    buffer: Vec<u8>,
}

pub fn listen() -> Result<(Box<dyn Endpoint>, Listening), String> {
    let socket = super::socket()?;
    let at = super::address(&socket)?;
    Ok((Box::new(Raw { socket, peers: Vec::new(), takes_new: true, buffer: vec![0; 65_536] }), at))
}

pub fn connect(to: SocketAddr) -> Result<Box<dyn Endpoint>, String> {
    let socket = super::socket()?;
    Ok(Box::new(Raw { socket, peers: vec![to], takes_new: false, buffer: vec![0; 65_536] }))
}

impl Endpoint for Raw {
    fn turn(&mut self, take: &mut dyn FnMut(usize, &[u8])) {
        while let Ok((size, from)) = self.socket.recv_from(&mut self.buffer) {
            let known = self.peers.iter().position(|peer| *peer == from);
            let peer = match known {
                Some(peer) => peer,
                None if self.takes_new => {
                    self.peers.push(from);
                    self.peers.len() - 1
                }
                None => continue,
            };
            take(peer, &self.buffer[..size]);
        }
    }

    fn send(&mut self, peer: usize, _reliable: bool, bytes: &[u8]) -> bool {
        self.socket.send_to(bytes, self.peers[peer]).is_ok()
    }

    fn flush(&mut self) {}

    fn wait(&mut self, at_most: Duration) {
        wait_readable(&[self.socket.as_raw_fd()], at_most);
    }

    fn peers(&self) -> usize {
        self.peers.len()
    }
}
