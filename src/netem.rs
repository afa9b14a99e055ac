//! A seeded link conditioner: latency, jitter, loss, bursts, duplicates, reordering, partitions, a bottleneck with its queue,
//! and a limit of size, per directed link.
//!
//! Fed by: `submit` (a datagram enters a link) and `poll` (time). Yields: datagrams whose time has come, in a repeatable order.
//! Never: reads a clock or a socket; the simulated network and the real driver both run it.

use crate::base::limits::MAX_DATAGRAM;
use crate::base::{Instant, Rng};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

/// Datagrams in flight at once: 16 peers × 240 links × 60 Hz × 4 s of delay. One more is lost, as in a full router.
const MAX_IN_FLIGHT: usize = 65_536;
/// Vectors kept for later datagrams: as many as are in flight on 240 links at 60 Hz and 100 ms.
const MAX_RECYCLED: usize = 2048;
/// Chances are told in parts of this.
const MILLION: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// What a directed link does to datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// One-way delay.
    pub latency: Duration,
    /// Uniform extra delay, `0..jitter`; reorders when larger than the spacing of packets.
    pub jitter: Duration,
    /// Independent loss, of a million.
    pub loss_ppm: u32,
    /// Chance, of a million per datagram, that a burst of loss begins.
    pub burst_ppm: u32,
    /// How long a burst loses everything.
    pub burst: Duration,
    /// Datagrams that arrive twice, of a million.
    pub duplicate_ppm: u32,
    /// Datagrams delayed by one extra latency + jitter, of a million.
    pub reorder_ppm: u32,
    /// Nothing passes.
    pub down: bool,
    /// UDP payload bytes that pass in a second, one datagram after the other; 0 = no limit.
    pub rate_bytes_s: u32,
    /// Bytes that wait before the bottleneck or pass it; a datagram that finds no room is lost. 0 = no limit.
    pub queue_bytes: u32,
    /// A longer datagram vanishes without a word; 0 = no limit.
    pub mtu_bytes: u32,
}

/// A datagram in flight or due. `from` and `to` are the owner's numbers.
#[derive(Debug)]
pub struct Delivery {
    /// Sender.
    pub from: u32,
    /// Receiver.
    pub to: u32,
    /// Its bytes; give the vector back with [`Netem::recycle`].
    pub bytes: Vec<u8>,
}

/// What became of a submitted datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Lost: by chance, in a burst, on a link that is down, too long for it, before a full queue, or because too many are
    /// in flight.
    Lost,
    /// It arrives then (a duplicate may come at another time).
    Due(Instant),
}

/// The conditioner.
#[derive(Debug)]
pub struct Netem {
    seed: u64,
    default_link: Link,
    links: BTreeMap<(u32, u32), State>,
    in_flight: BinaryHeap<Flight>,
    submitted: u64,
    free: Vec<Vec<u8>>,
}

/// One directed link.
#[derive(Debug)]
struct State {
    /// `None`: the default link.
    own: Option<Link>,
    rng: Rng,
    burst_until: Instant,
    /// When the bottleneck has passed everything, in ns of the owner's time: in µs a fast link would round its rate away.
    free_at_ns: u64,
}

impl State {
    /// When the bottleneck has passed a datagram of this size that comes now; `None` when its queue has no room.
    fn pass(&mut self, link: Link, size: usize, now: Instant) -> Option<Instant> {
        if link.rate_bytes_s == 0 {
            return Some(now);
        }
        let rate = u64::from(link.rate_bytes_s);
        let now_ns = now.0.saturating_mul(1000);
        let wait_ns = self.free_at_ns.saturating_sub(now_ns);
        let ahead = u128::from(wait_ns) * u128::from(rate) / u128::from(SECOND_NS);
        // An idle bottleneck takes any datagram: the queue is for those that wait.
        if link.queue_bytes > 0 && ahead > 0 && ahead + size as u128 > u128::from(link.queue_bytes) {
            return None;
        }
        self.free_at_ns = now_ns + wait_ns + size as u64 * SECOND_NS / rate;
        Some(Instant(self.free_at_ns.div_ceil(1000)))
    }
}

#[derive(Debug)]
struct Flight {
    due: Instant,
    sequence: u64,
    delivery: Delivery,
}

impl Netem {
    /// The same seed and the same calls give the same deliveries.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            default_link: Link::default(),
            links: BTreeMap::new(),
            in_flight: BinaryHeap::new(),
            submitted: 0,
            free: Vec::new(),
        }
    }

    /// What links do that were not set one by one.
    pub fn set_default_link(&mut self, link: Link) {
        self.default_link = link;
    }

    /// What one directed link does from now on; datagrams in flight keep their time.
    pub fn set_link(&mut self, from: u32, to: u32, link: Link) {
        self.state(from, to).own = Some(link);
    }

    /// What that link does now.
    pub fn link(&self, from: u32, to: u32) -> Link {
        self.links.get(&(from, to)).and_then(|state| state.own).unwrap_or(self.default_link)
    }

    /// A datagram enters the link.
    pub fn submit(&mut self, from: u32, to: u32, bytes: &[u8], now: Instant) -> Fate {
        let default_link = self.default_link;
        let state = self.state(from, to);
        let link = state.own.unwrap_or(default_link);
        let luck = Luck::draw(&mut state.rng);
        if luck.burst < link.burst_ppm {
            state.burst_until = state.burst_until.max(now + link.burst);
        }
        if link.down || link.mtu_bytes > 0 && bytes.len() > link.mtu_bytes as usize {
            return Fate::Lost;
        }
        // What is lost by chance passed the bottleneck: the loss is behind it, as on a radio link at the end of a path.
        let Some(now) = state.pass(link, bytes.len(), now) else { return Fate::Lost };
        if luck.loss < link.loss_ppm || now < state.burst_until {
            return Fate::Lost;
        }
        let extra = if luck.reorder < link.reorder_ppm { link.latency + link.jitter } else { Duration::ZERO };
        let due = now + link.latency + extra + part_of(link.jitter, luck.jitter);
        let fate = self.send(from, to, bytes, due);
        if luck.duplicate < link.duplicate_ppm {
            self.send(from, to, bytes, now + link.latency + part_of(link.jitter, luck.duplicate_jitter));
        }
        fate
    }

    /// The next datagram due at `now`; ties by order of submission.
    pub fn poll(&mut self, now: Instant) -> Option<Delivery> {
        if self.poll_timeout()? > now {
            return None;
        }
        self.in_flight.pop().map(|flight| flight.delivery)
    }

    /// When the next one is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.in_flight.peek().map(|flight| flight.due)
    }

    /// Gives a delivered datagram's vector back.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        if self.free.len() < MAX_RECYCLED {
            self.free.push(bytes);
        }
    }

    /// How many datagrams are on their way.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    fn state(&mut self, from: u32, to: u32) -> &mut State {
        let seed = self.seed;
        self.links.entry((from, to)).or_insert_with(|| State {
            own: None,
            rng: Rng::new(link_seed(seed, from, to)),
            burst_until: Instant::ZERO,
            free_at_ns: 0,
        })
    }

    fn send(&mut self, from: u32, to: u32, bytes: &[u8], due: Instant) -> Fate {
        if self.in_flight.len() >= MAX_IN_FLIGHT {
            return Fate::Lost;
        }
        // As long as any, so that a recycled one never has to grow.
        let mut copy = self.free.pop().unwrap_or_else(|| Vec::with_capacity(MAX_DATAGRAM));
        copy.clear();
        copy.extend_from_slice(bytes);
        self.submitted += 1;
        self.in_flight.push(Flight {
            due,
            sequence: self.submitted,
            delivery: Delivery { from, to, bytes: copy },
        });
        Fate::Due(due)
    }
}

/// One datagram's numbers. All are drawn for every datagram, whatever the link does with them: changing a link's loss
/// leaves the delays of the datagrams that pass as they were.
struct Luck {
    loss: u32,
    burst: u32,
    duplicate: u32,
    reorder: u32,
    jitter: u64,
    duplicate_jitter: u64,
}

impl Luck {
    fn draw(rng: &mut Rng) -> Self {
        let mut chance = || rng.below(MILLION) as u32;
        Self {
            loss: chance(),
            burst: chance(),
            duplicate: chance(),
            reorder: chance(),
            jitter: rng.next_u64(),
            duplicate_jitter: rng.next_u64(),
        }
    }
}

/// `luck / 2^64` of `whole`, in µs, always below it.
fn part_of(whole: Duration, luck: u64) -> Duration {
    let micros = whole.as_micros() as u64;
    Duration::from_micros(((u128::from(luck) * u128::from(micros)) >> 64) as u64)
}

/// Each link has its own generator: traffic on one does not change another's luck.
fn link_seed(seed: u64, from: u32, to: u32) -> u64 {
    let link = (u64::from(from) << 32) | u64::from(to);
    seed ^ (link + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The earliest is the greatest, as the heap wants it.
impl Ord for Flight {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.sequence).cmp(&(self.due, self.sequence))
    }
}
impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Flight {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Flight {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_calls_give_the_same_deliveries() {
        assert_eq!(run(7, BAD, 2000), run(7, BAD, 2000));
        assert_ne!(run(7, BAD, 2000), run(8, BAD, 2000));
    }

    #[test]
    fn loss_and_duplicates_come_at_their_rates() {
        let link = Link { loss_ppm: 100_000, duplicate_ppm: 50_000, ..Link::default() };
        let arrived = run(1, link, 20_000);
        let mut numbers: Vec<u32> = arrived.iter().map(|&(number, _)| number).collect();
        let copies = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        let (lost, doubled) = (20_000 - numbers.len(), copies - numbers.len());
        assert!((1800..2200).contains(&lost), "{lost} of 20,000 lost, 2,000 expected");
        assert!((780..1020).contains(&doubled), "{doubled} doubled, 900 expected");
    }

    #[test]
    fn delay_stays_between_latency_and_latency_plus_jitter() {
        let link = Link { latency: ms(40), jitter: ms(10), duplicate_ppm: 500_000, ..Link::default() };
        let delays: Vec<u64> =
            run(2, link, 5000).iter().map(|&(number, at)| at.0 - u64::from(number) * 1000).collect();
        assert!(delays.iter().all(|delay| (40_000..50_000).contains(delay)));
        assert!(delays.iter().any(|delay| *delay < 40_300) && delays.iter().any(|delay| *delay > 49_700));
    }

    #[test]
    fn a_burst_loses_everything_for_its_length_and_then_ends() {
        let mut netem = Netem::new(3);
        netem.set_link(0, 1, Link { burst_ppm: 1_000_000, burst: ms(100), ..Link::default() });
        assert_eq!(netem.submit(0, 1, b"begins it", Instant::ZERO), Fate::Lost);
        netem.set_link(0, 1, Link::default());
        assert_eq!(netem.submit(0, 1, b"within", Instant::from_millis(99)), Fate::Lost);
        let after = Instant::from_millis(100);
        assert_eq!(netem.submit(0, 1, b"after", after), Fate::Due(after));
        assert_eq!(netem.submit(1, 0, b"other direction", Instant::ZERO), Fate::Due(Instant::ZERO));
    }

    #[test]
    fn a_reordered_datagram_is_overtaken_by_the_next() {
        let mut netem = Netem::new(4);
        let link = Link { latency: ms(10), ..Link::default() };
        netem.set_link(0, 1, Link { reorder_ppm: 1_000_000, ..link });
        assert_eq!(netem.submit(0, 1, &[1], Instant::ZERO), Fate::Due(Instant::from_millis(20)));
        netem.set_link(0, 1, link);
        netem.submit(0, 1, &[2], Instant::from_millis(5));
        assert_eq!(drain(&mut netem, Instant::from_millis(60)), [(2, ms(15)), (1, ms(20))]);
    }

    #[test]
    fn deliveries_come_by_due_time_then_by_order_of_submission() {
        let mut netem = Netem::new(5);
        netem.set_link(9, 1, Link { latency: ms(5), ..Link::default() });
        netem.submit(9, 1, &[1], Instant::ZERO);
        for number in 2..10 {
            netem.submit(100 + u32::from(number), 1, &[number], Instant::from_millis(5));
        }
        assert_eq!(netem.poll_timeout(), Some(Instant::from_millis(5)));
        assert!(netem.poll(Instant(4999)).is_none());
        let order: Vec<u8> =
            drain(&mut netem, Instant::from_millis(5)).iter().map(|&(n, _)| n as u8).collect();
        assert_eq!(order, (1..10).collect::<Vec<_>>());
        assert_eq!(netem.poll_timeout(), None);
    }

    #[test]
    fn a_changed_link_leaves_datagrams_in_flight_their_time() {
        let mut netem = Netem::new(6);
        netem.set_default_link(Link { latency: ms(50), ..Link::default() });
        netem.submit(0, 1, &[1], Instant::ZERO);
        netem.set_link(0, 1, Link { down: true, ..Link::default() });
        assert_eq!(netem.submit(0, 1, &[2], Instant::ZERO), Fate::Lost);
        assert!(netem.link(0, 1).down && !netem.link(1, 0).down);
        assert_eq!(drain(&mut netem, Instant::from_millis(60)), [(1, ms(50))]);
    }

    #[test]
    fn traffic_on_one_link_does_not_change_the_luck_of_another() {
        let run_beside = |others: u32| {
            let mut netem = Netem::new(11);
            netem.set_default_link(BAD);
            let mut fates = Vec::new();
            for number in 0..500_u64 {
                for other in 0..others {
                    netem.submit(other + 2, 1, b"noise", Instant::from_millis(number));
                }
                fates.push(netem.submit(0, 1, b"watched", Instant::from_millis(number)));
            }
            fates
        };
        assert_eq!(run_beside(0), run_beside(3));
    }

    #[test]
    fn in_flight_datagrams_are_bounded_and_vectors_are_used_again() {
        let mut netem = Netem::new(12);
        for _ in 0..MAX_IN_FLIGHT {
            assert_eq!(netem.submit(0, 1, b"", Instant::ZERO), Fate::Due(Instant::ZERO));
        }
        assert_eq!(netem.submit(0, 1, b"one too many", Instant::ZERO), Fate::Lost);
        while let Some(delivery) = netem.poll(Instant::ZERO) {
            netem.recycle(delivery.bytes);
        }
        assert_eq!(netem.free.len(), MAX_RECYCLED);
        netem.submit(0, 1, b"next", Instant::ZERO);
        assert_eq!(netem.free.len(), MAX_RECYCLED - 1);
    }

    #[test]
    fn a_bottleneck_passes_one_datagram_after_the_other_at_its_rate() {
        let mut netem = Netem::new(13);
        netem.set_default_link(Link { latency: ms(10), rate_bytes_s: 100_000, ..Link::default() });
        for number in 0..3 {
            netem.submit(0, 1, &[number; 500], Instant::ZERO);
        }
        // Idle since 15 ms, then one more: it waits for nobody.
        netem.submit(0, 1, &[3; 500], Instant::from_millis(20));
        let arrived = drain(&mut netem, Instant::from_millis(100));
        assert_eq!(arrived, [(0, ms(15)), (1, ms(20)), (2, ms(25)), (3, ms(35))]);
        // A fast one keeps its rate: 10,000 × 1000 bytes at 1.7 GB/s, where each takes 0.588 µs.
        netem.set_default_link(Link { rate_bytes_s: 1_700_000_000, ..Link::default() });
        for _ in 0..9999 {
            netem.submit(2, 3, &[0; 1000], Instant::ZERO);
        }
        let last = netem.submit(2, 3, &[0; 1000], Instant::ZERO);
        assert!(matches!(last, Fate::Due(Instant(5877..=5888))), "{last:?}, 5882 µs expected");
    }

    #[test]
    fn a_full_queue_drops_what_comes_and_takes_again_when_it_has_drained() {
        let mut netem = Netem::new(14);
        let link = Link { rate_bytes_s: 100_000, queue_bytes: 1200, ..Link::default() };
        netem.set_default_link(link);
        let mut fate = |size: usize, at| netem.submit(0, 1, &vec![0; size], Instant::from_millis(at));
        assert_eq!(fate(500, 0), Fate::Due(Instant::from_millis(5)));
        assert_eq!(fate(500, 0), Fate::Due(Instant::from_millis(10)));
        assert_eq!(fate(500, 0), Fate::Lost);
        assert_eq!(fate(200, 0), Fate::Due(Instant::from_millis(12)));
        assert_eq!(fate(500, 5), Fate::Due(Instant::from_millis(17)));
        assert_eq!(fate(500, 5), Fate::Lost);
        assert_eq!(fate(5000, 17), Fate::Due(Instant::from_millis(67)));
    }

    #[test]
    fn a_datagram_over_the_links_size_vanishes_and_takes_no_time_of_the_bottleneck() {
        let mut netem = Netem::new(15);
        netem.set_default_link(Link { rate_bytes_s: 1_000_000, mtu_bytes: 1240, ..Link::default() });
        assert_eq!(netem.submit(0, 1, &[0; 1241], Instant::ZERO), Fate::Lost);
        assert_eq!(netem.submit(0, 1, &[0; 1240], Instant::ZERO), Fate::Due(Instant(1240)));
    }

    const BAD: Link = Link {
        latency: Duration::from_millis(30),
        jitter: Duration::from_millis(20),
        loss_ppm: 50_000,
        burst_ppm: 2_000,
        burst: Duration::from_millis(50),
        duplicate_ppm: 20_000,
        reorder_ppm: 20_000,
        down: false,
        rate_bytes_s: 0,
        queue_bytes: 0,
        mtu_bytes: 0,
    };

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Sends one numbered datagram per ms; what arrived, and when.
    fn run(seed: u64, link: Link, count: u32) -> Vec<(u32, Instant)> {
        let mut netem = Netem::new(seed);
        netem.set_default_link(link);
        for number in 0..count {
            netem.submit(0, 1, &number.to_le_bytes(), Instant::from_millis(number.into()));
        }
        let mut arrived = Vec::new();
        while let Some(at) = netem.poll_timeout() {
            let delivery = netem.poll(at).expect("poll_timeout named this instant");
            let number = u32::from_le_bytes(delivery.bytes[..].try_into().expect("four bytes were sent"));
            arrived.push((number, at));
        }
        arrived
    }

    /// First byte and time of everything due until `end`.
    fn drain(netem: &mut Netem, end: Instant) -> Vec<(u32, Duration)> {
        let mut arrived = Vec::new();
        while let Some(at) = netem.poll_timeout().filter(|&at| at <= end) {
            let delivery = netem.poll(at).expect("poll_timeout named this instant");
            arrived.push((delivery.bytes[0].into(), at.since(Instant::ZERO)));
        }
        arrived
    }
}
