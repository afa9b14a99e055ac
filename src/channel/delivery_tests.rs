//! Scenarios of transports that lost, doubled or held up messages, each with its number in the project's list.
//!
//! Fed by: seeds, in virtual time. Yields: verdicts. Never: a clock, a socket.

use super::tests::{Path, Pipe, calm_pair, exchange, write};
use super::*;
use crate::base::limits::{LINK_WINDOW, RELIABLE_WINDOW};

#[test]
fn t01_counters_and_numbers_wrap_under_load() {
    for seed in 0..10 {
        let path = Path { latency_us: 30_000, jitter_us: 10_000, loss_ppm: 50_000, duplicate_ppm: 20_000 };
        let mut pipe = Pipe::new(seed, path);
        pipe.frames = true;
        pipe.start_near_wrap();
        let mut worst = (0, Duration::ZERO);
        for i in 0..500 {
            for end in 0..2 {
                assert!(pipe.send(end, 1, 20));
                assert!(pipe.send_as(end, 8, Delivery::Unreliable, 20));
            }
            pipe.run_until(Instant::from_millis(17 * (i + 1)), seed);
            if i > 120 {
                let stats = pipe.ends[0].channel.stats(pipe.now);
                worst.0 = worst.0.max(stats.loss_sent_ppm);
                worst.1 = worst.1.max(pipe.ends[0].channel.rtt());
            }
        }
        pipe.run_until(Instant::from_millis(20_000), seed);
        assert!(worst.0 < 150_000 && worst.1 < Duration::from_millis(110), "seed {seed}: {worst:?}");
        for end in &mut pipe.ends {
            assert!(end.channel.outgoing.newest_acked() > 1 << 16, "the counter wrapped");
            assert_eq!(end.sent[&1], end.peer_got[&1], "seed {seed}");
            let unreliable = end.peer_got.get_mut(&8).expect("some came");
            let came = unreliable.len();
            unreliable.sort_unstable();
            unreliable.dedup();
            assert!(unreliable.len() == came && came > 400, "seed {seed}: {came} came, each once");
        }
    }
}

#[test]
fn t02_a_reliable_message_after_half_the_counters_went_by_is_delivered() {
    let (mut one, mut other) = calm_pair();
    one.send_message(1, Delivery::Reliable, vec![1]).expect("room");
    let mut now = Instant::from_millis(100);
    for i in 0..33_100_u32 {
        now += Duration::from_millis(5);
        one.send_message(2, Delivery::Unreliable, i.to_le_bytes().to_vec()).expect("room");
        exchange(&mut one, &mut other, now);
        if i % 10 == 0 {
            exchange(&mut other, &mut one, now);
        }
        while other.poll_message().or_else(|| other.take_reliable()).is_some() {}
    }
    one.send_message(1, Delivery::Reliable, vec![2]).expect("room");
    exchange(&mut one, &mut other, now);
    assert_eq!(other.take_reliable().map(|message| message.data), Some(vec![2]));
    exchange(&mut other, &mut one, now);
    assert_eq!(one.reliable_waiting(), 0);
}

#[test]
fn t03_a_message_whose_acks_were_all_lost_is_acknowledged_again_a_full_window_later() {
    let (mut one, mut other) = calm_pair();
    one.set_receive_window(LINK_WINDOW);
    other.set_receive_window(LINK_WINDOW);
    let mut now = Instant::from_millis(100);
    exchange(&mut other, &mut one, now);
    one.send_message(1, Delivery::Reliable, vec![1; 100]).expect("room");
    exchange(&mut one, &mut other, now); // arrives, and nothing that acknowledges it does
    let mut accepted = 1;
    while one.send_message(1, Delivery::Reliable, vec![2; 1]).is_ok() {
        accepted += 1;
    }
    assert_eq!(accepted, RELIABLE_WINDOW - 64, "a full window, but for the mesh's places");
    let mut got = 0;
    while got < accepted {
        now = now.max(one.poll_timeout().expect("pings never end"));
        exchange(&mut one, &mut other, now);
        write(&mut other, now); // what would acknowledge is lost
        while other.take_reliable().is_some() {
            got += 1;
        }
    }
    now += Duration::from_secs(2);
    for _ in 0..20 {
        exchange(&mut one, &mut other, now);
        exchange(&mut other, &mut one, now);
        now += Duration::from_secs(2);
    }
    assert!(other.take_reliable().is_none(), "none comes twice");
    assert_eq!((one.reliable_waiting(), other.stats(now).dropped_malformed), (0, 0));
}

#[test]
fn t05_a_pipe_that_doubles_and_reorders_everything_delivers_each_message_once() {
    for (seed, duplicate_ppm) in [(1, 200_000), (2, 200_000), (3, 1_000_000)] {
        let path = Path { latency_us: 10_000, jitter_us: 200_000, loss_ppm: 0, duplicate_ppm };
        let mut pipe = Pipe::new(seed, path);
        pipe.frames = true;
        for i in 0..10 {
            for _ in 0..100 {
                assert!(pipe.send(0, 1, 30), "all of a round at once");
            }
            for _ in 0..20 {
                assert!(pipe.send_as(0, 8, Delivery::Unreliable, 30));
            }
            pipe.run_until(Instant::from_millis(1_000 * (i + 1)), seed);
        }
        pipe.run_until(Instant::from_millis(15_000), seed);
        assert_eq!(pipe.ends[0].sent[&1], pipe.ends[0].peer_got[&1], "seed {seed}");
        let mut unreliable = pipe.ends[0].peer_got[&8].clone();
        unreliable.sort_unstable();
        assert_eq!(pipe.ends[0].sent[&8], unreliable, "seed {seed}: once each");
    }
}

#[test]
fn t06_with_more_packets_under_way_than_a_header_confirms_only_what_is_lost_goes_again() {
    for loss_ppm in [0, 50_000] {
        let mut pipe = Pipe::new(6, Path { latency_us: 100_000, loss_ppm, ..Path::default() });
        pipe.silent = [false, true];
        for i in 0..5_000_u64 {
            pipe.run_until(Instant(i * 3_333), 6);
            assert!(pipe.send(0, 1, 100), "message {i}");
        }
        pipe.run_until(Instant::from_millis(25_000), 6);
        assert_eq!(pipe.ends[0].sent[&1], pipe.ends[0].peer_got[&1]);
        let resent = pipe.ends[0].channel.stats(pipe.now).reliable_resent;
        let bound = 5_000 * u64::from(loss_ppm + loss_ppm / 10 + 10_000) / 1_000_000;
        assert!(resent <= bound, "{resent} of 5000 went again, {bound} may");
    }
}

#[test]
fn t07_after_an_outage_of_three_seconds_the_stream_goes_on_within_a_round_trip_and_a_tick() {
    let mut pipe = Pipe::new(7, Path { latency_us: 50_000, ..Path::default() });
    pipe.frames = true;
    for i in 0..100 {
        let now = 50 * i;
        pipe.path.loss_ppm = if (1_000..4_000).contains(&now) { 1_000_000 } else { 0 };
        assert!(pipe.send(0, 1, 30));
        pipe.run_until(Instant::from_millis(now + 50), 7);
    }
    let back = pipe.ends[0].arrived.iter().find(|at| **at > Instant::from_millis(1_100));
    let back = back.expect("it goes on").since(Instant::from_millis(4_000));
    assert!(back <= Duration::from_millis(100 + 17), "{back:?}");
    pipe.run_until(Instant::from_millis(6_000), 7);
    assert_eq!(pipe.ends[0].sent[&1], pipe.ends[0].peer_got[&1]);
}

#[test]
fn t08_an_ack_that_comes_in_the_moment_of_the_deadline_wins() {
    let (mut one, mut other) = calm_pair();
    let now = Instant::from_millis(100);
    one.send_message(1, Delivery::Reliable, vec![1; 500]).expect("room");
    exchange(&mut one, &mut other, now);
    let deadline = one.poll_timeout().expect("a deadline");
    assert_eq!(deadline, now + Duration::from_millis(50));
    exchange(&mut other, &mut one, deadline);
    assert!(one.poll_timeout() > Some(deadline));
    assert!(write(&mut one, deadline).len() < 60);
    assert_eq!(one.stats(deadline).reliable_resent, 0);
}

#[test]
fn t11_a_burst_right_after_the_handshake_on_a_long_path_is_delivered() {
    for seed in 0..10 {
        let path = Path { latency_us: 125_000, jitter_us: 5_000, loss_ppm: 50_000, ..Path::default() };
        let mut pipe = Pipe::new(seed, path);
        pipe.frames = true;
        let mut sent = 0;
        while sent < 1_000 {
            if pipe.send(0, (sent % 8) as u8 + 1, 64) {
                sent += 1;
            } else {
                // The first grant is on its way.
                pipe.run_until(pipe.now + Duration::from_millis(10), seed);
            }
        }
        pipe.run_until(Instant::from_millis(4_000), seed);
        assert_eq!(pipe.ends[0].sent, pipe.ends[0].peer_got, "seed {seed}");
        for end in &mut pipe.ends {
            let stats = end.channel.stats(pipe.now);
            assert_eq!((stats.dropped_malformed, stats.dropped_forged), (0, 0), "seed {seed}");
        }
    }
}
