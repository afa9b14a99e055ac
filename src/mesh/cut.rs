//! The cut: how survivors agree on the last frame that counts of a peer that vanished. Protocol: `docs/protocol.md`, *Cut*.
//!
//! Fed by: whom this member and the others suspect, and the sections CUT, HAVE and COMMIT. Yields: slots to freeze, the
//! commit to apply, and what every packet must say meanwhile (`sections`). Messages are idempotent and repeated, so loss,
//! duplication and reordering need no case of their own.
//! Never: confirms or applies anything itself; the log and the session do, after the commit *and* all inputs before it.

use crate::base::limits::MAX_PEERS;
use crate::base::{Frame, PeerIndex, PeerSet, Slot};
use crate::wire::agreement::{Commit, Cut, Epoch, Have, SlotEnds};
use std::collections::VecDeque;

/// What the owner must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A round is open: accept nothing more from these peers' slots, and again from all other members'.
    Freeze(PeerSet),
    /// Agreed: these slots end there.
    Commit(Commit),
    /// The others go on without us.
    CutOff,
    /// These members went on without us although they are not the larger part: for us it is they who left.
    Defected(PeerSet),
}

#[derive(Clone, Debug)]
struct Round {
    cut: Cut,
    /// The answers heard so far, our own included; every member repeats them.
    haves: [Option<SlotEnds>; MAX_PEERS],
}

/// The ends of what this member holds: a slot's end and owner, or nothing for a slot not in use.
pub type Ends<'a> = &'a dyn Fn(Slot) -> Option<(Frame, PeerIndex)>;

/// The cut core of one node, for one match.
#[derive(Clone, Debug)]
pub struct CutCore {
    us: PeerIndex,
    /// Who takes part in the timeline; shrinks with every commit.
    members: PeerSet,
    /// Everybody who ever left it.
    gone: PeerSet,
    /// Whom each member says it suspects, from its newest packet.
    suspected_by: [PeerSet; MAX_PEERS],
    /// Members silent to us for so long that their votes are not waited for.
    expired: PeerSet,
    round: Option<Round>,
    committed: Option<Commit>,
    /// Members that still answer an old round, so they lack the commit.
    lacks_commit: PeerSet,
    newest: Epoch,
    cut_off: bool,
    outputs: VecDeque<Output>,
}

impl CutCore {
    /// All members of a match that begins.
    pub fn new(us: PeerIndex, members: PeerSet) -> Self {
        Self {
            us,
            members,
            gone: PeerSet::EMPTY,
            suspected_by: [PeerSet::EMPTY; MAX_PEERS],
            expired: PeerSet::EMPTY,
            round: None,
            committed: None,
            lacks_commit: PeerSet::EMPTY,
            newest: Epoch::default(),
            cut_off: false,
            outputs: VecDeque::with_capacity(8),
        }
    }

    /// Who takes part in the timeline.
    pub fn members(&self) -> PeerSet {
        self.members
    }

    /// Whether an agreement is under way, so that packets must go more often.
    pub fn is_open(&self) -> bool {
        self.round.is_some()
    }

    /// Whether the others went on without us.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// Whom `peer` suspects, from its newest packet (nobody, when it said nothing).
    pub fn handle_suspects(&mut self, peer: PeerIndex, suspects: PeerSet, ends: Ends<'_>) {
        if self.suspected_by[peer.index()] != suspects {
            self.suspected_by[peer.index()] = suspects;
            self.judge(ends);
        }
    }

    /// Whom this member suspects; `expired` is enough where there is nobody else to ask. Says whether that is new.
    pub fn handle_own_suspects(&mut self, suspects: PeerSet, expired: PeerSet, ends: Ends<'_>) -> bool {
        let own = if self.members.len() == 2 { expired } else { suspects };
        if self.suspected_by[self.us.index()] != own || self.expired != expired {
            self.suspected_by[self.us.index()] = own;
            self.expired = expired;
            self.judge(ends);
            return true;
        }
        false
    }

    /// Whom more than half of the other members suspect. The votes of members silent for long are not waited for, but
    /// only where these are condemned as well: a deaf member must not put out whom it lost last. Who is being put out has no
    /// vote: when a short split heals, that side still suspects all of this one.
    fn condemned(&self) -> PeerSet {
        let leaving = self.round.as_ref().map_or(PeerSet::EMPTY, |round| round.cut.leavers);
        let mut condemned = self.members.without(self.us);
        loop {
            let silent = self.expired.intersection(condemned);
            let still: PeerSet = condemned
                .into_iter()
                .filter(|&peer| {
                    let others = self.members.without(peer).difference(silent).difference(leaving);
                    // The last word of somebody we do not hear may be old.
                    let unheard = self.suspected_by[self.us.index()];
                    let suspects =
                        |o: &PeerIndex| self.suspected_by[o.index()].contains(peer) && !unheard.contains(*o);
                    others.into_iter().filter(suspects).count() * 2 > others.len()
                })
                .collect();
            if still == condemned {
                return condemned;
            }
            condemned = still;
        }
    }

    /// Opens a round when this member is the decider and somebody is condemned who is in no round yet.
    fn judge(&mut self, ends: Ends<'_>) {
        if self.cut_off {
            return;
        }
        let condemned = self.condemned();
        let in_round = self.round.as_ref().map_or(PeerSet::EMPTY, |round| round.cut.leavers);
        let leavers = condemned.union(in_round).union(self.gone);
        let live = self.members.difference(leavers);
        // The lowest index that is still believed in decides; a round whose decider died is reopened by the next.
        let decider_lost = self
            .round
            .as_ref()
            .is_some_and(|round| PeerIndex::new(round.cut.epoch.decider).is_none_or(|d| leavers.contains(d)));
        if live.first() != Some(self.us)
            || (condemned.is_subset(in_round) && !decider_lost)
            || leavers == self.gone
        {
            return;
        }
        let epoch = Epoch { counter: self.newest.counter.saturating_add(1), decider: self.us.get() };
        self.open(Cut { epoch, leavers, members: live });
        self.answer(ends);
    }

    fn open(&mut self, cut: Cut) {
        self.newest = cut.epoch;
        self.round = Some(Round { cut, haves: [None; MAX_PEERS] });
        self.outputs.push_back(Output::Freeze(cut.leavers));
    }

    /// The ends of the leavers' slots as this member holds them.
    fn own_have(cut: Cut, ends: Ends<'_>) -> SlotEnds {
        let mut have = SlotEnds::default();
        for slot in Slot::all() {
            if let Some((end, owner)) = ends(slot)
                && cut.leavers.contains(owner)
            {
                have.set(slot, end, 0);
            }
        }
        have
    }

    /// Gives this member's own answer; it stays as it is until the commit, since the slots are frozen.
    fn answer(&mut self, ends: Ends<'_>) {
        let Some(round) = self.round.as_mut() else { return };
        round.haves[self.us.index()] = Some(Self::own_have(round.cut, ends));
        self.try_commit();
    }

    /// A decider opened a round.
    pub fn handle_cut(&mut self, cut: Cut, ends: Ends<'_>) {
        if self.cut_off || cut.epoch <= self.newest || !self.is_sane(cut) {
            return;
        }
        if cut.leavers.contains(self.us) {
            self.part_from(cut.members);
            return;
        }
        self.open(cut);
        self.answer(ends);
    }

    /// These members go on without us. Only the larger part puts the other out: a member that went deaf condemns
    /// everybody, and after an even split neither half may stop the other.
    fn part_from(&mut self, members: PeerSet) {
        if members.len() * 2 > members.union(self.members).len() {
            self.be_cut_off();
        } else if !members.intersection(self.members).is_empty() {
            self.outputs.push_back(Output::Defected(members));
        }
    }

    fn be_cut_off(&mut self) {
        self.cut_off = true;
        self.round = None;
        self.outputs.push_back(Output::CutOff);
    }

    /// A packet of `peer` carried a member's answer (its own, or one that it repeats).
    pub fn handle_have(&mut self, peer: PeerIndex, have: &Have) {
        if let Some(commit) = &self.committed
            && have.epoch <= commit.cut.epoch
        {
            self.lacks_commit.insert(peer);
            return;
        }
        let Some(round) = self.round.as_mut() else { return };
        if round.cut.epoch == have.epoch && round.cut.members.contains(have.member) {
            round.haves[have.member.index()] = Some(have.ends);
            self.try_commit();
        }
    }

    /// A packet of this member came without an answer to an old round: it has the commit.
    pub fn handle_no_have(&mut self, peer: PeerIndex) {
        self.lacks_commit.remove(peer);
    }

    /// A packet came from somebody who is out: it must learn so.
    pub fn handle_gone(&mut self, peer: PeerIndex) {
        if self.gone.contains(peer) {
            self.lacks_commit.insert(peer);
        }
    }

    /// When every member has answered: the newest input that any of them holds is the last that counts.
    fn try_commit(&mut self) {
        let Some(round) = self.round.as_ref() else { return };
        let cut = round.cut;
        if cut.epoch.decider != self.us.get() {
            return;
        }
        if cut.members.into_iter().any(|m| round.haves[m.index()].is_none()) {
            return;
        }
        let mut ends = SlotEnds::default();
        for member in cut.members {
            let Some(have) = &round.haves[member.index()] else { continue };
            for (slot, end, _) in have.iter() {
                if ends.get(slot).is_none_or(|(best, _)| end > best) {
                    ends.set(slot, end, member.get());
                }
            }
        }
        self.lacks_commit = cut.members.union(cut.leavers).without(self.us);
        self.apply(Commit { cut, ends });
    }

    /// The decider's result.
    pub fn handle_commit(&mut self, commit: &Commit) {
        if self.cut_off || !self.is_sane(commit.cut) {
            return;
        }
        if commit.cut.members.intersection(self.members).is_empty() {
            // We parted: each side counts epochs of its own, and when they meet again the larger one's timeline wins.
            if commit.cut.members.len() > self.members.len() {
                self.be_cut_off();
            }
            return;
        }
        let known = self.committed.as_ref().map_or(Epoch::default(), |c| c.cut.epoch);
        if commit.cut.epoch <= known || commit.cut.epoch < self.newest {
            return;
        }
        if !commit.cut.leavers.union(commit.cut.members).is_subset(self.all()) {
            return;
        }
        if !commit.cut.members.contains(self.us) {
            self.part_from(commit.cut.members);
            return;
        }
        self.apply(*commit);
    }

    fn apply(&mut self, commit: Commit) {
        self.newest = self.newest.max(commit.cut.epoch);
        self.round = None;
        self.gone = self.gone.union(commit.cut.leavers);
        self.members = commit.cut.members;
        self.committed = Some(commit);
        self.outputs.push_back(Output::Freeze(commit.cut.leavers));
        self.outputs.push_back(Output::Commit(commit));
    }

    /// What every packet must carry while a round is open: the round, and every answer heard so far.
    pub fn open_round(&self) -> Option<(&Cut, impl Iterator<Item = Have> + '_)> {
        let round = self.round.as_ref()?;
        let haves = PeerIndex::all().filter_map(|member| {
            let ends = round.haves[member.index()]?;
            Some(Have { epoch: round.cut.epoch, member, ends })
        });
        Some((&round.cut, haves))
    }

    /// The result, for a peer that lacks it.
    pub fn commit_for(&self, peer: PeerIndex) -> Option<&Commit> {
        self.committed.as_ref().filter(|_| !self.cut_off && self.lacks_commit.contains(peer))
    }

    /// The newest result.
    pub fn committed(&self) -> Option<&Commit> {
        self.committed.as_ref()
    }

    /// The next output; `None` once drained.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Whether a round speaks only of members of this match, and is opened by one who stays in.
    fn is_sane(&self, cut: Cut) -> bool {
        cut.leavers.union(cut.members).is_subset(self.all())
            && PeerIndex::new(cut.epoch.decider).is_some_and(|decider| cut.members.contains(decider))
    }

    fn all(&self) -> PeerSet {
        self.members.union(self.gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(index: u8) -> PeerIndex {
        PeerIndex::new(index).expect("small")
    }

    fn slot(index: u8) -> Slot {
        Slot::new(index).expect("small")
    }

    fn set(bits: u16) -> PeerSet {
        PeerSet::from_bits(bits)
    }

    /// One slot a peer; this member holds `ends[p]` frames of peer `p`.
    fn holding(ends: [i32; 4]) -> impl Fn(Slot) -> Option<(Frame, PeerIndex)> {
        move |slot| Some((Frame(*ends.get(slot.index())?), peer(slot.get())))
    }

    fn drain(core: &mut CutCore) -> Vec<Output> {
        std::iter::from_fn(|| core.poll_output()).collect()
    }

    fn haves(core: &CutCore) -> Vec<Have> {
        core.open_round().map(|(_, haves)| haves.collect()).unwrap_or_default()
    }

    #[test]
    fn survivors_agree_on_the_newest_input_that_any_of_them_holds() {
        let (a, b, c) = (holding([9, 9, 9, 5]), holding([9, 9, 9, 7]), holding([9, 9, 9, 6]));
        let mut cores: Vec<_> = (0..3).map(|i| CutCore::new(peer(i), set(0b1111))).collect();
        let x = set(0b1000);
        cores[0].handle_own_suspects(x, x, &a);
        assert!(!cores[0].is_open(), "one of three is not more than half");
        cores[0].handle_suspects(peer(1), x, &a);
        let cut = *cores[0].open_round().expect("two of three are").0;
        assert_eq!(cut.members, set(0b111));

        cores[1].handle_cut(cut, &b);
        cores[2].handle_cut(cut, &c);
        // The decider hears member 2 only through member 1.
        for have in haves(&cores[2]) {
            cores[1].handle_have(peer(2), &have);
        }
        for have in haves(&cores[1]) {
            cores[0].handle_have(peer(1), &have);
        }
        let commit = *cores[0].committed().expect("all have answered");
        assert_eq!(commit.ends.get(slot(3)), Some((Frame(7), 1)));
        assert_eq!(drain(&mut cores[0]).last(), Some(&Output::Commit(commit)));

        cores[1].handle_commit(&commit);
        cores[1].handle_commit(&commit);
        assert_eq!(drain(&mut cores[1]).iter().filter(|o| matches!(o, Output::Commit(_))).count(), 1);
        assert_eq!(cores[1].members(), set(0b111));
    }

    #[test]
    fn the_next_member_reopens_the_round_when_its_decider_dies() {
        let ends = holding([4, 9, 9, 5]);
        let mut core = CutCore::new(peer(1), set(0b1111));
        let cut = Cut { epoch: Epoch { counter: 1, decider: 0 }, leavers: set(0b1000), members: set(0b0111) };
        core.handle_cut(cut, &ends);
        core.handle_own_suspects(set(0b1001), set(0), &ends);
        core.handle_suspects(peer(2), set(0b1001), &ends);
        let (next, _) = core.open_round().expect("reopened");
        assert_eq!(
            *next,
            Cut { epoch: Epoch { counter: 2, decider: 1 }, leavers: set(0b1001), members: set(0b0110) }
        );
    }

    #[test]
    fn a_member_that_went_deaf_puts_nobody_out() {
        let ends = holding([9, 9, 9, 9]);
        let mut deaf = CutCore::new(peer(0), set(0b1111));
        deaf.handle_own_suspects(set(0b1110), set(0b1110), &ends);
        let cut = *deaf
            .open_round()
            .map(|(cut, _)| cut)
            .or(deaf.committed().map(|c| &c.cut))
            .expect("alone it decides");
        let mut other = CutCore::new(peer(2), set(0b1111));
        other.handle_cut(cut, &ends);
        assert!(!other.is_cut_off());
        assert_eq!(drain(&mut other), [Output::Defected(set(0b0001))]);
    }

    #[test]
    fn a_peer_that_was_cut_learns_it_from_the_larger_part() {
        let ends = holding([9, 9, 9, 9]);
        let mut core = CutCore::new(peer(3), set(0b1111));
        let cut = Cut { epoch: Epoch { counter: 1, decider: 0 }, leavers: set(0b1000), members: set(0b0111) };
        core.handle_commit(&Commit { cut, ends: SlotEnds::default() });
        assert!(core.is_cut_off());
        core.handle_cut(cut, &ends);
        assert_eq!(drain(&mut core), [Output::CutOff]);
    }

    #[test]
    fn halves_of_an_even_split_do_not_stop_each_other_when_they_meet_again() {
        let ends = holding([9, 9, 9, 9]);
        let mut core = CutCore::new(peer(0), set(0b1111));
        core.handle_own_suspects(set(0b1100), set(0b1100), &ends);
        core.handle_suspects(peer(1), set(0b1100), &ends);
        let (cut, _) = core.open_round().expect("two of two that are heard");
        let ours = Have { epoch: cut.epoch, member: peer(1), ends: SlotEnds::default() };
        core.handle_have(peer(1), &ours);
        assert_eq!(core.members(), set(0b0011));
        drain(&mut core);
        let theirs =
            Cut { epoch: Epoch { counter: 9, decider: 2 }, leavers: set(0b0011), members: set(0b1100) };
        core.handle_commit(&Commit { cut: theirs, ends: SlotEnds::default() });
        assert_eq!(drain(&mut core), []);
        assert!(!core.is_cut_off());
    }

    #[test]
    fn the_smaller_side_of_a_split_is_out_when_it_meets_the_larger_whatever_the_epochs() {
        let ends = holding([9, 9, 9, 9]);
        let mut core = CutCore::new(peer(0), set(0b1111));
        core.handle_own_suspects(set(0b1110), set(0b1110), &ends);
        assert_eq!(core.members(), set(0b0001), "alone, its own word is enough");
        drain(&mut core);
        let larger =
            Cut { epoch: Epoch { counter: 0, decider: 1 }, leavers: set(0b0001), members: set(0b1110) };
        core.handle_commit(&Commit { cut: larger, ends: SlotEnds::default() });
        assert_eq!(drain(&mut core), [Output::CutOff]);
    }

    #[test]
    fn who_is_being_put_out_has_no_vote() {
        let ends = holding([9, 9, 9, 9]);
        let mut core = CutCore::new(peer(0), set(0b1111));
        core.handle_own_suspects(set(0b1000), PeerSet::EMPTY, &ends);
        core.handle_suspects(peer(1), set(0b1000), &ends);
        assert!(core.is_open());
        let _ = core.open_round().map(|(cut, _)| assert_eq!(cut.leavers, set(0b1000)));
        // It is heard again and suspects the others; with the one broken link that would be two of three.
        core.handle_suspects(peer(3), set(0b0111), &ends);
        core.handle_suspects(peer(1), set(0b1100), &ends);
        let _ = core.open_round().map(|(cut, _)| assert_eq!(cut.leavers, set(0b1000)));
    }

    #[test]
    fn a_deaf_member_does_not_put_out_whom_it_lost_last() {
        let ends = holding([9, 9, 9, 9]);
        let mut core = CutCore::new(peer(0), set(0b1111));
        core.handle_own_suspects(set(0b1110), set(0b0110), &ends);
        assert!(!core.is_open(), "two are silent for long, the third only for a while");
        core.handle_own_suspects(set(0b1110), set(0b1110), &ends);
        assert_eq!(core.members(), set(0b0001));
    }

    #[test]
    fn with_two_peers_its_own_word_counts_only_after_the_longer_silence() {
        let ends = holding([9, 9, 0, 0]);
        let mut core = CutCore::new(peer(0), set(0b11));
        core.handle_own_suspects(set(0b10), set(0), &ends);
        assert_eq!(drain(&mut core), []);
        core.handle_own_suspects(set(0b10), set(0b10), &ends);
        assert!(matches!(drain(&mut core).last(), Some(Output::Commit(_))));
    }

    #[test]
    fn a_peer_that_left_cannot_put_out_the_one_who_stayed() {
        let ends = holding([9, 9, 0, 0]);
        let mut core = CutCore::new(peer(0), set(0b11));
        core.handle_own_suspects(set(0b10), set(0b10), &ends);
        assert!(matches!(drain(&mut core).last(), Some(Output::Commit(_))));
        let cut = Cut { epoch: Epoch { counter: 9, decider: 1 }, leavers: set(0b01), members: set(0b10) };
        core.handle_cut(cut, &ends);
        core.handle_commit(&Commit { cut, ends: SlotEnds::default() });
        assert_eq!(drain(&mut core), []);
        assert!(!core.is_cut_off());
    }
}
