//! Real nodes join over bad links: what is said at the first moment must arrive.

use super::*;
use crate::base::{PeerIndex, Slot};
use crate::bridge::{Command, Delivery, LeaveReason, MeshNews, SessionNews, SessionPort};
use crate::config::{MeshConfig, RoomKey, SessionConfig, ValidSessionConfig};

#[test]
fn a_guest_hears_what_the_host_said_first_whichever_single_datagram_is_lost() {
    let quiet = Link { latency: ms(20), ..Link::default() };
    let sent = join(1, quiet, None).expect("nothing is lost");
    for lost in 0..sent {
        join(1, quiet, Some(lost)).unwrap_or_else(|trace| panic!("without datagram {lost}:\n{trace}"));
    }
}

#[test]
fn a_guest_hears_what_the_host_said_first_over_a_bad_link() {
    let bad =
        Link { latency: ms(5), jitter: ms(10), loss_ppm: 200_000, duplicate_ppm: 50_000, ..Link::default() };
    for seed in 0..100 {
        join(seed, bad, None).unwrap_or_else(|trace| panic!("seed {seed}:\n{trace}"));
    }
}

/// A guest joins, and the host says something as soon as it sees it. How many datagrams that took.
fn join(seed: u64, link: Link, lost: Option<u64>) -> Result<u64, String> {
    let mut net = Simnet::new(seed);
    net.set_default_link(link);
    if let Some(number) = lost {
        net.drop_exactly(number);
    }
    let config = || MeshConfig::default().try_into().expect("the default makes sense");
    let (host, guest) = (net.attach(config()).1, net.attach(config()).1);
    host.send(Command::Host).expect("it is alive");
    let (mut room, mut hears): (Option<RoomKey>, _) = (None, false);
    for _ in 0..2000 {
        net.advance(ms(5));
        while let Some(news) = host.next_news() {
            match news {
                MeshNews::Joined { room: ours, .. } => {
                    room = Some(ours);
                    let address = Simnet::address(0);
                    guest.send(Command::Join { address, room: ours }).expect("it is alive");
                }
                MeshNews::PeerConnected { peer, .. } => {
                    let (delivery, data) = (Delivery::Reliable, host.buffer(b"welcome"));
                    let command = Command::Send { to: Some(peer), stream: 3, delivery, data };
                    host.send(command).expect("it is alive");
                }
                _ => {}
            }
        }
        while let Some(news) = guest.next_news() {
            hears |= matches!(&news, MeshNews::Message { stream: 3, data, .. } if data == b"welcome");
        }
        if hears {
            return Ok(net.sent());
        }
    }
    assert!(room.is_some(), "the host is in its room at once");
    Err(net.trace().to_string())
}

#[test]
fn a_session_that_nobody_polls_in_the_lobby_still_learns_of_the_start() {
    let mut room = Room::open(2);
    room.run(400_000);
    room.start();
    room.run(3_000);
    assert!(room.news(1).iter().any(|news| matches!(news, SessionNews::Start(_))));
}

#[test]
fn who_leaves_at_any_moment_around_the_start_stops_nobody() {
    for leaves_after in (0..1500).step_by(40) {
        let mut room = Room::open(3);
        // The coordinator hears the leaver late, its fellow member soon, and the coordinator's word comes between.
        room.net.set_link(2, 0, Link { latency: ms(300), ..Link::default() });
        room.net.set_link(0, 1, Link { latency: ms(100), ..Link::default() });
        room.run(1_000);
        room.start();
        room.run(leaves_after);
        room.peers[2].0.send(Command::Leave).expect("it is alive");
        room.run(5_000);
        for peer in 0..2 {
            let news = room.news(peer);
            let start = news.iter().find_map(|news| match news {
                SessionNews::Start(start) => Some(*start),
                _ => None,
            });
            let start = start.unwrap_or_else(|| panic!("left after {leaves_after}: {peer} never begins"));
            for slot in Slot::all().filter(|slot| start.slots[slot.index()].is_some_and(|p| p.get() == 2)) {
                let is_cut =
                    |news: &SessionNews| matches!(news, SessionNews::Cut { slot: s, .. } if *s == slot);
                assert!(news.iter().any(is_cut), "left after {leaves_after}: {peer} waits for ever");
            }
        }
    }
}

#[test]
fn a_late_word_that_a_match_is_over_does_not_end_the_next_one() {
    let mut room = Room::open(4);
    room.start();
    room.run(1_000);
    // One member hears nothing of the last one while all end the match and begin another.
    let deaf = Link { loss_ppm: 1_000_000, ..Link::default() };
    let fine = Link { latency: ms(5), ..Link::default() };
    room.net.set_link(3, 1, deaf);
    room.reopen();
    room.run(100);
    room.start();
    room.run(1_000);
    room.net.set_link(3, 1, fine);
    room.run(1_000);
    // Now another one does not: its word alone condemns nobody, so the first must have taken its own back.
    room.net.set_link(3, 2, deaf);
    room.run(1_000);
    room.net.set_link(3, 2, fine);
    room.run(1_000);
    for peer in 0..4 {
        let news = room.news(peer);
        assert!(news.iter().any(|news| matches!(news, SessionNews::Start(_))), "{peer} began again");
        assert!(!news.iter().any(|news| matches!(news, SessionNews::Cut { .. })), "{peer} saw a cut");
    }
}

#[test]
fn t25_who_moves_to_another_address_is_followed_by_all_and_misses_nothing() {
    for (starts, moves) in [(false, 1), (false, 0), (true, 1), (true, 0)] {
        let mut room = Room::open(3);
        if starts {
            room.start();
            room.run(1_000);
        }
        // The port first, then another network.
        for _ in 0..2 {
            let address = room.net.rebind(moves);
            room.run(140);
            for other in (0..3).filter(|other| *other != moves) {
                assert_eq!(room.address_of(other, moves), Some(address), "{other} follows {moves}");
            }
            room.run(1_000);
        }
        assert!(room.calm, "nobody was suspected, cut or dropped");
        let (to, delivery) = (PeerIndex::new(moves as u8), Delivery::Reliable);
        let data = room.peers[2].0.buffer(b"still there");
        let command = Command::Send { to, stream: 3, delivery, data };
        room.peers[2].0.send(command).expect("it is alive");
        room.run(500);
        assert_eq!(room.messages, [(moves as usize, b"still there".to_vec())]);
    }
}

#[test]
fn t25_a_later_guest_finds_who_moved() {
    let mut room = Room::open(2);
    room.net.rebind(1);
    room.run(500);
    room.attach();
    room.run(1_000);
    assert_eq!(room.address_of(2, 1), Some(room.net.addresses[1].0));
    assert_eq!(room.address_of(1, 2), Some(room.net.addresses[2].0));
}

#[test]
fn t25_packets_replayed_from_elsewhere_move_nothing_and_are_not_answered() {
    let mut room = Room::open(2);
    room.net.seen.clear();
    room.run(2_000);
    let seen = std::mem::take(&mut room.net.seen);
    let (elsewhere, home) = (elsewhere(), Simnet::address(1));
    for (_, _, bytes) in seen.iter().filter(|(from, ..)| *from == 1) {
        room.inject(elsewhere, 0, bytes);
        assert_eq!(room.address_of(0, 1), Some(home));
    }
    assert!(seen.len() > 60 && room.sent_to(elsewhere).is_empty());
}

#[test]
fn t25_a_copy_that_comes_first_is_asked_with_fewer_bytes_and_moves_nothing() {
    let mut room = Room::open(2);
    let (elsewhere, home) = (elsewhere(), Simnet::address(1));
    let mut questions = 0;
    for _ in 0..20 {
        let fine = room.net.link(1, 0);
        room.net.set_link(1, 0, Link { down: true, ..fine });
        room.net.seen.clear();
        room.run(120);
        let copies: Vec<_> =
            room.net.seen.drain(..).filter(|(from, ..)| *from == 1).map(|(.., bytes)| bytes).collect();
        room.net.set_link(1, 0, fine);
        for copy in &copies {
            room.inject(elsewhere, 0, copy);
        }
        let asked = room.sent_to(elsewhere);
        let (came, went) = (copies.concat().len(), asked.concat().len());
        assert!(went <= came, "{went} bytes for {came}");
        // The attacker passes the question on: the answer does not go through its hands.
        for question in &asked {
            room.inject(elsewhere, 1, question);
        }
        room.run(300);
        assert_eq!(room.address_of(0, 1), Some(home));
        assert_eq!(room.address_of(1, 0), Some(Simnet::address(0)), "nor does the other end move");
        questions += asked.len();
    }
    assert!(questions >= 20, "{questions} were asked");
}

#[test]
fn t26_a_member_that_crashed_and_starts_again_at_its_address_takes_its_own_place_within_a_second() {
    for (members, loss_ppm) in [(2, 0), (3, 0), (4, 0), (3, 100_000)] {
        let mut room = Room::open(members);
        room.net.set_default_link(Link { latency: ms(30), loss_ppm, ..Link::default() });
        room.net.seen.clear();
        room.run(300);
        let old: Vec<_> = room.net.seen.drain(..).filter(|(from, ..)| *from == 1).collect();
        room.left.clear();
        room.restart(1);
        room.run(1_000);
        assert!(room.left.contains(&(0, PeerIndex::new(1).expect("it is one"), LeaveReason::Restarted)));
        for (of, peer) in (0..members).flat_map(|of| (0..members).map(move |peer| (of, peer))) {
            assert!(of == peer || room.address_of(of, peer).is_some(), "{of} to {peer} of {members}");
        }
        assert_eq!(room.left.len() as u32, members - 1, "once for each who stayed: {:?}", room.left);
        // What the old process sent last is for keys that are no more.
        for (from, _, bytes) in &old {
            room.inject(Simnet::address(*from), 0, bytes);
        }
        assert!(!old.is_empty());
        room.start();
        room.run(2_000);
        for peer in 0..members as usize {
            let news = room.news(peer);
            assert!(news.iter().any(|news| matches!(news, SessionNews::Start(_))), "{peer} of {members}");
            assert!(!news.iter().any(|news| matches!(news, SessionNews::Cut { .. })), "{peer} of {members}");
        }
    }
}

#[test]
fn t45_a_host_behind_a_forwarder_is_joined_and_everybody_meets() {
    let room = Room::open_with(3, |net| {
        net.rebind(0);
    });
    for (of, peer) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
        assert_eq!(room.address_of(of, peer), Some(room.net.addresses[peer as usize].0), "{of} to {peer}");
    }
}

fn elsewhere() -> Addr {
    Addr::opaque(b"elsewhere").expect("short")
}

/// Members with a session each, in the lobby.
struct Room {
    net: Simnet,
    peers: Vec<(MeshPort, SessionPort)>,
    key: RoomKey,
    /// Nobody was missed since the room was opened.
    calm: bool,
    messages: Vec<(usize, Vec<u8>)>,
    /// Who saw whom leave.
    left: Vec<(usize, PeerIndex, LeaveReason)>,
}

impl Room {
    fn open(members: u32) -> Self {
        Self::open_with(members, |_| {})
    }

    /// What `prepare` does to the network is done before anybody joins.
    fn open_with(members: u32, prepare: impl FnOnce(&mut Simnet)) -> Self {
        let mut net = Simnet::new(1);
        net.set_default_link(Link { latency: ms(5), ..Link::default() });
        let session: ValidSessionConfig =
            SessionConfig::default().try_into().expect("the default makes sense");
        let peers = (0..members).map(|_| {
            let config = MeshConfig::default().try_into().expect("the default makes sense");
            let port = net.attach(config).1;
            let session = port.open_session(session.settings).expect("the queue is empty");
            (port, session)
        });
        let peers: Vec<_> = peers.collect();
        prepare(&mut net);
        peers[0].0.send(Command::Host).expect("it is alive");
        net.advance(ms(1));
        let room = std::iter::from_fn(|| peers[0].0.next_news()).find_map(|news| match news {
            MeshNews::Joined { room, .. } => Some(room),
            _ => None,
        });
        let room = room.expect("the host is in its room at once");
        let mut this = Self { net, peers, key: room, calm: true, messages: Vec::new(), left: Vec::new() };
        // One after the other, so that each has its number.
        for member in 1..members as usize {
            this.join(member);
            this.run(500);
        }
        this
    }

    fn join(&self, member: usize) {
        let join = Command::Join { address: self.net.addresses[0].0, room: self.key };
        self.peers[member].0.send(join).expect("it is alive");
    }

    /// One more member comes.
    fn attach(&mut self) {
        let session: ValidSessionConfig =
            SessionConfig::default().try_into().expect("the default makes sense");
        let config = MeshConfig::default().try_into().expect("the default makes sense");
        let port = self.net.attach(config).1;
        let session = port.open_session(session.settings).expect("the queue is empty");
        self.peers.push((port, session));
        self.join(self.peers.len() - 1);
    }

    /// A member's process dies, starts again at its address, and joins.
    fn restart(&mut self, member: usize) {
        let session: ValidSessionConfig =
            SessionConfig::default().try_into().expect("the default makes sense");
        let config = MeshConfig::default().try_into().expect("the default makes sense");
        let port = self.net.restart(member as u32, config).expect("it was attached");
        let session = port.open_session(session.settings).expect("the queue is empty");
        self.peers[member] = (port, session);
        self.join(member);
    }

    fn address_of(&self, node: u32, peer: u32) -> Option<Addr> {
        let node = self.net.members[node as usize].node.as_ref()?;
        node.address_of(PeerIndex::new(peer as u8)?)
    }

    /// Somebody sends bytes to a node, which answers at once.
    fn inject(&mut self, from: Addr, to: usize, bytes: &[u8]) {
        let member = &mut self.net.members[to];
        let now = member.clock.local(self.net.now);
        let node = member.node.as_mut().expect("it is alive");
        node.handle_datagram(from, &mut bytes.to_vec(), now);
        member.touched = true;
        self.net.collect(to);
    }

    /// What went there, as far as it is remembered.
    fn sent_to(&self, address: Addr) -> Vec<Vec<u8>> {
        let to = self.net.seen.iter().filter(|(_, to, _)| *to == address);
        to.map(|(.., bytes)| bytes.clone()).collect()
    }

    fn start(&mut self) {
        for (port, _) in &self.peers {
            port.send(Command::SetReady { local_slots: 1 }).expect("it is alive");
        }
        self.peers[0].0.send(Command::Start { countdown_ms: 0 }).expect("it is alive");
    }

    /// Every session is closed, and another opened.
    fn reopen(&mut self) {
        let session: ValidSessionConfig =
            SessionConfig::default().try_into().expect("the default makes sense");
        for (port, old) in &mut self.peers {
            *old = port.open_session(session.settings).expect("the queue is short");
        }
    }

    fn run(&mut self, for_ms: u64) {
        for _ in 0..for_ms / 20 {
            self.net.advance(ms(20));
            for (peer, (port, _)) in self.peers.iter().enumerate() {
                while let Some(news) = port.next_news() {
                    self.calm &= !matches!(news, MeshNews::Interrupted { .. } | MeshNews::Left { .. });
                    match news {
                        MeshNews::Message { data, .. } => self.messages.push((peer, data.clone())),
                        MeshNews::Left { peer: who, reason } => self.left.push((peer, who, reason)),
                        _ => {}
                    }
                }
            }
        }
    }

    fn news(&self, peer: usize) -> Vec<SessionNews> {
        std::iter::from_fn(|| self.peers[peer].1.next_news()).collect()
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
