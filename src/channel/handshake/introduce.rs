//! The introducer's side: greet who knows the room, ask the node whether to let it in, and refuse with the reason.
//!
//! Fed by: calls and finishes of guests, the node's verdicts, time. Yields: `Admission`, `Refused`.
//! Never: holds more than `MAX_HANDSHAKES` half-open ones or one longer than its life.

use super::noise::{self, Role};
use super::{Incoming, LIFE, Local, Outbox, Output};
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
    Greeted(Box<HandshakeState>),
    Asked(SessionKeys),
    Accepted,
    Refused,
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
        let mut noise = noise::with_stranger(&local.identity, room, Role::Responder, entropy)?;
        let mut padding = vec![0; incoming.envelope.body.len()];
        noise.read_message(incoming.envelope.body, &mut padding).ok()?;
        let mut payload = Vec::new();
        Greeting { build: local.build, room: public, chain: local.chain.clone() }.emit(&mut payload);
        let mut body = vec![0; payload.len() + 32 + 48 + 16];
        let len = noise.write_message(&payload, &mut body).ok()?;
        let answer = local.datagram(step::GREETING, id, &body[..len]);
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
            stage: Stage::Greeted(Box::new(noise)),
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
        let noise = match &mut open.stage {
            Stage::Greeted(noise) => noise,
            Stage::Refused => {
                outbox.answer(from, &open.answer, incoming.size());
                return Some(());
            }
            // The guest repeats until our first packet reaches it.
            Stage::Asked(_) | Stage::Accepted => return Some(()),
        };
        let mut payload = vec![0; incoming.envelope.body.len()];
        let len = noise.read_message(incoming.envelope.body, &mut payload).ok()?;
        let guest: [u8; 32] = noise.get_remote_static()?.try_into().ok()?;
        let keys = noise::keys(noise);
        let finish = Finish::parse(&payload[..len]);
        open.stage = Stage::Asked(keys);
        let finish = finish.ok()?;
        if let Some(refusal) = local.build.differs(&finish.build) {
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
        Seal::new(&keys).seal(0, prefix, &mut bytes);
        local.add_mac(&mut bytes);
        // Shorter than the finish that caused it.
        outbox.transmit(open.from, &bytes);
        open.answer = bytes;
        outbox.push(Output::Refused { from: open.from, refusal, us: false });
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
