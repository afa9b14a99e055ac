//! The main job without sockets: peers meet, start together, play and agree, in virtual time.

use retick::base::{Frame, Instant, PeerIndex, Slot};
use retick::bridge::{Command, MeshNews, MeshPort};
use retick::config::{MeshConfig, SessionConfig, ValidSessionConfig};
use retick::netem::Link;
use retick::session::{Session, StepKind, Verdict};
use retick::simnet::Simnet;
use std::time::Duration;

const FRAME: Duration = Duration::from_micros(16_667);

struct Game {
    state: [u8; 64],
}

struct Peer {
    index: u32,
    port: MeshPort,
    session: Session,
    game: Game,
    news: Vec<String>,
    room: Option<retick::config::RoomKey>,
    stalls: u32,
}

impl Game {
    fn advance(&mut self, frame: Frame, inputs: &[u8]) {
        let mut all = self.state.to_vec();
        all.extend_from_slice(inputs);
        all.extend_from_slice(&frame.0.to_le_bytes());
        let digest = retick::kit::hash::digest(&all);
        self.state.copy_within(8.., 0);
        self.state[56..].copy_from_slice(&digest.to_le_bytes());
    }
}

impl Peer {
    fn poll(&mut self) {
        while let Some(news) = self.port.next_news() {
            match news {
                MeshNews::Joined { room, us } => {
                    self.room = Some(room);
                    self.news.push(format!("joined as {us}"));
                }
                MeshNews::Link { .. } | MeshNews::Counters { .. } | MeshNews::Clock(_) => {}
                other => self.news.push(format!("{other:?}")),
            }
        }
    }

    fn frame(&mut self, now: Instant, index: u8) {
        self.poll();
        let (due, _) = self.session.frames_due(now);
        for _ in 0..due {
            let local: Vec<Slot> = self.session.local_slots().into_iter().collect();
            for slot in local {
                let value = self.session.current().0 as u8 ^ index;
                let mut input =
                    vec![value ^ slot.get(); usize::from(self.session.config().settings.input_max)];
                input[0] = index;
                self.session.add_local_input(slot, &input).expect("local");
            }
            let verdict = self.session.begin_frame(now).expect("no list is open");
            for i in 0..self.session.step_count() {
                let step = *self.session.step(i).expect("counted");
                match step.kind {
                    StepKind::Save => {
                        self.session.grow_state(i, 64).expect("small");
                        self.session.state(i).expect("bytes")[..64].copy_from_slice(&self.game.state);
                        self.session.set_saved(i, 64, None).expect("a save");
                    }
                    StepKind::Load => {
                        self.game.state.copy_from_slice(&self.session.state(i).expect("bytes")[..64]);
                    }
                    StepKind::Advance => {
                        let inputs = self.session.inputs(i).0.to_vec();
                        self.game.advance(step.frame, &inputs);
                    }
                }
            }
            self.session.end_frame(now).expect("open");
            if let Verdict::Stall(_) = verdict {
                self.stalls += 1;
            }
        }
        while let Some(event) = self.session.next_event() {
            self.news.push(format!("{event:?}"));
        }
    }
}

/// A match of `n` peers in one room: who they are, and the network that they are on.
struct Room {
    config: SessionConfig,
    net: Simnet,
    peers: Vec<Peer>,
}

fn session(port: &MeshPort, config: &SessionConfig, now: Instant) -> Session {
    let config: ValidSessionConfig = config.clone().try_into().expect("valid");
    let session_port = port.open_session(config.settings).expect("room in the queue");
    Session::new(config, Some(session_port), now)
}

impl Room {
    fn open(n: u32, link: Link) -> Self {
        Self::open_with(n, link, &SessionConfig::default(), 7)
    }

    fn open_with(n: u32, link: Link, config: &SessionConfig, seed: u64) -> Self {
        let config = SessionConfig { desync_level: 2, ..config.clone() };
        let mut net = Simnet::new(seed);
        net.set_default_link(link);
        let mut peers: Vec<Peer> = (0..n)
            .map(|_| {
                let mesh = MeshConfig { max_peers: 16, ..MeshConfig::default() };
                let (index, port) = net.attach(mesh.try_into().expect("valid"));
                let session = session(&port, &config, net.now());
                Peer {
                    index,
                    port,
                    session,
                    game: Game { state: [0; 64] },
                    news: Vec::new(),
                    room: None,
                    stalls: 0,
                }
            })
            .collect();
        peers[0].port.send(Command::Host).expect("queue");
        net.advance(FRAME);
        peers[0].poll();
        let room = peers[0].room.expect("hosted");
        for peer in &peers[1..] {
            peer.port.send(Command::Join { address: Simnet::address(0), room }).expect("queue");
        }
        let mut world = Self { config, net, peers };
        world.run(180);
        world
    }

    fn join_another(&mut self) {
        let mesh = MeshConfig { max_peers: 16, ..MeshConfig::default() };
        let (index, port) = self.net.attach(mesh.try_into().expect("valid"));
        let session = session(&port, &self.config, self.net.local_now(index));
        let room = self.peers[0].room.expect("hosted");
        port.send(Command::Join { address: Simnet::address(0), room }).expect("queue");
        let game = Game { state: [0; 64] };
        self.peers.push(Peer { index, port, session, game, news: Vec::new(), room: None, stalls: 0 });
    }

    fn start(&mut self) {
        self.start_with(1);
    }

    fn start_with(&mut self, local_slots: u8) {
        for peer in &self.peers {
            peer.port.send(Command::SetReady { local_slots }).expect("queue");
        }
        self.peers[0].port.send(Command::Start { countdown_ms: 300 }).expect("queue");
    }

    fn run(&mut self, frames: u32) {
        for _ in 0..frames {
            self.net.advance(FRAME);
            for peer in &mut self.peers {
                peer.frame(self.net.local_now(peer.index), peer.index as u8);
            }
        }
    }

    fn expect_agreement(&self, at_least: Frame) {
        // A state is digested when it is passed, so the newest one may not be yet.
        let end = self.peers.iter().map(|p| p.session.confirmed_end().min(p.session.current()) - 1);
        let end = end.min().expect("some");
        assert!(end > at_least, "{end}: {:?}", self.peers.iter().map(|p| &p.news).collect::<Vec<_>>());
        for f in (end.0 - 200).max(0)..end.0 {
            let digests: Vec<_> = self.peers.iter().map(|p| p.session.confirmed_checksum(Frame(f))).collect();
            assert!(
                digests[0].is_some() && digests.iter().all(|d| *d == digests[0]),
                "frame {f}: {digests:?}"
            );
        }
    }
}

fn a_bad_link() -> Link {
    Link {
        latency: Duration::from_millis(60),
        jitter: Duration::from_millis(10),
        loss_ppm: 20_000,
        ..Link::default()
    }
}

#[test]
fn four_peers_start_together_and_agree_on_every_confirmed_frame() {
    let mut room = Room::open(4, a_bad_link());
    room.start();
    room.run(700);
    room.expect_agreement(Frame(550));
    assert_eq!(room.peers.iter().map(|p| p.stalls).sum::<u32>(), 0);
    let starts: Vec<_> = room.peers.iter().filter_map(|p| p.session.start_info().copied()).collect();
    assert_eq!(starts.len(), 4);
    assert!(starts.iter().all(|s| s.seed == starts[0].seed && s.frame0_at == starts[0].frame0_at));
    assert!(starts.iter().all(|s| s.slots[3] == PeerIndex::new(3)));
}

#[test]
fn a_room_plays_a_second_match_with_new_sessions() {
    let mut room = Room::open(3, a_bad_link());
    room.start();
    room.run(200);
    for (i, peer) in room.peers.iter_mut().enumerate() {
        peer.session = session(&peer.port, &room.config, room.net.local_now(i as u32));
        peer.game.state = [0; 64];
    }
    room.run(60);
    room.start();
    room.run(400);
    room.expect_agreement(Frame(300));
}

/// The parity of a match is the room's, not the count of those that a member played.
#[test]
fn a_guest_who_comes_between_two_matches_plays_the_second() {
    let mut room = Room::open(3, a_bad_link());
    let guest = room.peers.pop().expect("three");
    // Not let in yet: it left the room before the first match, and a new one comes after it.
    guest.port.send(Command::Leave).expect("queue");
    room.run(60);
    room.start();
    room.run(200);
    for (i, peer) in room.peers.iter_mut().enumerate() {
        peer.session = session(&peer.port, &room.config, room.net.local_now(i as u32));
        peer.game.state = [0; 64];
    }
    room.run(60);
    room.join_another();
    room.run(120);
    room.start();
    room.run(400);
    room.expect_agreement(Frame(250));
}

#[test]
fn a_match_starts_over_a_round_trip_of_a_second() {
    let mut room = Room::open(2, Link { latency: Duration::from_millis(500), ..Link::default() });
    room.run(600);
    room.start();
    room.run(900);
    room.expect_agreement(Frame(100));
}

#[test]
fn lockstep_goes_on_when_an_input_is_lost_while_everybody_waits() {
    let link = Link {
        latency: Duration::from_millis(60),
        jitter: Duration::from_millis(40),
        loss_ppm: 50_000,
        duplicate_ppm: 10_000,
        ..Link::default()
    };
    for seed in 0..12 {
        let config = SessionConfig { prediction_window: 0, input_delay: 5, ..SessionConfig::default() };
        let mut room = Room::open_with(3, link, &config, seed);
        room.run(120);
        room.start();
        room.run(1500);
        room.expect_agreement(Frame(900));
    }
}

/// The largest inputs, several slots a peer, one peer that dies and one pair that does not hear each other meanwhile.
#[test]
fn the_largest_inputs_of_many_slots_survive_a_cut_and_a_broken_link() {
    let config = SessionConfig { input_max: 64, prediction_window: 48, ..SessionConfig::default() };
    let mut room = Room::open_with(4, a_bad_link(), &config, 11);
    room.start_with(4);
    room.run(200);
    let down = Link { down: true, ..Link::default() };
    room.net.set_link(0, 1, down);
    room.net.set_link(1, 0, down);
    room.run(60);
    room.net.detach(3);
    let dead = room.peers.pop().expect("four");
    room.run(400);
    room.expect_agreement(dead.session.current() + 100);
    for peer in &room.peers {
        let lost = peer.news.iter().filter(|news| news.contains("SlotLeft")).count();
        assert_eq!(lost, 4, "{:?}", peer.news);
    }
}
