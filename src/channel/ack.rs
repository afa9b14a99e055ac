//! Which packets came, which of ours arrived, and which are lost.
//!
//! `Incoming` is the replay window, the 33 packets that one header confirms and the 256 more of an `EXT_ACK`; `Outgoing`
//! remembers when each packet left and decides loss as RACK does: a packet is lost when one sent clearly later was acknowledged.
//! Fed by: authenticated headers and packets sent. Yields: acknowledged and lost counters, loss counts.
//! Never: believes an acknowledgement of a packet that was not sent. A link with 32,768 packets unacknowledged is dead:
//! 16 bits could no longer tell which one is meant.

use crate::base::Instant;
use crate::base::limits::{MAX_SENT_RING, REPLAY_WINDOW, SENT_RING};
use crate::wire::ext_ack::{EXT_BITS, ExtAck};
use crate::wire::header::counter_near;
use std::time::Duration;

const WORDS: usize = (REPLAY_WINDOW / 64) as usize;
/// Packets that one header confirms besides the newest.
const ACK_BITS: u64 = 32;
/// So many packets without one of ours are a burst, whose packets may overtake each other by more than a header tells.
const BURST: u8 = 6;
/// A packet without acknowledgement after this long is as good as lost: no room is made to remember it.
const REMEMBER: Duration = Duration::from_secs(2);
/// Loss is counted over this long.
const LOSS_WINDOW: Duration = Duration::from_secs(1);

/// What came from the other side.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    newest: u64,
    /// Bit `c % REPLAY_WINDOW`: counter `c` came, for the window's counters up to `newest`.
    seen: [u64; WORDS],
    /// Packets that came since our last one.
    uncovered: u8,
    /// One of them was too late for the header's bits.
    late: bool,
    /// The extended bits of our last packet are told once more, since that packet may be lost.
    again: bool,
    loss: LossCount,
}

impl Incoming {
    #[cfg(test)]
    pub(super) fn start_at(&mut self, counter: u64) {
        self.newest = counter;
    }

    /// Highest authenticated counter; 0 before the first.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// The 64-bit counter that these low bits most likely mean.
    pub(super) fn rebuild(&self, low: u16) -> u64 {
        counter_near(low, self.newest)
    }

    /// Whether a packet with this counter may still be opened; read-only.
    pub(super) fn is_fresh(&self, counter: u64) -> bool {
        // Before the first packet `newest` is 0, and a counter below it wraps to a huge one.
        if counter == 0 || counter > self.newest.saturating_add(1 << 15) {
            return false;
        }
        counter > self.newest || (self.newest - counter < REPLAY_WINDOW && !self.has(counter))
    }

    fn has(&self, counter: u64) -> bool {
        let bit = counter % REPLAY_WINDOW;
        self.seen[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    /// Notes a packet that opened.
    pub(super) fn commit(&mut self, counter: u64, now: Instant) {
        if counter > self.newest {
            let ahead = counter - self.newest;
            if ahead >= REPLAY_WINDOW {
                self.seen = [0; WORDS];
            } else {
                for passed in self.newest + 1..counter {
                    let bit = passed % REPLAY_WINDOW;
                    self.seen[(bit / 64) as usize] &= !(1 << (bit % 64));
                }
            }
            // Counters with low bits 0 are never used, so they are no gap.
            let unused = (counter >> 16) - (self.newest >> 16);
            self.loss.add(ahead - unused, 1, now);
            self.newest = counter;
        } else {
            self.late |= self.newest - counter > ACK_BITS;
            self.loss.add(0, 1, now);
        }
        let bit = counter % REPLAY_WINDOW;
        self.seen[(bit / 64) as usize] |= 1 << (bit % 64);
        self.uncovered = self.uncovered.saturating_add(1);
    }

    /// Packets that came since our last one.
    pub(super) fn uncovered(&self) -> u8 {
        self.uncovered
    }

    /// What our next packet should tell beside its header: after a burst, after a latecomer, and once more after either.
    pub(super) fn extended(&self) -> Option<ExtAck> {
        let wanted = self.newest > ACK_BITS + 1 && (self.uncovered > BURST || self.late || self.again);
        wanted.then(|| {
            let mut bits = [u64::MAX; 4];
            let end = self.newest - ACK_BITS;
            // Counters that were never used are no gap.
            let used = (end.saturating_sub(EXT_BITS)..end).filter(|&counter| counter as u16 != 0);
            for counter in used.filter(|&counter| !self.has(counter)) {
                let i = end - 1 - counter;
                bits[(i / 64) as usize] ^= 1 << (i % 64);
            }
            ExtAck { bits }
        })
    }

    /// A packet of ours tells what came; with the extended bits, or it had no room for them.
    pub(super) fn note_told(&mut self, extended: bool) {
        let wanted = self.uncovered > BURST || self.late;
        self.again = wanted || self.again && !extended;
        (self.uncovered, self.late) = (0, false);
    }

    /// The ack fields of the next header.
    pub(super) fn ack(&self) -> (u16, u32) {
        if self.newest == 0 {
            return (0, u32::MAX);
        }
        // The 64 counters before the newest, the nearest in the top bit: two neighbouring words of the ring.
        let last = ((self.newest - 1) % REPLAY_WINDOW) as usize;
        let (word, bit) = (last / 64, last % 64);
        let mut window = self.seen[word] << (63 - bit);
        if bit < 63 {
            window |= self.seen[(word + WORDS - 1) % WORDS] >> (bit + 1);
        }
        let mut bits = window.reverse_bits() as u32;
        // What lies before the first counter, or was never used, is no gap: all ones take no bytes.
        if self.newest <= ACK_BITS {
            bits |= u32::MAX << (self.newest - 1);
        }
        let to_unused = u64::from(self.newest as u16);
        if (1..=ACK_BITS).contains(&to_unused) {
            bits |= 1 << (to_unused - 1);
        }
        (self.newest as u16, bits)
    }

    /// Lost on the way to us, of a million, over the last one to two seconds.
    pub(super) fn loss_ppm(&mut self, now: Instant) -> u32 {
        self.loss.ppm(now)
    }
}

/// Expected and arrived in this and the last window.
#[derive(Debug, Default)]
struct LossCount {
    since: Instant,
    expected: [u32; 2],
    arrived: [u32; 2],
}

impl LossCount {
    fn add(&mut self, expected: u64, arrived: u32, now: Instant) {
        self.turn(now);
        self.expected[0] = self.expected[0].saturating_add(expected.min(u64::from(u32::MAX)) as u32);
        self.arrived[0] = self.arrived[0].saturating_add(arrived);
    }

    fn turn(&mut self, now: Instant) {
        let passed = now.since(self.since);
        if passed < LOSS_WINDOW {
            return;
        }
        let keep = passed < 2 * LOSS_WINDOW;
        self.expected = [0, if keep { self.expected[0] } else { 0 }];
        self.arrived = [0, if keep { self.arrived[0] } else { 0 }];
        self.since = now;
    }

    fn ppm(&mut self, now: Instant) -> u32 {
        self.turn(now);
        let expected = u64::from(self.expected[0]) + u64::from(self.expected[1]);
        let arrived = u64::from(self.arrived[0]) + u64::from(self.arrived[1]);
        (expected.saturating_sub(arrived) * 1_000_000).checked_div(expected).unwrap_or(0) as u32
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fate {
    /// Never sent, or long forgotten.
    #[default]
    Unknown,
    InFlight,
    Acked,
    Lost,
}

/// What we sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    newest: u64,
    newest_acked: u64,
    /// What the newest ack said, itself in bit 0: only what it did not say is looked at again.
    known: u64,
    /// When the latest-sent packet that was acknowledged left.
    latest_acked_at: Instant,
    /// Every packet below is acknowledged, lost or forgotten.
    settled: u64,
    /// By counter, modulo their common length: a power of two that grows while more packets are under way.
    sent_at: Vec<Instant>,
    fate: Vec<Fate>,
    loss: LossCount,
}

/// What an acknowledgement came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It tells nothing, and is no lie either.
    Nothing,
    /// It is about what was never sent.
    Absurd,
    /// It was taken. How long the newest took, when that is news.
    Taken(Option<Duration>),
}

impl Outgoing {
    pub(super) fn new() -> Self {
        Self {
            newest: 0,
            newest_acked: 0,
            known: 0,
            latest_acked_at: Instant::ZERO,
            settled: 1,
            sent_at: vec![Instant::ZERO; SENT_RING],
            fate: vec![Fate::Unknown; SENT_RING],
            loss: LossCount::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn start_at(&mut self, counter: u64) {
        self.newest = counter;
        self.newest_acked = counter;
        self.settled = counter + 1;
    }

    #[cfg(test)]
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    #[cfg(test)]
    pub(super) fn ring(&self) -> usize {
        self.fate.len()
    }

    /// The newest packet that the other side has; 0 = none yet.
    pub(super) fn newest_acked(&self) -> u64 {
        self.newest_acked
    }

    fn index(&self, counter: u64) -> usize {
        counter as usize & (self.fate.len() - 1)
    }

    /// The counter of the next packet; those with low bits 0 are skipped, since an ack of 0 means none.
    pub(super) fn next_counter(&mut self, now: Instant) -> u64 {
        self.newest += 1;
        if self.newest as u16 == 0 {
            self.make_place(now);
            self.newest += 1;
        }
        let index = self.make_place(now);
        self.sent_at[index] = now;
        self.fate[index] = Fate::InFlight;
        self.newest
    }

    /// The place of the newest counter. Who is still under way there is lost from sight when there is no larger ring.
    fn make_place(&mut self, now: Instant) -> usize {
        let index = self.index(self.newest);
        if self.fate[index] == Fate::InFlight {
            if self.fate.len() < MAX_SENT_RING && now.since(self.sent_at[index]) < REMEMBER {
                self.grow();
                return self.index(self.newest);
            }
            self.loss.add(1, 0, now);
        }
        self.fate[index] = Fate::Unknown;
        index
    }

    fn grow(&mut self) {
        let old = self.fate.len();
        let (mut sent_at, mut fate) = (vec![Instant::ZERO; 2 * old], vec![Fate::Unknown; 2 * old]);
        for counter in self.newest.saturating_sub(old as u64)..self.newest {
            let (from, to) = (self.index(counter), counter as usize & (2 * old - 1));
            (sent_at[to], fate[to]) = (self.sent_at[from], self.fate[from]);
        }
        (self.sent_at, self.fate) = (sent_at, fate);
    }

    /// Takes a header's ack fields: tells each packet newly known to have arrived. `settle` follows, once the packet's
    /// `EXT_ACK` was taken too.
    pub(super) fn handle_ack(
        &mut self,
        ack: u16,
        bits: u32,
        now: Instant,
        mut tell: impl FnMut(u64),
    ) -> Heard {
        if ack == 0 || self.newest - self.newest_acked >= 1 << 15 {
            return Heard::Nothing;
        }
        let Some(newest) = self.acknowledged(ack) else { return Heard::Absurd };
        let mut said = u64::from(bits) << 1 | 1;
        let mut took = None;
        if newest >= self.newest_acked {
            let ahead = newest - self.newest_acked;
            let known = if ahead < 64 { self.known << ahead } else { 0 };
            self.known = said | known;
            said &= !known;
            if newest > self.newest_acked {
                self.newest_acked = newest;
                took = Some(now.since(self.sent_at[self.index(newest)]));
            }
        }
        self.note_arrivals(newest, said, now, &mut tell);
        Heard::Taken(took)
    }

    /// Takes the `EXT_ACK` beside a header's ack that was taken.
    pub(super) fn handle_extended(
        &mut self,
        ack: u16,
        extended: &ExtAck,
        now: Instant,
        mut tell: impl FnMut(u64),
    ) {
        let Some(newest) = self.acknowledged(ack) else { return };
        let mut behind = 1 + ACK_BITS;
        for &said in &extended.bits {
            self.note_arrivals(newest.saturating_sub(behind), said, now, &mut tell);
            behind += 64;
        }
    }

    /// The packet of ours that these low bits name, if it was sent.
    fn acknowledged(&self, ack: u16) -> Option<u64> {
        let newest = counter_near(ack, self.newest);
        (1..=self.newest).contains(&newest).then_some(newest)
    }

    /// Bit `i` of `said`: packet `newest - i` arrived.
    fn note_arrivals(&mut self, newest: u64, mut said: u64, now: Instant, tell: &mut impl FnMut(u64)) {
        while said != 0 {
            let back = u64::from(said.trailing_zeros());
            said &= said - 1;
            let Some(counter) = newest.checked_sub(back).filter(|&counter| counter > 0) else {
                break;
            };
            if self.note_arrival(counter, now) {
                tell(counter);
            }
        }
    }

    fn note_arrival(&mut self, counter: u64, now: Instant) -> bool {
        if counter + self.fate.len() as u64 <= self.newest || counter as u16 == 0 {
            return false;
        }
        let index = self.index(counter);
        match self.fate[index] {
            Fate::InFlight => self.loss.add(1, 1, now),
            // It was late, not lost.
            Fate::Lost => self.loss.add(0, 1, now),
            Fate::Acked | Fate::Unknown => return false,
        }
        self.fate[index] = Fate::Acked;
        self.latest_acked_at = self.latest_acked_at.max(self.sent_at[index]);
        true
    }

    /// Tells each packet newly known to be lost.
    pub(super) fn settle(&mut self, now: Instant, reordering: Duration, mut tell: impl FnMut(u64)) {
        self.settled = self.settled.max((self.newest + 1).saturating_sub(self.fate.len() as u64)).max(1);
        let mut all_settled = true;
        for counter in self.settled..=self.newest {
            let index = self.index(counter);
            if self.fate[index] == Fate::InFlight {
                if self.sent_at[index] + reordering > self.latest_acked_at {
                    // Those after it were sent later still.
                    break;
                }
                self.fate[index] = Fate::Lost;
                self.loss.add(1, 0, now);
                tell(counter);
            }
            if all_settled {
                self.settled = counter + 1;
            }
            all_settled &= self.fate[index] != Fate::InFlight;
        }
    }

    /// Lost on the way to the other side, of a million, over the last one to two seconds.
    pub(super) fn loss_ppm(&mut self, now: Instant) -> u32 {
        self.loss.ppm(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use std::collections::BTreeSet;

    #[test]
    fn the_replay_window_agrees_with_a_set_of_all_counters() {
        for start in [1, 65_000, 1 << 33] {
            let mut rng = Rng::new(start);
            let mut incoming = Incoming { newest: start, ..Incoming::default() };
            let mut came = BTreeSet::from([start]);
            incoming.commit(start, Instant::ZERO);
            for _ in 0..20_000 {
                let newest = incoming.newest();
                let back = if rng.chance_ppm(300_000) { rng.below(1200) } else { 0 };
                let counter = (newest + rng.below(12)).saturating_sub(back).max(start);
                let fresh = newest.saturating_sub(counter) < REPLAY_WINDOW && !came.contains(&counter);
                assert_eq!(incoming.is_fresh(counter), fresh, "{counter} of {newest}");
                if fresh && counter as u16 != 0 {
                    incoming.commit(counter, Instant::ZERO);
                    came.insert(counter);
                }
                let (ack, bits) = incoming.ack();
                assert_eq!(ack, incoming.newest() as u16);
                for i in 0..32 {
                    let Some(before) = (incoming.newest() - 1).checked_sub(i).filter(|&c| c >= start) else {
                        break;
                    };
                    assert_eq!(bits >> i & 1 == 1, before as u16 == 0 || came.contains(&before));
                }
                incoming.late = true;
                let extended = incoming.extended().map_or([0; 4], |extended| extended.bits);
                for i in 0..256 {
                    let Some(before) = incoming.newest().checked_sub(33 + i).filter(|&c| c >= start) else {
                        break;
                    };
                    let told = extended[(i / 64) as usize] >> (i % 64) & 1 == 1;
                    assert_eq!(told, before as u16 == 0 || came.contains(&before), "{before}");
                }
            }
        }
    }

    #[test]
    fn t39_counters_near_the_top_and_across_every_wrap_are_rebuilt_and_taken_once() {
        for newest in [65_530, (1 << 32) - 6, u64::MAX - 256, u64::MAX - 1, u64::MAX] {
            let mut incoming = Incoming { newest, ..Incoming::default() };
            incoming.commit(newest, Instant::ZERO);
            for back in 1..REPLAY_WINDOW {
                let counter = newest - back;
                assert_eq!(incoming.rebuild(counter as u16), counter, "{back} behind {newest}");
                assert!(incoming.is_fresh(counter), "{back} behind {newest}");
                incoming.commit(counter, Instant::ZERO);
                assert!(!incoming.is_fresh(counter), "{back} behind {newest}, again");
            }
            assert!(!incoming.is_fresh(newest) && !incoming.is_fresh(newest - REPLAY_WINDOW));
            for low in 0..=u16::MAX {
                let counter = incoming.rebuild(low);
                let is_ahead = counter > newest && counter - newest <= 1 << 15;
                assert_eq!(incoming.is_fresh(counter), is_ahead, "{counter} of {newest}");
            }
            for ahead in (1..300).filter(|ahead| newest.checked_add(*ahead).is_some()) {
                let counter = newest + ahead;
                assert_eq!(incoming.rebuild(counter as u16), counter);
                assert!(incoming.is_fresh(counter));
                incoming.commit(counter, Instant::ZERO);
                assert_eq!(incoming.ack().0, counter as u16);
            }
        }
    }

    #[test]
    fn an_ack_of_what_was_never_sent_changes_nothing() {
        let mut outgoing = Outgoing::new();
        for _ in 0..5 {
            outgoing.next_counter(Instant::ZERO);
        }
        for ack in (6..=u16::MAX).chain([0]) {
            let heard = |_| panic!("ack {ack} was believed");
            let taken = outgoing.handle_ack(ack, u32::MAX, Instant::ZERO, heard);
            assert_eq!(taken, if ack == 0 { Heard::Nothing } else { Heard::Absurd });
            outgoing.handle_extended(ack, &ExtAck { bits: [u64::MAX; 4] }, Instant::ZERO, heard);
        }
        let mut told = Vec::new();
        let taken = outgoing.handle_ack(5, 0b1000, Instant::from_millis(3), |news| told.push(news));
        assert_eq!(taken, Heard::Taken(Some(Duration::from_millis(3))));
        assert_eq!(told, [5, 1]);
    }

    #[test]
    fn a_packet_is_lost_when_one_sent_clearly_later_arrived_and_only_once() {
        let mut outgoing = Outgoing::new();
        for i in 0..5 {
            outgoing.next_counter(Instant::from_millis(i * 5));
        }
        let now = Instant::from_millis(100);
        let mut hear = |ack, bits| {
            let (mut arrived, mut lost) = (Vec::new(), Vec::new());
            outgoing.handle_ack(ack, bits, now, |packet| arrived.push(packet));
            outgoing.settle(now, Duration::from_millis(6), |packet| lost.push(packet));
            (arrived, lost)
        };
        assert_eq!(hear(3, 0), (vec![3], vec![1]));
        assert_eq!(hear(5, 0), (vec![5], vec![2]), "4 left only 5 ms before 5");
        assert_eq!(hear(5, 0b1111), (vec![4, 2, 1], vec![]));
        assert_eq!(outgoing.loss_ppm(now), 0, "late is not lost");
    }
}
