//! The bounded queues between the game half and the network half; nothing else is shared.
//!
//! Fed by: both halves, each on its own thread. Yields: commands to the node, news to the session and the mesh handle.
//! Never: blocks. A full queue is told to the sender, who keeps what it could not hand over (the input log, the
//! channel's own queues) or refuses it with a result code.

mod budget;

pub use crate::base::ClockModel;
use crate::base::limits::{COMMAND_QUEUE, MESH_NEWS_QUEUE, SESSION_NEWS_QUEUE};
use crate::base::{Addr, Frame, Input, Instant, PeerIndex, Slot};
use crate::config::{RoomKey, SessionSettings};
use crossbeam_channel::{Receiver, Sender, TryRecvError, TrySendError, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub use crate::channel::LinkStats;
pub use crate::wire::handshake::{Refusal, RefuseReason};
pub use crate::wire::message::Delivery;
pub use budget::Budget;

/// Game half → network half.
#[derive(Debug)]
pub enum Command {
    /// Open a new room and be its host.
    Host,
    /// Join the room that the peer at this address is in.
    Join {
        /// Where any member listens.
        address: Addr,
        /// The room's secret and fingerprint.
        room: RoomKey,
    },
    /// This peer plays this many slots and is ready.
    SetReady {
        /// 1..=16.
        local_slots: u8,
    },
    /// Begin the match once all are ready (coordinator only).
    Start {
        /// From the barrier to frame 0.
        countdown_ms: u32,
    },
    /// Say goodbye and forget everybody.
    Leave,
    /// One message of the application.
    Send {
        /// One member, or all others.
        to: Option<PeerIndex>,
        /// Application stream.
        stream: u8,
        /// How it travels.
        delivery: Delivery,
        /// Its bytes; the vector comes from and returns to the pool.
        data: Vec<u8>,
    },
    /// A session opened on this mesh; its news go through this port.
    OpenSession {
        /// Its number on this mesh.
        session: u32,
        /// What all peers must agree on.
        settings: SessionSettings,
        /// Where its news go.
        port: NewsPort,
    },
    /// The session is gone; the member stays.
    CloseSession {
        /// Which; an older one than the open one changes nothing.
        session: u32,
    },
    /// A local slot's input; frames of one slot come without a gap.
    Input {
        /// The local slot.
        slot: Slot,
        /// The frame it takes effect in.
        frame: Frame,
        /// Its bytes.
        input: Input,
    },
    /// The game called `begin_frame`: it is alive, and what was handed in should leave now.
    Flush {
        /// The next frame that the game will simulate for the first time.
        current: Frame,
    },
    /// The digest of a confirmed mark frame, to be compared by the others.
    Checksum {
        /// The mark.
        frame: Frame,
        /// Its digest.
        value: u64,
    },
}

/// Why a peer left, or why we may not come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveReason {
    /// It said goodbye.
    Goodbye,
    /// Silence.
    TimedOut,
    /// The others went on without us.
    CutOff,
    /// Its process began anew.
    Restarted,
}

/// Network half → mesh handle. Each becomes one event of the C API.
#[derive(Debug)]
pub enum MeshNews {
    /// We are in the room, as this member.
    Joined {
        /// Our index.
        us: PeerIndex,
        /// The room, also for those who hosted it.
        room: RoomKey,
    },
    /// We were not let in (peer `None`), or turned this joiner away.
    Refused {
        /// Where the other side is.
        address: Addr,
        /// What did not fit.
        refusal: Refusal,
        /// Whether we are the one who is refused.
        us: bool,
    },
    /// A member was admitted.
    PeerJoined {
        /// Its index.
        peer: PeerIndex,
    },
    /// The direct channel to a member is up.
    PeerConnected {
        /// Its index.
        peer: PeerIndex,
        /// Where it is.
        address: Addr,
    },
    /// A member is ready with this many slots.
    PeerReady {
        /// Its index.
        peer: PeerIndex,
        /// How many slots it plays.
        local_slots: u8,
    },
    /// The coordinator refused to start because a member's session settings differ.
    SettingsDiffer {
        /// Whose.
        peer: PeerIndex,
        /// Its digest and ours.
        refusal: Refusal,
    },
    /// The barrier is passed: frame 0 is at this mesh time.
    Starting {
        /// Mesh time of frame 0.
        at: Instant,
    },
    /// Nothing was heard of a member for `suspect_ms`.
    Interrupted {
        /// Its index.
        peer: PeerIndex,
    },
    /// A member is heard again.
    Resumed {
        /// Its index.
        peer: PeerIndex,
        /// How long it was silent.
        silence_ms: u32,
    },
    /// A member's game thread stopped calling in, though its network is alive.
    GameStalled {
        /// Its index.
        peer: PeerIndex,
    },
    /// A member's game thread calls in again.
    GameResumed {
        /// Its index.
        peer: PeerIndex,
    },
    /// A member is gone, or (`peer` = ourselves) the others went on without us.
    Left {
        /// Its index.
        peer: PeerIndex,
        /// Why.
        reason: LeaveReason,
    },
    /// One message of the application.
    Message {
        /// Who sent it.
        peer: PeerIndex,
        /// Its stream.
        stream: u8,
        /// How it travelled.
        delivery: Delivery,
        /// Its bytes; give the vector back with [`MeshPort::recycle`].
        data: Vec<u8>,
    },
    /// What was measured on the link to a member; every 100 ms per member.
    Link {
        /// Its index.
        peer: PeerIndex,
        /// Counters and estimates.
        stats: LinkStats,
    },
    /// Counters of this node that no link can be blamed for; every 100 ms.
    Counters {
        /// Datagrams dropped because they were neither a handshake nor from a member.
        dropped_unknown: u64,
        /// Unreliable messages dropped because the game did not poll.
        dropped_unpolled: u64,
    },
    /// The clock of the mesh, for a handle without session.
    Clock(ClockModel),
}

/// Who plays what, the shared seed, and when frame 0 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartInfo {
    /// Random, equal on all peers.
    pub seed: u64,
    /// The owner of each slot in use.
    pub slots: [Option<PeerIndex>; crate::base::limits::MAX_SLOTS],
    /// Ourselves.
    pub us: PeerIndex,
    /// Mesh time of frame 0.
    pub frame0_at: Instant,
}

/// Network half → session. Inputs of one slot come in frame order, without gap or repeat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SessionNews {
    /// The match begins.
    Start(StartInfo),
    /// One input that holds for `count` frames of a remote slot.
    Inputs {
        /// Whose.
        slot: Slot,
        /// First frame.
        first: Frame,
        /// How many frames it stays the same, ≥ 1.
        count: u16,
        /// The bytes.
        input: Input,
    },
    /// Frames from `end` on use the disconnect input; all earlier ones have been handed over.
    Cut {
        /// Whose.
        slot: Slot,
        /// First frame that no longer counts.
        end: Frame,
    },
    /// The survivors are agreeing on this peer's last frame; ends with its `Cut`, or with further inputs of it.
    CutPending {
        /// Whose.
        peer: PeerIndex,
    },
    /// The mesh clock was corrected.
    Clock(ClockModel),
    /// Another peer's digest of a mark frame.
    Checksum {
        /// Whose.
        peer: PeerIndex,
        /// The mark.
        frame: Frame,
        /// Its digest.
        value: u64,
    },
    /// What a link looks like now, for stats and samples; every 100 ms per peer.
    Link {
        /// Whose.
        peer: PeerIndex,
        /// What was measured.
        rtt_us: u32,
        /// Its variation.
        jitter_us: u32,
        /// Of a million.
        loss_ppm: u32,
        /// Both directions together, last second.
        bytes_sent_per_s: u32,
        /// Both directions together, last second.
        bytes_received_per_s: u32,
    },
    /// The others went on without us; nothing will be confirmed any more.
    CutOff,
}

/// Wakes whoever drives the node; called after a command was queued. Must be cheap and may be called from any thread.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// The node's end of a session's queue.
pub type NewsPort = Sender<SessionNews>;

/// The game half's end, held by the mesh handle.
pub struct MeshPort {
    sessions: AtomicU32,
    commands: Sender<Command>,
    budget: Budget,
    news: Receiver<MeshNews>,
    recycled: Sender<Vec<u8>>,
    pool: Receiver<Vec<u8>>,
    waker: Waker,
}

/// The game half's end, held by the session. Dropping it closes the session at the node.
pub struct SessionPort {
    session: u32,
    commands: Sender<Command>,
    news: Receiver<SessionNews>,
    waker: Waker,
}

/// The network half's end, held by the node.
pub struct NodePort {
    commands: Receiver<Command>,
    budget: Budget,
    news: Sender<MeshNews>,
    recycled: Receiver<Vec<u8>>,
    pool: Sender<Vec<u8>>,
}

/// A queue was full, or the other half is gone; the value comes back.
#[derive(Debug)]
pub enum Refused<T> {
    /// Try again after the other half ran.
    Full(T),
    /// The node is gone (shutdown).
    Closed(T),
}

/// The other half is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl<T> From<TrySendError<T>> for Refused<T> {
    fn from(error: TrySendError<T>) -> Self {
        match error {
            TrySendError::Full(value) => Self::Full(value),
            TrySendError::Disconnected(value) => Self::Closed(value),
        }
    }
}

/// Opens a bridge. `waker` is called on every command.
pub fn open(waker: Waker) -> (MeshPort, NodePort) {
    let (commands, node_commands) = bounded(COMMAND_QUEUE);
    let (news, mesh_news) = bounded(MESH_NEWS_QUEUE);
    let (pool_in, pool) = bounded(MESH_NEWS_QUEUE);
    let (recycled, recycled_out) = bounded(MESH_NEWS_QUEUE);
    let budget = Budget::default();
    (
        MeshPort {
            sessions: AtomicU32::new(0),
            commands,
            budget: budget.clone(),
            news: mesh_news,
            recycled,
            pool,
            waker,
        },
        NodePort { commands: node_commands, budget, news, recycled: recycled_out, pool: pool_in },
    )
}

impl MeshPort {
    /// Queues a command and wakes the node. A reliable message is also refused as `Full` while too many bytes to its
    /// receiver are under way: it takes them too slowly, or its game does not poll.
    pub fn send(&self, command: Command) -> Result<(), Refused<Command>> {
        let reliable = match &command {
            Command::Send { to, delivery: Delivery::Reliable, data, .. } => Some((*to, data.len())),
            _ => None,
        };
        if let Some((to, size)) = reliable {
            if !self.budget.accepts(to, size) {
                return Err(Refused::Full(command));
            }
            // Before the node can take it.
            self.budget.queued(size);
        }
        if let Err(refused) = self.commands.try_send(command) {
            if let Some((_, size)) = reliable {
                self.budget.taken(size);
            }
            return Err(refused.into());
        }
        (self.waker)();
        Ok(())
    }

    /// The next event; `None` when there is none now.
    pub fn next_news(&self) -> Option<MeshNews> {
        self.poll_news().ok().flatten()
    }

    /// The next event; `Err` when none will ever come, because the network half is gone and all it told was read.
    pub fn poll_news(&self) -> Result<Option<MeshNews>, Gone> {
        let news = match self.news.try_recv() {
            Ok(news) => news,
            Err(TryRecvError::Empty) => return Ok(None),
            Err(TryRecvError::Disconnected) => return Err(Gone),
        };
        if let MeshNews::Message { data, .. } = &news {
            self.budget.polled(data.len());
        }
        if self.news.len() <= MESH_NEWS_QUEUE / 2 && self.budget.is_worth_a_wake_up() {
            (self.waker)();
        }
        Ok(Some(news))
    }

    /// A vector with `bytes`, recycled from an earlier message where one is free.
    pub fn buffer(&self, bytes: &[u8]) -> Vec<u8> {
        let mut buffer = self.pool.try_recv().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        buffer
    }

    /// Gives a received message's vector back.
    pub fn recycle(&self, buffer: Vec<u8>) {
        // A full pool drops it: that only costs a later allocation.
        let _ = self.recycled.try_send(buffer);
    }

    /// Opens a session on this mesh.
    pub fn open_session(&self, settings: SessionSettings) -> Result<SessionPort, Refused<Command>> {
        let (port, news) = bounded(SESSION_NEWS_QUEUE);
        let session = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        self.send(Command::OpenSession { session, settings, port })?;
        Ok(SessionPort { session, commands: self.commands.clone(), news, waker: Arc::clone(&self.waker) })
    }
}

impl Drop for SessionPort {
    fn drop(&mut self) {
        // Lost only when the queue is full; then the next session or the game's `Leave` closes it.
        let _ = self.commands.try_send(Command::CloseSession { session: self.session });
        (self.waker)();
    }
}

impl SessionPort {
    /// Queues a command; call [`SessionPort::wake`] (or send a [`Command::Flush`]) after the last of a call.
    pub fn queue(&self, command: Command) -> Result<(), Refused<Command>> {
        self.commands.try_send(command).map_err(Refused::from)
    }

    /// Wakes the node.
    pub fn wake(&self) {
        (self.waker)();
    }

    /// The next record; `None` when there is none now.
    pub fn next_news(&self) -> Option<SessionNews> {
        self.news.try_recv().ok()
    }

    /// How many records wait.
    pub fn waiting(&self) -> usize {
        self.news.len()
    }
}

impl NodePort {
    /// The next command; `Err(true)` when the game half is gone.
    pub fn next_command(&self) -> Result<Command, bool> {
        self.commands.try_recv().map_err(|error| error == TryRecvError::Disconnected)
    }

    /// Whether nothing more can be told now; some places are kept for what must not wait behind messages.
    pub fn is_nearly_full(&self) -> bool {
        self.news.len() + 128 >= MESH_NEWS_QUEUE
    }

    /// What both halves count.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Whether a message may be handed over. If not, the waker is called once when the game has polled enough.
    pub fn has_room_for_message(&self) -> bool {
        let has_room = !self.is_nearly_full() && self.budget.has_room_to_hand_over();
        if !has_room {
            self.budget.wait();
        }
        has_room
    }

    /// Tells the mesh handle; `Err` gives it back when the game has not polled for long.
    pub fn tell(&self, news: MeshNews) -> Result<(), Refused<MeshNews>> {
        let size = if let MeshNews::Message { data, .. } = &news { Some(data.len()) } else { None };
        // Before the game can take it.
        size.inspect(|size| self.budget.handed_over(*size));
        self.news.try_send(news).map_err(|refused| {
            size.inspect(|size| self.budget.polled(*size));
            refused.into()
        })
    }

    /// A received message's vector that the game gave back, if there is one.
    pub fn recycled(&self) -> Option<Vec<u8>> {
        self.recycled.try_recv().ok()
    }

    /// Gives a sent message's vector back.
    pub fn recycle(&self, buffer: Vec<u8>) {
        let _ = self.pool.try_send(buffer);
    }
}
