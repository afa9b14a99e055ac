//! The guest's side of an introduction: call, check who greets, finish, and wait to be let in.
//!
//! Fed by: greetings and refusals, time. Yields: `Joined`, or a refusal with its reason (`NoAnswer` after 5 s).
//! Never: tells its own keys to somebody who cannot prove to speak for the room.

use super::noise::{self, Role};
use super::{Incoming, LIFE, Local, Outbox, Output, Retry};
use crate::base::{Addr, Entropy, Instant};
use crate::channel::seal::Seal;
use crate::wire::handshake::{
    COOKIE_SIZE, Finish, Greeting, MAC_SIZE, MAX_GREETING, PREFIX, Refusal, RefuseReason, step,
};
use snow::HandshakeState;

/// Clear key and tag around the padding of message 1.
const CALL_NOISE: usize = 32 + 16;

pub(super) struct Join {
    to: Addr,
    id: u32,
    message: Vec<u8>,
    retry: Retry,
    give_up: Instant,
    has_cookie: bool,
    stage: Stage,
}

enum Stage {
    Called(Box<HandshakeState>),
    /// Our last message is out; opens a refusal.
    Finished(Box<Seal>),
    /// We found that it does not fit, and said so to our node; the introducer is still to learn it.
    Unfit(Box<Seal>),
}

impl Join {
    pub(super) fn start(
        local: &Local,
        to: Addr,
        now: Instant,
        entropy: &mut dyn Entropy,
        outbox: &mut Outbox,
    ) -> Option<Self> {
        let room = local.room.as_ref()?;
        let mut id = [0; 4];
        entropy.fill(&mut id);
        let id = u32::from_le_bytes(id);
        let mut noise = noise::with_stranger(&local.identity, room, Role::Initiator, entropy)?;
        let size = local.max_datagram.min(MAX_GREETING);
        let padding = vec![0; size.saturating_sub(PREFIX + COOKIE_SIZE + CALL_NOISE + MAC_SIZE)];
        let mut body = vec![0; COOKIE_SIZE + CALL_NOISE + padding.len()];
        noise.write_message(&padding, &mut body[COOKIE_SIZE..]).ok()?;
        let message = local.datagram(step::CALL, id, &body);
        outbox.transmit(to, &message);
        let stage = Stage::Called(Box::new(noise));
        let (retry, give_up) = (Retry::new(now), now + LIFE);
        Some(Self { to, id, message, retry, give_up, has_cookie: false, stage })
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn is_unanswered(&self) -> bool {
        matches!(self.stage, Stage::Called(_))
    }

    /// The member we call is busy and wants us to prove our address. Says whether this is about our call.
    pub(super) fn handle_cookie(
        &mut self,
        local: &Local,
        incoming: &Incoming<'_>,
        cookie: &[u8; COOKIE_SIZE],
    ) -> bool {
        if incoming.from != self.to || incoming.envelope.id != self.id || !self.is_unanswered() {
            return false;
        }
        local.add_cookie(&mut self.message, PREFIX, cookie);
        // Once at once; whoever sends us more of them makes us send no more.
        if !std::mem::replace(&mut self.has_cookie, true) {
            self.retry.at = incoming.now;
        }
        true
    }

    /// Says whether the join is over; `None` for what makes no sense.
    pub(super) fn handle_greeting(
        &mut self,
        local: &mut Local,
        incoming: &Incoming<'_>,
        outbox: &mut Outbox,
    ) -> Option<bool> {
        let (from, now) = (incoming.from, incoming.now);
        let Stage::Called(noise) = &mut self.stage else {
            return Some(false); // a repeat: our timer repeats the finish
        };
        let mut payload = vec![0; incoming.envelope.body.len()];
        let len = noise.read_message(incoming.envelope.body, &mut payload).ok()?;
        let introducer: [u8; 32] = noise.get_remote_static()?.try_into().ok()?;
        let refuse = |outbox: &mut Outbox, ours, theirs| {
            let refusal = Refusal { reason: RefuseReason::BadRoom, ours, theirs };
            outbox.push(Output::Refused { from, refusal, us: true });
            Some(true)
        };
        let Ok(greeting) = Greeting::parse(&payload[..len], &introducer) else {
            return refuse(outbox, 0, 0);
        };
        let room = local.room.as_mut()?;
        if !room.learn_public(greeting.room) {
            return refuse(outbox, room.fingerprint_low(), super::room::fingerprint_low(&greeting.room));
        }
        let Some(introducer) = room.verify(&greeting.chain, local.unix_time_s) else {
            return refuse(outbox, 0, 0);
        };
        let mut payload = Vec::new();
        Finish { hello: local.hello, sign: local.identity.public().sign }.emit(&mut payload);
        let mut body = vec![0; payload.len() + 48 + 16];
        let len = noise.write_message(&payload, &mut body).ok()?;
        let keys = noise::keys(noise, local.cipher_with(&greeting.hello));
        let seal = Box::new(Seal::new(&keys, now));
        self.to = from;
        self.message = local.datagram(step::FINISH, self.id, &body[..len]);
        self.retry = Retry::new(now);
        self.give_up = now + LIFE;
        outbox.transmit(from, &self.message);
        if let Some(refusal) = local.differs(&greeting.hello) {
            self.stage = Stage::Unfit(seal);
            outbox.push(Output::Refused { from, refusal, us: true });
        } else {
            self.stage = Stage::Finished(seal);
            outbox.push(Output::Joined { from, keys, introducer, chain: greeting.chain });
        }
        Some(false)
    }

    /// Says whether the join is over; `None` for what is not the introducer's.
    pub(super) fn handle_refuse(&mut self, incoming: &Incoming<'_>, outbox: &mut Outbox) -> Option<bool> {
        let (Stage::Finished(seal) | Stage::Unfit(seal)) = &mut self.stage else {
            return None;
        };
        let mut bytes = incoming.covered.to_vec();
        let refusal = Refusal::parse(seal.open(false, 0, PREFIX, &mut bytes, incoming.now)?).ok()?.turned();
        if matches!(self.stage, Stage::Finished(_)) {
            outbox.push(Output::Refused { from: incoming.from, refusal, us: true });
        }
        Some(true)
    }

    /// Says whether the join is over.
    pub(super) fn handle_timeout(&mut self, now: Instant, outbox: &mut Outbox) -> bool {
        if self.give_up <= now {
            if !matches!(self.stage, Stage::Unfit(_)) {
                let refusal = Refusal { reason: RefuseReason::NoAnswer, ours: 0, theirs: 0 };
                outbox.push(Output::Refused { from: self.to, refusal, us: true });
            }
            return true;
        }
        if self.retry.fire(now) {
            outbox.transmit(self.to, &self.message);
        }
        false
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        self.retry.at.min(self.give_up)
    }
}
