//! What came and what was sent, over a path that reorders deeply and loses, in virtual time: loss is found, and not invented.
//!
//! Fed by: seeds. Yields: verdicts. Never: a channel; only counters and bits cross.

use super::ack::{Incoming, Outgoing};
use crate::base::limits::{MAX_SENT_RING, SENT_RING};
use crate::base::{Instant, Rng};
use crate::wire::ext_ack::ExtAck;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Twelve packets are acknowledged at once, as the channel does.
const ACK_AFTER: u8 = 12;
const REORDERING: Duration = Duration::from_millis(25);

/// What the sender made of a burst.
#[derive(Debug, Default)]
struct Burst {
    sent: u64,
    truly_lost: BTreeSet<u64>,
    told_lost: BTreeSet<u64>,
    told_arrived: BTreeSet<u64>,
    acks: u64,
    deepest: u64,
    end: u64,
}

impl Burst {
    fn told_wrongly(&self) -> usize {
        self.told_lost.difference(&self.truly_lost).count()
    }
}

/// `count` packets, `every` µs apart, 50 ± 10 ms each way; the acks are lost as the packets are.
fn burst(seed: u64, start: u64, count: u64, every: u64, loss_ppm: u32, extended: bool) -> Burst {
    let mut rng = Rng::new(seed ^ 0xacc);
    let (mut incoming, mut outgoing) = (Incoming::default(), Outgoing::new());
    incoming.start_at(start);
    outgoing.start_at(start);
    let mut packets = BTreeSet::new();
    let mut acks: BTreeMap<(u64, u64), (u16, u32, Option<ExtAck>)> = BTreeMap::new();
    let mut told = Burst::default();
    let mut heartbeat = 0;
    for now in (0_u64..).step_by(every as usize) {
        if told.sent < count {
            told.sent += 1;
            let counter = outgoing.next_counter(Instant(now));
            if rng.chance_ppm(loss_ppm) {
                told.truly_lost.insert(counter);
            } else {
                packets.insert((now + 40_000 + rng.below(20_000), counter));
            }
        }
        while let Some((at, counter)) = packets.first().copied().filter(|&(at, _)| at <= now) {
            packets.pop_first();
            if incoming.is_fresh(counter) {
                told.deepest = told.deepest.max(incoming.newest().saturating_sub(counter));
                incoming.commit(counter, Instant(at));
            }
            if incoming.uncovered() >= ACK_AFTER {
                heartbeat = at;
            }
        }
        if heartbeat <= now {
            heartbeat = now + 50_000;
            let ext = incoming.extended().filter(|_| extended);
            let (ack, bits) = incoming.ack();
            incoming.note_told(true);
            told.acks += 1;
            if !rng.chance_ppm(loss_ppm) {
                acks.insert((now + 40_000 + rng.below(20_000), told.acks), (ack, bits, ext));
            }
        }
        while let Some(entry) = acks.first_entry().filter(|entry| entry.key().0 <= now) {
            let (ack, bits, ext) = entry.remove();
            let mut arrived = |packet| assert!(told.told_arrived.insert(packet), "{packet} arrived twice");
            outgoing.handle_ack(ack, bits, Instant(now), &mut arrived);
            if let Some(ext) = ext {
                outgoing.handle_extended(ack, &ext, Instant(now), &mut arrived);
            }
            outgoing.settle(Instant(now), REORDERING, |packet| {
                assert!(told.told_lost.insert(packet), "{packet} was lost twice");
            });
        }
        if (told.told_arrived.len() + told.truly_lost.len()) as u64 >= count || now > 5_000_000 {
            told.end = now;
            break;
        }
    }
    told
}

#[test]
fn packets_that_overtake_each_other_by_a_hundred_are_not_taken_for_lost() {
    for seed in 0..20 {
        for start in [0, 65_000, (1 << 32) - 700] {
            let seen = burst(seed, start, 1_500, 160, 0, true);
            assert!(seen.deepest > 64, "seed {seed}: {}", seen.deepest);
            assert!(seen.told_lost.is_empty(), "seed {seed} from {start}: {:?}", seen.told_lost);
            assert_eq!(seen.told_arrived.len(), 1_500, "seed {seed} from {start}");
        }
    }
    let without = burst(0, 0, 1_500, 160, 0, false);
    assert!(without.told_lost.len() > 300, "32 bits do not do: {}", without.told_lost.len());
}

#[test]
fn what_is_lost_of_a_burst_is_found_and_hardly_anything_else() {
    for seed in 0..20 {
        let seen = burst(seed, 65_000, 3_000, 160, 50_000, true);
        let found = seen.told_lost.intersection(&seen.truly_lost).count();
        // The last ones have nobody behind them who could prove it.
        assert!(found + 20 >= seen.truly_lost.len() && found > 100, "seed {seed}: {found}");
        assert!(seen.told_wrongly() <= 6, "seed {seed}: {} of 3000", seen.told_wrongly());
        assert!(seen.end < 5_000_000, "seed {seed}: every arrival was told in the end");
    }
}

#[test]
fn the_ring_grows_with_what_is_under_way_keeps_it_and_ends_at_its_bound() {
    let mut outgoing = Outgoing::new();
    let at = |counter: u64| Instant(counter * 100);
    for _ in 0..=SENT_RING {
        let next = outgoing.newest() + 1;
        outgoing.next_counter(at(next));
    }
    assert_eq!(outgoing.ring(), 2 * SENT_RING);
    for _ in 0..10_000 {
        let next = outgoing.newest() + 1;
        outgoing.next_counter(at(next));
    }
    assert_eq!(outgoing.ring(), MAX_SENT_RING);
    let newest = outgoing.newest();
    let mut arrived = Vec::new();
    for counter in [newest - MAX_SENT_RING as u64 + 1, newest - 300, newest - MAX_SENT_RING as u64] {
        outgoing.handle_ack(counter as u16, 0, at(newest), |packet| arrived.push(packet));
    }
    // The last one is forgotten.
    assert_eq!(arrived, [newest - MAX_SENT_RING as u64 + 1, newest - 300]);
}

#[test]
fn a_peer_that_fell_silent_makes_no_ring_grow() {
    let mut outgoing = Outgoing::new();
    for frame in 0..2_000 {
        outgoing.next_counter(Instant(frame * 16_667));
    }
    assert_eq!(outgoing.ring(), SENT_RING);
}

#[test]
fn extended_bits_go_after_a_burst_or_a_latecomer_and_once_more() {
    let mut incoming = Incoming::default();
    let mut next = 0;
    let mut come = |incoming: &mut Incoming, count| {
        for _ in 0..count {
            next += 1;
            if next != 40 {
                incoming.commit(next, Instant::ZERO);
            }
        }
    };
    let tells = |incoming: &mut Incoming| {
        let extended = incoming.extended().is_some();
        incoming.note_told(true);
        extended
    };
    come(&mut incoming, 30);
    assert!(!tells(&mut incoming), "the header says it all");
    come(&mut incoming, 20);
    assert!(tells(&mut incoming) && tells(&mut incoming) && !tells(&mut incoming));
    for _ in 0..10 {
        come(&mut incoming, 6);
        assert!(!tells(&mut incoming), "a calm link never has them");
    }
    incoming.commit(40, Instant::ZERO);
    incoming.note_told(false);
    assert!(tells(&mut incoming), "what found no room comes in the next");
    assert!(!tells(&mut incoming));
    incoming.commit(incoming.newest() - 40, Instant::ZERO);
    assert!(tells(&mut incoming) && tells(&mut incoming), "the header does not reach a latecomer");
    assert!(!tells(&mut incoming));
}
