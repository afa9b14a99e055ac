//! Two or three nodes shake hands over a pipe in virtual time that loses what a test wants lost.
//!
//! Fed by: seeds. Yields: verdicts. Never: a clock, a socket.

mod attacks;

use super::*;
use crate::base::Rng;
use crate::channel::seal::Seal;
use crate::config::RoomKey;
use crate::wire::handshake::Build;
use crate::wire::header::Kind;

const GUEST: usize = 1;
const HOST: usize = 0;
const DATAGRAM: usize = 1200;

#[test]
fn a_guest_joins_and_both_have_the_same_keys() {
    let mut world = World::room();
    world.join();
    world.run(2_000);
    let [host, guest] = world.keys_of_join();
    assert_same_session(&host, &guest);
    let chain = world.chain.clone();
    assert_eq!(chain.last().map(|last| last.identity), Some(world.nodes[HOST].shakes.identity().public()));
}

#[test]
fn a_join_survives_the_loss_of_any_single_datagram() {
    for k in 0.. {
        let mut world = World::room();
        world.lose(k);
        world.join();
        world.run(2_000);
        let [host, guest] = world.keys_of_join();
        assert_same_session(&host, &guest);
        if world.sent <= k {
            assert!(k >= 3, "a join takes three datagrams");
            break;
        }
    }
}

#[test]
fn a_pair_gets_keys_at_both_ends_whichever_datagram_is_lost() {
    for k in 0.. {
        let mut world = World::members();
        world.lose(k);
        world.pair();
        world.run(2_000);
        let [lower, upper] = world.keys_of_pair();
        assert_same_session(&lower, &upper);
        assert_eq!(world.nodes[1].paired.len(), 1, "several candidates and repeats make one session");
        assert!(!world.nodes[0].shakes.is_calling(peer(1)));
        if world.sent <= k {
            break;
        }
    }
}

#[test]
fn a_pair_is_called_for_as_long_as_it_takes() {
    let mut world = World::members();
    world.lose_until = Some(Instant::from_millis(60_000));
    world.pair();
    world.run(59_000);
    assert!(world.nodes[0].shakes.is_calling(peer(1)));
    assert!(world.sent < 2 * 59 * 4, "every 500 ms in the end, to two addresses: {}", world.sent);
    world.run(61_000);
    let [lower, upper] = world.keys_of_pair();
    assert_same_session(&lower, &upper);
}

#[test]
fn a_cancelled_call_is_silent() {
    let mut world = World::members();
    world.lose_until = Some(Instant::from_millis(10_000));
    world.pair();
    world.nodes[0].shakes.cancel_pair(peer(1));
    assert_eq!(world.nodes[0].shakes.poll_timeout(), None);
}

#[test]
fn a_late_copy_of_a_call_begins_nothing_new() {
    let mut world = World::members();
    world.pair();
    let call = world.flying.values().next().map(|flight| flight.bytes.clone()).expect("the call is flying");
    world.run(1_000);
    world.nodes[1].shakes.confirm_pair(peer(0));
    world.inject(1, &call);
    world.run(2_000);
    assert_eq!(world.nodes[1].paired.len(), 1);
}

#[test]
fn only_the_lower_index_is_answered() {
    let mut world = World::members();
    let upper = &mut world.nodes[1];
    upper.shakes.start_pair(peer(0), &[address(0)], Instant::ZERO, &mut upper.entropy);
    world.run(3_000);
    assert!(world.nodes[0].paired.is_empty() && world.nodes[1].paired.is_empty());
}

#[test]
fn another_game_or_build_is_named_at_both_ends_whichever_datagram_is_lost() {
    for (game, build, reason, ours, theirs) in [
        (8, 2, RefuseReason::GameId, 1, 8),
        (1, 9, RefuseReason::BuildId, 2, 9),
        (7, 9, RefuseReason::GameId, 1, 7),
    ] {
        for k in 0..6 {
            let mut world = World::with_guest_of(game, build);
            world.lose(k);
            world.join();
            world.run(6_000);
            let refusal = Refusal { reason, ours, theirs };
            assert_eq!(world.nodes[HOST].refused, [(refusal, false)], "lost {k}");
            assert_eq!(world.nodes[GUEST].refused, [(refusal.turned(), true)], "lost {k}");
            assert!(world.nodes[HOST].admissions.is_empty());
            assert_eq!(world.nodes[GUEST].shakes.poll_timeout(), None);
        }
    }
}

#[test]
fn a_refusal_of_the_node_reaches_the_guest_whichever_datagram_is_lost() {
    for k in 0..6 {
        let mut world = World::room();
        world.verdict = Verdict::Refuse;
        world.lose(k);
        world.join();
        world.run(6_000);
        let refusal = Refusal { reason: RefuseReason::RoomFull, ours: 4, theirs: 0 };
        assert_eq!(world.nodes[HOST].refused, [(refusal, false)], "lost {k}");
        assert_eq!(world.nodes[GUEST].refused, [(refusal.turned(), true)], "lost {k}");
    }
}

#[test]
fn another_wire_version_is_named_at_both_ends() {
    let mut world = World::room();
    world.version_of_guest = 2;
    world.join();
    world.run(2_000);
    let refusal = Refusal { reason: RefuseReason::WireVersion, ours: 1, theirs: 2 };
    assert_eq!(world.nodes[HOST].refused, [(refusal, false)]);
    // The pipe stamps the guest's datagrams; the guest itself is of version 1 and is told 1 by a version it takes for
    // its own, so play the guest of version 2 by hand.
    let answer = world.last_to_guest.clone().expect("the call was answered");
    let (envelope, covered, mac) = Envelope::parse(&answer).expect("well formed");
    assert_eq!((envelope.version, envelope.step), (1, step::OTHER_VERSION));
    assert!(world.nodes[GUEST].shakes.room().expect("set").is_mac(covered, mac));
    let mut newer = answer.clone();
    newer[2] = 3;
    world.restamp(&mut newer);
    world.join();
    let id = world.nodes[GUEST].shakes.join.as_ref().expect("calling").id();
    newer[4..8].copy_from_slice(&id.to_le_bytes());
    world.restamp(&mut newer);
    world.inject(GUEST, &newer);
    world.run(4_000);
    let refusal = Refusal { reason: RefuseReason::WireVersion, ours: 1, theirs: 3 };
    assert_eq!(world.nodes[GUEST].refused.last(), Some(&(refusal, true)));
}

#[test]
fn who_does_not_know_the_secret_gets_silence() {
    let mut world = World::room();
    let mut key = world.key.0;
    key[0] ^= 1;
    world.nodes[GUEST].shakes.set_room(Room::from_key(RoomKey(key)));
    world.join();
    world.run(10_000);
    let refusal = Refusal { reason: RefuseReason::NoAnswer, ours: 0, theirs: 0 };
    assert_eq!(world.nodes[GUEST].refused, [(refusal, true)]);
    assert_eq!(world.sent_by[HOST], 0);
    assert_eq!(world.nodes[HOST].shakes.stats().dropped_strangers, world.sent_by[GUEST] as u64);
    assert!(world.sent_by[GUEST] >= 10, "repeats after 100 ms, then every 500: {}", world.sent_by[GUEST]);
}

#[test]
fn a_wrong_fingerprint_is_found_by_the_guest_which_then_says_nothing_of_itself() {
    let mut world = World::room();
    let mut key = world.key.0;
    key[23] ^= 1;
    world.nodes[GUEST].shakes.set_room(Room::from_key(RoomKey(key)));
    world.join();
    world.run(10_000);
    let [(refusal, true)] = world.nodes[GUEST].refused[..] else { panic!("refused once") };
    assert_eq!(refusal.reason, RefuseReason::BadRoom);
    let low = u64::from_be_bytes(world.key.0[16..24].try_into().expect("eight"));
    assert_eq!((refusal.ours, refusal.theirs), (low ^ 1, low));
    assert_eq!(world.sent_by[GUEST], 1);
    assert!(world.nodes[HOST].admissions.is_empty());
}

#[test]
fn a_member_so_signed_lets_guests_in_and_others_cannot() {
    let mut world = World::room();
    let member = world.nodes[2].shakes.identity().public();
    let chain = world.nodes[HOST].shakes.chain_for(&member, 0).expect("the host signs");
    world.nodes[2].shakes.set_us(peer(2), chain);
    assert!(world.nodes[2].shakes.local.room.as_mut().expect("set").learn_public(world.public));
    world.join_at(2);
    world.run(2_000);
    let [host, guest] = world.keys_of_join();
    assert_same_session(&host, &guest);
    let (guest_chain, introducer) = (world.chain.clone(), member);
    assert_eq!(guest_chain.last().map(|last| last.identity), Some(introducer));

    // The same chain in the hands of somebody else.
    let mut world = World::room();
    let member = world.nodes[2].shakes.identity().public();
    let chain = world.nodes[HOST].shakes.chain_for(&member, 0).expect("the host signs");
    world.nodes[3].shakes.set_us(peer(3), chain);
    assert!(world.nodes[3].shakes.local.room.as_mut().expect("set").learn_public(world.public));
    world.join_at(3);
    world.run(2_000);
    assert!(matches!(
        world.nodes[GUEST].refused[..],
        [(Refusal { reason: RefuseReason::BadRoom, .. }, true)]
    ));
}

#[test]
fn the_smallest_datagram_carries_a_chain_of_three_and_a_longer_one_stays_unsent() {
    for (links, joins) in [(1, true), (3, true), (4, false)] {
        let mut world = World::of_datagrams(1, 2, 600);
        let room = world.nodes[HOST].shakes.local.room.take().expect("set");
        let mut entropy = Rng::new(9);
        let people: Vec<_> = (1..links).map(|_| Identity::generate(&mut entropy)).collect();
        let us = world.nodes[HOST].shakes.identity().public();
        let chain: Vec<_> = (0..links)
            .map(|i| {
                let subject = people.get(i).map_or(us, Identity::public);
                match i.checked_sub(1) {
                    None => room.certify(&subject, 0).expect("ours"),
                    Some(before) => room.certify_as(&people[before], &subject, 0),
                }
            })
            .collect();
        assert_eq!(room.verify(&chain, 0), Some(us));
        world.nodes[HOST].shakes.local.room = Some(room);
        world.nodes[HOST].shakes.set_us(peer(0), chain);
        world.join();
        world.run(10_000);
        assert_eq!(world.nodes[GUEST].joined.len() == 1, joins, "{links} links");
        assert_eq!(world.nodes[HOST].admissions.len() == 1, joins);
    }
}

#[test]
fn the_golden_answer_of_the_protocol_text() {
    let room = Room::from_key(RoomKey(std::array::from_fn(|i| i as u8)));
    let mut bytes = Vec::new();
    let id = 0x0403_0201;
    Envelope { sender: 2, version: 1, step: step::OTHER_VERSION, id, body: &[] }.emit(&mut bytes);
    let mac = room.mac(&bytes);
    bytes.extend_from_slice(&mac);
    let all = [&room.id()[..], &bytes].concat();
    assert_eq!(
        format!("{all:02x?}").replace([',', ' ', '[', ']'], ""),
        "bbeb5015b0dd1b69a002010701020304bcfe1fa67b37f784a261c5422d2ce570"
    );
}

#[test]
fn a_chain_is_believed_up_to_four_links_until_it_expires() {
    let mut entropy = Rng::new(5);
    let room = Room::create(&mut entropy);
    let people: Vec<_> = (0..6).map(|_| Identity::generate(&mut entropy)).collect();
    let mut chain = vec![room.certify(&people[0].public(), 1_000).expect("ours")];
    for pair in people.windows(2) {
        assert_eq!(room.verify(&chain, 1_000), (chain.len() <= 4).then(|| pair[0].public()));
        assert_eq!(room.verify(&chain, 1_001), None, "expired");
        assert_eq!(room.verify(&chain[1..], 0), None, "does not begin at the room key");
        chain.push(room.certify_as(&pair[0], &pair[1].public(), 2_000));
    }
    chain.truncate(2);
    chain[1].identity.noise[0] ^= 1;
    assert_eq!(room.verify(&chain, 0), None, "another key under the signature");
    assert_eq!(room.verify(&[], 0), None);
}

#[test]
fn a_guest_that_starts_again_at_the_same_address_is_asked_about_anew() {
    let mut world = World::room();
    world.join();
    world.run(1_000);
    world.join();
    world.run(2_000);
    assert_eq!(world.nodes[HOST].admissions.len(), 2);
    let [host, guest] = world.keys_of_join();
    assert_same_session(&host, &guest);
}

#[test]
fn half_open_handshakes_are_bounded_and_short_lived() {
    let mut world = World::room();
    for _ in 0..100 {
        world.join();
    }
    world.lose_from_guest_step = Some(step::FINISH);
    world.run(500);
    // Nine without a question, the last with a cookie.
    assert_eq!(world.nodes[HOST].shakes.introductions.len(), 10);
    world.run(20_000);
    assert_eq!(world.nodes[HOST].shakes.introductions.len(), 0);
    assert_eq!(world.nodes[HOST].shakes.poll_timeout(), None);
}

#[test]
fn no_answer_is_longer_than_its_cause_and_no_cut_datagram_is_answered() {
    let mut world = World::room();
    world.join();
    let call = world.flying.values().next().map(|flight| flight.bytes.clone()).expect("the call is flying");
    world.flying.clear();
    world.nodes[GUEST].shakes.confirm_join(); // no repeats
    for len in 0..call.len() {
        world.inject(HOST, &call[..len]);
        let mut cut = call[..len].to_vec();
        if len > MAC_SIZE {
            cut.truncate(len - MAC_SIZE);
            world.restamp_end(&mut cut);
            world.inject(HOST, &cut);
        }
    }
    world.run(400);
    let greetings = |world: &World| world.seen.iter().filter(|(_, bytes)| bytes[3] == step::GREETING).count();
    assert_eq!(greetings(&world), 0, "cut calls make no sense");
    world.run(5_000);
    world.inject(HOST, &call);
    world.run(5_500);
    assert_eq!(greetings(&world), 1);
    assert!(world.last_to_guest.expect("answered").len() <= call.len());
}

#[test]
fn after_a_timeout_the_next_one_lies_ahead() {
    let mut world = World::members();
    world.lose_until = Some(Instant::from_millis(60_000));
    world.pair();
    world.join();
    while let Some(at) = world.nodes.iter().filter_map(|node| node.shakes.poll_timeout()).min() {
        if at > Instant::from_millis(20_000) {
            break;
        }
        for node in &mut world.nodes {
            node.shakes.handle_timeout(at, &mut node.entropy);
            assert!(node.shakes.poll_timeout().is_none_or(|next| next > at));
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn any_bytes_of_who_knows_the_room_are_survived(
        kind in 1u8..9, mut body in proptest::collection::vec(0u8..=255, 0..300), id: u32, sender in 0u8..18,
    ) {
        let mut world = World::members();
        world.join();
        world.pair();
        let id = if id % 2 == 0 { world.nodes[GUEST].shakes.join.as_ref().map_or(id, join::Join::id) } else { id };
        if let Some(first) = body.first_mut() {
            *first %= 4;
        }
        let mut bytes = Vec::new();
        Envelope { sender, version: VERSION, step: kind, id, body: &body }.emit(&mut bytes);
        world.restamp_end(&mut bytes);
        for to in 0..world.nodes.len() {
            world.inject(to, &bytes);
        }
        world.run(3_000);
        let [host, guest] = world.keys_of_join();
        assert_same_session(&host, &guest);
    }
}

// ---- helpers ----

#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Accept,
    Refuse,
}

struct Node {
    shakes: Handshakes,
    entropy: Rng,
    refused: Vec<(Refusal, bool)>,
    admissions: Vec<MemberIdentity>,
    joined: Vec<SessionKeys>,
    paired: Vec<SessionKeys>,
}

struct Flight {
    from: Addr,
    to: usize,
    bytes: Vec<u8>,
}

struct World {
    nodes: Vec<Node>,
    now: Instant,
    flying: std::collections::BTreeMap<(Instant, u64), Flight>,
    order: u64,
    sent: usize,
    sent_by: [usize; 4],
    bytes_sent: usize,
    /// Everything that was sent, for those who listen on the path.
    seen: Vec<(usize, Vec<u8>)>,
    lost: Option<usize>,
    lost_one: Option<(usize, Vec<u8>)>,
    lose_until: Option<Instant>,
    lose_from_guest_step: Option<u8>,
    version_of_guest: u8,
    verdict: Verdict,
    key: RoomKey,
    public: [u8; 32],
    chain: Vec<Certificate>,
    last_to_guest: Option<Vec<u8>>,
}

fn peer(index: u8) -> PeerIndex {
    PeerIndex::new(index).expect("below 16")
}

fn address(node: usize) -> Addr {
    Addr::opaque(&[b'a' + node as u8]).expect("one byte")
}

/// A second address of the same node.
fn other_address(node: usize) -> Addr {
    Addr::opaque(&[b'a' + node as u8, b'2']).expect("two bytes")
}

fn assert_same_session(one: &SessionKeys, other: &SessionKeys) {
    assert_eq!((one.send, one.receive), (other.receive, other.send));
    assert_ne!(one.send, one.receive);
    assert_eq!(one.cipher, other.cipher);
    let mut packet = vec![Kind::Data.first_byte(), 7];
    Seal::new(one, Instant::ZERO).seal(1, 1, &mut packet);
    let mut other = Seal::new(other, Instant::ZERO);
    assert_eq!(other.open(false, 1, 1, &mut packet, Instant::ZERO), Some(&[7][..]));
}

impl World {
    fn room() -> Self {
        Self::with_guest_of(1, 2)
    }

    fn with_guest_of(game: u64, build: u64) -> Self {
        Self::of_datagrams(game, build, DATAGRAM)
    }

    fn of_datagrams(game: u64, build: u64, max_datagram: usize) -> Self {
        let mut entropy = Rng::new(77);
        let room = Room::create(&mut entropy);
        let (key, public) = (room.key(), room.public().expect("just made"));
        let mut nodes: Vec<_> = (0..4)
            .map(|i| {
                let mut entropy = Rng::new(1000 + i);
                let identity = Identity::generate(&mut entropy);
                let (game, build) = if i == GUEST as u64 { (game, build) } else { (1, 2) };
                let hello = Hello { build: Build { game_id: game, build_id: build }, has_aes: true };
                let mut shakes = Handshakes::new(identity, hello, 0, max_datagram);
                shakes.set_room(Room::from_key(key));
                Node {
                    shakes,
                    entropy,
                    refused: Vec::new(),
                    admissions: Vec::new(),
                    joined: Vec::new(),
                    paired: Vec::new(),
                }
            })
            .collect();
        let host = &mut nodes[HOST].shakes;
        host.set_room(room);
        let chain = host.chain_for(&host.identity().public(), 0).expect("the room is its own");
        host.set_us(peer(0), chain);
        Self {
            nodes,
            now: Instant::ZERO,
            flying: std::collections::BTreeMap::new(),
            order: 0,
            sent: 0,
            sent_by: [0; 4],
            bytes_sent: 0,
            seen: Vec::new(),
            lost: None,
            lost_one: None,
            lose_until: None,
            lose_from_guest_step: None,
            version_of_guest: VERSION,
            verdict: Verdict::Accept,
            key,
            public,
            chain: Vec::new(),
            last_to_guest: None,
        }
    }

    /// Nodes 0 and 1 know each other as members; the guest of `join` calls as a stranger all the same.
    fn members() -> Self {
        let mut world = Self::room();
        let identities: Vec<_> = world.nodes.iter().map(|node| node.shakes.identity().public()).collect();
        for (us, node) in world.nodes.iter_mut().enumerate() {
            if us != HOST {
                node.shakes.set_us(peer(us as u8), Vec::new());
            }
            for (index, identity) in identities.iter().enumerate().filter(|(index, _)| *index != us) {
                node.shakes.set_member(peer(index as u8), *identity);
            }
        }
        world
    }

    fn lose(&mut self, k: usize) {
        self.lost = Some(k);
    }

    fn join(&mut self) {
        self.join_at(HOST);
    }

    fn join_at(&mut self, introducer: usize) {
        let guest = &mut self.nodes[GUEST];
        guest.shakes.start_join(address(introducer), self.now, &mut guest.entropy);
        self.settle(GUEST);
    }

    fn pair(&mut self) {
        let lower = &mut self.nodes[0];
        let candidates = [address(1), other_address(1)];
        lower.shakes.start_pair(peer(1), &candidates, self.now, &mut lower.entropy);
        self.settle(0);
    }

    fn keys_of_join(&mut self) -> [SessionKeys; 2] {
        let host =
            self.nodes.iter_mut().enumerate().filter(|(i, _)| *i != GUEST).find_map(|(_, n)| n.joined.pop());
        [host.expect("the host has keys"), self.nodes[GUEST].joined.pop().expect("the guest has keys")]
    }

    fn keys_of_pair(&mut self) -> [SessionKeys; 2] {
        let keys = |node: &Node| {
            node.paired.last().map(|k| SessionKeys { send: k.send, receive: k.receive, cipher: k.cipher })
        };
        [keys(&self.nodes[0]).expect("lower has keys"), keys(&self.nodes[1]).expect("upper has keys")]
    }

    fn inject(&mut self, to: usize, bytes: &[u8]) {
        self.order += 1;
        let from = address(if to == GUEST { HOST } else { GUEST });
        self.flying.insert((self.now, self.order), Flight { from, to, bytes: bytes.to_vec() });
    }

    fn inject_from(&mut self, from: Addr, to: usize, bytes: &[u8]) {
        self.order += 1;
        self.flying.insert((self.now, self.order), Flight { from, to, bytes: bytes.to_vec() });
    }

    fn restamp(&self, bytes: &mut Vec<u8>) {
        bytes.truncate(bytes.len() - MAC_SIZE);
        self.restamp_end(bytes);
    }

    fn restamp_end(&self, bytes: &mut Vec<u8>) {
        let mac = Room::from_key(self.key).mac(bytes);
        bytes.extend_from_slice(&mac);
    }

    fn run(&mut self, until_ms: u64) {
        let end = Instant::from_millis(until_ms);
        loop {
            let timers = self.nodes.iter().filter_map(|node| node.shakes.poll_timeout());
            let next = timers.chain(self.flying.keys().map(|key| key.0)).min();
            let Some(next) = next.filter(|&at| at <= end) else {
                break;
            };
            self.now = self.now.max(next);
            while let Some((key, flight)) = self.flying.pop_first() {
                if key.0 > self.now {
                    self.flying.insert(key, flight);
                    break;
                }
                let node = &mut self.nodes[flight.to];
                node.shakes.handle_datagram(flight.from, &flight.bytes, self.now, &mut node.entropy);
                let before = self.bytes_sent;
                self.settle(flight.to);
                let answer = self.bytes_sent - before;
                assert!(answer <= flight.bytes.len(), "t41: {answer} bytes for {}", flight.bytes.len());
            }
            for node in 0..self.nodes.len() {
                let Node { shakes, entropy, .. } = &mut self.nodes[node];
                shakes.handle_timeout(self.now, entropy);
                self.settle(node);
            }
        }
        self.now = end;
    }

    fn settle(&mut self, index: usize) {
        while let Some(output) = self.nodes[index].shakes.poll_output() {
            let verdict = self.verdict;
            let node = &mut self.nodes[index];
            match output {
                Output::Transmit { to, bytes } => self.transmit(index, to, bytes),
                Output::Admission { id, identity, .. } => {
                    node.admissions.push(identity);
                    if verdict == Verdict::Accept {
                        node.joined.push(node.shakes.accept(id).expect("asked just now"));
                        assert!(node.shakes.accept(id).is_none(), "a verdict is given once");
                        let guest = &mut self.nodes[GUEST].shakes;
                        assert_eq!(guest.identity().public(), identity);
                        // Its first packet would tell the guest so.
                        guest.confirm_join();
                    } else {
                        node.shakes.refuse(id, RefuseReason::RoomFull, 4, 0);
                    }
                }
                Output::Joined { keys, introducer, chain, .. } => {
                    assert_eq!(chain.last().map(|last| last.identity), Some(introducer));
                    node.joined.push(keys);
                    self.chain = chain;
                }
                Output::Paired { keys, .. } => node.paired.push(keys),
                Output::Refused { refusal, us, .. } => node.refused.push((refusal, us)),
            }
        }
    }

    fn transmit(&mut self, from: usize, to: Addr, mut bytes: Vec<u8>) {
        assert!(bytes.len() <= DATAGRAM);
        let k = self.sent;
        self.sent += 1;
        self.sent_by[from] += 1;
        self.bytes_sent += bytes.len();
        let step = bytes[3];
        if self.lost == Some(k) {
            let to = (0..self.nodes.len()).find(|&node| to == address(node) || to == other_address(node));
            self.lost_one = to.map(|to| (to, bytes.clone()));
        }
        if self.lost == Some(k)
            || self.lose_until.is_some_and(|until| self.now < until)
            || (from == GUEST && self.lose_from_guest_step == Some(step))
        {
            return;
        }
        if from == GUEST && self.version_of_guest != VERSION {
            bytes[2] = self.version_of_guest;
            self.restamp(&mut bytes);
        }
        let Some(to) = (0..self.nodes.len()).find(|&node| to == address(node) || to == other_address(node))
        else {
            return;
        };
        self.seen.push((to, bytes.clone()));
        if to == GUEST {
            self.last_to_guest = Some(bytes.clone());
        }
        self.order += 1;
        let from = address(from);
        self.flying.insert((self.now + Duration::from_millis(10), self.order), Flight { from, to, bytes });
    }
}
