//! Both ends of the reliable streams, without a channel between them.
//!
//! Fed by: scripts. Yields: verdicts. Never: a packet's header.

use super::sender::FOR_CONTROL;
use super::*;
use crate::base::limits::{CONTROL_WINDOW, LEAST_WINDOW, LINK_WINDOW, RELIABLE_WINDOW, window_cost};
use crate::base::{Instant, Rng};
use crate::channel::window::Grant;
use crate::wire::section::{Section, sections};
use std::collections::BTreeMap;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_millis(50);

#[test]
fn the_sixteen_oldest_small_messages_ride_in_every_packet_and_large_ones_do_not() {
    let mut sender = Sender::default();
    for i in 0..40 {
        sender.push(1, vec![i; if i % 2 == 0 { 8 } else { 80 }]).expect("room");
    }
    let mut out = Vec::new();
    sender.write(1, 10_000, Instant::ZERO, TIMEOUT, false, &mut out);
    assert_eq!(numbers(&out), (0..40).collect::<Vec<_>>());
    out.clear();
    sender.write(2, 10_000, Instant::from_millis(1), TIMEOUT, false, &mut out);
    assert_eq!(numbers(&out), (0..32).step_by(2).collect::<Vec<_>>());
    // Where the room is short, what was never sent goes before what rides along.
    sender.push(1, vec![99; 90]).expect("room");
    out.clear();
    sender.write(3, 120, Instant::from_millis(2), TIMEOUT, false, &mut out);
    assert_eq!(numbers(&out), [99, 0]);
}

#[test]
fn what_follows_its_predecessor_in_a_packet_does_not_name_its_number() {
    let mut sender = Sender::default();
    for stream in [1, 1, 2, 1] {
        sender.push(stream, vec![stream; 70]).expect("room");
    }
    let mut out = Vec::new();
    sender.write(1, 10_000, Instant::ZERO, TIMEOUT, false, &mut out);
    let named: Vec<_> =
        sections(&out).map(|section| matches!(section, Ok(Section::Reliable { .. }))).collect();
    assert_eq!(named, [true, false, true, true]);
    assert_eq!(out.len(), 4 * 75 - 3);
}

#[test]
fn a_late_acknowledgement_of_a_packet_taken_for_lost_still_counts() {
    let mut sender = Sender::default();
    sender.push(1, vec![0; 500]).expect("room");
    let (mut out, mut released) = (Vec::new(), Vec::new());
    sender.write(1, 1000, Instant::ZERO, TIMEOUT, false, &mut out);
    sender.handle_lost(1);
    sender.settle(TIMEOUT);
    assert_eq!(sender.poll_timeout(), Some(Instant::ZERO), "it goes again at once");
    sender.handle_acked(1, Instant::from_millis(1), &mut released);
    sender.settle(TIMEOUT);
    assert_eq!((released.len(), sender.waiting(), sender.poll_timeout()), (1, 0, None));
    out.clear();
    assert!(!sender.write(2, 1000, Instant::from_millis(2), TIMEOUT, false, &mut out));
    assert!(out.is_empty(), "and no more");
}

#[test]
fn both_ends_agree_on_the_window_to_the_place() {
    for offset in 0..RELIABLE_WINDOW as u16 + 3 {
        let (mut receiver, mut grant) = (Receiver::default(), Grant::default());
        receiver.start_at(65_000);
        let taken = receiver.handle(1, 65_000_u16.wrapping_add(offset), &[0], &mut grant);
        assert_eq!(taken == Taken::New, usize::from(offset) < RELIABLE_WINDOW, "{offset} ahead");
    }
    let mut sender = Sender::default();
    sender.handle_window(LINK_WINDOW);
    let mut accepted = 0;
    while sender.push(1 + accepted as u8 % 8, vec![0]).is_ok() {
        accepted += 1;
    }
    assert_eq!(accepted, RELIABLE_WINDOW - FOR_CONTROL);
    while sender.push(CONTROL, vec![0]).is_ok() {
        accepted += 1;
    }
    assert_eq!(accepted, RELIABLE_WINDOW);
}

#[test]
fn places_are_counted_for_all_streams_together() {
    let (mut receiver, mut grant) = (Receiver::default(), Grant::default());
    for stream in 0..8 {
        assert_eq!(receiver.handle(stream, 499, &[0], &mut grant), Taken::New);
    }
    assert_eq!(receiver.handle(8, 96, &[0], &mut grant), Taken::Refused, "4000 of 4096 are taken");
    assert_eq!(receiver.handle(8, 95, &[0], &mut grant), Taken::New);
    assert_eq!(receiver.handle(8, 95, &[0], &mut grant), Taken::Repeated);
    assert_eq!(receiver.handle(9, 0, &[0], &mut grant), Taken::Refused, "no such stream");
}

#[test]
fn what_was_not_granted_is_refused_at_both_ends_and_the_mesh_has_a_window_of_its_own() {
    let (mut sender, mut receiver, mut grant) = (Sender::default(), Receiver::default(), Grant::default());
    let fits = (LEAST_WINDOW / window_cost(1000)) as u16;
    for i in 0..fits {
        sender.push(1, vec![0; 1000]).expect("granted");
        assert_eq!(receiver.handle(1, i, &[0; 1000], &mut grant), Taken::New);
    }
    assert_eq!(sender.push(1, vec![0; 1000]), Err(vec![0; 1000]));
    assert_eq!(receiver.handle(1, fits, &[0; 1000], &mut grant), Taken::Refused);
    for i in 0..(CONTROL_WINDOW / window_cost(1000)) as u16 {
        sender.push(CONTROL, vec![0; 1000]).expect("its own");
        assert_eq!(receiver.handle(CONTROL, i + 1, &[0; 1000], &mut grant), Taken::New);
    }
    assert!(sender.push(CONTROL, vec![0; 1000]).is_err());
    assert_eq!(receiver.handle(CONTROL, 0, &[0; 1000], &mut grant), Taken::Refused);
    sender.handle_window(2 * LEAST_WINDOW);
    sender.handle_window(LEAST_WINDOW);
    assert!(sender.push(1, vec![0; 1000]).is_ok(), "a late word of less takes nothing back");
    let mut pool = Vec::new();
    for _ in 0..fits {
        assert!(receiver.take_app(&mut grant, &mut pool).is_some());
    }
    assert_eq!(receiver.handle(1, fits, &[0; 1000], &mut grant), Taken::New, "what was taken makes room");
}

#[test]
fn whatever_the_order_every_message_is_taken_once_in_order_and_unchanged() {
    for seed in 0..30 {
        let mut rng = Rng::new(seed);
        let (mut receiver, mut grant, mut pool) = (Receiver::default(), Grant::default(), Vec::new());
        receiver.start_at(65_000);
        grant.set_window(LINK_WINDOW);
        let (mut expected, mut sent, mut pending) = ([0_u32; 9], [0_u32; 9], BTreeMap::new());
        for step in 0..8_000 {
            let stream = rng.below(9) as usize;
            if rng.chance_ppm(600_000) && sent[stream] < expected[stream] + 300 {
                pending.insert((step + rng.below(600), step), (stream, sent[stream]));
                sent[stream] += 1;
            } else if let Some((_, (stream, number))) = pending.pop_first() {
                let seq = 65_000_u16.wrapping_add(number as u16);
                let taken = receiver.handle(stream as u8, seq, &content(stream, number), &mut grant);
                if taken == Taken::Refused {
                    pending.insert((step + rng.below(600), step), (stream, number));
                } else {
                    assert_eq!(taken, Taken::New, "seed {seed}");
                    let again = receiver.handle(stream as u8, seq, &content(stream, number), &mut grant);
                    assert_eq!(again, Taken::Repeated, "seed {seed}");
                }
            }
            while rng.chance_ppm(400_000) {
                let control = receiver.take_control(&mut pool);
                let Some(message) = control.or_else(|| receiver.take_app(&mut grant, &mut pool)) else {
                    break;
                };
                let stream = usize::from(message.stream);
                assert_eq!(message.data, content(stream, expected[stream]), "seed {seed}");
                expected[stream] += 1;
                pool.push(message.data);
            }
            assert!(receiver.memory() < 300_000);
        }
        assert!(expected.iter().sum::<u32>() > 1_000, "seed {seed}: {expected:?}");
    }
}

#[test]
fn who_sends_all_it_may_and_never_the_first_costs_little_more_than_the_window() {
    for size in [0, 1, 64, 1000] {
        let (mut receiver, mut grant, mut pool) = (Receiver::default(), Grant::default(), Vec::new());
        grant.set_window(LINK_WINDOW);
        // What was taken leaves holes between what was not.
        for i in 0..1_000 {
            receiver.handle(1, i, &vec![1; size], &mut grant);
            receiver.handle(2, i + 1, &[], &mut grant);
            receiver.take_app(&mut grant, &mut pool);
        }
        for stream in [3, 4, 0] {
            (1..4_096).for_each(|seq| {
                receiver.handle(stream, seq, &vec![1; size], &mut grant);
            });
        }
        // As many as it may that wait for the game.
        for seq in 1_000..60_000 {
            receiver.handle(1, seq, &vec![1; size], &mut grant);
        }
        assert!(receiver.memory() <= 280_000, "{} bytes for messages of {size}", receiver.memory());
    }
}

fn content(stream: usize, number: u32) -> Vec<u8> {
    let size = (number * 37 + stream as u32 * 11) % 150;
    (0..size).map(|i| (i + number) as u8 ^ stream as u8).collect()
}

fn numbers(bytes: &[u8]) -> Vec<u8> {
    let number = |section| match section {
        Ok(Section::Reliable { data, .. } | Section::Next { data }) => data[0],
        other => panic!("{other:?} is no reliable message"),
    };
    sections(bytes).map(number).collect()
}
