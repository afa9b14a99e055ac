//! Both ends of a transfer over a seeded lossy path in virtual time, a link made anew, and hostile parts.
use super::*;
use crate::base::{Instant, Rng};
use crate::wire::bulk::{HASH_SIZE, Key, Part};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_millis(250);
const ONE_WAY: u64 = 50;

/// One packet of one part a turn of 250 µs, lost by seed; fates come back a round trip later.
struct Path {
    rng: Rng,
    packet: u64,
    now: u64,
    arriving: Vec<(u64, u8, Vec<u8>)>,
    fates: Vec<(u64, u64, bool)>,
    answers: Vec<(u64, u8, Vec<u8>)>,
    bytes: usize,
}

impl Path {
    fn new(seed: u64) -> Self {
        let (arriving, fates, answers) = (Vec::new(), Vec::new(), Vec::new());
        Self { rng: Rng::new(seed), packet: 0, now: 0, arriving, fates, answers, bytes: 0 }
    }

    fn one_way(&mut self) -> u64 {
        self.now + (ONE_WAY - 10) * 1000 + self.rng.below(20_000)
    }

    fn turn(&mut self, sender: &mut Sender, receiver: &mut Receiver) {
        self.now += 250;
        let now = self.now;
        self.packet += 1;
        if let Some(part) = sender.next_part(self.packet, 1140, Instant(now), TIMEOUT) {
            let (flags, mut body) = (part.flags(), Vec::new());
            part.emit(&mut body);
            self.bytes += body.len() + 3 + 22;
            let lost = self.rng.chance_ppm(50_000);
            let at = self.one_way();
            self.fates.push((at + ONE_WAY * 1000, self.packet, !lost));
            if !lost {
                self.arriving.push((at, flags, body));
            }
        }
        for (_, flags, body) in self.arriving.extract_if(.., |(at, ..)| *at <= now) {
            receiver.handle(&Part::parse(flags, &body).expect("our own"));
        }
        for (_, packet, arrived) in self.fates.extract_if(.., |(at, ..)| *at <= now) {
            if arrived { sender.handle_acked(packet) } else { sender.handle_lost(packet) }
        }
        while let Some(part) = receiver.next_part() {
            let mut body = Vec::new();
            part.emit(&mut body);
            if !self.rng.chance_ppm(50_000) {
                let at = self.one_way();
                self.answers.push((at, part.flags(), body));
            }
        }
        for (_, flags, body) in self.answers.extract_if(.., |(at, ..)| *at <= now) {
            assert!(sender.handle(&Part::parse(flags, &body).expect("our own")));
        }
    }

    /// Nothing that is under way arrives.
    fn break_off(&mut self) {
        self.arriving.clear();
        self.fates.clear();
        self.answers.clear();
    }
}

#[test]
fn a_megabyte_arrives_whole_over_a_lossy_path_and_costs_little_more_than_itself() {
    for seed in 0..50 {
        let content = content(1 << 20, seed);
        let mut sender = sender(&content);
        let (mut receiver, mut path) = (Receiver::default(), Path::new(seed));
        let mut arrived_at = None;
        while sender.outcome().is_none() {
            assert!(path.now < 5_000_000, "seed {seed}: {} bytes after 5 s", sender.progress());
            path.turn(&mut sender, &mut receiver);
            match receiver.poll_event() {
                Some(Event::Offered { id, size, tag }) => {
                    assert_eq!((size, &tag[..], receiver.memory()), (1 << 20, &b"save"[..], 0));
                    assert_eq!(receiver.accept(id, 1 << 20), Ok(()));
                }
                Some(Event::Arrived { data, .. }) => {
                    assert!(data == content, "seed {seed}");
                    arrived_at = Some(path.now);
                }
                None => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(arrived_at.is_some(), "seed {seed}");
        assert_eq!((sender.outcome(), receiver.memory(), receiver.dropped()), (Some(Outcome::Arrived), 0, 0));
        assert!(path.bytes * 100 <= (1 << 20) * 115, "seed {seed}: {} bytes", path.bytes);
    }
}

#[test]
fn a_transfer_goes_on_after_its_link_was_made_anew_and_sends_little_twice() {
    let content = content(1 << 20, 7);
    let mut sender = sender(&content);
    let (mut receiver, mut path) = (Receiver::default(), Path::new(7));
    for turn in 0..12_000 {
        path.turn(&mut sender, &mut receiver);
        if let Some(Event::Offered { id, .. }) = receiver.poll_event() {
            receiver.accept(id, u32::MAX).expect("room");
        }
        if turn == 2000 {
            let before = path.bytes;
            assert!(sender.progress() > 500_000 && sender.outcome().is_none());
            path.break_off();
            sender.handle_new_link();
            assert_eq!((sender.progress(), before > 500_000), (0, true));
            path.bytes = 0;
        }
        if sender.outcome().is_some() {
            break;
        }
    }
    assert_eq!(sender.outcome(), Some(Outcome::Arrived));
    assert!(path.bytes < 700_000, "{} bytes after the break", path.bytes);
}

#[test]
fn pausing_stops_chunks_and_is_told_and_going_on_ends_the_transfer() {
    let mut sender = sender(&content(200_000, 3));
    let (mut receiver, mut path) = (Receiver::default(), Path::new(4));
    let mut pauses = Vec::new();
    let mut seen = |receiver: &mut Receiver| match receiver.poll_event() {
        Some(Event::Offered { id, .. }) => receiver.accept(id, u32::MAX).expect("room"),
        Some(Event::Paused { paused, .. }) => pauses.push(paused),
        _ => {}
    };
    for turn in 0..8000 {
        if turn == 500 || turn == 3000 {
            sender.set_paused(turn == 500);
        }
        path.turn(&mut sender, &mut receiver);
        seen(&mut receiver);
        assert!(!(2000..3000).contains(&turn) || sender.outcome().is_none());
    }
    assert_eq!(sender.outcome(), Some(Outcome::Arrived));
    assert_eq!(pauses, [true, false]);
}

#[test]
fn a_cancel_of_either_game_frees_the_memory_and_ends_the_other_end() {
    for by_sender in [true, false] {
        let mut sender = sender(&content(1 << 20, 3));
        let (mut receiver, mut path) = (Receiver::default(), Path::new(5));
        let mut cancelled = false;
        for turn in 0..6000 {
            path.turn(&mut sender, &mut receiver);
            match receiver.poll_event() {
                Some(Event::Offered { id, .. }) => receiver.accept(id, u32::MAX).expect("room"),
                Some(Event::Cancelled { .. }) => cancelled = true,
                _ => {}
            }
            if turn == 1000 {
                assert_eq!(receiver.memory(), 1 << 20);
                if by_sender { sender.cancel() } else { assert!(receiver.refuse(1)) }
            }
        }
        let outcome = if by_sender { Outcome::Cancelled } else { Outcome::Refused };
        assert_eq!((sender.outcome(), receiver.memory(), cancelled), (Some(outcome), 0, by_sender));
    }
}

#[test]
fn nothing_that_a_hostile_peer_sends_takes_memory_before_the_game_accepts() {
    let mut receiver = Receiver::default();
    let key = |id| Key { id, size: 200 << 20, chunk: 1024, hash: [0; HASH_SIZE] };
    for id in 0..1000 {
        receiver.handle(&Part::Offer { key: key(id), tag: &[] });
        receiver.handle(&Part::Chunk { id, index: 0, data: &[1; 1024] });
    }
    assert_eq!((receiver.memory(), receiver.dropped()), (0, 996 + 1000));
    assert_eq!(receiver.accept(2, 1 << 20), Err(AcceptError::TooLarge));
    assert_eq!(receiver.accept(9, u32::MAX), Err(AcceptError::NotOffered));
    assert!(receiver.refuse(2) && !receiver.refuse(2));
    assert_eq!(receiver.next_part(), Some(Part::Cancel { id: 2 }));
    // Places and sizes that do not exist, and another content under a known id.
    let small = Key { id: 5000, size: 1500, chunk: 1024, hash: [0; HASH_SIZE] };
    receiver.handle(&Part::Offer { key: small, tag: &[] });
    receiver.accept(5000, 1500).expect("it took the refused one's place");
    let before = receiver.dropped();
    for (index, len) in [(2, 1024), (u32::MAX, 1024), (0, 1023), (1, 1024)] {
        receiver.handle(&Part::Chunk { id: 5000, index, data: &vec![1; len] });
    }
    receiver.handle(&Part::Offer { key: Key { size: 1400, ..small }, tag: &[] });
    assert_eq!(receiver.dropped(), before + 5);
    receiver.handle(&Part::Chunk { id: 5000, index: 0, data: &[1; 1024] });
    receiver.handle(&Part::Chunk { id: 5000, index: 1, data: &[1; 476] });
    let events: Vec<_> = std::iter::from_fn(|| receiver.poll_event()).collect();
    assert_eq!(events.last(), Some(&Event::Corrupt { id: 5000 }));
    assert_eq!(receiver.memory(), 0);
}

#[test]
fn a_peer_that_claims_chunks_beyond_the_end_is_not_believed() {
    let mut sender = sender(&content(3000, 1));
    let mut ranges = crate::wire::bulk::Ranges::default();
    assert!(ranges.push(0, 4) && !ranges.push(4, 5), "touching ranges are one");
    assert!(!sender.handle(&Part::Have { id: 1, ranges }));
    assert!(!sender.handle(&Part::Cancel { id: 2 }) && sender.outcome().is_none());
    assert!(sender.handle(&Part::Cancel { id: 1 }));
    assert_eq!(sender.outcome(), Some(Outcome::Refused));
}

fn sender(content: &[u8]) -> Sender {
    Sender::new(1, content.to_vec(), b"save", 1024).expect("valid")
}

fn content(size: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed ^ 0xb01c);
    (0..size).map(|_| rng.below(256) as u8).collect()
}
