//! Vectors that need keys: room, certificates, both handshakes, a sealed packet. The text's formulas stand here a second
//! time, over `blake2` and `ring` alone, so that a vector agrees with the code *and* with what the text says.

use super::Check;
use blake2::digest::{Digest, FixedOutput, KeyInit, Update};
use blake2::{Blake2s256, Blake2sMac256};
use retick::base::{Addr, Entropy, Instant, PeerIndex};
use retick::channel::handshake::{Handshakes, Identity, Output, Room};
use retick::channel::{Channel, Cipher, SessionKeys};
use retick::config::RoomKey;
use retick::wire::control::Certificate;
use retick::wire::handshake::{Build, Envelope, Hello, RefuseReason, step};
use retick::wire::message::Delivery;
use retick::wire::section::{Section, sections};
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::signature::{ED25519, UnparsedPublicKey};

/// Entropy that counts: every byte is one more than the last.
struct Counting(u8);

impl Entropy for Counting {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = self.0;
            self.0 = self.0.wrapping_add(1);
        }
    }
}

/// The room of most vectors: bytes 00 to 1f.
fn room_key() -> RoomKey {
    RoomKey(std::array::from_fn(|i| i as u8))
}

pub(super) fn checks() -> Vec<Check> {
    let mut all = room();
    all.extend(join());
    all.extend(pair());
    all.push(other_version());
    all.push(cookie());
    #[cfg(not(feature = "bench-unsealed"))]
    all.extend(sealed());
    all
}

/// Only compared, not read.
fn fixed(name: &'static str, written: &[u8]) -> Check {
    Check { name, written: written.to_vec(), is_read: Box::new(|_| true) }
}

// ---- what the text says, once more ----

fn blake2s(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Blake2s256::new();
    for part in parts {
        Digest::update(&mut hash, part);
    }
    hash.finalize().into()
}

fn mac1(room: RoomKey, covered: &[u8]) -> [u8; 16] {
    let key = blake2s(&[b"retick handshake mac", &room.0[..16]]);
    let mut mac = Blake2sMac256::new_from_slice(&key).expect("32 bytes");
    Update::update(&mut mac, covered);
    mac.finalize_fixed()[..16].try_into().expect("16 of 32")
}

fn room_id(room: RoomKey) -> [u8; 8] {
    blake2s(&[b"retick room id", &room.0[..16]])[..8].try_into().expect("8 of 32")
}

fn is_macked(datagram: &[u8], room: RoomKey) -> bool {
    let (covered, mac) = datagram.split_last_chunk::<16>().expect("longer than a mac");
    mac1(room, covered) == *mac
}

#[cfg(not(feature = "bench-unsealed"))]
fn aead(cipher: Cipher, key: [u8; 32], counter: u64) -> (LessSafeKey, Nonce) {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&counter.to_le_bytes());
    let algorithm = match cipher {
        Cipher::Aes256Gcm => &AES_256_GCM,
        Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
    };
    let key = LessSafeKey::new(UnboundKey::new(algorithm, &key).expect("32 bytes"));
    (key, Nonce::assume_unique_for_key(nonce))
}

#[cfg(not(feature = "bench-unsealed"))]
fn open(cipher: Cipher, key: [u8; 32], counter: u64, clear: usize, packet: &[u8]) -> Vec<u8> {
    let (key, nonce) = aead(cipher, key, counter);
    let mut sealed = packet[clear..].to_vec();
    key.open_in_place(nonce, Aad::from(&packet[..clear]), &mut sealed).expect("authentic").to_vec()
}

fn is_certified(certificate: &Certificate, issuer: &[u8; 32], room: RoomKey) -> bool {
    let Certificate { identity, expires_unix_s, signature } = certificate;
    let expires = expires_unix_s.to_le_bytes();
    let id = room_id(room);
    let statement = [&b"retick may_introduce"[..], &id, &identity.noise, &identity.sign, &expires].concat();
    UnparsedPublicKey::new(&ED25519, issuer).verify(&statement, signature).is_ok()
}

// ---- vectors ----

fn room() -> Vec<Check> {
    let key = room_key();
    assert_eq!(Room::from_key(key).id(), room_id(key));
    let mut entropy = Counting(0);
    let member = Identity::generate(&mut entropy).public();
    let ours = Room::create(&mut entropy);
    let public = ours.public().expect("we opened it");
    let fingerprint = &blake2s(&[b"retick room key", &public])[..16];
    assert_eq!(&ours.key().0[16..], fingerprint);
    let certificate = ours.certify(&member, 0x6600_0000).expect("we opened it");
    assert!(is_certified(&certificate, &public, ours.key()));
    let bytes = [&member.noise[..], &member.sign, &0x6600_0000_u64.to_le_bytes(), &certificate.signature];
    vec![
        fixed("room-id", &room_id(key)),
        fixed("room-psk", &blake2s(&[b"retick channel psk", &key.0[..16]])),
        fixed("room-mac-key", &blake2s(&[b"retick handshake mac", &key.0[..16]])),
        fixed("room-public", &public),
        fixed("room-link", &ours.key().0),
        fixed("certificate", &bytes.concat()),
    ]
}

/// One node of a handshake, and what it has told so far.
struct Party {
    shakes: Handshakes,
    entropy: Counting,
    keys: Option<SessionKeys>,
    admission: Option<u32>,
    refused: Option<RefuseReason>,
}

impl Party {
    fn new(identity: Identity, entropy: Counting) -> Self {
        let build = Build { game_id: 0x0101, build_id: 0x0202 };
        let shakes = Handshakes::new(identity, Hello { build, has_aes: true }, 0, 1200);
        Self { shakes, entropy, keys: None, admission: None, refused: None }
    }

    /// Takes a datagram; what it sends in answer.
    fn take(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        self.shakes.handle_datagram(address(), datagram, Instant::ZERO, &mut self.entropy);
        self.drain()
    }

    fn drain(&mut self) -> Option<Vec<u8>> {
        let mut out = None;
        while let Some(output) = self.shakes.poll_output() {
            match output {
                Output::Transmit { bytes, .. } => out = Some(bytes),
                Output::Admission { id, .. } => self.admission = Some(id),
                Output::Joined { keys, .. } | Output::Paired { keys, .. } => self.keys = Some(keys),
                Output::Refused { refusal, .. } => self.refused = Some(refusal.reason),
            }
        }
        out
    }
}

fn address() -> Addr {
    Addr::opaque(b"x").expect("short")
}

fn peer(index: u8) -> PeerIndex {
    PeerIndex::new(index).expect("small")
}

/// A datagram of the room: read means that its mac is right and its step is the one meant.
fn datagram(name: &'static str, step: u8, written: Vec<u8>, room: RoomKey) -> Check {
    let is_read = move |bytes: &[u8]| {
        is_macked(bytes, room) && Envelope::parse(bytes).is_ok_and(|(envelope, ..)| envelope.step == step)
    };
    Check { name, written, is_read: Box::new(is_read) }
}

/// The two keys, that of the initiator's packets first.
fn session(name: &'static str, initiator: &Party, responder: &SessionKeys) -> Check {
    let initiator = initiator.keys.as_ref().expect("its handshake is done");
    assert_eq!((initiator.send, initiator.receive), (responder.receive, responder.send));
    fixed(name, &[initiator.send, initiator.receive].concat())
}

/// An introducer, a guest, and what the guest's three-message handshake put on the wire.
fn greet() -> (Party, Party, RoomKey, [Vec<u8>; 3]) {
    let mut entropy = Counting(0);
    let identity = Identity::generate(&mut entropy);
    let room = Room::create(&mut entropy);
    let key = room.key();
    let public = identity.public();
    let mut host = Party::new(identity, entropy);
    host.shakes.set_room(room);
    let chain = host.shakes.chain_for(&public, 0).expect("the room key is ours");
    host.shakes.set_us(peer(0), chain);
    let mut entropy = Counting(0x80);
    let mut guest = Party::new(Identity::generate(&mut entropy), entropy);
    guest.shakes.set_room(Room::from_key(key));
    guest.shakes.start_join(address(), Instant::ZERO, &mut guest.entropy);
    let call = guest.drain().expect("a call");
    let greeting = host.take(&call).expect("an answer");
    let finish = guest.take(&greeting).expect("an answer");
    assert_eq!(host.take(&finish), None);
    (host, guest, key, [call, greeting, finish])
}

fn join() -> Vec<Check> {
    let (mut host, guest, room, [call, greeting, finish]) = greet();
    assert_eq!([call.len(), greeting.len(), finish.len()], [682, 274, 137]);
    assert!(is_macked(&call, room));
    let keys = host.shakes.accept(host.admission.expect("asked")).expect("it waits");
    let joined = session("join-keys", &guest, &keys);

    let (mut host, mut guest, _, same) = greet();
    assert_eq!(same[0], call, "the same entropy gives the same bytes");
    host.shakes.refuse(host.admission.expect("asked"), RefuseReason::RoomFull, 4, 0);
    let refuse = host.drain().expect("a refusal");
    assert_eq!(refuse.len(), 57);
    assert_eq!(guest.take(&refuse), None);
    assert_eq!(guest.refused, Some(RefuseReason::RoomFull));
    #[cfg(not(feature = "bench-unsealed"))]
    {
        let clear = open(keys.cipher, keys.send, 0, 8, &refuse[..41]);
        assert_eq!(clear, [&[4, 4][..], &[0; 15]].concat(), "reason, ours 4, theirs 0");
    }
    vec![
        fixed("join-call-blake2s", &blake2s(&[&call])),
        datagram("join-greeting", step::GREETING, greeting, room),
        datagram("join-finish", step::FINISH, finish, room),
        joined,
        datagram("join-refuse", step::REFUSE, refuse, room),
    ]
}

fn pair() -> Vec<Check> {
    let member = |first, index| {
        let mut entropy = Counting(first);
        let mut party = Party::new(Identity::generate(&mut entropy), entropy);
        party.shakes.set_room(Room::from_key(room_key()));
        party.shakes.set_us(peer(index), Vec::new());
        party
    };
    let (mut lower, mut upper) = (member(0, 1), member(0x80, 2));
    lower.shakes.set_member(peer(2), upper.shakes.identity().public());
    upper.shakes.set_member(peer(1), lower.shakes.identity().public());
    lower.shakes.start_pair(peer(2), &[address()], Instant::ZERO, &mut lower.entropy);
    let call = lower.drain().expect("a call");
    let answer = upper.take(&call).expect("an answer");
    assert_eq!([call.len(), answer.len()], [114, 89]);
    assert_eq!(lower.take(&answer), None);
    let keys = session("pair-keys", &lower, upper.keys.as_ref().expect("it has answered"));
    vec![
        datagram("pair-call", step::PAIR_CALL, call, room_key()),
        datagram("pair-answer", step::PAIR_ANSWER, answer, room_key()),
        keys,
    ]
}

/// What a member of version 1 answers a call of version 2 with.
fn other_version() -> Check {
    let mut call = Vec::new();
    Envelope { sender: 255, version: 2, step: step::CALL, id: 0x0403_0201, body: &[0; 16] }.emit(&mut call);
    let mac = mac1(room_key(), &call);
    call.extend_from_slice(&mac);
    let mut entropy = Counting(0);
    let mut member = Party::new(Identity::generate(&mut entropy), entropy);
    member.shakes.set_room(Room::from_key(room_key()));
    member.shakes.set_us(peer(2), Vec::new());
    let answer = member.take(&call).expect("the version is named");
    assert_eq!(member.refused, Some(RefuseReason::WireVersion));
    datagram("other-version", step::OTHER_VERSION, answer, room_key())
}

/// What a member under load answers a call with: 21 in one moment are too many.
fn cookie() -> Check {
    let (mut host, mut guest, room, _) = greet();
    let answers = (0..21).map(|_| {
        guest.shakes.start_join(address(), Instant::ZERO, &mut guest.entropy);
        let call = guest.drain().expect("a call");
        (host.take(&call).expect("an answer"), call)
    });
    let (answer, call) = answers.last().expect("21");
    assert_eq!(answer.len(), 40);
    assert_eq!(guest.take(&answer), None);
    guest.shakes.handle_timeout(Instant::ZERO, &mut guest.entropy);
    let again = guest.drain().expect("the call with the cookie");
    assert_eq!(again[..8], call[..8]);
    assert_eq!((&again[8..24], &again[24..666]), (&answer[8..24], &call[24..666]));
    assert!(is_macked(&again, room));
    datagram("cookie", step::COOKIE, answer, room)
}

/// The first packet of a channel by both ciphers (a ping, a message, inputs), the key after, and a packet sealed with that.
#[cfg(not(feature = "bench-unsealed"))]
fn sealed() -> Vec<Check> {
    const NOW: Instant = Instant(0x0001_0203_0405);
    const HOUR: std::time::Duration = std::time::Duration::from_hours(1);
    const INPUTS: Section<'static> = Section::Inputs { flags: 0, body: &[1, 0, 0, 1, 1, 7] };
    let keys = |send, receive, cipher| SessionKeys { send: [send; 32], receive: [receive; 32], cipher };
    let mut checks = Vec::new();
    for (cipher, names) in [
        (Cipher::Aes256Gcm, ["sealed-packet", "next-key", "sealed-packet-next"]),
        (Cipher::ChaCha20Poly1305, ["sealed-packet-chacha", "next-key-chacha", "sealed-packet-next-chacha"]),
    ] {
        let mut last = Vec::new();
        INPUTS.emit(&mut last);
        let mut channel = Channel::new(keys(1, 2, cipher), 1200, NOW);
        channel.set_sender(3);
        channel.send_message(1, Delivery::Reliable, b"hi".to_vec()).expect("room");
        let mut written = Vec::new();
        channel.write_packet(&[], &last, NOW, NOW, &mut written);
        let content = open(cipher, [1; 32], 1, 6, &written);
        let walked: Vec<_> = sections(&content).collect::<Result<_, _>>().expect("our own");
        assert_eq!(walked.len(), 3);
        assert_eq!(walked[1..], [Section::Reliable { stream: 1, seq: 0, data: b"hi" }, INPUTS]);

        let mut other = Channel::new(keys(2, 1, cipher), 1200, NOW);
        other.handle_packet(&mut written.clone(), NOW, &mut |_| {}).expect("authentic");
        let mut answer = Vec::new();
        other.write_packet(&[], &[], NOW, NOW, &mut answer);
        channel.handle_packet(&mut answer, NOW, &mut |_| {}).expect("authentic");
        let mut after = Vec::new();
        channel.write_packet(&[], &last, NOW + HOUR, NOW + HOUR, &mut after);
        assert_eq!(after[0], 0x90, "the other epoch");
        let (key, nonce) = aead(cipher, [1; 32], u64::MAX);
        let mut next = [0; 32];
        let _tag = key.seal_in_place_separate_tag(nonce, Aad::empty(), &mut next).expect("short");
        let content = open(cipher, next, 2, 6, &after);
        assert!(sections(&content).any(|section| section == Ok(INPUTS)));

        let is_read = move |bytes: &[u8]| {
            let mut channel = Channel::new(keys(2, 1, cipher), 1200, Instant::ZERO);
            let mut came = false;
            let taken =
                channel.handle_packet(&mut bytes.to_vec(), NOW, &mut |section| came = section == INPUTS);
            let message = channel.take_reliable().map(|message| (message.stream, message.data));
            taken.is_ok() && came && message == Some((1, b"hi".to_vec()))
        };
        let first = written.clone();
        let next_is_read = move |bytes: &[u8]| {
            let mut channel = Channel::new(keys(2, 1, cipher), 1200, Instant::ZERO);
            let mut came = false;
            let both = [&first[..], bytes].map(|bytes| {
                came = false;
                channel.handle_packet(&mut bytes.to_vec(), NOW, &mut |section| came |= section == INPUTS)
            });
            both == [Ok(()), Ok(())] && came
        };
        checks.push(Check { name: names[0], written, is_read: Box::new(is_read) });
        checks.push(fixed(names[1], &next));
        checks.push(Check { name: names[2], written: after, is_read: Box::new(next_is_read) });
    }
    checks
}
