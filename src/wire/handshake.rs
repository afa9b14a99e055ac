//! The datagrams of a handshake: a clear envelope with a keyed check behind it, and the payloads sealed inside.
//!
//! Envelope: `0xA0`, sender index, wire version, step, handshake id u32, body, then mac1 (16 bytes, keyed BLAKE2s over all
//! before it). The first eight bytes and the mac stay the same in every version, so that versions can name each other.
//! Fed by: datagrams, opened payloads. Yields: envelopes, payloads, refusals, or a `ParseError`. Never: knows a key.

use super::ParseError;
use super::control::{Certificate, Identity};
use super::header::Kind;

/// The wire version spoken here.
pub const VERSION: u8 = 1;
/// Bytes of mac1.
pub const MAC_SIZE: usize = 16;
/// Bytes before the body.
pub const PREFIX: usize = 8;
/// Bytes of a cookie. The field stands first in a CALL and behind the destination in a `PAIR_CALL`; zeros = none.
pub const COOKIE_SIZE: usize = 16;
/// Longest certificate chain, room key to introducer.
pub const MAX_CHAIN: usize = 4;
/// A message 2 with the longest chain; message 1 is padded to it, so that no answer is longer than its cause.
pub const MAX_GREETING: usize = PREFIX + 32 + 48 + greeting_size(MAX_CHAIN) + 16 + MAC_SIZE;

/// The step byte.
pub mod step {
    /// Guest → introducer, XX message 1.
    pub const CALL: u8 = 1;
    /// Introducer → guest, XX message 2.
    pub const GREETING: u8 = 2;
    /// Guest → introducer, XX message 3.
    pub const FINISH: u8 = 3;
    /// Introducer → guest: no, and why; sealed under the handshake's transport keys with counter 0.
    pub const REFUSE: u8 = 4;
    /// Member → member, KK message 1; its body begins with the destination's index.
    pub const PAIR_CALL: u8 = 5;
    /// Member → member, KK message 2.
    pub const PAIR_ANSWER: u8 = 6;
    /// To a call of another wire version: ours is the version byte. No body.
    pub const OTHER_VERSION: u8 = 7;
    /// To a call under load: 16 bytes to be put into the call's cookie field.
    pub const COOKIE: u8 = 8;
}

/// What of two peers did not match, or why the room is closed to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseReason {
    /// Another game.
    GameId,
    /// Another build of the game.
    BuildId,
    /// Another version of the wire protocol.
    WireVersion,
    /// Session settings differ (input size, frame rate, …).
    Settings,
    /// All places are taken.
    RoomFull,
    /// The match is running; joins into a running match are not possible.
    AlreadyStarted,
    /// The secret, the room key or a certificate is wrong.
    BadRoom,
    /// Nobody answered at that address.
    NoAnswer,
    /// That member is not the one that admits; join through the room's coordinator.
    NotCoordinator,
}

impl RefuseReason {
    const ALL: [Self; 9] = [
        Self::GameId,
        Self::BuildId,
        Self::WireVersion,
        Self::Settings,
        Self::RoomFull,
        Self::AlreadyStarted,
        Self::BadRoom,
        Self::NoAnswer,
        Self::NotCoordinator,
    ];
}

/// What both sides of a refusal have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which field.
    pub reason: RefuseReason,
    /// Our value.
    pub ours: u64,
    /// The other side's.
    pub theirs: u64,
}

impl Refusal {
    /// As the other side sees it.
    #[must_use]
    pub fn turned(self) -> Self {
        Self { reason: self.reason, ours: self.theirs, theirs: self.ours }
    }

    /// Reads a refusal; `ours` is the writer's value.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut reader = Reader(bytes);
        let [code] = reader.take()?;
        let reason = *RefuseReason::ALL.get(usize::from(code)).ok_or(ParseError::Malformed)?;
        let refusal = Self { reason, ours: reader.u64()?, theirs: reader.u64()? };
        reader.end(refusal)
    }

    /// Appends the refusal.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.push(self.reason as u8);
        out.extend_from_slice(&self.ours.to_le_bytes());
        out.extend_from_slice(&self.theirs.to_le_bytes());
    }
}

/// The clear part of a handshake datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The sender's index, or `NO_SENDER`.
    pub sender: u8,
    /// The sender's wire version.
    pub version: u8,
    /// See [`step`].
    pub step: u8,
    /// Chosen by who began.
    pub id: u32,
    /// What the step carries.
    pub body: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Reads an envelope; yields what its mac covers, and the mac, which must be checked before anything is believed.
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8], &'a [u8; MAC_SIZE]), ParseError> {
        let (covered, mac) = bytes.split_last_chunk::<MAC_SIZE>().ok_or(ParseError::Truncated)?;
        let (&[first, sender, version, step, i0, i1, i2, i3], body) =
            covered.split_first_chunk::<PREFIX>().ok_or(ParseError::Truncated)?;
        if first != Kind::Handshake.first_byte() {
            return Err(ParseError::Malformed);
        }
        let id = u32::from_le_bytes([i0, i1, i2, i3]);
        Ok((Self { sender, version, step, id, body }, covered, mac))
    }

    /// Appends the envelope without its mac.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[Kind::Handshake.first_byte(), self.sender, self.version, self.step]);
        out.extend_from_slice(&self.id.to_le_bytes());
        out.extend_from_slice(self.body);
    }
}

/// What two builds must have alike to talk at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// The game.
    pub game_id: u64,
    /// Its build.
    pub build_id: u64,
}

impl Build {
    /// Appends it.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.game_id.to_le_bytes());
        out.extend_from_slice(&self.build_id.to_le_bytes());
    }

    /// What differs, named by its first field.
    pub fn differs(&self, theirs: &Self) -> Option<Refusal> {
        let refusal = |reason, ours, theirs| Some(Refusal { reason, ours, theirs });
        if self.game_id != theirs.game_id {
            refusal(RefuseReason::GameId, self.game_id, theirs.game_id)
        } else if self.build_id != theirs.build_id {
            refusal(RefuseReason::BuildId, self.build_id, theirs.build_id)
        } else {
            None
        }
    }
}

/// What every end says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Its build.
    pub build: Build,
    /// Whether it has AES in hardware; packets are sealed with AES-256-GCM only if both ends do.
    pub has_aes: bool,
}

const HAS_AES: u8 = 1;

impl Hello {
    /// The payload of a `PAIR_ANSWER`.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut reader = Reader(bytes);
        let hello = reader.hello()?;
        reader.end(hello)
    }

    /// Appends it.
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.build.emit(out);
        out.push(if self.has_aes { HAS_AES } else { 0 });
    }
}

/// The payload of a `PAIR_CALL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairCall {
    /// Who calls.
    pub hello: Hello,
    /// Grows with every call of one static key: an older or equal one is a replay.
    pub stamp: u64,
}

impl PairCall {
    /// Reads it.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut reader = Reader(bytes);
        let call = Self { hello: reader.hello()?, stamp: reader.u64()? };
        reader.end(call)
    }

    /// Appends it.
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.hello.emit(out);
        out.extend_from_slice(&self.stamp.to_le_bytes());
    }
}

/// The payload of XX message 3: who the guest is besides its Noise key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finish {
    /// What it says of itself.
    pub hello: Hello,
    /// Its Ed25519 key.
    pub sign: [u8; 32],
}

impl Finish {
    /// Reads it.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut reader = Reader(bytes);
        let finish = Self { hello: reader.hello()?, sign: reader.take()? };
        reader.end(finish)
    }

    /// Appends it.
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.hello.emit(out);
        out.extend_from_slice(&self.sign);
    }
}

/// The payload of XX message 2: who the introducer is, and why it may introduce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// What it says of itself.
    pub hello: Hello,
    /// The room's Ed25519 key; its fingerprint is half of the room's 32 bytes.
    pub room: [u8; 32],
    /// From the room key to the introducer, whose keys the last one holds.
    pub chain: Vec<Certificate>,
}

const fn greeting_size(chain: usize) -> usize {
    17 + 32 + 1 + chain * 136 - 32
}

impl Greeting {
    /// Reads it; the last certificate's Noise key is not on the wire again, since the handshake proved it (`noise`).
    pub fn parse(bytes: &[u8], noise: &[u8; 32]) -> Result<Self, ParseError> {
        let mut reader = Reader(bytes);
        let hello = reader.hello()?;
        let room = reader.take()?;
        let [count] = reader.take()?;
        let count = usize::from(count);
        if !(1..=MAX_CHAIN).contains(&count) {
            return Err(ParseError::Malformed);
        }
        let mut chain = Vec::with_capacity(count);
        for i in 1..=count {
            let noise = if i < count { reader.take()? } else { *noise };
            let identity = Identity { noise, sign: reader.take()? };
            let expires_unix_s = reader.u64()?;
            chain.push(Certificate { identity, expires_unix_s, signature: reader.take()? });
        }
        reader.end(Self { hello, room, chain })
    }

    /// Appends it.
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.hello.emit(out);
        out.extend_from_slice(&self.room);
        out.push(self.chain.len() as u8);
        for (i, certificate) in self.chain.iter().enumerate() {
            if i + 1 < self.chain.len() {
                out.extend_from_slice(&certificate.identity.noise);
            }
            out.extend_from_slice(&certificate.identity.sign);
            out.extend_from_slice(&certificate.expires_unix_s.to_le_bytes());
            out.extend_from_slice(&certificate.signature);
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(ParseError::Truncated)?;
        self.0 = rest;
        Ok(*head)
    }

    fn u64(&mut self) -> Result<u64, ParseError> {
        self.take().map(u64::from_le_bytes)
    }

    /// Bits that say what is not known yet are ignored.
    fn hello(&mut self) -> Result<Hello, ParseError> {
        let build = Build { game_id: self.u64()?, build_id: self.u64()? };
        let [bits] = self.take()?;
        Ok(Hello { build, has_aes: bits & HAS_AES != 0 })
    }

    fn end<T>(self, value: T) -> Result<T, ParseError> {
        if self.0.is_empty() { Ok(value) } else { Err(ParseError::Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_greeting_is_as_long_as_the_padding_assumes() {
        let identity = Identity { noise: [1; 32], sign: [2; 32] };
        let certificate = Certificate { identity, expires_unix_s: 3, signature: [4; 64] };
        let hello = Hello { build: Build { game_id: 5, build_id: 6 }, has_aes: true };
        let greeting = Greeting { hello, room: [7; 32], chain: vec![certificate; MAX_CHAIN] };
        let mut out = Vec::new();
        greeting.emit(&mut out);
        assert_eq!(PREFIX + 32 + 48 + out.len() + 16 + MAC_SIZE, MAX_GREETING);
        assert_eq!(Greeting::parse(&out, &[1; 32]), Ok(greeting));
        for len in 0..out.len() {
            assert!(Greeting::parse(&out[..len], &[1; 32]).is_err(), "{len}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_parse_or_are_refused(mut bytes in proptest::collection::vec(0u8..=255, 0..400), chain in 0u8..4) {
            if let Some(first) = bytes.first_mut() {
                *first = Kind::Handshake.first_byte();
            }
            let mut again = Vec::new();
            if let Ok((envelope, covered, mac)) = Envelope::parse(&bytes) {
                envelope.emit(&mut again);
                proptest::prop_assert_eq!(&again[..], covered);
                again.extend_from_slice(mac);
                proptest::prop_assert_eq!(&again, &bytes);
            }
            if bytes.len() > 17 {
                let refusal = [&[bytes[1] % 10], &bytes[1..17]].concat();
                match Refusal::parse(&refusal) {
                    Ok(parsed) => {
                        again.clear();
                        parsed.emit(&mut again);
                        proptest::prop_assert_eq!(&again, &refusal);
                    }
                    Err(error) => proptest::prop_assert_eq!(error, ParseError::Malformed),
                }
            }
            if let Some(bits) = bytes.get_mut(16) {
                *bits &= HAS_AES;
            }
            for len in [17, 25, 49] {
                let Some(bytes) = bytes.get(..len) else { break };
                again.clear();
                match (Hello::parse(bytes), PairCall::parse(bytes), Finish::parse(bytes)) {
                    (Ok(hello), Err(_), Err(_)) => hello.emit(&mut again),
                    (Err(_), Ok(call), Err(_)) => call.emit(&mut again),
                    (Err(_), Err(_), Ok(finish)) => finish.emit(&mut again),
                    all => panic!("{len} bytes are one of three: {all:?}"),
                }
                proptest::prop_assert_eq!(&again, bytes);
            }
            if let Some(count) = bytes.get_mut(49) {
                *count = chain;
            }
            if let Ok(greeting) = Greeting::parse(&bytes, &[0; 32]) {
                let mut again = Vec::new();
                greeting.emit(&mut again);
                proptest::prop_assert_eq!(again, bytes);
            }
        }
    }
}
