//! The main job without sockets: peers meet, start together, play and agree, in virtual time.

use retick::base::{Frame, Instant, PeerIndex, Slot};
use retick::bridge::{Command, MeshNews, MeshPort};
use retick::config::{MeshConfig, SessionConfig};
use retick::netem::Link;
use retick::session::{Session, StepKind, Verdict};
use retick::simnet::Simnet;
use std::time::Duration;

const FRAME: Duration = Duration::from_micros(16_667);

struct Game {
    state: [u8; 64],
}

struct Peer {
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
                self.session.add_local_input(slot, &[value, index, 3, 4]).expect("local");
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
                        self.game.state.copy_from_slice(&self.session.state(i).expect("bytes")[..64])
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

fn play(n: u32, link: Link, frames: i32) -> Vec<Peer> {
    let mut net = Simnet::new(7);
    net.set_default_link(link);
    let mut peers: Vec<Peer> = (0..n)
        .map(|_| {
            let (_, port) =
                net.attach(MeshConfig { max_peers: 16, ..MeshConfig::default() }.try_into().expect("valid"));
            let config: retick::config::ValidSessionConfig =
                SessionConfig { desync_level: 2, ..SessionConfig::default() }.try_into().expect("valid");
            let session_port = port.open_session(config.settings).ok().expect("room in the queue");
            let session = Session::new(config, Some(session_port), net.now());
            Peer { port, session, game: Game { state: [0; 64] }, news: Vec::new(), room: None, stalls: 0 }
        })
        .collect();
    peers[0].port.send(Command::Host).expect("queue");
    net.advance(FRAME);
    peers[0].poll();
    let room = peers[0].room.expect("hosted");
    for peer in &peers[1..] {
        peer.port.send(Command::Join { address: Simnet::address(0), room }).expect("queue");
    }
    for _ in 0..120 {
        net.advance(FRAME);
        peers.iter_mut().for_each(Peer::poll);
    }
    for peer in &peers {
        peer.port.send(Command::SetReady { local_slots: 1 }).expect("queue");
    }
    peers[0].port.send(Command::Start { countdown_ms: 300 }).expect("queue");
    for _ in 0..frames + 120 {
        net.advance(FRAME);
        for (i, peer) in peers.iter_mut().enumerate() {
            let now = net.local_now(i as u32);
            peer.frame(now, i as u8);
        }
    }
    peers
}

#[test]
fn four_peers_start_together_and_agree_on_every_confirmed_frame() {
    let link = Link {
        latency: Duration::from_millis(60),
        jitter: Duration::from_millis(10),
        loss_ppm: 20_000,
        ..Link::default()
    };
    let peers = play(4, link, 600);
    for (i, peer) in peers.iter().enumerate() {
        println!("{i}: {:?}", peer.news);
    }
    let end = peers.iter().map(|p| p.session.confirmed_end()).min().expect("some");
    assert!(end > Frame(550), "{end}");
    for f in (end.0 - 200)..end.0 {
        let digests: Vec<_> = peers.iter().map(|p| p.session.confirmed_checksum(Frame(f))).collect();
        assert!(digests[0].is_some() && digests.iter().all(|d| *d == digests[0]), "frame {f}: {digests:?}");
    }
    assert_eq!(peers.iter().map(|p| p.stalls).sum::<u32>(), 0);
    assert!(peers.iter().all(|p| p.session.start_info().is_some_and(|s| s.slots[3] == PeerIndex::new(3))));
}
