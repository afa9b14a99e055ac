//! Messages of the application between real nodes: what a game sees that sends too much, or never polls.
//!
//! Fed by: virtual time. Yields: verdicts. Never: looks into a node; what counts is what the two games see.

use super::*;
use crate::base::PeerIndex;
use crate::base::limits::{LINK_WINDOW, SEND_BUDGET, UNPOLLED_BUDGET, message_cost};
use crate::bridge::{Command, Delivery, MeshNews, Refused};
use crate::config::MeshConfig;

#[test]
fn t10_what_is_refused_is_not_half_queued_and_after_the_drain_nothing_is_missing() {
    let mut room = Room::open(2);
    room.down(0, 1, true);
    let filled = room.send_until_refused(0, Some(1), 100);
    assert_eq!(filled, SEND_BUDGET / message_cost(100), "as much as the documented budget, to the message");
    for _ in 0..50 {
        assert!(!room.send(0, Some(1), Delivery::Reliable, 100), "refused stays refused");
        room.net.advance(ms(2));
    }
    room.down(0, 1, false);
    // The game goes on sending as soon as it may.
    let mut sent = filled;
    for _ in 0..4_000 {
        sent += u32::from(room.send(0, Some(1), Delivery::Reliable, 100));
        room.advance(5);
    }
    assert!(sent > filled + 1_000, "{sent}: it is accepted again");
    room.advance(60_000);
    assert_eq!(room.got(1), (0..sent).collect::<Vec<_>>());
}

#[test]
fn t19_a_game_that_never_polls_costs_bounded_memory_and_no_connection() {
    let mut room = Room::open(2);
    let mut last = 0;
    let (mut accepted, mut refused) = (Vec::new(), 0);
    room.deaf = 1 << 1;
    for _ in 0..600 {
        for _ in 0..4 {
            let number = room.next_number;
            if room.send(0, Some(1), Delivery::Reliable, 1000) {
                accepted.push(number);
            } else {
                refused += 1;
            }
        }
        last = room.next_number;
        assert!(room.send(0, Some(1), Delivery::Unreliable, 200), "never pushes back: the oldest goes");
        room.step(17);
    }
    assert!(refused > 500, "the sender is pushed back: {refused}");
    let cost = accepted.len() as u32 * message_cost(1000);
    let bound = SEND_BUDGET + LINK_WINDOW + UNPOLLED_BUDGET + message_cost(1000);
    assert!(
        (bound - 20 * message_cost(1000)..=bound).contains(&cost),
        "{cost} of at most {bound} is held in all"
    );
    room.deaf = 0;
    room.advance(10_000);
    let (mut reliable, mut unreliable) = (Vec::new(), Vec::new());
    for (.., delivery, number) in &room.messages {
        if *delivery == Delivery::Reliable { &mut reliable } else { &mut unreliable }.push(*number);
    }
    assert_eq!(reliable, accepted);
    assert!(unreliable.len() < 600 && unreliable.last() == Some(&last), "the oldest were dropped");
    assert!(unreliable.is_sorted(), "and the others kept their order");
    assert!(room.calm, "nobody was missed");
}

#[test]
fn a_peer_that_acknowledges_nothing_stops_no_message_to_the_others() {
    let mut room = Room::open(3);
    room.down(0, 2, true);
    room.send_until_refused(0, Some(2), 1000);
    assert!(!room.send(0, Some(2), Delivery::Reliable, 1000));
    assert!(!room.send(0, None, Delivery::Reliable, 1000), "all of them is not possible");
    let first = room.next_number;
    for _ in 0..500 {
        assert!(room.send(0, Some(1), Delivery::Reliable, 1000), "the other has its own budget");
        room.advance(10);
    }
    room.advance(1_000);
    assert_eq!(room.got(1), (first..first + 500).collect::<Vec<_>>());
}

#[test]
fn a_peer_whose_game_does_not_poll_still_hears_the_mesh() {
    let mut room = Room::open(2);
    room.deaf = 1 << 1;
    room.send_until_refused(0, Some(1), 1000);
    room.advance(2_000);
    // The coordinator introduces the newcomer to it behind a megabyte that cannot move.
    room.attach();
    room.advance(2_000);
    assert_eq!(room.connected[2], 2, "to both");
}

/// 50 ± 10 ms one way, and one datagram of twenty is lost.
const BAD: Link = Link {
    latency: Duration::from_millis(40),
    jitter: Duration::from_millis(20),
    loss_ppm: 50_000,
    burst_ppm: 0,
    burst: Duration::ZERO,
    duplicate_ppm: 0,
    reorder_ppm: 0,
    down: false,
    rate_bytes_s: 0,
    queue_bytes: 0,
    mtu_bytes: 0,
};

#[test]
#[expect(clippy::print_stderr, reason = "the figures are for people to read")]
fn ten_thousand_messages_at_once_cross_a_bad_link_in_about_a_second() {
    let mut runs: Vec<(Duration, u64)> = (0..21).map(ten_thousand).collect();
    runs.sort();
    let (median, worst) = (runs[10].0, runs[20].0);
    let bytes = runs.iter().map(|run| run.1).sum::<u64>() / 21;
    eprintln!("median {median:?}, worst {worst:?}, {bytes} bytes for 640,000");
    // The window of one ordered stream is released only as fast as its losses are repaired, three times in a row.
    assert!(median <= ms(1_100) && worst <= ms(1_500), "{median:?}, worst {worst:?}");
    assert!(bytes * 100 <= 640_000 * 120, "{bytes} bytes for 640,000");
}

/// How long they take, and how many bytes the sender puts on the wire for them.
fn ten_thousand(seed: u64) -> (Duration, u64) {
    let mut room = Room::open_at(2, seed);
    room.net.set_default_link(BAD);
    room.advance(2_000);
    let (began, sent_before) = (room.net.now(), room.net.seen.len());
    while room.next_number < 10_000 {
        if !room.send(0, Some(1), Delivery::Reliable, 64) {
            room.net.advance(Duration::ZERO);
        }
    }
    while room.messages.len() < 10_000 {
        room.step(1);
        assert!(room.net.now().since(began) < Duration::from_secs(5), "seed {seed}: it takes for ever");
    }
    assert_eq!(room.got(1), (0..10_000).collect::<Vec<_>>(), "seed {seed}");
    let took = room.net.now().since(began);
    let sent = room.net.seen[sent_before..].iter().filter(|(from, ..)| *from == 0);
    (took, sent.map(|(.., bytes)| bytes.len() as u64).sum())
}

#[test]
#[expect(clippy::print_stderr, reason = "the figures are for people to read")]
fn a_small_message_over_a_bad_link_is_hardly_later_than_the_link() {
    let mut delays = Vec::new();
    for seed in 0..4 {
        let mut room = Room::open_at(2, seed);
        room.net.set_default_link(BAD);
        room.advance(2_000);
        let mut sent = Vec::new();
        for i in 0..20_000 {
            if i % 50 == 0 && i < 19_000 {
                sent.push(room.net.now());
                assert!(room.send(0, Some(1), Delivery::Reliable, 32));
            }
            room.step(1);
            for (.., number) in room.messages.drain(..) {
                delays.push(room.net.now().since(sent[number as usize]));
            }
        }
    }
    delays.sort();
    assert_eq!(delays.len(), 4 * 380);
    let p99 = delays[delays.len() * 99 / 100];
    eprintln!("p50 {:?}, p99 {p99:?}, worst {:?}", delays[delays.len() / 2], delays.last());
    assert!(p99 <= ms(50 + 25), "{p99:?}");
}

/// Members in a lobby, whose games poll unless told not to.
struct Room {
    net: Simnet,
    ports: Vec<MeshPort>,
    key: crate::config::RoomKey,
    /// Bit `i`: member `i` does not poll.
    deaf: u16,
    /// How many channels each member was told of.
    connected: [u32; 3],
    calm: bool,
    next_number: u32,
    /// Receiver, delivery, number.
    messages: Vec<(usize, Delivery, u32)>,
}

impl Room {
    fn open(members: u32) -> Self {
        Self::open_at(members, 1)
    }

    fn open_at(members: u32, seed: u64) -> Self {
        let mut net = Simnet::new(seed);
        net.set_default_link(Link { latency: ms(20), ..Link::default() });
        let host = net.attach(config()).1;
        host.send(Command::Host).expect("it is alive");
        net.advance(ms(1));
        let key = std::iter::from_fn(|| host.next_news()).find_map(|news| match news {
            MeshNews::Joined { room, .. } => Some(room),
            _ => None,
        });
        let mut this = Self {
            net,
            ports: vec![host],
            key: key.expect("the host is in its room at once"),
            deaf: 0,
            connected: [0; 3],
            calm: true,
            next_number: 0,
            messages: Vec::new(),
        };
        for _ in 1..members {
            this.attach();
            this.advance(1_000);
        }
        this
    }

    fn attach(&mut self) {
        let port = self.net.attach(config()).1;
        let join = Command::Join { address: Simnet::address(0), room: self.key };
        port.send(join).expect("it is alive");
        self.ports.push(port);
    }

    fn down(&mut self, one: u32, other: u32, down: bool) {
        let link = Link { latency: ms(20), down, ..Link::default() };
        self.net.set_link(one, other, link);
        self.net.set_link(other, one, link);
    }

    /// Sends the next number, if it is accepted.
    fn send(&mut self, from: usize, to: Option<u8>, delivery: Delivery, size: usize) -> bool {
        let mut data = self.next_number.to_le_bytes().to_vec();
        data.resize(size, 0);
        let to = to.map(|to| PeerIndex::new(to).expect("a member"));
        match self.ports[from].send(Command::Send { to, stream: 0, delivery, data }) {
            Ok(()) => self.next_number += 1,
            Err(Refused::Full(_)) => return false,
            Err(Refused::Closed(_)) => panic!("it is alive"),
        }
        true
    }

    /// The node takes every command at once, and no virtual time passes.
    fn send_until_refused(&mut self, from: usize, to: Option<u8>, size: usize) -> u32 {
        let before = self.next_number;
        while self.send(from, to, Delivery::Reliable, size) {
            self.net.advance(Duration::ZERO);
        }
        self.next_number - before
    }

    fn advance(&mut self, for_ms: u64) {
        (0..for_ms / 5).for_each(|_| self.step(5));
    }

    /// The games poll once after so long.
    fn step(&mut self, for_ms: u64) {
        self.net.advance(ms(for_ms));
        for (receiver, port) in self.ports.iter().enumerate().filter(|(i, _)| self.deaf >> i & 1 == 0) {
            while let Some(news) = port.next_news() {
                match news {
                    MeshNews::Message { delivery, data, .. } => {
                        let number = data[..4].try_into().expect("a number is in each");
                        self.messages.push((receiver, delivery, u32::from_le_bytes(number)));
                        port.recycle(data);
                    }
                    MeshNews::Interrupted { .. } | MeshNews::Left { .. } => self.calm = false,
                    MeshNews::PeerConnected { .. } => self.connected[receiver] += 1,
                    _ => {}
                }
            }
        }
    }

    fn got(&self, receiver: usize) -> Vec<u32> {
        self.messages.iter().filter(|message| message.0 == receiver).map(|message| message.2).collect()
    }
}

fn config() -> ValidMeshConfig {
    MeshConfig::default().try_into().expect("the default makes sense")
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
