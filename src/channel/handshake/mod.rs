//! All handshakes of one node: guest ↔ introducer (Noise `XXpsk0`) and member ↔ member (`KKpsk0` with keys of the roster).
//!
//! Fed by: handshake datagrams, the node's wishes and verdicts, time, entropy. Yields: datagrams, session keys, questions
//! (`Admission`) and refusals with their reason. Never: answers who does not know the room, sends more bytes back than came,
//! or decides who is let in.

mod guard;
pub mod identity;
mod introduce;
mod join;
mod noise;
mod pair;
pub mod room;

#[cfg(test)]
mod tests;

use crate::base::limits::MAX_PEERS;
use crate::base::{Addr, Entropy, Instant, PeerIndex};
use crate::channel::SessionKeys;
use crate::channel::crypto::Cipher;
use crate::wire::control::Certificate;
use crate::wire::handshake::{
    COOKIE_SIZE, Envelope, Hello, MAC_SIZE, MAX_GREETING, Refusal, RefuseReason, VERSION, step,
};
use crate::wire::header::NO_SENDER;
use std::collections::VecDeque;
use std::time::Duration;

pub use crate::wire::control::Identity as MemberIdentity;
pub use identity::Identity;
pub use room::Room;

/// First repeat of an unanswered message; doubled up to `SLOWEST_RETRY`.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const SLOWEST_RETRY: Duration = Duration::from_millis(500);
/// A half-open handshake is forgotten, and a guest gives up, after this long.
const LIFE: Duration = Duration::from_secs(5);

/// What the node must do.
#[derive(Debug)]
pub enum Output {
    /// Send these bytes there.
    Transmit {
        /// Where to.
        to: Addr,
        /// One datagram.
        bytes: Vec<u8>,
    },
    /// We are the introducer: this guest is who it says, and plays the same build. Answer with `accept` or `refuse`.
    Admission {
        /// Names the question.
        id: u32,
        /// Where the guest is.
        from: Addr,
        /// Its keys.
        identity: MemberIdentity,
    },
    /// We are the guest and our last message is out: listen with these keys. Call `confirm_join` once a packet opens;
    /// until then a refusal may still come.
    Joined {
        /// Where the introducer answered from.
        from: Addr,
        /// The session's keys.
        keys: SessionKeys,
        /// Who let us in.
        introducer: MemberIdentity,
        /// Why it may: from the room key to it.
        chain: Vec<Certificate>,
    },
    /// A pair of members has keys; told at both ends, and once again if the other side began anew. At the end with the
    /// higher index, let the keys replace older ones only once a packet opens, and call `confirm_pair` then.
    Paired {
        /// With whom.
        peer: PeerIndex,
        /// Where it is.
        from: Addr,
        /// The session's keys.
        keys: SessionKeys,
    },
    /// A handshake ended with a refusal, known at both ends.
    Refused {
        /// Where the other side is.
        from: Addr,
        /// What did not fit.
        refusal: Refusal,
        /// Whether we are the one who is refused.
        us: bool,
    },
}

/// Datagrams that were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandshakeStats {
    /// They do not know the room.
    pub dropped_strangers: u64,
    /// They know the room, but fit no handshake, make no sense, or are replays.
    pub dropped_malformed: u64,
    /// First messages that were answered with a cookie.
    pub cookies: u64,
}

/// What all handshakes of this node share.
struct Local {
    identity: Identity,
    hello: Hello,
    unix_time_s: u64,
    max_datagram: usize,
    room: Option<Room>,
    us: Option<PeerIndex>,
    chain: Vec<Certificate>,
}

impl Local {
    fn datagram(&self, step: u8, id: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(body.len() + 24);
        let sender = self.us.map_or(NO_SENDER, PeerIndex::get);
        Envelope { sender, version: VERSION, step, id, body }.emit(&mut bytes);
        self.add_mac(&mut bytes);
        bytes
    }

    /// How packets to this peer are sealed.
    fn cipher_with(&self, theirs: &Hello) -> Cipher {
        Cipher::agreed(self.hello.has_aes, theirs.has_aes)
    }

    fn differs(&self, theirs: &Hello) -> Option<Refusal> {
        self.hello.build.differs(&theirs.build)
    }

    /// Puts a cookie into a finished call whose field for it stands there.
    fn add_cookie(&self, call: &mut Vec<u8>, at: usize, cookie: &[u8; COOKIE_SIZE]) {
        if let Some(field) = call.get_mut(at..at + COOKIE_SIZE) {
            field.copy_from_slice(cookie);
            call.truncate(call.len() - MAC_SIZE);
            self.add_mac(call);
        }
    }

    fn add_mac(&self, bytes: &mut Vec<u8>) {
        if let Some(room) = &self.room {
            let mac = room.mac(bytes);
            bytes.extend_from_slice(&mac);
        }
    }
}

/// When an unanswered message goes again.
#[derive(Clone, Copy, Debug)]
struct Retry {
    at: Instant,
    interval: Duration,
}

impl Retry {
    fn new(now: Instant) -> Self {
        Self { at: now + FIRST_RETRY, interval: FIRST_RETRY }
    }

    /// Whether it is due; if so, the next one is scheduled.
    fn fire(&mut self, now: Instant) -> bool {
        if self.at > now {
            return false;
        }
        self.interval = (self.interval * 2).min(SLOWEST_RETRY);
        self.at = now + self.interval;
        true
    }
}

/// Queue of outputs; keeps answers no longer than their causes.
#[derive(Debug, Default)]
struct Outbox(VecDeque<Output>);

impl Outbox {
    fn push(&mut self, output: Output) {
        self.0.push_back(output);
    }

    fn transmit(&mut self, to: Addr, bytes: &[u8]) {
        self.push(Output::Transmit { to, bytes: bytes.to_vec() });
    }

    /// An answer to a datagram of `cause` bytes; one that is longer stays unsent.
    fn answer(&mut self, to: Addr, bytes: &[u8], cause: usize) {
        if bytes.len() <= cause {
            self.transmit(to, bytes);
        }
    }
}

/// One datagram whose mac was right.
struct Incoming<'a> {
    from: Addr,
    envelope: Envelope<'a>,
    /// The datagram without its mac.
    covered: &'a [u8],
    now: Instant,
}

impl Incoming<'_> {
    fn size(&self) -> usize {
        self.covered.len() + MAC_SIZE
    }
}

/// The guard as the cores see it.
struct Door<'a> {
    guard: &'a mut guard::Guard,
    half_open: usize,
    cookies: &'a mut u64,
}

impl Door<'_> {
    /// Whether a first message is served; otherwise it has got a cookie.
    fn admits(
        &mut self,
        local: &Local,
        incoming: &Incoming<'_>,
        cookie: &[u8; COOKIE_SIZE],
        outbox: &mut Outbox,
    ) -> bool {
        let (from, now) = (incoming.from, incoming.now);
        if self.guard.admits(from, cookie, self.half_open, now) {
            return true;
        }
        *self.cookies += 1;
        let answer = local.datagram(step::COOKIE, incoming.envelope.id, &self.guard.cookie(from, now));
        outbox.answer(from, &answer, incoming.size());
        false
    }
}

/// All handshakes of one node.
pub struct Handshakes {
    local: Local,
    guard: guard::Guard,
    join: Option<join::Join>,
    introductions: introduce::Introductions,
    pairs: [pair::Pair; MAX_PEERS],
    /// The last call of another version that was answered; its repeats are answered but not told again.
    other_version: Option<(Addr, u32)>,
    outbox: Outbox,
    stats: HandshakeStats,
}

impl std::fmt::Debug for Handshakes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handshakes")
            .field("room", &self.local.room)
            .field("us", &self.local.us)
            .finish_non_exhaustive()
    }
}

impl Handshakes {
    /// A node that knows no room yet. `unix_time_s` 0 leaves the expiry of certificates unchecked.
    pub fn new(identity: Identity, hello: Hello, unix_time_s: u64, max_datagram: usize) -> Self {
        Self {
            guard: guard::Guard::new(identity.secret_for(b"retick guard")),
            local: Local {
                identity,
                hello,
                unix_time_s,
                max_datagram,
                room: None,
                us: None,
                chain: Vec::new(),
            },
            join: None,
            introductions: introduce::Introductions::default(),
            pairs: std::array::from_fn(|_| pair::Pair::default()),
            other_version: None,
            outbox: Outbox::default(),
            stats: HandshakeStats::default(),
        }
    }

    /// Our own keys.
    pub fn identity(&self) -> &Identity {
        &self.local.identity
    }

    /// The room that we are in or on our way to.
    pub fn room(&self) -> Option<&Room> {
        self.local.room.as_ref()
    }

    /// Enters a room; whatever was under way in another is forgotten.
    pub fn set_room(&mut self, room: Room) {
        self.leave();
        self.local.room = Some(room);
    }

    /// Forgets the room, our place in it and everything under way.
    pub fn leave(&mut self) {
        self.local.room = None;
        self.local.us = None;
        self.local.chain.clear();
        self.join = None;
        self.introductions = introduce::Introductions::default();
        self.pairs = std::array::from_fn(|_| pair::Pair::default());
    }

    /// Our index, and the chain that lets us introduce guests; without one, guests get no answer from us.
    pub fn set_us(&mut self, us: PeerIndex, chain: Vec<Certificate>) {
        self.local.us = Some(us);
        self.local.chain = chain;
    }

    /// Lets another member introduce guests: one link more of the chain, signed by the room key where we hold it, else by
    /// us. `None` where we may not introduce ourselves, or the chain would be too long.
    pub fn chain_for(&self, identity: &MemberIdentity, expires_unix_s: u64) -> Option<Vec<Certificate>> {
        let room = self.local.room.as_ref()?;
        if let Some(certificate) = room.certify(identity, expires_unix_s) {
            return Some(vec![certificate]);
        }
        if self.local.chain.is_empty() || self.local.chain.len() >= crate::wire::handshake::MAX_CHAIN {
            return None;
        }
        let mut chain = self.local.chain.clone();
        chain.push(room.certify_as(&self.local.identity, identity, expires_unix_s));
        Some(chain)
    }

    /// A member's keys, from the roster.
    pub fn set_member(&mut self, peer: PeerIndex, identity: MemberIdentity) {
        self.pairs[peer.index()].set_identity(identity);
    }

    /// Forgets a member and what is under way with it.
    pub fn remove_member(&mut self, peer: PeerIndex) {
        self.pairs[peer.index()] = pair::Pair::default();
    }

    /// As a guest, calls the member at this address; replaces a call under way. The room must be set.
    pub fn start_join(&mut self, address: Addr, now: Instant, entropy: &mut dyn Entropy) {
        self.join = join::Join::start(&self.local, address, now, entropy, &mut self.outbox);
    }

    /// As the member with the lower index, calls a fellow member at all its addresses until one answers. The node
    /// ends it with [`Handshakes::cancel_pair`] or [`Handshakes::remove_member`].
    pub fn start_pair(
        &mut self,
        peer: PeerIndex,
        candidates: &[Addr],
        now: Instant,
        entropy: &mut dyn Entropy,
    ) {
        self.pairs[peer.index()].start(&self.local, peer, candidates, now, entropy, &mut self.outbox);
    }

    /// Stops calling a fellow member; its own calls are still answered.
    pub fn cancel_pair(&mut self, peer: PeerIndex) {
        self.pairs[peer.index()].cancel();
    }

    /// Whether a call to this member waits for its answer.
    pub fn is_calling(&self, peer: PeerIndex) -> bool {
        self.pairs[peer.index()].is_calling()
    }

    /// As introducer, lets a guest in; `None` when it gave up meanwhile.
    pub fn accept(&mut self, id: u32) -> Option<SessionKeys> {
        self.introductions.accept(id)
    }

    /// As introducer, turns a guest away. Both ends are told; `ours` and `theirs` say what did not fit (or 0).
    pub fn refuse(&mut self, id: u32, reason: RefuseReason, ours: u64, theirs: u64) {
        self.introductions.refuse(&self.local, id, Refusal { reason, ours, theirs }, &mut self.outbox);
    }

    /// As guest: a packet of the introducer opened, so it has our last message.
    pub fn confirm_join(&mut self) {
        self.join = None;
    }

    /// As the called member: a packet with the new keys opened, so the caller has our answer.
    pub fn confirm_pair(&mut self, peer: PeerIndex) {
        self.pairs[peer.index()].confirm();
    }

    /// A datagram of the handshake kind came.
    pub fn handle_datagram(&mut self, from: Addr, bytes: &[u8], now: Instant, entropy: &mut dyn Entropy) {
        let Some(room) = &self.local.room else {
            self.stats.dropped_strangers += 1;
            return;
        };
        // None of ours is longer, so no stranger makes us hash more than that.
        let Ok((envelope, covered, mac)) = Envelope::parse(bytes) else {
            self.stats.dropped_malformed += 1;
            return;
        };
        if bytes.len() > MAX_GREETING {
            self.stats.dropped_malformed += 1;
            return;
        }
        if !room.is_mac(covered, mac) {
            self.stats.dropped_strangers += 1;
            return;
        }
        let incoming = Incoming { from, envelope, covered, now };
        let taken = if envelope.version == VERSION {
            self.handle_step(&incoming, entropy)
        } else {
            self.handle_other_version(&incoming)
        };
        if taken.is_none() {
            self.stats.dropped_malformed += 1;
        }
    }

    fn handle_step(&mut self, incoming: &Incoming<'_>, entropy: &mut dyn Entropy) -> Option<()> {
        let (local, outbox) = (&mut self.local, &mut self.outbox);
        let half_open = self.introductions.half_open();
        let mut door = Door { guard: &mut self.guard, half_open, cookies: &mut self.stats.cookies };
        match incoming.envelope.step {
            step::CALL => self.introductions.handle_call(local, incoming, &mut door, entropy, outbox),
            step::FINISH => self.introductions.handle_finish(local, incoming, outbox),
            step::GREETING | step::REFUSE => {
                let join = self.join.as_mut().filter(|join| join.id() == incoming.envelope.id)?;
                let is_over = if incoming.envelope.step == step::GREETING {
                    join.handle_greeting(local, incoming, outbox)?
                } else {
                    join.handle_refuse(incoming, outbox)?
                };
                if is_over {
                    self.join = None;
                }
                Some(())
            }
            step::PAIR_CALL | step::PAIR_ANSWER => {
                let peer = PeerIndex::new(incoming.envelope.sender)?;
                self.pairs[peer.index()].handle(local, peer, incoming, &mut door, entropy, outbox)
            }
            step::COOKIE => {
                let cookie = incoming.envelope.body.first_chunk()?;
                if incoming.envelope.body.len() != COOKIE_SIZE {
                    return None;
                }
                let is_join =
                    self.join.as_mut().is_some_and(|join| join.handle_cookie(local, incoming, cookie));
                let is_pair = self.pairs.iter_mut().any(|pair| pair.handle_cookie(incoming, cookie));
                (is_join || is_pair).then_some(())
            }
            _ => None,
        }
    }

    fn handle_other_version(&mut self, incoming: &Incoming<'_>) -> Option<()> {
        let Envelope { step, id, version, .. } = incoming.envelope;
        let refusal =
            Refusal { reason: RefuseReason::WireVersion, ours: VERSION.into(), theirs: version.into() };
        if step == step::OTHER_VERSION {
            let is_join = self.join.as_ref().is_some_and(|join| join.id() == id && join.is_unanswered());
            let is_call = self.pairs.iter_mut().any(|pair| pair.cancel_call(id));
            if !is_join && !is_call {
                return None;
            }
            if is_join {
                self.join = None;
            }
            self.outbox.push(Output::Refused { from: incoming.from, refusal, us: true });
            return Some(());
        }
        if step != step::CALL && step != step::PAIR_CALL {
            return None;
        }
        let answer = self.local.datagram(step::OTHER_VERSION, id, &[]);
        self.outbox.answer(incoming.from, &answer, incoming.size());
        if self.other_version.replace((incoming.from, id)) != Some((incoming.from, id)) {
            self.outbox.push(Output::Refused { from: incoming.from, refusal, us: false });
        }
        Some(())
    }

    /// Fires every deadline that is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant, entropy: &mut dyn Entropy) {
        if self.join.as_mut().is_some_and(|join| join.handle_timeout(now, &mut self.outbox)) {
            self.join = None;
        }
        self.introductions.handle_timeout(now);
        for (pair, peer) in self.pairs.iter_mut().zip(PeerIndex::all()) {
            pair.handle_timeout(&self.local, peer, now, entropy, &mut self.outbox);
        }
    }

    /// When `handle_timeout` must next be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let pairs = self.pairs.iter().filter_map(pair::Pair::poll_timeout);
        let join = self.join.as_ref().map(join::Join::poll_timeout);
        pairs.chain(join).chain(self.introductions.poll_timeout()).min()
    }

    /// The next output; `None` once drained.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outbox.0.pop_front()
    }

    /// What was dropped.
    pub fn stats(&self) -> HandshakeStats {
        self.stats
    }
}
