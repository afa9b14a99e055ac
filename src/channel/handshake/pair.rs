//! The handshake of two members: the lower index calls all addresses of the other until one answers.
//!
//! Fed by: the roster's keys, calls and answers, time. Yields: `Paired` at both ends, or a refusal.
//! Never: gives up on its own; the node decides that a member is gone. One call and one answer per member, no more.

use super::noise::{self, Role};
use super::{Incoming, LIFE, Local, MemberIdentity, Outbox, Output, Retry};
use crate::base::limits::MAX_CANDIDATES;
use crate::base::{Addr, Entropy, Instant, PeerIndex};
use crate::wire::handshake::{Build, step};
use snow::HandshakeState;

/// What is under way with one member.
#[derive(Default)]
pub(super) struct Pair {
    identity: Option<MemberIdentity>,
    call: Option<Call>,
    answer: Option<Answer>,
    /// The last call that led to a channel: a late copy of it must not begin anew.
    done: Option<u32>,
}

struct Call {
    id: u32,
    noise: Box<HandshakeState>,
    message: Vec<u8>,
    candidates: Vec<Addr>,
    retry: Retry,
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
        let Some(body) = write(&mut noise, local.build, &[peer.get()]) else {
            return;
        };
        let message = local.datagram(step::PAIR_CALL, id, &body);
        let candidates: Vec<_> = candidates.iter().copied().take(2 * MAX_CANDIDATES).collect();
        for &to in &candidates {
            outbox.transmit(to, &message);
        }
        let retry = Retry::new(now);
        self.call = Some(Call { id, noise: Box::new(noise), message, candidates, retry });
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

    pub(super) fn confirm(&mut self) {
        if let Some(answer) = self.answer.take() {
            self.done = Some(answer.id);
        }
    }

    /// `None` for what makes no sense.
    pub(super) fn handle(
        &mut self,
        local: &Local,
        peer: PeerIndex,
        incoming: &Incoming<'_>,
        entropy: &mut dyn Entropy,
        outbox: &mut Outbox,
    ) -> Option<()> {
        let us = local.us?;
        if incoming.envelope.step == step::PAIR_ANSWER {
            return self.handle_answer(local, peer, incoming, outbox);
        }
        let (&destination, noise) = incoming.envelope.body.split_first()?;
        if peer >= us || destination != us.get() {
            return None;
        }
        self.handle_call(local, peer, noise, incoming, entropy, outbox)
    }

    fn handle_call(
        &mut self,
        local: &Local,
        peer: PeerIndex,
        message: &[u8],
        incoming: &Incoming<'_>,
        entropy: &mut dyn Entropy,
        outbox: &mut Outbox,
    ) -> Option<()> {
        let (from, id) = (incoming.from, incoming.envelope.id);
        if self.done == Some(id) {
            return Some(());
        }
        if let Some(answer) = self.answer.as_mut().filter(|answer| answer.id == id) {
            answer.expires = incoming.now + LIFE;
            outbox.answer(from, &answer.message, incoming.size());
            return Some(());
        }
        let (identity, room) = (self.identity.as_ref()?, local.room.as_ref()?);
        let mut noise = noise::with_member(&local.identity, room, &identity.noise, Role::Responder, entropy)?;
        let theirs = read(&mut noise, message)?;
        let body = write(&mut noise, local.build, &[])?;
        let message = local.datagram(step::PAIR_ANSWER, id, &body);
        outbox.answer(from, &message, incoming.size());
        self.answer = Some(Answer { id, message, expires: incoming.now + LIFE });
        outbox.push(match local.build.differs(&theirs) {
            Some(refusal) => Output::Refused { from, refusal, us: false },
            None => Output::Paired { peer, from, keys: noise::keys(&mut noise) },
        });
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
        let theirs = read(&mut call.noise, incoming.envelope.body)?;
        let from = incoming.from;
        outbox.push(match local.build.differs(&theirs) {
            Some(refusal) => Output::Refused { from, refusal, us: true },
            None => Output::Paired { peer, from, keys: noise::keys(&mut call.noise) },
        });
        self.call = None;
        Some(())
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, outbox: &mut Outbox) {
        if let Some(call) = &mut self.call
            && call.retry.fire(now)
        {
            for &to in &call.candidates {
                outbox.transmit(to, &call.message);
            }
        }
        self.answer.take_if(|answer| answer.expires <= now);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let call = self.call.as_ref().map(|call| call.retry.at);
        let answer = self.answer.as_ref().map(|answer| answer.expires);
        call.into_iter().chain(answer).min()
    }
}

/// Both messages are an ephemeral key, the sealed build and a tag.
const NOISE: usize = 32 + 16 + 16;

fn write(noise: &mut HandshakeState, build: Build, before: &[u8]) -> Option<Vec<u8>> {
    let mut payload = Vec::new();
    build.emit(&mut payload);
    let mut body = before.to_vec();
    body.resize(before.len() + NOISE, 0);
    noise.write_message(&payload, &mut body[before.len()..]).ok()?;
    Some(body)
}

fn read(noise: &mut HandshakeState, message: &[u8]) -> Option<Build> {
    if message.len() != NOISE {
        return None;
    }
    let mut payload = [0; NOISE];
    let len = noise.read_message(message, &mut payload).ok()?;
    Build::parse(payload.get(..len)?).ok()
}
