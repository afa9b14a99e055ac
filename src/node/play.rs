//! The running match as the network half sees it: the log, the cut, and when inputs go out.
//!
//! Fed by: the node. Yields: which slots to ask others for, whether the send policy wants every frame.
//! Never: simulates; frames here are only numbers.

use super::send::frame_size;
use crate::base::{Frame, Instant, PeerIndex, PeerSet, Slot, SlotSet};
use crate::bridge::NewsPort;
use crate::config::SessionSettings;
use crate::mesh::cut::CutCore;
use crate::mesh::input_log::InputLog;
use crate::mesh::lobby::Start;
use crate::wire::agreement::SlotEnds;
use crate::wire::inputs::FLAG_PARITY;
use std::time::Duration;

/// A game thread that did not call in for this long is said to be asleep.
const ASLEEP_AFTER: Duration = Duration::from_millis(150);
/// Each helper is asked this long before the next one is.
const ASK_FOR_US: u64 = 100_000;

#[derive(Debug)]
pub(super) struct Play {
    pub(super) us: PeerIndex,
    pub(super) settings: SessionSettings,
    /// Length of a frame, at least 1.
    pub(super) period_us: u64,
    /// Most bytes of one frame of our stream in a packet.
    pub(super) frame_size: usize,
    pub(super) log: InputLog,
    pub(super) cut: CutCore,
    pub(super) local: SlotSet,
    /// Peers that said goodbye, hang too long or went on without us: suspected whatever their packets say.
    pub(super) forced: PeerSet,
    pub(super) session: Option<NewsPort>,
    /// The next frame that the game will simulate for the first time.
    pub(super) current: Frame,
    pub(super) called_at: Instant,
    /// The attempt that it began with.
    pub(super) attempt: u32,
    /// [`FLAG_PARITY`] or 0: sections of the room's match before are told from this one's.
    pub(super) parity: u8,
    pub(super) sent_end: Frame,
    /// Slots with records that the session may not have yet.
    pub(super) to_hand_over: SlotSet,
    /// The others went on without us, and the session has not been told: its queue was full.
    pub(super) cut_off_untold: bool,
    /// Peers whose cut was committed and told to the game.
    pub(super) left: PeerSet,
    /// Somebody is suspect, so a longer silence may come to count.
    pub(super) watches_expiry: bool,
}

impl Play {
    pub(super) fn new(
        start: &Start,
        us: PeerIndex,
        members: PeerSet,
        settings: SessionSettings,
        session: Option<NewsPort>,
        called_at: Instant,
    ) -> Self {
        let log = InputLog::new(&start.slots, usize::from(settings.input_max));
        let local = log.slots_of(us);
        Self {
            us,
            settings,
            frame_size: frame_size(local.len(), usize::from(settings.input_max)),
            period_us: (settings.frame_ns() / 1000).max(1),
            log,
            cut: CutCore::new(us, members),
            local,
            forced: PeerSet::EMPTY,
            session,
            current: Frame::ZERO,
            called_at,
            attempt: start.attempt,
            parity: if start.attempt.is_multiple_of(2) { 0 } else { FLAG_PARITY },
            sent_end: Frame::ZERO,
            to_hand_over: SlotSet::from_bits(u16::MAX),
            cut_off_untold: false,
            left: PeerSet::EMPTY,
            watches_expiry: false,
        }
    }

    /// End of our own stream.
    pub(super) fn our_end(&self) -> Frame {
        self.log.common_end(self.local)
    }

    /// Whether our game thread does not call in.
    pub(super) fn is_asleep(&self, now: Instant) -> bool {
        self.called_at + ASLEEP_AFTER <= now
    }

    /// Whether any frame of our stream in a range changed an input.
    pub(super) fn changed_between(&self, from: Frame, end: Frame) -> bool {
        let frames = (end - from).clamp(0, 64);
        (0..frames).any(|i| self.local.into_iter().any(|slot| self.log.changed_at_end(slot, end - i)))
    }

    /// Whether every frame is sent: small windows and meshes cannot wait for a heartbeat, nor can a late acknowledgement.
    pub(super) fn sends_every_frame(&self, oldest_ack: Frame, end: Frame) -> bool {
        let window = i32::from(self.settings.window);
        window < 8 || self.cut.members().len() <= 4 || end - oldest_ack > window / 2
    }

    /// What we lack of others' slots and ask `helper` for: committed cuts from their holder, and the streams of members that
    /// only we do not hear from each other member in turn.
    pub(super) fn needs_from(&self, helper: PeerIndex, suspects: PeerSet, now: Instant) -> Option<SlotEnds> {
        let mut needs = SlotEnds::default();
        let mut any = false;
        if let Some(commit) = self.cut.committed() {
            for (slot, _, holder) in commit.ends.iter() {
                if let Some(from) = self.log.missing(slot)
                    && (holder == helper.get() || self.is_turn_of(helper, suspects, now))
                {
                    needs.set(slot, from, 0);
                    any = true;
                }
            }
        }
        let unheard = suspects.difference(self.forced).intersection(self.cut.members());
        if !unheard.is_empty() && self.is_turn_of(helper, suspects, now) {
            for peer in unheard {
                for slot in self.log.slots_of(peer) {
                    needs.set(slot, self.log.end(slot), 0);
                    any = true;
                }
            }
        }
        any.then_some(needs)
    }

    fn is_turn_of(&self, helper: PeerIndex, suspects: PeerSet, now: Instant) -> bool {
        let helpers = self.cut.members().without(self.us).difference(suspects);
        let turn = (now.0 / ASK_FOR_US) as usize % helpers.len().max(1);
        helpers.into_iter().nth(turn) == Some(helper)
    }

    /// Ends for the cut core.
    pub(super) fn ends(log: &InputLog) -> impl Fn(Slot) -> Option<(Frame, PeerIndex)> + '_ {
        |slot| log.owner(slot).map(|owner| (log.end(slot), owner))
    }
}
