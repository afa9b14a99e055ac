//! Events of a handle as the C struct shows them, and the memory of their texts and messages.
//!
//! Fed by: news of the network half, events of a session. Yields: events whose pointers live until `recycle`.
//! Never: moves or frees a text that was handed out, or allocates again for what it recycled.

use super::convert::delivery_number;
use super::event_types::*;
use super::mesh_types::{RETICK_NO_PEER, RETICK_NO_SLOT};
use crate::base::PeerIndex;
use crate::bridge::{LeaveReason, MeshNews, RefuseReason};
use crate::session::SessionEvent;
use std::collections::VecDeque;
use std::fmt::Write;
use std::ptr::null;

/// Events that wait to be read; more are not taken in.
pub(super) const MAX_WAITING: usize = 1024;

/// The plain fields of an event.
#[derive(Clone, Copy)]
struct Fields {
    kind: u32,
    peer: u32,
    slot: u32,
    frame: i32,
    reason: u32,
    value0: i64,
    value1: i64,
    stream: u32,
}

impl Fields {
    const fn new(kind: u32) -> Self {
        Self {
            kind,
            peer: RETICK_NO_PEER,
            slot: RETICK_NO_SLOT,
            frame: -1,
            reason: 0,
            value0: 0,
            value1: 0,
            stream: 0,
        }
    }

    fn of(kind: u32, peer: PeerIndex) -> Self {
        Self { peer: u32::from(peer.get()), ..Self::new(kind) }
    }
}

/// An event with its memory.
struct Stored {
    fields: Fields,
    /// UTF-8 with a NUL behind it.
    text: String,
    data: Vec<u8>,
}

/// The events of one handle.
pub(super) struct EventStore {
    waiting: VecDeque<Stored>,
    /// Their pointers are with the game.
    given: Vec<Stored>,
    free: Vec<String>,
}

impl EventStore {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), given: Vec::new(), free: Vec::new() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= MAX_WAITING
    }

    /// Ends the life of what was handed out; messages go back to where they came from.
    pub(super) fn recycle(&mut self, mut message: impl FnMut(Vec<u8>)) {
        for stored in self.given.drain(..) {
            if self.free.len() < MAX_WAITING {
                self.free.push(stored.text);
            }
            if stored.data.capacity() > 0 {
                message(stored.data);
            }
        }
    }

    fn push(&mut self, fields: Fields, data: Vec<u8>, write: impl FnOnce(&mut String) -> std::fmt::Result) {
        let mut text = self.free.pop().unwrap_or_default();
        text.clear();
        // Writing to a string does not fail.
        let _ = write(&mut text);
        text.push('\0');
        self.waiting.push_back(Stored { fields, text, data });
    }

    /// The next event, with pointers that live until `recycle`.
    pub(super) fn next(&mut self) -> Option<retick_event> {
        let stored = self.waiting.pop_front()?;
        let fields = stored.fields;
        let event = retick_event {
            struct_size: 0,
            kind: fields.kind,
            peer: fields.peer,
            slot: fields.slot,
            frame: fields.frame,
            reason: fields.reason,
            value0: fields.value0,
            value1: fields.value1,
            stream: fields.stream,
            data_size: stored.data.len() as u32,
            text: stored.text.as_ptr().cast(),
            data: if stored.data.is_empty() { null() } else { stored.data.as_ptr() },
        };
        // The struct moves, what it points to does not.
        self.given.push(stored);
        Some(event)
    }

    /// Takes in news of the network half that is an event. Gives back what is none.
    #[expect(clippy::too_many_lines, reason = "one arm for each kind of news")]
    pub(super) fn push_mesh(&mut self, news: MeshNews) -> Option<MeshNews> {
        let none = Vec::new();
        match news {
            MeshNews::Joined { us, .. } => {
                self.push(Fields::of(RETICK_EVENT_JOINED, us), none, |t| {
                    write!(t, "we are in the room as peer {us}")
                });
            }
            MeshNews::Refused { address, refusal, us } => {
                let fields = Fields {
                    reason: refuse_number(refusal.reason),
                    value0: refusal.ours as i64,
                    value1: refusal.theirs as i64,
                    stream: u32::from(us),
                    ..Fields::new(RETICK_EVENT_REFUSED)
                };
                let (ours, theirs) = (refusal.ours, refusal.theirs);
                self.push(fields, none, |t| {
                    if us {
                        write!(t, "the room at {address} refused us: ")?;
                    } else {
                        write!(t, "a joiner from {address} was refused: ")?;
                    }
                    match refusal.reason {
                        RefuseReason::GameId => write!(t, "game_id is {ours} here and {theirs} there"),
                        RefuseReason::BuildId => write!(t, "build_id is {ours} here and {theirs} there"),
                        RefuseReason::WireVersion => {
                            write!(t, "wire version is {ours} here and {theirs} there")
                        }
                        RefuseReason::Settings => t.write_str("the session settings differ"),
                        RefuseReason::RoomFull => t.write_str("the room is full"),
                        RefuseReason::AlreadyStarted => t.write_str("the match is running"),
                        RefuseReason::BadRoom => t.write_str("the room's secret is wrong"),
                        RefuseReason::NoAnswer => t.write_str("nobody answered at that address"),
                        RefuseReason::NotCoordinator => {
                            t.write_str("that member does not admit; join through the coordinator")
                        }
                    }
                });
            }
            MeshNews::PeerJoined { peer } => {
                let fields = Fields::of(RETICK_EVENT_PEER_JOINED, peer);
                self.push(fields, none, |t| write!(t, "peer {peer} came into the room"));
            }
            MeshNews::PeerConnected { peer, address } => {
                let fields = Fields::of(RETICK_EVENT_PEER_CONNECTED, peer);
                self.push(fields, none, |t| write!(t, "the channel to peer {peer} at {address} is up"));
            }
            MeshNews::PeerReady { peer, local_slots } => {
                let fields =
                    Fields { value0: i64::from(local_slots), ..Fields::of(RETICK_EVENT_PEER_READY, peer) };
                self.push(fields, none, |t| {
                    write!(
                        t,
                        "peer {peer} is ready with {local_slots} slot{}",
                        if local_slots == 1 { "" } else { "s" }
                    )
                });
            }
            MeshNews::SettingsDiffer { peer, refusal } => {
                let fields = Fields {
                    reason: refuse_number(refusal.reason),
                    value0: refusal.ours as i64,
                    value1: refusal.theirs as i64,
                    ..Fields::of(RETICK_EVENT_SETTINGS_DIFFER, peer)
                };
                self.push(fields, none, |t| {
                    write!(t, "the match cannot start: peer {peer} has other session settings than we have")
                });
            }
            MeshNews::Starting { at } => {
                let fields = Fields { value0: at.0 as i64, ..Fields::new(RETICK_EVENT_STARTING) };
                self.push(fields, none, |t| write!(t, "the match starts at mesh time {at}"));
            }
            MeshNews::Interrupted { peer } => {
                let fields = Fields::of(RETICK_EVENT_INTERRUPTED, peer);
                self.push(fields, none, |t| write!(t, "nothing is heard of peer {peer}"));
            }
            MeshNews::Resumed { peer, silence_ms } => {
                let fields =
                    Fields { value0: i64::from(silence_ms), ..Fields::of(RETICK_EVENT_RESUMED, peer) };
                self.push(fields, none, |t| write!(t, "peer {peer} is heard again after {silence_ms} ms"));
            }
            MeshNews::GameStalled { peer } => {
                let fields = Fields::of(RETICK_EVENT_PEER_STALLED, peer);
                self.push(fields, none, |t| write!(t, "the game of peer {peer} hangs, its network is alive"));
            }
            MeshNews::GameResumed { peer } => {
                let fields = Fields::of(RETICK_EVENT_PEER_UNSTALLED, peer);
                self.push(fields, none, |t| write!(t, "the game of peer {peer} goes on"));
            }
            MeshNews::Left { peer, reason } => {
                let fields = Fields { reason: leave_number(reason), ..Fields::of(RETICK_EVENT_LEFT, peer) };
                self.push(fields, none, |t| {
                    write!(t, "peer {peer} left: ")?;
                    t.write_str(match reason {
                        LeaveReason::Goodbye => "it said goodbye",
                        LeaveReason::TimedOut => "nothing was heard of it for too long",
                        LeaveReason::CutOff => "the others went on without it",
                        LeaveReason::Restarted => "its process began anew",
                    })
                });
            }
            MeshNews::Message { peer, stream, delivery, data } => {
                let fields = Fields {
                    stream: u32::from(stream),
                    value0: i64::from(delivery_number(delivery)),
                    ..Fields::of(RETICK_EVENT_MESSAGE, peer)
                };
                let size = data.len();
                self.push(fields, data, |t| write!(t, "peer {peer} sent {size} bytes on stream {stream}"));
            }
            news @ (MeshNews::Link { .. } | MeshNews::Counters { .. } | MeshNews::Clock(_)) => {
                return Some(news);
            }
        }
        None
    }

    /// The network half is gone without having been told to leave.
    pub(super) fn push_failed(&mut self) {
        let text = "the network half of this mesh no longer runs (the log says why); destroy the mesh";
        self.push(Fields::new(RETICK_EVENT_FAILED), Vec::new(), |t| t.write_str(text));
    }

    /// Takes in an event of a session.
    pub(super) fn push_session(&mut self, event: SessionEvent) {
        let none = Vec::new();
        match event {
            SessionEvent::Started => {
                self.push(Fields::new(RETICK_EVENT_STARTED), none, |t| t.write_str("the match begins"));
            }
            SessionEvent::SlotLeft { slot, peer, frame } => {
                let fields = Fields {
                    slot: u32::from(slot.get()),
                    frame: frame.0,
                    ..Fields::of(RETICK_EVENT_SLOT_LEFT, peer)
                };
                self.push(fields, none, |t| {
                    write!(t, "slot {slot} of peer {peer} is empty from frame {frame} on")
                });
            }
            SessionEvent::Desync { peer, frame, ours, theirs } => {
                let fields = Fields {
                    frame: frame.0,
                    value0: ours as i64,
                    value1: theirs as i64,
                    ..Fields::of(RETICK_EVENT_DESYNC, peer)
                };
                self.push(fields, none, |t| {
                    write!(t, "desync: the state of frame {frame} is {ours:016x} here and {theirs:016x} at peer {peer}")
                });
            }
            SessionEvent::CutOff => {
                let text = "the others went on without us; nothing will be confirmed any more";
                self.push(Fields::new(RETICK_EVENT_CUT_OFF), none, |t| t.write_str(text));
            }
            SessionEvent::Overflow { dropped } => {
                let fields = Fields { value0: i64::from(dropped), ..Fields::new(RETICK_EVENT_OVERFLOW) };
                self.push(fields, none, |t| {
                    write!(t, "{dropped} events were dropped because they were not read")
                });
            }
        }
    }
}

fn leave_number(reason: LeaveReason) -> u32 {
    match reason {
        LeaveReason::Goodbye => RETICK_LEAVE_GOODBYE,
        LeaveReason::TimedOut => RETICK_LEAVE_TIMED_OUT,
        LeaveReason::CutOff => RETICK_LEAVE_CUT_OFF,
        LeaveReason::Restarted => RETICK_LEAVE_RESTARTED,
    }
}

fn refuse_number(reason: RefuseReason) -> u32 {
    match reason {
        RefuseReason::GameId => RETICK_REFUSE_GAME_ID,
        RefuseReason::BuildId => RETICK_REFUSE_BUILD_ID,
        RefuseReason::WireVersion => RETICK_REFUSE_WIRE_VERSION,
        RefuseReason::Settings => RETICK_REFUSE_SETTINGS,
        RefuseReason::RoomFull => RETICK_REFUSE_ROOM_FULL,
        RefuseReason::AlreadyStarted => RETICK_REFUSE_ALREADY_STARTED,
        RefuseReason::BadRoom => RETICK_REFUSE_BAD_ROOM,
        RefuseReason::NoAnswer => RETICK_REFUSE_NO_ANSWER,
        RefuseReason::NotCoordinator => RETICK_REFUSE_NOT_COORDINATOR,
    }
}
