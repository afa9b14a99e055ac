//! retick as its users drive it: a mesh on real sockets, sealed, run by its IO thread or by the caller's turns.
//!
//! Fed by: messages on stream 0. Yields: the mesh's news of messages. Never: reaches behind the bridge.

use super::{Endpoint, Listening, Patience};
use retick::base::{Addr, PeerIndex};
use retick::bridge::{Command, Delivery, MeshNews, MeshPort};
use retick::config::{MeshConfig, RoomKey};
use retick::io::{BindConfig, ManualMesh, ThreadedMesh, open_manual, open_threaded};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// A room exists, or a game half of one, long before this.
const PATIENCE: Duration = Duration::from_secs(10);

enum Mesh {
    Threaded(ThreadedMesh),
    Manual(ManualMesh),
}

struct Retick {
    mesh: Mesh,
    patience: Patience,
    peers: Vec<PeerIndex>,
    room: Option<RoomKey>,
    /// `wait` made the turn that the next `turn` would make.
    turned: bool,
    /// Something waits for a turn to leave.
    queued: bool,
}

fn open(is_threaded: bool, patience: Patience) -> Result<(Retick, SocketAddr), String> {
    let config = MeshConfig::default().try_into().map_err(|error| format!("retick: {error}"))?;
    let bind = BindConfig { port: 0, address: Some(Ipv4Addr::LOCALHOST.into()) };
    let refused = |error| format!("retick: {error}");
    let (mesh, local) = if is_threaded {
        let mesh = open_threaded(config, bind).map_err(refused)?;
        let local = mesh.handle.local_addrs();
        (Mesh::Threaded(mesh), local)
    } else {
        let mesh = open_manual(config, bind).map_err(refused)?;
        let local = mesh.local_addrs();
        (Mesh::Manual(mesh), local)
    };
    let address = local.v4.ok_or("retick: no IPv4")?;
    Ok((Retick { mesh, patience, peers: Vec::new(), room: None, turned: false, queued: false }, address))
}

pub fn listen(is_threaded: bool, patience: Patience) -> Result<(Box<dyn Endpoint>, Listening), String> {
    let (mut end, address) = open(is_threaded, patience)?;
    end.say(Command::Host)?;
    let began = Instant::now();
    let room = loop {
        end.turn(&mut |_, _| {});
        if let Some(room) = end.room {
            break room;
        }
        if began.elapsed() > PATIENCE {
            return Err("retick: no room".into());
        }
        end.wait(Duration::from_millis(1));
    };
    let room = room.0.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((Box::new(end), Listening { address, room }))
}

pub fn connect(to: &Listening, is_threaded: bool, patience: Patience) -> Result<Box<dyn Endpoint>, String> {
    let mut room = [0; 32];
    for (byte, hex) in room.iter_mut().zip(to.room.as_bytes().chunks(2)) {
        let hex = std::str::from_utf8(hex).map_err(|error| error.to_string())?;
        *byte = u8::from_str_radix(hex, 16).map_err(|error| error.to_string())?;
    }
    let (end, _) = open(is_threaded, patience)?;
    end.say(Command::Join { address: Addr::ip(to.address), room: RoomKey(room) })?;
    Ok(Box::new(end))
}

impl Retick {
    fn port(&self) -> &MeshPort {
        match &self.mesh {
            Mesh::Threaded(mesh) => &mesh.port,
            Mesh::Manual(mesh) => &mesh.port,
        }
    }

    fn say(&self, command: Command) -> Result<(), String> {
        self.port().send(command).map_err(|refused| format!("retick: {refused:?}"))
    }
}

impl Endpoint for Retick {
    fn turn(&mut self, take: &mut dyn FnMut(usize, &[u8])) {
        if let Mesh::Manual(mesh) = &mut self.mesh
            && !std::mem::take(&mut self.turned)
        {
            mesh.turn(Duration::ZERO);
        }
        while let Some(news) = self.port().next_news() {
            match news {
                MeshNews::Joined { room, .. } => self.room = Some(room),
                MeshNews::PeerConnected { peer, .. } => self.peers.push(peer),
                MeshNews::Message { peer, data, .. } => {
                    if let Some(number) = self.peers.iter().position(|known| *known == peer) {
                        take(number, &data);
                    }
                    self.port().recycle(data);
                }
                _ => {}
            }
        }
    }

    fn send(&mut self, peer: usize, reliable: bool, bytes: &[u8]) -> bool {
        let delivery = if reliable { Delivery::Reliable } else { Delivery::Unreliable };
        let data = self.port().buffer(bytes);
        let to = Some(self.peers[peer]);
        self.queued = true;
        self.port().send(Command::Send { to, stream: 0, delivery, data }).is_ok()
    }

    fn flush(&mut self) {
        if let Mesh::Manual(mesh) = &mut self.mesh
            && std::mem::take(&mut self.queued)
        {
            mesh.turn(Duration::ZERO);
        }
    }

    fn wait(&mut self, at_most: Duration) {
        match (&mut self.mesh, self.patience) {
            (Mesh::Manual(mesh), _) => {
                mesh.turn(at_most);
                self.turned = true;
            }
            (Mesh::Threaded(_), Patience::Yields) => std::thread::yield_now(),
            (Mesh::Threaded(_), Patience::Sleeps(time)) => std::thread::sleep(time.min(at_most)),
        }
    }

    fn peers(&self) -> usize {
        self.peers.len()
    }

    fn largest(&self) -> usize {
        1000
    }
}
