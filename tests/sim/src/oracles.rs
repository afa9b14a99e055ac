//! What must always hold, judged from what each peer's game was told; looked at after every event.
//!
//! Fed by: the world, which reports what each peer saw. Yields: violations, each one sentence.
//! Never: asks the library whether it was right. Each oracle is shown to fail in `tests/oracles.rs`.

use crate::trace::Trace;
use retick::base::{Frame, Input, Instant, Slot};
use retick::bridge::StartInfo;
use std::collections::BTreeMap;
use std::time::Duration;

/// Streams of the application, and what the world sends on them.
pub const ALL_RELIABLE: [u8; 2] = [0, 1];
/// Reliable messages to one peer.
pub const PAIR_RELIABLE: [u8; 2] = [2, 3];
/// Unreliable messages to all.
pub const ALL_UNRELIABLE: u8 = 4;
/// Unreliable messages to all, of which an older one is dropped.
pub const ALL_NEWEST: u8 = 5;

/// What the game was told about one peer's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Its process runs.
    Alive,
    /// Its process died at this time.
    Crashed(Instant),
    /// It said goodbye.
    Left(Instant),
}

/// How often a sample was taken, per slot: what makes a confirmed input right.
#[derive(Clone, Copy, Debug)]
pub struct Player {
    /// The habit.
    pub trace: Trace,
    /// Its seed.
    pub seed: u64,
    /// The delay at the start.
    pub delay: u32,
    /// Whether it changes in play.
    pub delay_changes: bool,
}

#[derive(Default)]
struct View {
    start: Option<StartInfo>,
    /// By frame: a digest of the confirmed inputs of all slots, and who had left.
    rows: Vec<u64>,
    /// By frame: the digest of the state before it.
    digests: Vec<u64>,
    ends: BTreeMap<Slot, Frame>,
    cut_off: bool,
    life: Option<Life>,
    /// By slot: the sample that the last confirmed input was, and the last frame at which the delay changed.
    last_sample: BTreeMap<Slot, (i32, Frame)>,
    /// By (sender, stream): the next number of a reliable message.
    next_in: BTreeMap<(usize, u8), u32>,
    /// By (receiver, stream): how many were accepted from this game.
    sent: BTreeMap<(usize, u8), u32>,
    /// By (sender, stream): the numbers of unreliable messages.
    unreliable: BTreeMap<(usize, u8), Vec<u32>>,
}

/// Two peers differ; not wrong if one of them turns out to have been cut before that frame.
#[derive(Clone, Debug)]
struct Conflict {
    a: usize,
    b: usize,
    frame: Frame,
    what: String,
}

/// All oracles of one world.
pub struct Oracles {
    suspect: Duration,
    players: BTreeMap<Slot, Player>,
    views: Vec<View>,
    conflicts: Vec<Conflict>,
    violations: Vec<String>,
    /// By (from, to): the last delivery, and when a silence of `suspect` was last seen to end.
    heard: Vec<Vec<(Instant, Option<Instant>)>>,
    /// Cuts of the living without a reason of its own: (who was told, who was cut, what is wrong).
    unreasoned: Vec<(usize, usize, String)>,
    excused_until: Option<Instant>,
    /// Peers with a planted bug, whose digests must not be believed.
    planted: Vec<usize>,
}

impl Oracles {
    /// For so many peers, which suspect each other after `suspect`.
    pub fn new(peers: usize, suspect: Duration) -> Self {
        Self {
            suspect,
            players: BTreeMap::new(),
            views: (0..peers).map(|_| View::default()).collect(),
            conflicts: Vec::new(),
            violations: Vec::new(),
            heard: vec![vec![(Instant::ZERO, None); peers]; peers],
            unreasoned: Vec::new(),
            excused_until: None,
            planted: Vec::new(),
        }
    }

    /// Who plays a slot, and how.
    pub fn set_player(&mut self, slot: Slot, player: Player) {
        self.players.insert(slot, player);
    }

    /// This peer's state will go wrong on purpose.
    pub fn plant(&mut self, peer: usize) {
        self.planted.push(peer);
    }

    /// What was found so far; empty when all is well.
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    fn violate(&mut self, what: String) {
        if self.violations.len() < 20 {
            self.violations.push(what);
        }
    }

    /// The last frame of `peer`'s slot as `by` knows it, if it has left.
    pub fn end_of(&self, by: usize, slot: Slot) -> Option<Frame> {
        self.views[by].ends.get(&slot).copied()
    }

    /// How many frames `peer` has confirmed, as reported.
    pub fn confirmed_frames(&self, peer: usize) -> i32 {
        self.views[peer].rows.len() as i32
    }

    /// Whether `by`'s timeline still has `peer` in it.
    pub fn is_member(&self, by: usize, peer: usize) -> bool {
        let (Some(start), Some(other)) = (&self.views[by].start, &self.views[peer].start) else {
            return false;
        };
        Slot::all().any(|s| start.slots[s.index()] == Some(other.us) && !self.views[by].ends.contains_key(&s))
    }

    /// The match began at `peer`.
    pub fn started(&mut self, peer: usize, start: StartInfo) {
        for other in 0..self.views.len() {
            let Some(theirs) = &self.views[other].start else { continue };
            if (theirs.seed, theirs.slots, theirs.frame0_at) != (start.seed, start.slots, start.frame0_at) {
                let theirs = *theirs;
                self.violate(format!("{peer} and {other} began different matches: {start:?} and {theirs:?}"));
            }
            if theirs_is_us(&self.views[other], &start) {
                self.violate(format!("{peer} and {other} are both member {}", start.us));
            }
        }
        if self.views[peer].start.replace(start).is_some() {
            self.violate(format!("{peer} began twice"));
        }
    }

    /// Its process died, or it said goodbye.
    pub fn ended(&mut self, peer: usize, life: Life) {
        self.views[peer].life = Some(life);
    }

    fn is_alive(&self, peer: usize) -> bool {
        !matches!(self.views[peer].life, Some(Life::Crashed(_) | Life::Left(_)))
    }

    /// `peer`'s next frame is confirmed, with these inputs of the slots in use, and this digest of the state before it.
    /// `calm`: nothing was wrong for long, so that a difference cannot be explained by a cut under way.
    pub fn confirmed(&mut self, peer: usize, inputs: &[(Slot, Option<Input>)], digest: u64, calm: bool) {
        let frame = Frame(self.views[peer].rows.len() as i32);
        let mut row = 0_u64;
        for &(slot, input) in inputs {
            let left = self.views[peer].ends.get(&slot).is_some_and(|&end| frame >= end);
            let Some(input) = input else {
                self.violate(format!(
                    "{peer} says that frame {frame} is confirmed but holds no input of slot {slot}"
                ));
                continue;
            };
            if left {
                if input != Input::EMPTY {
                    self.violate(format!("{peer} has an input of slot {slot} at {frame}, after it left"));
                }
            } else {
                self.check_input(peer, slot, frame, &input);
            }
            let mut bytes = [0; 70];
            bytes[..input.len()].copy_from_slice(input.as_slice());
            bytes[65] = input.len() as u8;
            bytes[66] = u8::from(left);
            bytes[67] = slot.get();
            row = retick::kit::hash::combine([row, retick::kit::hash::digest(&bytes)]);
        }
        self.views[peer].rows.push(row);
        self.views[peer].digests.push(digest);
        for other in 0..self.views.len() {
            if other == peer {
                continue;
            }
            let theirs = &self.views[other];
            let place = frame.0 as usize;
            let (Some(&their_row), Some(&their_digest)) = (theirs.rows.get(place), theirs.digests.get(place))
            else {
                continue;
            };
            if their_row != row {
                self.conflict(
                    peer,
                    other,
                    frame,
                    format!("the confirmed inputs of frame {frame} differ"),
                    calm,
                );
            } else if their_digest != digest
                && !self.planted.contains(&peer)
                && !self.planted.contains(&other)
            {
                let earlier = frame - 1;
                self.conflict(peer, other, earlier, format!("the states before frame {frame} differ"), calm);
            }
        }
    }

    /// Every frame has exactly one input, the one that its owner handed in.
    fn check_input(&mut self, peer: usize, slot: Slot, frame: Frame, input: &Input) {
        let Some(&player) = self.players.get(&slot) else { return };
        if !player.delay_changes {
            let expected = player.trace.expected(player.seed, slot, frame, player.delay);
            if expected != *input {
                self.violate(format!(
                    "{peer} confirmed {input:?} of slot {slot} at {frame}, but its owner handed in {expected:?}"
                ));
            }
            return;
        }
        let Some(low) = Trace::read_at(input) else {
            if frame.0 >= player.delay as i32 {
                self.violate(format!("{peer} confirmed an empty input of slot {slot} at {frame}"));
            }
            return;
        };
        let read_at = Frame::from_low16(low, frame);
        if player.trace.sample(player.seed, slot, read_at) != *input {
            self.violate(format!(
                "{peer} confirmed {input:?} of slot {slot} at {frame}, which nobody handed in"
            ));
        }
        let (before, changed_at) =
            self.views[peer].last_sample.get(&slot).copied().unwrap_or((-1, Frame(-1000)));
        let advanced = read_at.0 - before;
        let mut last_change = changed_at;
        if advanced != 1 {
            // Raising repeats one, lowering drops one, no oftener than every 15 frames of its owner.
            if !(0..=2).contains(&advanced) || frame - changed_at < 14 {
                self.violate(format!(
                    "{peer}: slot {slot} jumps from the sample of {before} to that of {read_at} at frame {frame}, last at {changed_at}"
                ));
            }
            last_change = frame;
        }
        self.views[peer].last_sample.insert(slot, (read_at.0, last_change));
    }

    fn conflict(&mut self, a: usize, b: usize, frame: Frame, what: String, calm: bool) {
        let conflict = Conflict { a, b, frame, what };
        if calm && !self.is_excused(&conflict) {
            self.violate(format!("{a} and {b}: {}", conflict.what));
        } else if !self.conflicts.iter().any(|c| c.a == a && c.b == b) {
            // The first of a pair is the earliest frame; it is judged when the run is over.
            self.conflicts.push(conflict);
        }
    }

    /// One of the two went on without the other, and the frame lies behind the first cut that only one of them made.
    fn is_excused(&self, conflict: &Conflict) -> bool {
        let (a, b) = (&self.views[conflict.a], &self.views[conflict.b]);
        let has_cut = |by: &View, of: &View| {
            let Some(start) = &of.start else { return false };
            Slot::all().any(|s| start.slots[s.index()] == Some(start.us) && by.ends.contains_key(&s))
        };
        let parted_at = Slot::all()
            .filter(|slot| a.ends.get(slot) != b.ends.get(slot))
            .flat_map(|slot| a.ends.get(&slot).into_iter().chain(b.ends.get(&slot)))
            .min();
        (has_cut(a, b) || has_cut(b, a)) && parted_at.is_some_and(|&at| at <= conflict.frame)
    }

    /// `peer` was told that a slot has left.
    pub fn slot_left(&mut self, peer: usize, slot: Slot, end: Frame, calm: bool) {
        if let Some(before) = self.views[peer].ends.insert(slot, end) {
            self.violate(format!("{peer} was told twice that slot {slot} left, at {before} and {end}"));
        }
        if (end.0 as usize) < self.views[peer].rows.len() {
            let confirmed = self.views[peer].rows.len();
            self.violate(format!(
                "{peer} had confirmed {confirmed} frames when slot {slot} was cut at {end}"
            ));
        }
        for other in 0..self.views.len() {
            if let Some(&theirs) = self.views[other].ends.get(&slot).filter(|_| other != peer)
                && theirs != end
            {
                let what = format!("slot {slot} ends at {end} for one and at {theirs} for the other");
                self.conflict(peer, other, end.min(theirs), what, calm);
            }
        }
    }

    /// `peer` was told that the others went on without it.
    pub fn cut_off(&mut self, peer: usize) {
        self.views[peer].cut_off = true;
    }

    /// Whether `peer` was told so.
    pub fn is_cut_off(&self, peer: usize) -> bool {
        self.views[peer].cut_off
    }

    /// A datagram arrived.
    pub fn delivered(&mut self, from: usize, to: usize, at: Instant) {
        let suspect = self.suspect;
        let (last, silent) = &mut self.heard[from][to];
        if at.since(*last) >= suspect {
            *silent = Some(at);
        }
        *last = at;
    }

    fn was_silent(&self, from: usize, to: usize, suspect: Duration, now: Instant) -> bool {
        let (last, silent) = self.heard[from][to];
        now.since(last) >= suspect || silent.is_some_and(|at| now.since(at) < Duration::from_secs(2))
    }

    /// Several sides condemn each other, and meet again in the middle of it: who had a reason cannot be told from outside.
    pub fn excuse_cuts(&mut self, until: Option<Instant>) {
        self.excused_until = until;
    }

    /// Whether they are.
    pub fn are_cuts_excused(&self) -> bool {
        self.excused_until.is_some()
    }

    /// A member that lives was cut: more than half of the others must have had a reason.
    pub fn judge_cut(&mut self, peer: usize, leaver: usize, now: Instant) {
        if !self.is_alive(leaver) || peer == leaver || self.excused_until.is_some_and(|until| now < until) {
            return;
        }
        // Clocks run up to 0.5 % apart.
        let suspect = self.suspect.mul_f64(0.985);
        let others: Vec<usize> = (0..self.views.len())
            .filter(|&o| o != leaver && self.is_alive(o) && (o == peer || self.is_member(peer, o)))
            .collect();
        // The votes of those who are silent themselves may count or not, as the agreement goes.
        let heard: Vec<usize> = others
            .iter()
            .copied()
            .filter(|&o| o == peer || !self.was_silent(o, peer, suspect, now))
            .collect();
        let had_reason = |voters: &[usize]| {
            let silent = voters.iter().filter(|&&o| self.was_silent(leaver, o, suspect, now)).count();
            // One who hears nobody goes on alone, and the others must let it go.
            let deaf = voters.iter().filter(|&&o| self.was_silent(o, leaver, suspect, now)).count();
            silent.max(deaf) * 2 > voters.len()
        };
        // One round may put out several: when it opened, they voted too.
        let all: Vec<usize> = (0..self.views.len()).filter(|&o| o != leaver && self.is_alive(o)).collect();
        if !had_reason(&others) && !had_reason(&heard) && !had_reason(&all) {
            // Who was put out by the others lets them all go: then it is their cut that needs a reason.
            let what = format!("{leaver} lives and was cut, as {peer} was told at {now}, but most heard it");
            self.unreasoned.push((peer, leaver, what));
        }
    }

    /// `peer`'s game handed a reliable message in, and it was accepted.
    pub fn sent(&mut self, peer: usize, to: usize, stream: u8) {
        *self.views[peer].sent.entry((to, stream)).or_default() += 1;
    }

    /// How many reliable messages `peer` sent there: the number of the next one.
    pub fn next_number(&self, peer: usize, to: usize, stream: u8) -> u32 {
        self.views[peer].sent.get(&(to, stream)).copied().unwrap_or(0)
    }

    /// A message came.
    pub fn message(&mut self, peer: usize, from: usize, stream: u8, number: u32) {
        let view = &mut self.views[peer];
        if ALL_RELIABLE.contains(&stream) || PAIR_RELIABLE.contains(&stream) {
            let next = view.next_in.entry((from, stream)).or_default();
            let expected = *next;
            *next = number + 1;
            if number != expected {
                self.violate(format!(
                    "{peer} got reliable message {number} of {from} on stream {stream} instead of {expected}"
                ));
            }
            return;
        }
        let seen = view.unreliable.entry((from, stream)).or_default();
        let is_old = stream == ALL_NEWEST && seen.last().is_some_and(|&last| number < last);
        if seen.contains(&number) || is_old {
            self.violate(format!(
                "{peer} got unreliable message {number} of {from} on stream {stream} twice or late"
            ));
        } else {
            // Only recent ones can come twice.
            if seen.len() == 64 {
                seen.remove(0);
            }
            seen.push(number);
        }
    }

    /// `peer` was told that its confirmed state differs from another's.
    pub fn desync(&mut self, peer: usize, with: usize, frame: Frame) {
        if !self.planted.contains(&peer) && !self.planted.contains(&with) {
            self.violate(format!("{peer} was told of a desync with {with} at {frame} that nobody planted"));
        }
    }

    /// What each peer's clock shows as mesh time at one instant.
    pub fn mesh_times(&mut self, times: &[(usize, Instant)], tolerance: Duration) {
        let (Some(low), Some(high)) =
            (times.iter().min_by_key(|(_, t)| t.0), times.iter().max_by_key(|(_, t)| t.0))
        else {
            return;
        };
        let apart = high.1.since(low.1);
        if apart > tolerance {
            let (a, b) = (low.0, high.0);
            self.violate(format!("mesh time of {a} and {b} differs by {apart:?} (at most {tolerance:?})"));
        }
    }

    /// A queue that can be seen.
    pub fn queue(&mut self, peer: usize, what: &str, used: u64, limit: u64) {
        if used > limit {
            self.violate(format!("{peer}: {what} holds {used}, its limit is {limit}"));
        }
    }

    /// After healing: `progress` is what each remaining peer did in a while, in (frames begun, frames confirmed).
    pub fn progress(&mut self, progress: &[(usize, i32, i32)], at_least: i32) {
        for &(peer, begun, confirmed) in progress {
            if begun < at_least || confirmed < at_least {
                self.violate(format!(
                    "{peer} began {begun} and confirmed {confirmed} frames after healing; {at_least} is the least"
                ));
            }
            let mut all = 0..self.views.len();
            if let Some(out) =
                all.find(|&p| self.views[p].cut_off && self.is_alive(p) && self.is_member(peer, p))
            {
                self.violate(format!("{out} is cut off, but for {peer} it is a member"));
            }
            for &(other, ..) in progress {
                let together = self.is_member(peer, other);
                if together != self.is_member(other, peer) {
                    self.violate(format!("{other} is a member for {peer}, but not the other way round"));
                }
                // Equal halves both go on: which of them wins is a question for the game.
                let side =
                    |of: usize| progress.iter().filter(|&&(p, ..)| p == of || self.is_member(of, p)).count();
                if !together && side(peer) != side(other) {
                    self.violate(format!("{peer} and {other} both play on, but not together"));
                }
            }
        }
    }

    /// The run is over and all links were good for long: nothing may be open.
    pub fn finish(&mut self) {
        for conflict in std::mem::take(&mut self.conflicts) {
            if !self.is_excused(&conflict) {
                self.violate(format!("{} and {}: {}", conflict.a, conflict.b, conflict.what));
            }
        }
        let unreasoned = std::mem::take(&mut self.unreasoned);
        for (peer, leaver, what) in &unreasoned {
            let was_put_out = self.views[*leaver].start.is_some() && !self.is_member(*leaver, *peer);
            if !was_put_out || unreasoned.iter().any(|(_, of, _)| of == peer) {
                self.violate(what.clone());
            }
        }
        for from in 0..self.views.len() {
            for (&(to, stream), &sent) in &self.views[from].sent.clone() {
                let both = self.is_alive(from)
                    && self.is_alive(to)
                    && self.is_member(from, to)
                    && self.is_member(to, from);
                let got = self.views[to].next_in.get(&(from, stream)).copied().unwrap_or(0);
                if both && got != sent && !self.views[from].cut_off && !self.views[to].cut_off {
                    self.violate(format!(
                        "{to} got {got} of the {sent} reliable messages of {from} on stream {stream}"
                    ));
                }
            }
        }
    }
}

fn theirs_is_us(view: &View, start: &StartInfo) -> bool {
    view.start.as_ref().is_some_and(|theirs| theirs.us == start.us)
}
