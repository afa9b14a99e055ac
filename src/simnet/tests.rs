//! The simulated network with stand-in nodes: who is called when, and what becomes of datagrams.

use super::*;
use crate::base::Entropy;
use crate::bridge::{Command, NodePort};
use crate::config::MeshConfig;
use std::sync::Mutex;

#[test]
fn a_command_of_the_game_reaches_the_other_node_one_latency_later() {
    let mut world = World::new(2, link(40));
    world.say(0, 1);
    world.net.advance(ms(39));
    assert_eq!(world.heard(1), []);
    world.net.advance(ms(1));
    assert_eq!(world.heard(1), [(0, 40_000)]);
    assert_eq!((world.net.sent(), world.net.now()), (1, Instant::from_millis(40)));
}

#[test]
fn time_outs_come_at_their_local_time_however_the_clock_runs() {
    let mut world = World::new(1, Link::default());
    world.net.set_clock_skew_ppm(0, -1000);
    world.every(0, 10);
    world.net.advance(Duration::from_secs(1));
    assert_eq!(world.net.local_now(0), Instant(999_000));
    assert_eq!(world.net.local_clock(0).load(Ordering::Relaxed), 999_000);
    assert_eq!(world.net.clock().load(Ordering::Relaxed), 1_000_000);
    assert_eq!(world.ticks(0), (1..=99).map(|n| n * 10_000).collect::<Vec<_>>());
}

#[test]
fn a_clock_starts_with_its_offset() {
    let mut net = Simnet::<Chatter>::with_nodes(1);
    net.advance(ms(5));
    let (index, _port) = net.attach_with_clock(config(), Duration::from_secs(3));
    net.advance(ms(5));
    assert_eq!(net.local_now(index), Instant(3_010_000));
}

#[test]
fn a_detached_node_gets_nothing_and_the_others_go_on() {
    let mut world = World::new(3, link(10));
    world.say(0, 1);
    world.say(0, 2);
    world.net.advance(ms(5));
    world.net.detach(1);
    world.net.advance(ms(10));
    assert_eq!((world.heard(1).len(), world.heard(2).len()), (0, 1));
    assert!(!world.net.is_attached(1) && world.net.is_attached(2));
    assert!(world.ports[1].send(Command::Host).is_err(), "a dead node's bridge is closed");
    let last = world.net.trace().iter().filter(|entry| entry.to == Some(1)).last().expect("it was sent");
    assert_eq!(last.what, What::Dropped);
}

#[test]
fn a_paused_node_finds_the_newest_datagrams_in_its_socket_when_it_runs_again() {
    let mut world = World::new(2, link(1));
    world.net.set_paused(1, true);
    world.every(1, 10);
    for _ in 0..SOCKET_QUEUE + 10 {
        world.say(0, 1);
        world.net.advance(ms(1));
    }
    world.net.advance(ms(100));
    assert_eq!((world.heard(1).len(), world.ticks(1).len()), (0, 0));
    world.net.set_paused(1, false);
    world.net.advance(Duration::ZERO);
    assert_eq!(world.heard(1).len(), SOCKET_QUEUE);
    let dropped = world.net.trace().iter().filter(|entry| entry.what == What::Delivered).count();
    assert_eq!(dropped, SOCKET_QUEUE, "the trace holds the newest entries");
}

#[test]
fn exactly_the_named_datagram_is_lost() {
    for lost in 0..4 {
        let mut world = World::new(2, link(1));
        world.net.drop_exactly(lost);
        let mut expected = Vec::new();
        for number in 0..4 {
            if number != lost {
                expected.push((0, 1000 * (number + 1)));
            }
            world.say(0, 1);
            world.net.advance(ms(1));
        }
        assert_eq!(world.heard(1), expected);
        assert_eq!(world.net.sent(), 4);
    }
}

#[test]
fn the_same_seed_gives_the_same_match_and_another_seed_another() {
    let run = |seed| {
        let mut world = World::new(4, Link::default());
        world.net = Simnet::with_nodes(seed);
        world.attach(4);
        world.net.set_default_link(Link { jitter: ms(20), loss_ppm: 200_000, ..link(30) });
        for round in 0..200 {
            world.say(round % 4, (round as u32 + 1) % 4);
            world.net.advance(ms(7));
        }
        world.net.trace().to_string()
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn a_node_that_always_asks_for_a_past_time_does_not_stop_the_world() {
    let mut world = World::new(2, link(1));
    world.every(0, 0);
    world.say(1, 0);
    world.net.advance(ms(50));
    assert_eq!(world.net.now(), Instant::from_millis(50));
    assert_eq!(world.heard(0).len(), 1);
}

#[test]
fn two_nodes_that_answer_at_once_over_a_perfect_link_do_not_stop_the_world() {
    let mut world = World::new(2, Link::default());
    world.ports[0].send(Command::Start { countdown_ms: ECHO }).expect("the queue is empty");
    world.ports[1].send(Command::Start { countdown_ms: ECHO }).expect("the queue is empty");
    world.say(0, 1);
    world.net.advance(ms(20));
    assert_eq!(world.net.now(), Instant::from_millis(20));
    assert!(world.heard(1).len() > 10);
}

#[test]
fn step_stops_at_every_event_and_at_the_end() {
    let mut world = World::new(2, link(3));
    world.say(0, 1);
    let end = Instant::from_millis(10);
    let mut stops = Vec::new();
    while world.net.step(end) {
        stops.push(world.net.now().0);
    }
    stops.dedup();
    assert_eq!(stops, [3000]);
    assert_eq!(world.net.now(), end);
}

#[test]
fn an_address_names_its_number_and_nothing_else_does() {
    for index in [0, 7, 15, 4_000_000_000] {
        assert_eq!(Simnet::index_of(&Simnet::address(index)), Some(index));
    }
    for bad in ["sim:", "sim:-1", "sin:1", "sim:99999999999"] {
        assert_eq!(Simnet::index_of(&Addr::opaque(bad.as_bytes()).expect("short")), None);
    }
}

/// `Start` with this countdown: answer every datagram.
const ECHO: u32 = u32::MAX;

type Log = Arc<Mutex<(Vec<(u32, u64)>, Vec<u64>)>>;

struct World {
    net: Simnet<Chatter>,
    ports: Vec<MeshPort>,
}

impl World {
    fn new(nodes: usize, link: Link) -> Self {
        let mut world = Self { net: Simnet::with_nodes(1), ports: Vec::new() };
        world.net.set_default_link(link);
        world.attach(nodes);
        world
    }

    fn attach(&mut self, nodes: usize) {
        self.ports = (0..nodes).map(|_| self.net.attach(config()).1).collect();
    }

    fn say(&self, from: usize, to: u32) {
        let room = crate::config::RoomKey([0; 32]);
        self.ports[from]
            .send(Command::Join { address: Simnet::address(to), room })
            .expect("the queue is short");
    }

    fn every(&self, node: usize, ms: u32) {
        self.ports[node].send(Command::Start { countdown_ms: ms }).expect("the queue is short");
    }

    fn log(&self, node: usize) -> Log {
        self.net.members[node].node.as_ref().map_or_else(Log::default, |node| Arc::clone(&node.log))
    }

    /// Sender and local time of every datagram.
    fn heard(&self, node: usize) -> Vec<(u32, u64)> {
        self.log(node).lock().expect("no test panics while it holds it").0.clone()
    }

    fn ticks(&self, node: usize) -> Vec<u64> {
        self.log(node).lock().expect("no test panics while it holds it").1.clone()
    }
}

fn config() -> ValidMeshConfig {
    MeshConfig::default().try_into().expect("the default makes sense")
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn link(latency_ms: u64) -> Link {
    Link { latency: ms(latency_ms), ..Link::default() }
}

/// Sends one byte to whom it is told to join, ticks as often as it is told by `Start`, and remembers what it saw.
struct Chatter {
    port: NodePort,
    log: Log,
    outbox: VecDeque<Addr>,
    every: Option<Duration>,
    tick_at: Instant,
    echo: bool,
}

impl Drive for Chatter {
    fn new(config: ValidMeshConfig, port: NodePort, _: Box<dyn Entropy>, now: Instant) -> Self {
        assert!(config.local_address.is_some());
        let (log, outbox) = (Log::default(), VecDeque::new());
        Self { port, log, outbox, every: None, tick_at: now, echo: false }
    }

    fn handle_commands(&mut self, now: Instant) {
        while let Ok(command) = self.port.next_command() {
            match command {
                Command::Join { address, .. } => self.outbox.push_back(address),
                Command::Start { countdown_ms: ECHO } => self.echo = true,
                Command::Start { countdown_ms } => {
                    self.every = Some(ms(countdown_ms.into()));
                    self.tick_at = now + ms(countdown_ms.into());
                }
                _ => {}
            }
        }
    }

    fn handle_datagram(&mut self, from: Addr, bytes: &mut [u8], now: Instant) {
        assert_eq!(bytes, b"!");
        let number = Simnet::index_of(&from).expect("only nodes send");
        self.log.lock().expect("no test panics while it holds it").0.push((number, now.0));
        if self.echo {
            self.outbox.push_back(from);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(every) = self.every
            && self.tick_at <= now
        {
            self.tick_at += every;
            self.log.lock().expect("no test panics while it holds it").1.push(now.0);
        }
    }

    fn poll_output(&mut self) -> Output<'_> {
        match self.outbox.pop_front() {
            Some(to) => Output::Transmit { to, bytes: b"!" },
            None => Output::Wait { until: self.every.map(|_| self.tick_at), reason: "tick" },
        }
    }
}
