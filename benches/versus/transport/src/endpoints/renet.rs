//! renet over netcode: sealed by ChaCha20-Poly1305, keys from an unsecured connect, otherwise with its defaults.
//!
//! Fed by: messages on its default channels 0 (unreliable) and 2 (reliable ordered). Yields: the same.
//! Never: resends faster than its own 300 ms.

use super::{Endpoint, Listening};
use crate::system::wait_readable;
use renet::{ConnectionConfig, RenetClient, RenetServer, ServerEvent};
use renet_netcode::{
    ClientAuthentication, NetcodeClientTransport, NetcodeServerTransport, ServerAuthentication, ServerConfig,
};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const PROTOCOL: u64 = 7;
const UNRELIABLE: u8 = 0;
const RELIABLE: u8 = 2;

fn channel(reliable: bool) -> u8 {
    if reliable { RELIABLE } else { UNRELIABLE }
}

fn wall_clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

struct Server {
    server: RenetServer,
    transport: NetcodeServerTransport,
    ran_at: Instant,
    descriptor: RawFd,
    peers: Vec<u64>,
}

pub fn listen(peers: usize) -> Result<(Box<dyn Endpoint>, Listening), String> {
    let socket = super::socket()?;
    let at = super::address(&socket)?;
    let descriptor = socket.as_raw_fd();
    let config = ServerConfig {
        current_time: wall_clock(),
        max_clients: peers,
        protocol_id: PROTOCOL,
        public_addresses: vec![at.address],
        authentication: ServerAuthentication::Unsecure,
    };
    let transport = NetcodeServerTransport::new(config, socket).map_err(|error| format!("renet: {error}"))?;
    let server = RenetServer::new(ConnectionConfig::default());
    let end = Server { server, transport, ran_at: Instant::now(), descriptor, peers: Vec::new() };
    Ok((Box::new(end), at))
}

impl Endpoint for Server {
    fn turn(&mut self, take: &mut dyn FnMut(usize, &[u8])) {
        let now = Instant::now();
        let passed = now - std::mem::replace(&mut self.ran_at, now);
        self.server.update(passed);
        // A datagram that netcode refuses is its own matter.
        let _ = self.transport.update(passed, &mut self.server);
        while let Some(event) = self.server.get_event() {
            if let ServerEvent::ClientConnected { client_id } = event {
                self.peers.push(client_id);
            }
        }
        for (number, client) in self.peers.iter().enumerate() {
            for channel in [UNRELIABLE, RELIABLE] {
                while let Some(bytes) = self.server.receive_message(*client, channel) {
                    take(number, &bytes);
                }
            }
        }
    }

    fn send(&mut self, peer: usize, reliable: bool, bytes: &[u8]) -> bool {
        let (client, channel) = (self.peers[peer], channel(reliable));
        let fits = self.server.can_send_message(client, channel, bytes.len());
        if fits {
            self.server.send_message(client, channel, bytes.to_vec());
        }
        fits
    }

    fn flush(&mut self) {
        self.transport.send_packets(&mut self.server);
    }

    fn wait(&mut self, at_most: Duration) {
        wait_readable(&[self.descriptor], at_most);
    }

    fn peers(&self) -> usize {
        self.peers.len()
    }
}

struct Client {
    client: RenetClient,
    transport: NetcodeClientTransport,
    ran_at: Instant,
    descriptor: RawFd,
}

pub fn connect(to: SocketAddr, number: u64) -> Result<Box<dyn Endpoint>, String> {
    let socket = super::socket()?;
    let descriptor = socket.as_raw_fd();
    let authentication = ClientAuthentication::Unsecure {
        protocol_id: PROTOCOL,
        client_id: number + 1,
        server_addr: to,
        user_data: None,
    };
    let transport = NetcodeClientTransport::new(wall_clock(), authentication, socket)
        .map_err(|error| format!("renet: {error}"))?;
    let client = RenetClient::new(ConnectionConfig::default());
    Ok(Box::new(Client { client, transport, ran_at: Instant::now(), descriptor }))
}

impl Endpoint for Client {
    fn turn(&mut self, take: &mut dyn FnMut(usize, &[u8])) {
        let now = Instant::now();
        let passed = now - std::mem::replace(&mut self.ran_at, now);
        self.client.update(passed);
        // Errors end the connection; `peers` shows that.
        let _ = self.transport.update(passed, &mut self.client);
        for channel in [UNRELIABLE, RELIABLE] {
            while let Some(bytes) = self.client.receive_message(channel) {
                take(0, &bytes);
            }
        }
    }

    fn send(&mut self, _peer: usize, reliable: bool, bytes: &[u8]) -> bool {
        let fits = self.client.can_send_message(channel(reliable), bytes.len());
        if fits {
            self.client.send_message(channel(reliable), bytes.to_vec());
        }
        fits
    }

    fn flush(&mut self) {
        if self.client.is_connected() {
            // As above.
            let _ = self.transport.send_packets(&mut self.client);
        }
    }

    fn wait(&mut self, at_most: Duration) {
        wait_readable(&[self.descriptor], at_most);
    }

    fn peers(&self) -> usize {
        usize::from(self.client.is_connected())
    }
}
