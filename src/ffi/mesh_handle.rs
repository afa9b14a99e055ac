//! What a mesh handle holds: its driver, the news that came, and what they said last.
//!
//! Fed by: checked arguments, the news of the network half. Yields: commands, events, the last clock and stats.
//! Never: blocks, or touches memory of the caller.

use super::convert::IoMode;
use super::events::EventStore;
use super::guard::{Failure, Outcome};
use super::library::{RETICK_OK, retick_result};
use super::mesh_types::retick_peer_stats;
use super::session_handle::Clock;
use super::simnet_handle::Attached;
use crate::base::limits::MAX_PEERS;
use crate::base::{Addr, PeerIndex, PeerSet};
use crate::bridge::{
    ClockModel, Command, Delivery, Gone, LinkStats, MeshNews, MeshPort, Refused, SessionPort,
};
use crate::channel::max_message;
use crate::config::{RoomKey, SessionSettings, ValidMeshConfig};
use crate::io::{self, CustomMesh, LocalAddrs, ManualMesh, ThreadedMesh};
use crate::netem::Link;
use crate::node::frame_fits;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Turns of a manual mesh in which it may say goodbye before its sockets close.
const GOODBYE_TURNS: u32 = 4;

enum Driver {
    Thread(ThreadedMesh),
    Manual(Box<ManualMesh>),
    Custom(Box<CustomMesh>),
    Simnet(MeshPort),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Outside,
    Entering,
    Inside,
    /// It said goodbye; its network half ends.
    Left,
    /// Its network half ended by itself.
    Failed,
}

pub(super) struct MeshHandle {
    driver: Driver,
    clock: Clock,
    local_address: String,
    phase: Phase,
    room: Option<RoomKey>,
    us: PeerIndex,
    members: PeerSet,
    model: ClockModel,
    /// Members with a channel, and what was measured on it.
    connected: PeerSet,
    links: [LinkStats; MAX_PEERS],
    events: EventStore,
    /// Whether a session is alive on this mesh.
    session: Weak<()>,
    max_datagram: usize,
    /// Of the newest session on this mesh; 0 = none yet.
    input_max: usize,
    /// The address of the datagram that the game looks at.
    outgoing_to: Option<Addr>,
}

impl MeshHandle {
    fn new(driver: Driver, clock: Clock, local_address: String, max_datagram: usize) -> Self {
        Self {
            driver,
            clock,
            local_address,
            phase: Phase::Outside,
            room: None,
            us: PeerIndex::default(),
            members: PeerSet::EMPTY,
            model: ClockModel::IDENTITY,
            connected: PeerSet::EMPTY,
            links: [LinkStats::default(); MAX_PEERS],
            events: EventStore::new(),
            session: Weak::new(),
            max_datagram,
            input_max: 0,
            outgoing_to: None,
        }
    }

    pub(super) fn on_simnet(attached: Attached) -> Self {
        let address = attached.address.to_string();
        Self::new(Driver::Simnet(attached.port), attached.clock, address, attached.max_datagram)
    }

    pub(super) fn open(io: IoMode, config: ValidMeshConfig) -> Outcome<Self> {
        let failed = |error: io::OpenError| Failure::system(error.message.trim_end_matches('.').to_owned());
        let max_datagram = config.max_datagram;
        let (driver, address) = match io {
            IoMode::Thread(bind) => {
                let mesh = io::open_threaded(config, bind).map_err(failed)?;
                let address = bound_text(mesh.handle.local_addrs());
                (Driver::Thread(mesh), address)
            }
            IoMode::Manual(bind) => {
                let mesh = io::open_manual(config, bind).map_err(failed)?;
                let address = bound_text(mesh.local_addrs());
                (Driver::Manual(Box::new(mesh)), address)
            }
            IoMode::Custom(address) => {
                let mesh = CustomMesh::open(config).map_err(failed)?;
                (Driver::Custom(Box::new(mesh)), address.to_string())
            }
            IoMode::Simnet(_) => return Err(Failure::unsupported("a simulated network attaches by itself")),
        };
        Ok(Self::new(driver, Clock::Os, address, max_datagram))
    }

    fn port(&self) -> &MeshPort {
        match &self.driver {
            Driver::Thread(mesh) => &mesh.port,
            Driver::Manual(mesh) => &mesh.port,
            Driver::Custom(mesh) => &mesh.port,
            Driver::Simnet(port) => port,
        }
    }

    fn send_command(&self, command: Command) -> Outcome<retick_result> {
        self.port().send(command).map_err(refused)?;
        Ok(RETICK_OK)
    }

    fn expect_outside(&self) -> Outcome<()> {
        match self.phase {
            Phase::Outside => Ok(()),
            Phase::Entering => {
                Err(Failure::state("this mesh is joining a room; wait for the event, or leave first"))
            }
            Phase::Inside => Err(Failure::state("this mesh is in a room already")),
            Phase::Left => Err(Failure::state("this mesh has left its room for good; create another one")),
            Phase::Failed => Err(failed()),
        }
    }

    fn expect_inside(&self) -> Outcome<()> {
        match self.phase {
            Phase::Inside => Ok(()),
            Phase::Failed => Err(failed()),
            Phase::Outside | Phase::Entering | Phase::Left => Err(Failure::state(
                "this mesh is in no room; host or join, and poll until RETICK_EVENT_JOINED",
            )),
        }
    }

    pub(super) fn host(&mut self) -> Outcome<retick_result> {
        self.expect_outside()?;
        let result = self.send_command(Command::Host)?;
        self.phase = Phase::Entering;
        Ok(result)
    }

    fn enter(&mut self, address: Addr, room: RoomKey) -> Outcome<retick_result> {
        self.expect_outside()?;
        let result = self.send_command(Command::Join { address, room })?;
        self.phase = Phase::Entering;
        Ok(result)
    }

    pub(super) fn join(&mut self, text: &str, room: RoomKey) -> Outcome<retick_result> {
        let address = match self.driver {
            Driver::Custom(_) => {
                return Err(Failure::unsupported(
                    "this mesh has a custom transport; use retick_mesh_join_custom",
                ));
            }
            Driver::Simnet(_) => text
                .strip_prefix("sim:")
                .and_then(|number| number.parse::<u32>().ok())
                .map(crate::simnet::Simnet::address),
            Driver::Thread(_) | Driver::Manual(_) => text
                .parse::<SocketAddr>()
                .ok()
                .filter(|address| address.port() != 0 && !address.ip().is_unspecified())
                .map(Addr::ip),
        };
        let Some(address) = address else {
            return Err(Failure::argument(format!(
                "address is \"{text}\"; use an IP address and a port such as \"203.0.113.5:7000\" or \
                 \"[2001:db8::1]:7000\", or \"sim:0\" on a simulated network"
            )));
        };
        self.enter(address, room)
    }

    pub(super) fn join_custom(&mut self, address: Addr, room: RoomKey) -> Outcome<retick_result> {
        if !matches!(self.driver, Driver::Custom(_)) {
            return Err(Failure::unsupported("this mesh has no custom transport; use retick_mesh_join"));
        }
        self.enter(address, room)
    }

    pub(super) fn room(&self) -> Outcome<[u8; 32]> {
        self.expect_inside()?;
        self.room
            .map(|room| room.0)
            .ok_or_else(|| Failure::state("the room is not known yet; poll until it is"))
    }

    pub(super) fn local_address(&self) -> &str {
        &self.local_address
    }

    pub(super) fn set_ready(&mut self, local_slots: u8) -> Outcome<retick_result> {
        self.expect_inside()?;
        if !frame_fits(usize::from(local_slots), self.input_max, self.max_datagram) {
            return Err(Failure::argument(format!(
                "local_slots is {local_slots}; inputs of {} bytes of so many slots do not fit a packet of {} bytes (use fewer \
                 slots here, a smaller input_max, or a larger max_datagram)",
                self.input_max, self.max_datagram
            )));
        }
        self.send_command(Command::SetReady { local_slots })
    }

    pub(super) fn start(&mut self, countdown_ms: u32) -> Outcome<retick_result> {
        self.expect_inside()?;
        if let Some(first) = self.members.first()
            && first < self.us
        {
            return Err(Failure::state(format!(
                "peer {first} is the coordinator; only it can start the match"
            )));
        }
        self.send_command(Command::Start { countdown_ms })
    }

    pub(super) fn leave(&mut self) -> Outcome<retick_result> {
        if matches!(self.phase, Phase::Outside | Phase::Left | Phase::Failed) {
            return Ok(RETICK_OK);
        }
        let result = self.send_command(Command::Leave)?;
        self.go_outside();
        self.phase = Phase::Left;
        Ok(result)
    }

    fn go_outside(&mut self) {
        self.phase = Phase::Outside;
        self.room = None;
        self.members = PeerSet::EMPTY;
        self.connected = PeerSet::EMPTY;
        self.links = [LinkStats::default(); MAX_PEERS];
    }

    /// Before the handle is destroyed: a session may keep the queue open, so closing it says nothing.
    pub(super) fn say_goodbye(&mut self) {
        // A full queue: then the network half hears of it by the closed queue, or by the others' silence.
        let _ = self.port().send(Command::Leave);
        match &mut self.driver {
            Driver::Manual(mesh) => {
                for _ in 0..GOODBYE_TURNS {
                    mesh.turn(Duration::ZERO);
                }
            }
            Driver::Custom(mesh) => mesh.run(io::now()),
            Driver::Thread(_) | Driver::Simnet(_) => {}
        }
    }

    pub(super) fn poll(&mut self) -> Outcome<retick_result> {
        // By field, so that the port and the events can be used at once.
        let port = match &self.driver {
            Driver::Thread(mesh) => &mesh.port,
            Driver::Manual(mesh) => &mesh.port,
            Driver::Custom(mesh) => &mesh.port,
            Driver::Simnet(port) => port,
        };
        self.events.recycle(|message| port.recycle(message));
        if let Driver::Custom(mesh) = &mut self.driver {
            mesh.run(io::now());
        }
        while !self.events.is_full() {
            match self.port().poll_news() {
                Ok(Some(news)) => self.take_in(news),
                Ok(None) => break,
                Err(Gone) => {
                    self.note_gone();
                    break;
                }
            }
        }
        Ok(RETICK_OK)
    }

    /// The network half is gone: after a goodbye that is as it should be.
    fn note_gone(&mut self) {
        if !matches!(self.phase, Phase::Left | Phase::Failed) {
            self.go_outside();
            self.phase = Phase::Failed;
            self.events.push_failed();
        }
    }

    fn take_in(&mut self, news: MeshNews) {
        match &news {
            MeshNews::Joined { us, room } if self.phase == Phase::Entering => {
                self.phase = Phase::Inside;
                self.us = *us;
                self.room = Some(*room);
                self.members.insert(*us);
            }
            MeshNews::Refused { us: true, .. } if self.phase == Phase::Entering => self.go_outside(),
            MeshNews::PeerJoined { peer } => {
                self.members.insert(*peer);
            }
            MeshNews::PeerConnected { peer, .. } => {
                self.members.insert(*peer);
                self.connected.insert(*peer);
            }
            MeshNews::Left { peer, .. } => {
                self.members.remove(*peer);
                self.connected.remove(*peer);
                self.links[peer.index()] = LinkStats::default();
            }
            _ => {}
        }
        match self.events.push_mesh(news) {
            Some(MeshNews::Link { peer, stats }) => {
                self.connected.insert(peer);
                self.links[peer.index()] = stats;
            }
            Some(MeshNews::Clock(model)) => self.model = model,
            _ => {}
        }
    }

    pub(super) fn next_event(&mut self) -> Option<super::event_types::retick_event> {
        self.events.next()
    }

    pub(super) fn send(
        &mut self,
        to: Option<PeerIndex>,
        stream: u8,
        delivery: Delivery,
        bytes: &[u8],
    ) -> Outcome<retick_result> {
        self.expect_inside()?;
        if to == Some(self.us) {
            return Err(Failure::argument(format!("peer is {}, which is ourselves", self.us)));
        }
        let most = max_message(self.max_datagram);
        if bytes.len() > most {
            return Err(Failure::large(format!(
                "size is {}; with max_datagram {} a message has at most {most} bytes",
                bytes.len(),
                self.max_datagram
            )));
        }
        let data = self.port().buffer(bytes);
        self.send_command(Command::Send { to, stream, delivery, data })
    }

    pub(super) fn peer_stats(&self, peer: PeerIndex) -> retick_peer_stats {
        let link = &self.links[peer.index()];
        retick_peer_stats {
            struct_size: 0,
            connected: u32::from(self.connected.contains(peer)),
            rtt_us: link.rtt_us,
            jitter_us: link.jitter_us,
            loss_sent_ppm: link.loss_sent_ppm,
            loss_received_ppm: link.loss_received_ppm,
            reliable_waiting: link.reliable_waiting,
            reserved: 0,
            packets_sent: link.packets_sent,
            packets_received: link.packets_received,
            bytes_sent: link.bytes_sent,
            bytes_received: link.bytes_received,
            reliable_resent: link.reliable_resent,
            dropped_replayed: link.dropped_replayed,
            dropped_forged: link.dropped_forged,
            dropped_malformed: link.dropped_malformed,
        }
    }

    pub(super) fn set_conditioner(&mut self, link: Option<Link>, seed: u64) -> Outcome<retick_result> {
        let link = link.unwrap_or_default();
        match &mut self.driver {
            Driver::Thread(mesh) => mesh.handle.set_conditioner(link, seed),
            Driver::Manual(mesh) => mesh.set_conditioner(link, seed),
            Driver::Custom(_) => {
                return Err(Failure::unsupported(
                    "this mesh has a custom transport; spoil the datagrams there",
                ));
            }
            Driver::Simnet(_) => {
                return Err(Failure::unsupported(
                    "this mesh is on a simulated network; use retick_simnet_set_link",
                ));
            }
        }
        Ok(RETICK_OK)
    }

    fn custom(&mut self) -> Outcome<&mut CustomMesh> {
        match &mut self.driver {
            Driver::Custom(mesh) => Ok(mesh),
            _ => Err(Failure::unsupported("this mesh was not created with RETICK_IO_CUSTOM")),
        }
    }

    pub(super) fn receive(&mut self, from: Addr, bytes: &[u8]) -> Outcome<retick_result> {
        self.custom()?.receive(from, bytes, io::now());
        Ok(RETICK_OK)
    }

    pub(super) fn next_outgoing(&mut self) -> Outcome<Option<(&[u8], &[u8])>> {
        let Driver::Custom(mesh) = &mut self.driver else {
            return Err(Failure::unsupported("this mesh was not created with RETICK_IO_CUSTOM"));
        };
        // What the session has handed in since the last poll leaves now.
        mesh.run(io::now());
        let Some((to, bytes)) = mesh.next_outgoing() else { return Ok(None) };
        let address = self.outgoing_to.insert(to).opaque_bytes().unwrap_or_default();
        Ok(Some((address, bytes)))
    }

    pub(super) fn io_turn(&mut self, timeout_us: u32) -> Outcome<retick_result> {
        let Driver::Manual(mesh) = &mut self.driver else {
            return Err(Failure::unsupported("this mesh was not created with RETICK_IO_MANUAL"));
        };
        mesh.turn(Duration::from_micros(u64::from(timeout_us)));
        Ok(RETICK_OK)
    }

    pub(super) fn time_us(&self) -> u64 {
        self.model.mesh_time(self.clock.now()).as_micros()
    }

    /// The marker lives as long as the session.
    pub(super) fn open_session(
        &mut self,
        settings: SessionSettings,
    ) -> Outcome<(SessionPort, Clock, Arc<()>)> {
        if self.session.strong_count() > 0 {
            return Err(Failure::state("this mesh has a session already; destroy it first"));
        }
        let port = self.port().open_session(settings).map_err(refused)?;
        self.input_max = usize::from(settings.input_max);
        let marker = Arc::new(());
        self.session = Arc::downgrade(&marker);
        Ok((port, self.clock.clone(), marker))
    }
}

fn refused(refused: Refused<Command>) -> Failure {
    match refused {
        Refused::Full(_) => {
            Failure::full("too many commands wait for the network half; try again after the next poll")
        }
        Refused::Closed(_) => failed(),
    }
}

fn failed() -> Failure {
    Failure::shut_down("the network half of this mesh is gone; destroy the mesh")
}

fn bound_text(addrs: LocalAddrs) -> String {
    addrs.v4.or(addrs.v6).map_or_else(String::new, |addr| addr.to_string())
}

#[cfg(test)]
mod tests;
