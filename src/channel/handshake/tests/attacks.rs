//! Whoever copies, replays, cuts, changes or floods: nobody gets in by it, nobody is kept out by it, nothing grows.
//!
//! Fed by: what was seen on the path, seeds. Yields: verdicts. Never: a clock, a socket.

use super::*;
use crate::channel::crypto::Cipher;
use crate::wire::handshake::{COOKIE_SIZE, MAX_GREETING, PREFIX};

fn stranger(number: u16) -> Addr {
    Addr::ip(std::net::SocketAddr::from(([198, 51, 100, 9], number)))
}

impl World {
    fn with_aes(host: bool, guest: bool) -> Self {
        let mut world = Self::members();
        world.nodes[HOST].shakes.local.hello.has_aes = host;
        world.nodes[GUEST].shakes.local.hello.has_aes = guest;
        world
    }

    /// Calls of somebody who knows the room, each with another id.
    fn calls(&mut self, count: usize) -> Vec<Vec<u8>> {
        let caller = &mut self.nodes[3];
        (0..count)
            .map(|_| {
                caller.shakes.start_join(address(HOST), self.now, &mut caller.entropy);
                let call =
                    std::iter::from_fn(|| caller.shakes.poll_output()).find_map(|output| match output {
                        Output::Transmit { bytes, .. } => Some(bytes),
                        _ => None,
                    });
                caller.shakes.confirm_join();
                call.expect("a call is sent at once")
            })
            .collect()
    }

    fn is_joined(&self) -> bool {
        !self.nodes[GUEST].joined.is_empty()
    }
}

#[test]
fn packets_are_sealed_with_aes_only_where_both_ends_have_it_in_hardware() {
    for (host, guest) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut world = World::with_aes(host, guest);
        world.join();
        world.pair();
        world.run(2_000);
        for [one, other] in [world.keys_of_join(), world.keys_of_pair()] {
            assert_same_session(&one, &other);
            assert_eq!(one.cipher == Cipher::Aes256Gcm, host && guest, "{host} {guest}");
        }
    }
}

#[test]
fn nobody_on_the_path_changes_the_cipher_or_anything_else() {
    // An attacker who even knows the room's mac key: every byte of every datagram behind the envelope, one at a time.
    for join in [true, false] {
        let lengths: Vec<usize> = {
            let mut world = World::members();
            if join {
                world.join();
            } else {
                world.pair();
            }
            world.run(90);
            world.seen.iter().map(|(_, bytes)| bytes.len()).collect()
        };
        for (k, len) in lengths.into_iter().enumerate() {
            for at in (PREFIX..len - MAC_SIZE).step_by(if len > 300 { 41 } else { 3 }) {
                let mut world = World::members();
                world.lose(k);
                if join {
                    world.join();
                } else {
                    world.pair();
                }
                for until in 0..9 {
                    world.run(10 * until + 9);
                    if world.sent > k {
                        break;
                    }
                }
                let (to, mut changed) = world.lost_one.clone().expect("it was sent");
                changed[at] ^= 1;
                world.restamp(&mut changed);
                world.inject_from(address(if to == HOST { GUEST } else { HOST }), to, &changed);
                world.run(3_000);
                let [one, other] = if join { world.keys_of_join() } else { world.keys_of_pair() };
                assert_same_session(&one, &other);
                assert_eq!(one.cipher, Cipher::Aes256Gcm, "{k} {at}");
            }
        }
    }
}

#[test]
fn t42_who_joins_during_a_flood_gets_a_cookie_and_gets_in() {
    let mut world = World::room();
    let flood = world.calls(1000);
    // 500 a second, all from the guest's own house.
    for (i, call) in flood.iter().enumerate() {
        if i == 300 {
            world.join();
        }
        world.inject_from(stranger(i as u16), HOST, call);
        world.run(2 * (i as u64 + 1));
    }
    assert!(world.is_joined(), "by {} cookies", world.nodes[HOST].shakes.stats().cookies);
    assert!(world.nodes[HOST].shakes.introductions.len() <= crate::base::limits::MAX_HANDSHAKES);
    let stats = world.nodes[HOST].shakes.stats();
    assert!((900..1000).contains(&stats.cookies), "every call is answered: {}", stats.cookies);
}

#[test]
fn t42_a_member_calls_through_during_a_flood() {
    let mut world = World::members();
    let flood = world.calls(200);
    for node in [0, 1] {
        let chain = world.nodes[HOST].shakes.local.chain.clone();
        world.nodes[node].shakes.set_us(peer(node as u8), chain);
    }
    assert!(world.nodes[1].shakes.local.room.as_mut().expect("set").learn_public(world.public));
    for (i, call) in flood.iter().enumerate() {
        if i == 100 {
            world.pair();
        }
        world.inject_from(stranger(i as u16), 1, call);
        world.run(2 * (i as u64 + 1));
    }
    world.run(1_000);
    let [lower, upper] = world.keys_of_pair();
    assert_same_session(&lower, &upper);
    assert!(world.seen.iter().any(|(to, bytes)| *to == 0 && bytes[3] == step::COOKIE));
}

#[test]
fn t43_a_copied_call_that_comes_first_cannot_finish_and_hinders_nobody() {
    let mut world = World::members();
    world.join();
    world.pair();
    let copies: Vec<_> = world.flying.values().map(|flight| (flight.to, flight.bytes.clone())).collect();
    for (to, bytes) in &copies {
        world.inject_from(stranger(1), *to, bytes);
    }
    world.run(5);
    assert!(world.nodes[HOST].admissions.is_empty() && world.nodes[HOST].joined.is_empty());
    world.run(2_000);
    for [one, other] in [world.keys_of_join(), world.keys_of_pair()] {
        assert_same_session(&one, &other);
    }
    assert_eq!((world.nodes[HOST].admissions.len(), world.nodes[1].paired.len()), (1, 1));
}

#[test]
fn a_replayed_pair_call_never_makes_keys_again() {
    let mut world = World::members();
    world.pair();
    world.run(1_000);
    world.nodes[1].shakes.confirm_pair(peer(0));
    world.pair();
    world.run(2_000);
    let calls: Vec<_> =
        world.seen.iter().filter(|(to, _)| *to == 1).map(|(_, bytes)| bytes.clone()).collect();
    assert!(calls.len() >= 4, "two calls to two addresses");
    for wait_ms in [1, 4_000, 9_000] {
        for call in &calls {
            world.inject_from(stranger(7), 1, call);
        }
        world.run(2_000 + wait_ms);
    }
    assert_eq!(world.nodes[1].paired.len(), 2);
    assert_eq!(world.nodes[1].shakes.poll_timeout(), None, "nothing is kept for it");
}

#[test]
fn two_members_that_call_each_other_get_one_session_by_the_lower_ones_call() {
    for first in [0, 1] {
        let mut world = World::members();
        for caller in [first, 1 - first] {
            let node = &mut world.nodes[caller];
            node.shakes.start_pair(
                peer(1 - caller as u8),
                &[address(1 - caller)],
                world.now,
                &mut node.entropy,
            );
            world.settle(caller);
        }
        world.run(500);
        assert_eq!((world.nodes[0].paired.len(), world.nodes[1].paired.len()), (1, 1));
        let [lower, upper] = world.keys_of_pair();
        assert_same_session(&lower, &upper);
    }
}

#[test]
fn another_game_or_build_is_named_at_both_ends_of_a_pair() {
    for (game, build, reason, ours, theirs) in
        [(8, 2, RefuseReason::GameId, 1, 8), (1, 9, RefuseReason::BuildId, 2, 9)]
    {
        let mut world = World::members();
        world.nodes[GUEST].shakes.local.hello.build = Build { game_id: game, build_id: build };
        world.pair();
        world.run(2_000);
        let refusal = Refusal { reason, ours, theirs };
        assert_eq!(world.nodes[0].refused, [(refusal, true)]);
        assert_eq!(world.nodes[1].refused, [(refusal.turned(), false)]);
        assert!(world.nodes.iter().all(|node| node.paired.is_empty()));
    }
}

#[test]
fn a_call_that_nobody_answers_is_made_anew_and_the_old_answer_outlives_it() {
    let mut world = World::members();
    world.lose_until = Some(Instant::from_millis(3_900));
    world.pair();
    // The first call arrives just before it is given up; its answer is lost, too.
    world.run(4_000);
    world.lose_until = Some(Instant::from_millis(4_015));
    world.run(20_000);
    let [lower, upper] = world.keys_of_pair();
    assert_same_session(&lower, &upper);
    let ids: std::collections::BTreeSet<_> =
        world.seen.iter().filter(|(to, _)| *to == 1).map(|(_, bytes)| bytes[4..8].to_vec()).collect();
    assert!(!ids.is_empty());
}

#[test]
fn t44_t41_datagrams_cut_at_every_byte_are_survived_and_never_amplified() {
    let mut world = World::members();
    world.verdict = Verdict::Refuse;
    world.version_of_guest = 2;
    world.join();
    world.run(50);
    world.version_of_guest = VERSION;
    world.join();
    world.pair();
    world.run(2_000);
    let call = world.calls(1).remove(0);
    for _ in 0..60 {
        world.inject_from(stranger(1), HOST, &call);
        let other = world.calls(1).remove(0);
        world.inject_from(stranger(2), HOST, &other);
    }
    world.run(2_100);
    let mut by_step = std::collections::BTreeMap::new();
    let answers = world.seen.iter().map(|(_, bytes)| bytes.clone()).chain([call]);
    for bytes in answers {
        by_step.entry(bytes[3]).or_insert(bytes);
    }
    // The cookies went to a stranger, whom the pipe does not know.
    let cookie = world.nodes[HOST].shakes.local.datagram(step::COOKIE, 7, &[9; COOKIE_SIZE]);
    by_step.insert(step::COOKIE, cookie);
    let steps: Vec<u8> = by_step.keys().copied().collect();
    assert_eq!(steps, (step::CALL..=step::COOKIE).collect::<Vec<_>>(), "every kind is among them");
    let sent = world.sent;
    for bytes in by_step.values() {
        for len in 0..bytes.len() {
            let mut stamped = bytes[..len].to_vec();
            world.restamp_end(&mut stamped);
            for to in 0..world.nodes.len() {
                // The pipe asserts T41 on every one.
                world.inject_from(stranger(3), to, &bytes[..len]);
                world.inject_from(stranger(3), to, &stamped);
            }
            world.run(2_100 + len as u64 / 4);
        }
    }
    assert!(world.sent - sent < 3_000, "{} answers", world.sent - sent);
    world.run(60_000);
    world.verdict = Verdict::Accept;
    world.join();
    world.run(62_000);
    let [host, guest] = world.keys_of_join();
    assert_same_session(&host, &guest);
}

#[test]
fn t23_junk_from_a_thousand_ports_gets_no_answer_and_leaves_nothing() {
    let mut world = World::members();
    let mut rng = Rng::new(23);
    let host = &mut world.nodes[HOST];
    for i in 0..100_000_u32 {
        let mut junk = vec![0; rng.below(1501) as usize];
        rng.fill(&mut junk);
        if let Some(first) = junk.first_mut() {
            *first = 0xa0;
        }
        let from = stranger((i % 1000) as u16);
        host.shakes.handle_datagram(from, &junk, Instant(u64::from(i)), &mut host.entropy);
        assert!(host.shakes.poll_output().is_none());
    }
    let stats = host.shakes.stats();
    assert_eq!((stats.dropped_strangers + stats.dropped_malformed, stats.cookies), (100_000, 0));
    assert_eq!((host.shakes.introductions.len(), host.shakes.poll_timeout()), (0, None));
    world.join();
    world.run(500);
    assert!(world.is_joined());
}

#[test]
fn cookies_make_a_caller_send_no_more_than_once() {
    let mut world = World::room();
    world.lose_until = Some(Instant::from_millis(60_000));
    world.join();
    let (id, sent) = (world.nodes[GUEST].shakes.join.as_ref().expect("calling").id(), world.sent);
    for i in 0..50 {
        let cookie = world.nodes[HOST].shakes.local.datagram(step::COOKIE, id, &[i; COOKIE_SIZE]);
        world.inject_from(address(HOST), GUEST, &cookie);
        world.inject_from(stranger(1), GUEST, &cookie);
    }
    world.run(90);
    assert_eq!(world.sent, sent + 1);
    assert!(world.nodes[HOST].shakes.local.datagram(step::COOKIE, id, &[0; COOKIE_SIZE]).len() < 98);
    const { assert!(MAX_GREETING <= DATAGRAM) };
}

#[test]
fn t38_handshakes_never_seal_twice_with_one_key_and_nonce_nor_share_a_key_with_packets() {
    crate::channel::crypto::record::begin();
    let mut world = World::members();
    let mut packets = std::collections::BTreeSet::new();
    for round in 0..30 {
        world.verdict = if round % 3 == 0 { Verdict::Refuse } else { Verdict::Accept };
        world.join();
        world.pair();
        world.run(world.now.0 / 1000 + 700);
        if round % 3 != 0 {
            let [host, guest] = world.keys_of_join();
            packets.extend([host.send, guest.send]);
        }
        let [lower, upper] = world.keys_of_pair();
        packets.extend([lower.send, upper.send]);
    }
    let sealed = crate::channel::crypto::record::end();
    assert!(sealed.len() > 200 && packets.len() == 100, "{} {}", sealed.len(), packets.len());
    let keys: std::collections::BTreeSet<_> = sealed.iter().map(|(key, _)| *key).collect();
    assert!(keys.is_disjoint(&packets), "no key of a packet sealed a handshake");
}
