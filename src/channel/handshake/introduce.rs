//! The introducer's side: greet who knows the room, ask the node whether to let it in, and refuse with the reason.
//!
//! Fed by: calls and finishes of guests, the node's verdicts, time. Yields: `Admission`, `Refused`.
//! Never: holds more than `MAX_HANDSHAKES` half-open ones or one longer than its life.

use super::noise::{self, Role};
use super::{Door, Incoming, LIFE, Local, Outbox, Output};
use crate::base::PeerIndex;
use crate::base::limits::MAX_HANDSHAKES;
use crate::base::{Addr, Entropy, Instant};
use crate::channel::SessionKeys;
use crate::channel::seal::Seal;
use crate::wire::control::Identity as MemberIdentity;
use crate::wire::handshake::{Envelope, Finish, Greeting, Refusal, VERSION, step};
use crate::wire::header::NO_SENDER;
use snow::HandshakeState;
use std::collections::VecDeque;
use zeroize::Zeroize;

struct Introduction {
    from: Addr,
    id: u32,
    admission: u32,
    expires: Instant,
    /// What a repeated message is answered with.
    answer: Vec<u8>,
    stage: Stage,
}

enum Stage {
    Greeted(Box<Greeted>),
    Asked(SessionKeys),
    Accepted,
    Refused,
}

/// A guest's call and our answer, with all that is needed to come to this point again: `snow` cannot go back from a forged
/// message 3 to where it was, and nobody may end a handshake by forging one.
struct Greeted {
    noise: HandshakeState,
    drawn: [u8; 32],
    call: Vec<u8>,
    payload: Vec<u8>,
}

impl Greeted {
    /// Reads message 1; yields message 2, too.
    fn new(local: &Local, drawn: [u8; 32], call: &[u8], payload: Vec<u8>) -> Option<(Self, Vec<u8>)> {
        let room = local.room.as_ref()?;
        let mut noise = noise::with_stranger(&local.identity, room, Role::Responder, &mut Again(drawn))?;
        let mut padding = vec![0; call.len()];
        noise.read_message(call, &mut padding).ok()?;
        let mut body = vec![0; payload.len() + 32 + 48 + 16];
        let len = noise.write_message(&payload, &mut body).ok()?;
        body.truncate(len);
        Some((Self { noise, drawn, call: call.to_vec(), payload }, body))
    }

    /// Message 3: what it says, and the guest's key.
    fn finish(&mut self, local: &Local, message: &[u8]) -> Option<(Vec<u8>, [u8; 32])> {
        let mut payload = vec![0; message.len()];
        if let Ok(len) = self.noise.read_message(message, &mut payload) {
            payload.truncate(len);
            return Some((payload, self.noise.get_remote_static()?.try_into().ok()?));
        }
        if let Some((again, _)) = Self::new(local, self.drawn, &self.call, self.payload.clone()) {
            *self = again;
        }
        None
    }
}

impl Drop for Greeted {
    fn drop(&mut self) {
        self.drawn.zeroize();
    }
}

/// Randomness that was drawn before.
struct Again([u8; 32]);

impl Entropy for Again {
    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0[..bytes.len()]);
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[derive(Default)]
pub(super) struct Introductions {
    /// Oldest first.
    open: VecDeque<Introduction>,
    next_admission: u32,
}

impl Introductions {
    pub(super) fn handle_call(
        &mut self,
        local: &Local,
        incoming: &Incoming<'_>,
        door: &mut Door<'_>,
        entropy: &mut dyn Entropy,
        outbox: &mut Outbox,
    ) -> Option<()> {
        let (from, id) = (incoming.from, incoming.envelope.id);
        if let Some(known) = self.open.iter().find(|open| open.from == from && open.id == id) {
            if matches!(known.stage, Stage::Greeted(_)) {
                outbox.answer(from, &known.answer, incoming.size());
            }
            return Some(());
        }
        let room = local.room.as_ref()?;
        let public = room.public()?;
        if local.chain.is_empty() {
            return Some(()); // we may not introduce
        }
        let (cookie, message) = incoming.envelope.body.split_first_chunk()?;
        if !door.admits(local, incoming, cookie, outbox) {
            return Some(());
        }
        let mut payload = Vec::new();
        Greeting { hello: local.hello, room: public, chain: local.chain.clone() }.emit(&mut payload);
        let mut drawn = [0; 32];
        entropy.fill(&mut drawn);
        let greeted = Greeted::new(local, drawn, message, payload);
        drawn.zeroize();
        let (greeted, body) = greeted?;
        let answer = local.datagram(step::GREETING, id, &body);
        outbox.answer(from, &answer, incoming.size());
        if self.open.len() >= MAX_HANDSHAKES {
            self.open.pop_front();
        }
        self.next_admission = self.next_admission.wrapping_add(1);
        self.open.push_back(Introduction {
            from,
            id,
            admission: self.next_admission,
            expires: incoming.now + LIFE,
            answer,
            stage: Stage::Greeted(Box::new(greeted)),
        });
        Some(())
    }

    pub(super) fn handle_finish(
        &mut self,
        local: &Local,
        incoming: &Incoming<'_>,
        outbox: &mut Outbox,
    ) -> Option<()> {
        let (from, id) = (incoming.from, incoming.envelope.id);
        let open = self.open.iter_mut().find(|open| open.from == from && open.id == id)?;
        let greeted = match &mut open.stage {
            Stage::Greeted(greeted) => greeted,
            Stage::Refused => {
                outbox.answer(from, &open.answer, incoming.size());
                return Some(());
            }
            // The guest repeats until our first packet reaches it.
            Stage::Asked(_) | Stage::Accepted => return Some(()),
        };
        let (payload, guest) = greeted.finish(local, incoming.envelope.body)?;
        let Ok(finish) = Finish::parse(&payload) else {
            open.stage = Stage::Accepted; // of a version that says more: it is not answered
            return None;
        };
        let keys = noise::keys(&mut greeted.noise, local.cipher_with(&finish.hello));
        open.stage = Stage::Asked(keys);
        if let Some(refusal) = local.differs(&finish.hello) {
            let admission = open.admission;
            self.refuse(local, admission, refusal, outbox);
            return Some(());
        }
        let identity = MemberIdentity { noise: guest, sign: finish.sign };
        outbox.push(Output::Admission { id: open.admission, from, identity });
        Some(())
    }

    fn asked(&mut self, admission: u32) -> Option<&mut Introduction> {
        self.open.iter_mut().find(|open| open.admission == admission && matches!(open.stage, Stage::Asked(_)))
    }

    pub(super) fn accept(&mut self, admission: u32) -> Option<SessionKeys> {
        match std::mem::replace(&mut self.asked(admission)?.stage, Stage::Accepted) {
            Stage::Asked(keys) => Some(keys),
            Stage::Greeted(_) | Stage::Accepted | Stage::Refused => None,
        }
    }

    pub(super) fn refuse(&mut self, local: &Local, admission: u32, refusal: Refusal, outbox: &mut Outbox) {
        let Some(open) = self.asked(admission) else {
            return;
        };
        let Stage::Asked(keys) = std::mem::replace(&mut open.stage, Stage::Refused) else {
            return;
        };
        let sender = local.us.map_or(NO_SENDER, PeerIndex::get);
        let mut bytes = Vec::new();
        Envelope { sender, version: VERSION, step: step::REFUSE, id: open.id, body: &[] }.emit(&mut bytes);
        let prefix = bytes.len();
        refusal.emit(&mut bytes);
        Seal::new(&keys, Instant::ZERO).seal(0, prefix, &mut bytes);
        local.add_mac(&mut bytes);
        // Shorter than the finish that caused it.
        outbox.transmit(open.from, &bytes);
        open.answer = bytes;
        outbox.push(Output::Refused { from: open.from, refusal, us: false });
    }

    /// How many were greeted and have not finished.
    pub(super) fn half_open(&self) -> usize {
        self.open.iter().filter(|open| matches!(open.stage, Stage::Greeted(_))).count()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.open.retain(|open| open.expires > now);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.open.front().map(|open| open.expires)
    }
}
