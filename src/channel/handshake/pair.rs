//! The handshake of two members: the lower index calls all addresses of the other until one answers.
//!
//! Fed by: the roster's keys, calls and answers, time. Yields: `Paired` at both ends, or a refusal.
//! Never: gives up on its own; the node decides that a member is gone. One call and one answer per member, no more, and no
//! call twice: each is stamped, and an older stamp than one seen is a replay.

use super::noise::{self, Role};
use super::{Door, Incoming, LIFE, Local, MemberIdentity, Outbox, Output, Retry};
use crate::base::limits::MAX_CANDIDATES;
use crate::base::{Addr, Entropy, Instant, PeerIndex};
use crate::wire::handshake::{COOKIE_SIZE, Hello, PREFIX, PairCall, step};
use snow::HandshakeState;
use std::time::Duration;

/// An unanswered call is made anew after this long, so that the called side need not keep an answer for ever. Its answer to
/// the old one lives longer (`LIFE`), whenever it heard it first.
const RENEW_AFTER: Duration = Duration::from_secs(4);

/// What is under way with one member.
#[derive(Default)]
pub(super) struct Pair {
    identity: Option<MemberIdentity>,
    call: Option<Call>,
    answer: Option<Answer>,
    /// The newest stamp of a call that proved to be theirs, and of ours.
    stamp_seen: u64,
    stamp_sent: u64,
}

struct Call {
    id: u32,
    noise: Box<HandshakeState>,
    message: Vec<u8>,
    candidates: Vec<Addr>,
    /// What the candidates that are busy want to see.
    cookies: Vec<(Addr, [u8; COOKIE_SIZE])>,
    retry: Retry,
    renew_at: Instant,
}

impl Call {
    fn transmit(&mut self, local: &Local, outbox: &mut Outbox) {
        for &to in &self.candidates {
            let none = &[0; COOKIE_SIZE];
            let cookie = self.cookies.iter().find(|(of, _)| *of == to).map_or(none, |(_, cookie)| cookie);
            local.add_cookie(&mut self.message, PREFIX + DESTINATION, cookie);
            outbox.transmit(to, &self.message);
        }
    }
}

struct Answer {
    id: u32,
    message: Vec<u8>,
    expires: Instant,
}

impl Pair {
    pub(super) fn set_identity(&mut self, identity: MemberIdentity) {
        if self.identity != Some(identity) {
            *self = Self { identity: Some(identity), ..Self::default() };
        }
    }

    pub(super) fn start(
        &mut self,
        local: &Local,
        peer: PeerIndex,
        candidates: &[Addr],
        now: Instant,
        entropy: &mut dyn Entropy,
        outbox: &mut Outbox,
    ) {
        let candidates = candidates.iter().copied().take(2 * MAX_CANDIDATES).collect();
        self.call_anew(local, peer, candidates, Retry::new(now), now, entropy, outbox);
    }

    #[expect(clippy::too_many_arguments, reason = "the surroundings of a core, handed in one by one")]
    fn call_anew(
        &mut self,
        local: &Local,
        peer: PeerIndex,
        candidates: Vec<Addr>,
        retry: Retry,
        now: Instant,
        entropy: &mut dyn Entropy,
        outbox: &mut Outbox,
    ) {
        let (Some(identity), Some(room)) = (&self.identity, &local.room) else {
            return;
        };
        let mut id = [0; 4];
        entropy.fill(&mut id);
        let id = u32::from_le_bytes(id);
        let Some(mut noise) =
            noise::with_member(&local.identity, room, &identity.noise, Role::Initiator, entropy)
        else {
            return;
        };
        // Our static key is of this process, so its clock never goes back for it.
        let stamp = now.0.max(self.stamp_sent + 1);
        let mut payload = Vec::new();
        PairCall { hello: local.hello, stamp }.emit(&mut payload);
        let mut before = [0; DESTINATION + COOKIE_SIZE];
        before[0] = peer.get();
        let Some(body) = write(&mut noise, &payload, &before) else {
            return;
        };
        self.stamp_sent = stamp;
        let message = local.datagram(step::PAIR_CALL, id, &body);
        let (noise, cookies, renew_at) = (Box::new(noise), Vec::new(), now + RENEW_AFTER);
        let mut call = Call { id, noise, message, candidates, cookies, retry, renew_at };
        call.transmit(local, outbox);
        self.call = Some(call);
    }

    pub(super) fn cancel(&mut self) {
        self.call = None;
    }

    /// Cancels the call with this id; says whether there was one.
    pub(super) fn cancel_call(&mut self, id: u32) -> bool {
        self.call.take_if(|call| call.id == id).is_some()
    }

    pub(super) fn is_calling(&self) -> bool {
        self.call.is_some()
    }

    /// Its copies are replays from here on.
    pub(super) fn confirm(&mut self) {
        self.answer = None;
    }

    /// A candidate is busy and wants us to prove our address. Says whether this is about our call.
    pub(super) fn handle_cookie(&mut self, incoming: &Incoming<'_>, cookie: &[u8; COOKIE_SIZE]) -> bool {
        let from = incoming.from;
        let Some(call) = &mut self.call else { return false };
        if call.id != incoming.envelope.id || !call.candidates.contains(&from) {
            return false;
        }
        if let Some((_, known)) = call.cookies.iter_mut().find(|(of, _)| *of == from) {
            *known = *cookie;
        } else {
            call.cookies.push((from, *cookie));
            // Once at once; whoever sends us more of them makes us send no more.
            call.retry.at = incoming.now;
        }
        true
    }

    /// `None` for what makes no sense.
    pub(super) fn handle(
        &mut self,
        local: &Local,
        peer: PeerIndex,
        incoming: &Incoming<'_>,
        door: &mut Door<'_>,
        entropy: &mut dyn Entropy,
        outbox: &mut Outbox,
    ) -> Option<()> {
        let us = local.us?;
        if incoming.envelope.step == step::PAIR_ANSWER {
            return self.handle_answer(local, peer, incoming, outbox);
        }
        let (&destination, rest) = incoming.envelope.body.split_first()?;
        if peer >= us || destination != us.get() {
            return None;
        }
        self.handle_call(local, peer, rest, incoming, door, entropy, outbox)
    }

    #[expect(clippy::too_many_arguments, reason = "the surroundings of a core, handed in one by one")]
    fn handle_call(
        &mut self,
        local: &Local,
        peer: PeerIndex,
        rest: &[u8],
        incoming: &Incoming<'_>,
        door: &mut Door<'_>,
        entropy: &mut dyn Entropy,
        outbox: &mut Outbox,
    ) -> Option<()> {
        let (from, id) = (incoming.from, incoming.envelope.id);
        let (cookie, message) = rest.split_first_chunk()?;
        if let Some(answer) = self.answer.as_ref().filter(|answer| answer.id == id) {
            outbox.answer(from, &answer.message, incoming.size());
            return Some(());
        }
        let (identity, room) = (self.identity.as_ref()?, local.room.as_ref()?);
        if message.len() != NOISE + CALL_PAYLOAD {
            return None;
        }
        if !door.admits(local, incoming, cookie, outbox) {
            return Some(());
        }
        let mut noise = noise::with_member(&local.identity, room, &identity.noise, Role::Responder, entropy)?;
        let call = PairCall::parse(&read::<CALL_PAYLOAD>(&mut noise, message)?).ok()?;
        if call.stamp <= self.stamp_seen {
            return None;
        }
        self.stamp_seen = call.stamp;
        let theirs = call.hello;
        let mut payload = Vec::new();
        local.hello.emit(&mut payload);
        let body = write(&mut noise, &payload, &[])?;
        let message = local.datagram(step::PAIR_ANSWER, id, &body);
        outbox.answer(from, &message, incoming.size());
        self.answer = Some(Answer { id, message, expires: incoming.now + LIFE });
        outbox.push(outcome(local, &theirs, &mut noise, peer, from));
        Some(())
    }

    fn handle_answer(
        &mut self,
        local: &Local,
        peer: PeerIndex,
        incoming: &Incoming<'_>,
        outbox: &mut Outbox,
    ) -> Option<()> {
        let call = self.call.as_mut().filter(|call| call.id == incoming.envelope.id)?;
        let theirs = Hello::parse(&read::<ANSWER_PAYLOAD>(&mut call.noise, incoming.envelope.body)?).ok()?;
        let from = incoming.from;
        outbox.push(outcome(local, &theirs, &mut call.noise, peer, from));
        self.call = None;
        Some(())
    }

    pub(super) fn handle_timeout(
        &mut self,
        local: &Local,
        peer: PeerIndex,
        now: Instant,
        entropy: &mut dyn Entropy,
        outbox: &mut Outbox,
    ) {
        self.answer.take_if(|answer| answer.expires <= now);
        let Some(call) = &mut self.call else { return };
        if !call.retry.fire(now) {
            return;
        }
        if call.renew_at > now {
            call.transmit(local, outbox);
            return;
        }
        let (candidates, retry) = (std::mem::take(&mut call.candidates), call.retry);
        self.call_anew(local, peer, candidates, retry, now, entropy, outbox);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let call = self.call.as_ref().map(|call| call.retry.at);
        let answer = self.answer.as_ref().map(|answer| answer.expires);
        call.into_iter().chain(answer).min()
    }
}

/// What a handshake that was answered ends in: keys, or the same refusal at both ends.
fn outcome(local: &Local, theirs: &Hello, noise: &mut HandshakeState, peer: PeerIndex, from: Addr) -> Output {
    if let Some(refusal) = local.differs(theirs) {
        return Output::Refused { from, refusal, us: noise.is_initiator() };
    }
    Output::Paired { peer, from, keys: noise::keys(noise, local.cipher_with(theirs)) }
}

/// The byte before the cookie of a call.
const DESTINATION: usize = 1;
/// Both messages are an ephemeral key, a sealed payload and a tag.
const NOISE: usize = 32 + 16;
const CALL_PAYLOAD: usize = ANSWER_PAYLOAD + 8;
const ANSWER_PAYLOAD: usize = 17;

fn write(noise: &mut HandshakeState, payload: &[u8], before: &[u8]) -> Option<Vec<u8>> {
    let mut body = before.to_vec();
    body.resize(before.len() + NOISE + payload.len(), 0);
    noise.write_message(payload, &mut body[before.len()..]).ok()?;
    Some(body)
}

fn read<const SIZE: usize>(noise: &mut HandshakeState, message: &[u8]) -> Option<[u8; SIZE]> {
    if message.len() != NOISE + SIZE {
        return None;
    }
    let mut room = [0; NOISE + CALL_PAYLOAD];
    noise.read_message(message, &mut room).ok()?;
    room.first_chunk().copied()
}
