//! Cores against a bottleneck in virtual time: packets wait in its queue or are lost before it, and acknowledgements come back.
//!
//! Fed by: seeds. Yields: verdicts. Never: a channel; what a packet holds does not matter here.

use super::*;
use crate::base::Rng;
use std::collections::BTreeMap;

/// 10 Mbit/s.
const LINE: u64 = 1_250_000;
const PACKET: usize = 1200;
const INPUTS: usize = 60;
const MS: Duration = Duration::from_millis(1);

#[test]
fn an_unknown_link_without_a_bottleneck_takes_a_burst_at_once_whatever_it_loses() {
    for loss_ppm in [0, 50_000] {
        for seed in 0..20 {
            let mut world = World::new(seed, Line { loss_ppm, ..Line::default() });
            world.ends[0].left = 1_000_000;
            let took = world.run_until_done();
            assert!(took <= 500 * MS, "seed {seed}: {took:?} at {loss_ppm} ppm");
            assert!(matches!(world.ends[0].pace.state, State::Open { .. }), "seed {seed}: slowed by loss");
            assert!(world.ends[0].pace.rate >= FIRST_RATE);
        }
    }
}

#[test]
fn a_narrow_link_is_filled_but_not_flooded() {
    for queue in [32_000, 64_000, 125_000, 250_000, 1_000_000] {
        for seed in 0..10 {
            let mut world = World::new(seed, Line { rate: LINE, queue, ..Line::default() });
            world.ends[0].left = 1_000_000;
            let took = world.run_until_done();
            let ideal = Duration::from_micros(1_000_000 * 1_000_000 / LINE) + 60 * MS;
            assert!(took <= ideal * 115 / 100, "seed {seed}, queue {queue}: {took:?} of {ideal:?}");
        }
    }
}

#[test]
fn a_long_transfer_keeps_the_line_busy_and_its_queue_short() {
    for (queue, loss_ppm) in [(64_000, 0), (250_000, 0), (1_000_000, 0), (250_000, 50_000)] {
        for seed in 0..5 {
            let mut world = World::new(seed, Line { rate: LINE, queue, loss_ppm, ..Line::default() });
            world.ends[0].left = 20_000_000;
            world.run_for(3_000 * MS);
            world.waits.clear();
            let before = world.ends[0].arrived;
            world.run_for(8_000 * MS);
            let rate = (world.ends[0].arrived - before) / 8;
            let least = LINE * (1_000_000 - u64::from(loss_ppm)) / 1_000_000 * 9 / 10;
            assert!(rate >= least, "seed {seed}, queue {queue}, loss {loss_ppm}: {rate} B/s of {LINE}");
            world.waits.sort_unstable();
            let p99 = world.waits[world.waits.len() * 99 / 100];
            assert!(p99 <= 50_000, "seed {seed}, queue {queue}, loss {loss_ppm}: packets wait {p99} µs");
        }
    }
}

#[test]
fn two_links_share_a_line_and_neither_starves() {
    for seed in 0..10 {
        let mut world = World::new(seed, Line { rate: LINE, queue: 125_000, ..Line::default() });
        world.ends.push(End::new());
        world.ends[0].left = 50_000_000;
        world.run_for(1_000 * MS);
        world.ends[1].left = 50_000_000;
        world.run_for(5_000 * MS);
        let before = [world.ends[0].arrived, world.ends[1].arrived];
        world.run_for(10_000 * MS);
        let rates = [(world.ends[0].arrived - before[0]) / 10, (world.ends[1].arrived - before[1]) / 10];
        assert!(rates[0] + rates[1] >= LINE * 9 / 10, "seed {seed}: {rates:?} of {LINE}");
        assert!(rates.iter().all(|rate| *rate >= LINE / 5), "seed {seed}: {rates:?} of {LINE}");
    }
}

#[test]
fn a_line_that_widens_is_found_out_and_one_that_narrows_at_once() {
    for seed in 0..5 {
        let mut world = World::new(seed, Line { rate: LINE, queue: 125_000, ..Line::default() });
        world.ends[0].left = 500_000_000;
        world.run_for(3_000 * MS);
        world.line.rate = 4 * LINE;
        world.run_for(10_000 * MS);
        let before = world.ends[0].arrived;
        world.run_for(2_000 * MS);
        let rate = (world.ends[0].arrived - before) / 2;
        assert!(rate >= 3 * LINE, "seed {seed}: {rate} of {}", 4 * LINE);
        world.line.rate = LINE;
        world.run_for(2_000 * MS);
        world.waits.clear();
        world.run_for(2_000 * MS);
        world.waits.sort_unstable();
        let p90 = world.waits[world.waits.len() * 9 / 10];
        assert!(p90 <= 60_000, "seed {seed}: packets wait {p90} µs");
    }
}

#[test]
fn a_fast_link_with_a_short_way_grows_far_beyond_the_first_rate() {
    let line = Line { one_way: Duration::from_micros(50), jitter: Duration::ZERO, ..Line::default() };
    let mut world = World::new(1, line);
    world.ends[0].left = 200_000_000;
    world.run_for(1_000 * MS);
    let before = world.ends[0].arrived;
    world.run_for(1_000 * MS);
    assert!(world.ends[0].arrived - before > 3 * FIRST_RATE, "{}", world.ends[0].arrived - before);
}

#[test]
fn small_regular_packets_never_slow_a_link_down() {
    let line = Line { loss_ppm: 200_000, jitter: 60 * MS, ..Line::default() };
    let mut world = World::new(3, line);
    world.run_for(60_000 * MS);
    assert!(matches!(world.ends[0].pace.state, State::Open { .. }));
    assert!(world.ends[0].pace.may_send(Class::Bulk, world.now));
}

#[test]
fn a_link_that_is_open_again_too_early_waits_longer_the_next_time() {
    let mut world = World::new(4, Line { rate: LINE, queue: 125_000, ..Line::default() });
    let mut waited = Vec::new();
    for _ in 0..4 {
        world.ends[0].left = 3_000_000;
        world.run_for(4_000 * MS);
        let State::Narrow { .. } = world.ends[0].pace.state else { panic!("a queue stood before the line") };
        // Next to nothing to send, and the line shows no more evidence.
        let before = world.now;
        while let State::Narrow { .. } = world.ends[0].pace.state {
            world.ends[0].left = 30_000;
            world.run_for(100 * MS);
        }
        waited.push(world.now.since(before).as_secs());
    }
    assert!(waited[0] <= 3 && waited[3] >= 12, "{waited:?} s");
}

#[test]
fn messages_go_while_bulk_waits_and_after_bulk_filled_the_limit() {
    let mut pace = Pace::new();
    let now = Instant::from_millis(1);
    let mut counter = 0;
    let mut send = |pace: &mut Pace| {
        counter += 1;
        pace.handle_sent(counter, PACKET, now);
    };
    while pace.may_send(Class::Bulk, now) {
        send(&mut pace);
    }
    assert!(pace.may_send(Class::Messages, now), "bulk yields to messages");
    let later = pace.next_at(Class::Bulk).expect("the limit is far");
    assert!(later > now && pace.may_send(Class::Bulk, later), "what is promised holds");
    while pace.flight.bytes() < ALLOWANCE {
        send(&mut pace);
    }
    let much_later = Instant::from_millis(1_000);
    assert_eq!(pace.next_at(Class::Bulk), None, "it waits for acknowledgements");
    assert!(pace.may_send(Class::Messages, much_later));
}

// ---- helpers ----

/// One way of a path; the way back has the same delay and loss, and no bottleneck.
#[derive(Clone, Copy)]
struct Line {
    /// Bytes a second; 0 = no limit.
    rate: u64,
    queue: u64,
    one_way: Duration,
    jitter: Duration,
    loss_ppm: u32,
}

impl Default for Line {
    fn default() -> Self {
        Self { rate: 0, queue: 0, one_way: 50 * MS, jitter: 10 * MS, loss_ppm: 0 }
    }
}

struct End {
    pace: Pace,
    /// Bytes to send, and bytes that came for the first time.
    left: u64,
    arrived: u64,
    counter: u64,
    /// Sent and not known to have arrived or to be lost.
    open: BTreeMap<u64, (Instant, usize)>,
    latest_acked: Instant,
    /// At the other end: what came, and when the next acknowledgement goes.
    came: Vec<u64>,
    ack_at: Option<Instant>,
    /// Small packets that never wait, at the pace of a game: without them nothing would show that the last packet is lost.
    free_at: Instant,
}

impl End {
    fn new() -> Self {
        Self {
            pace: Pace::new(),
            left: 0,
            arrived: 0,
            counter: 0,
            open: BTreeMap::new(),
            latest_acked: Instant::ZERO,
            came: Vec::new(),
            ack_at: None,
            free_at: Instant::ZERO,
        }
    }
}

enum Event {
    Packet(u64, usize),
    Acks(Vec<u64>),
}

struct World {
    now: Instant,
    line: Line,
    free_at_ns: u64,
    rng: Rng,
    ends: Vec<End>,
    flying: BTreeMap<(Instant, u64), (usize, Event)>,
    order: u64,
    /// How long packets waited before the bottleneck, in µs.
    waits: Vec<u64>,
}

impl World {
    fn new(seed: u64, line: Line) -> Self {
        Self {
            now: Instant::from_millis(1_000),
            line,
            free_at_ns: 0,
            rng: Rng::new(seed),
            ends: vec![End::new()],
            flying: BTreeMap::new(),
            order: 0,
            waits: Vec::new(),
        }
    }

    fn run_until_done(&mut self) -> Duration {
        let (start, total) = (self.now, self.ends[0].left);
        while self.ends[0].arrived < total {
            self.run_for(MS);
            assert!(self.now.since(start) < 60_000 * MS, "{} of {total} arrived", self.ends[0].arrived);
        }
        self.now.since(start)
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.send();
            let flight = self.flying.keys().next().map(|key| key.0);
            let ends = self.ends.iter().flat_map(|end| {
                let wants = if end.left > 0 { end.pace.next_at(Class::Bulk) } else { None };
                [wants, end.ack_at, Some(end.free_at)]
            });
            let next = ends.flatten().chain(flight).min().unwrap_or(end).min(end);
            self.now = self.now.max(next);
            while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (index, event) = entry.remove();
                match event {
                    Event::Packet(counter, size) => self.take(index, counter, size),
                    Event::Acks(counters) => self.take_acks(index, &counters),
                }
            }
            for index in 0..self.ends.len() {
                if self.ends[index].ack_at.is_some_and(|at| at <= self.now) {
                    self.ack(index);
                }
            }
            if self.now >= end {
                return;
            }
        }
    }

    fn send(&mut self) {
        let now = self.now;
        for index in 0..self.ends.len() {
            let end = &mut self.ends[index];
            if end.free_at <= now {
                end.free_at = now + 16 * MS;
                self.packet(index, INPUTS);
            }
        }
        loop {
            let mut any = false;
            for index in 0..self.ends.len() {
                let end = &mut self.ends[index];
                if end.left > 0 && end.pace.may_send(Class::Bulk, now) {
                    end.left -= end.left.min(PACKET as u64);
                    self.packet(index, PACKET);
                    any = true;
                }
            }
            if !any {
                return;
            }
        }
    }

    fn packet(&mut self, index: usize, size: usize) {
        let now = self.now;
        let end = &mut self.ends[index];
        end.counter += 1;
        end.pace.handle_sent(end.counter, size, now);
        end.open.insert(end.counter, (now, size));
        let counter = end.counter;
        let wait_ns = self.free_at_ns.saturating_sub(now.0 * 1000);
        let mut out_at = now;
        if self.line.rate > 0 {
            if wait_ns > 0 && wait_ns * self.line.rate / 1_000_000_000 + size as u64 > self.line.queue {
                return;
            }
            self.waits.push(wait_ns / 1000);
            self.free_at_ns = now.0 * 1000 + wait_ns + size as u64 * 1_000_000_000 / self.line.rate;
            out_at = Instant(self.free_at_ns / 1000);
        }
        self.fly(index, out_at, Event::Packet(counter, size));
    }

    fn fly(&mut self, index: usize, from: Instant, event: Event) {
        if self.rng.chance_ppm(self.line.loss_ppm) {
            return;
        }
        let jitter = Duration::from_micros(self.rng.below(2 * self.line.jitter.as_micros() as u64 + 1));
        let due = from + self.line.one_way - self.line.jitter.min(self.line.one_way) + jitter;
        self.order += 1;
        self.flying.insert((due, self.order), (index, event));
    }

    fn take(&mut self, index: usize, counter: u64, size: usize) {
        let end = &mut self.ends[index];
        end.came.push(counter);
        end.arrived += if size == PACKET { PACKET as u64 } else { 0 };
        end.ack_at.get_or_insert(self.now + 4 * MS);
        if end.came.len().is_multiple_of(12) {
            self.ack(index);
        }
    }

    /// Each acknowledgement repeats the newest 288, as the extended one does.
    fn ack(&mut self, index: usize) {
        let end = &mut self.ends[index];
        end.ack_at = None;
        let from = end.came.len().saturating_sub(288);
        let newest = end.came[from..].to_vec();
        self.fly(index, self.now, Event::Acks(newest));
    }

    fn take_acks(&mut self, index: usize, counters: &[u64]) {
        let now = self.now;
        let end = &mut self.ends[index];
        for counter in counters {
            if let Some((sent, _)) = end.open.remove(counter) {
                end.latest_acked = end.latest_acked.max(sent);
                end.pace.handle_arrived(*counter, now);
            }
        }
        let latest = end.latest_acked;
        let pace = &mut end.pace;
        let left = &mut end.left;
        end.open.retain(|counter, (sent, size)| {
            let lost = *sent + 25 * MS <= latest;
            if lost {
                pace.handle_lost(*counter);
                *left += if *size == PACKET { PACKET as u64 } else { 0 };
            }
            !lost
        });
        end.pace.settle(now);
    }
}
