//! The golden vectors of `docs/protocol.md`, both ways: what the code writes is what the text shows, and what the text shows
//! is read as what was meant. Text and code cannot drift apart.
//!
//! A block tagged `vectors` holds lines `name = hex`, continued on the lines below; what follows a `#` is for people.
//! `secrets` holds those that need keys, with the text's formulas written out a second time.
#[path = "golden_protocol/secrets.rs"]
mod secrets;

use retick::base::{Addr, Frame, PeerIndex, PeerSet, Slot};
use retick::config::SessionSettings;
use retick::wire::ParseError;
use retick::wire::agreement::{
    Commit, Cut, Epoch, Have, SlotEnds, emit_needs, emit_suspects, parse_needs, parse_suspects,
};
use retick::wire::control::{Certificate, Codec, Control, Identity};
use retick::wire::ext_ack::ExtAck;
use retick::wire::handshake::{Refusal, RefuseReason};
use retick::wire::header::Header;
use retick::wire::inputs::{
    FLAG_ASLEEP, FLAG_LENGTHS, FLAG_PARITY, FillHead, InputsHead, emit_block, parse_block,
};
use retick::wire::link::Link;
use retick::wire::section::{self, Section, node_section_with, sections};
use retick::wire::timing::{Pong, Timing};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;

/// One vector: its name in the text, what the code writes, and whether the code reads bytes as what was meant.
struct Check {
    name: &'static str,
    written: Vec<u8>,
    is_read: Box<IsRead>,
}

type IsRead = dyn Fn(&[u8]) -> bool;

#[test]
fn the_text_shows_what_the_code_writes_and_the_code_reads_what_the_text_shows() {
    let shown = vectors(&text());
    let mut problems = String::new();
    let mut checked = BTreeSet::new();
    for check in wire().into_iter().chain(controls()).chain(secrets::checks()) {
        assert!(checked.insert(check.name), "two checks are named {}", check.name);
        match shown.get(check.name) {
            Some(bytes) if *bytes == check.written => {
                if !(check.is_read)(bytes) {
                    writeln!(problems, "{} is read as something else", check.name).expect("a string");
                }
            }
            _ => writeln!(problems, "{} is {}", check.name, hex(&check.written)).expect("a string"),
        }
    }
    for name in shown.keys().filter(|name| !checked.contains(name.as_str())) {
        writeln!(problems, "{name} is in the text, but nothing checks it").expect("a string");
    }
    assert!(problems.is_empty(), "docs/protocol.md:\n{problems}");
}

#[test]
fn a_changed_byte_of_any_vector_is_noticed() {
    let planted = text().replace("header-worst = 8f", "header-worst = 8e");
    assert_ne!(vectors(&planted), vectors(&text()));
    for check in wire() {
        let mut bytes = check.written.clone();
        bytes[0] ^= 0x07;
        assert!(!(check.is_read)(&bytes), "{}", check.name);
    }
}

#[test]
fn the_limits_and_times_of_the_text_are_those_of_the_source() {
    let text = text();
    let cells: Vec<(&str, &str)> = text
        .lines()
        .filter(|line| line.starts_with("| "))
        .flat_map(|line| line.split('`'))
        .filter_map(|cell| cell.split_once(".rs: "))
        .collect();
    assert!(cells.len() > 40, "{} constants are named", cells.len());
    let stale: Vec<_> = cells.iter().filter(|(file, constant)| !is_in_source(file, constant)).collect();
    assert!(stale.is_empty(), "docs/protocol.md names {stale:?}");
    assert!(!is_in_source("base/limits", "MAX_PEERS = 17") && !is_in_source("base/limits", "PEERS = 16"));
}

fn wire() -> Vec<Check> {
    let whole = Header { epoch: false, sender: 3, counter: 0x0102, ack: 0x0304, ack_bits: u32::MAX };
    let pong = Pong { echo: 0x0102_0304, held_us: 0x0fa0, mesh_us: 0x0001_0203_0405 };
    let mut all = vec![
        header("header-loss-free", whole),
        header("header-one-lost", Header { ack_bits: !(1 << 9), ..whole }),
        header("header-worst", Header { ack_bits: 0, ..whole }),
        plain("section-reliable", Section::Reliable { stream: 2, seq: 0x0102, data: b"abc" }),
        plain("section-reliable-130", Section::Reliable { stream: 0, seq: 0xffff, data: &[0x5a; 130] }),
        plain("section-next", Section::Next { data: b"abc" }),
        plain("section-unreliable", Section::Unreliable { stream: 8, seq: None, data: b"abc" }),
        plain("section-newest", Section::Unreliable { stream: 1, seq: Some(4), data: b"" }),
        plain("section-ping", Section::Timing(Timing { ping: Some(0x0102_0304), pong: None })),
        plain("section-pong", Section::Timing(Timing { ping: None, pong: Some(pong) })),
        plain("section-ping-pong", Section::Timing(Timing { ping: Some(7), pong: Some(pong) })),
        plain("section-ext-ack-loss-free", Section::ExtAck(ExtAck { bits: [u64::MAX; 4] })),
        plain("section-ext-ack", Section::ExtAck(ExtAck { bits: [!(1 << 9), u64::MAX, u64::MAX, 0] })),
        plain("section-window", Section::Link(Link::Window(0x0102_0304))),
        plain("section-path-challenge", Section::Link(Link::PathChallenge([1, 2, 3, 4, 5, 6, 7, 8]))),
        plain("section-path-response", Section::Link(Link::PathResponse([1, 2, 3, 4, 5, 6, 7, 8]))),
        inputs("inputs-uniform", 0, 4, (0x0001_0010, -2), &["01020304 01020304 01020304 05060708"]),
        inputs("inputs-two-slots", FLAG_PARITY, 1, (20, 5), &["00 00 07", "09 09 08"]),
        inputs("inputs-lengths", FLAG_LENGTHS | FLAG_ASLEEP, 4, (300, -100), &["- 6869 6869 78"]),
        fill("section-fill", FillHead { slot: 3, first: Frame(0x0102_0304) }, 2, "6162 6162 6163"),
        refusal(),
        settings_digest(),
    ];
    all.extend(agreement());
    all
}

fn agreement() -> [Check; 5] {
    let cut = Cut {
        epoch: Epoch { counter: 5, decider: 0 },
        leavers: PeerSet::from_bits(0b100),
        members: PeerSet::from_bits(0b1011),
    };
    let suspects = PeerSet::from_bits(0x8004);
    let member = PeerIndex::new(3).expect("small");
    let have = Have { epoch: cut.epoch, member, ends: ends(&[(2, 0x0102_0304, 0), (7, 9, 0)]) };
    let commit = Commit { cut, ends: ends(&[(2, 0x0102_0304, 1)]) };
    let needs = ends(&[(2, 0x0102_0300, 0)]);
    let suspect = node(
        ("section-suspect", section::SUSPECT),
        suspects,
        |set, out| emit_suspects(out, *set),
        parse_suspects,
    );
    [
        suspect,
        node(("section-cut", section::CUT), cut, Cut::emit, Cut::parse),
        node(("section-have", section::HAVE), have, Have::emit, Have::parse),
        node(("section-commit", section::COMMIT), commit, Commit::emit, Commit::parse),
        node(("section-need", section::NEED), needs, |needs, out| emit_needs(out, needs), parse_needs),
    ]
}

fn controls() -> Vec<Check> {
    let identity = Identity { noise: [0x11; 32], sign: [0x22; 32] };
    // Equal bytes are packed, distinct ones are not: both forms are shown.
    let distinct = Identity {
        noise: std::array::from_fn(|i| i as u8 * 8),
        sign: std::array::from_fn(|i| 255 - i as u8 * 8),
    };
    let certificate = Certificate { identity, expires_unix_s: 0x6600_0000, signature: [0x33; 64] };
    let v4: SocketAddr = "192.0.2.7:4242".parse().expect("an address");
    let v6: SocketAddr = "[2001:db8::7]:4242".parse().expect("an address");
    let addresses =
        vec![Addr::ip(v4).into(), Addr::ip(v6).into(), Addr::opaque(b"seat 3").expect("short").into()];
    let mut slots = [255; 16];
    slots[..3].copy_from_slice(&[0, 0, 1]);
    let (attempt, seed) = (1, 0x0123_4567_89ab_cdef);
    [
        (
            "control-admit",
            Control::Admit { you: 1, us: 0, max_peers: 4, started_attempt: 3, chain: vec![certificate] },
        ),
        ("control-candidates", Control::Candidates { addresses: addresses.clone() }),
        ("control-member", Control::Member { index: 2, identity: distinct, addresses }),
        ("control-removed", Control::Removed { index: 2 }),
        (
            "control-status",
            Control::Status { local_slots: 2, settings: 0x0102_0304_0506_0708, connected: 0b1011 },
        ),
        ("control-prepare", Control::Prepare { attempt, seed, slots }),
        ("control-prepared", Control::Prepared { attempt }),
        ("control-go", Control::Go { attempt, seed, slots, frame0_at: 5_000_000 }),
        ("control-settings-differ", Control::SettingsDiffer { coordinator: 0x0102_0304_0506_0708 }),
        ("control-checksum", Control::Checksum { frame: 120, value: 0xfedc_ba98_7654_3210 }),
        ("control-bye", Control::Bye),
        ("control-end-match", Control::EndMatch),
    ]
    .into_iter()
    .map(|(name, control)| {
        let mut written = Vec::new();
        Codec::default().encode(&control, &mut written);
        let is_read = Box::new(move |bytes: &[u8]| Codec::default().decode(bytes).as_ref() == Ok(&control));
        Check { name, written, is_read }
    })
    .collect()
}

// ---- helpers ----

fn header(name: &'static str, header: Header) -> Check {
    let mut written = Vec::new();
    header.emit(&mut written);
    let is_read = move |bytes: &[u8]| Header::parse(bytes) == Ok((header, bytes.len()));
    Check { name, written, is_read: Box::new(is_read) }
}

/// A section that the channel understands.
fn plain(name: &'static str, section: Section<'static>) -> Check {
    let mut written = Vec::new();
    section.emit(&mut written);
    let is_read = move |bytes: &[u8]| sections(bytes).eq([Ok(section)]);
    Check { name, written, is_read: Box::new(is_read) }
}

/// A section of the agreement, in a match of odd parity.
fn node<T: PartialEq + 'static>(
    (name, kind): (&'static str, u8),
    value: T,
    emit: fn(&T, &mut Vec<u8>),
    parse: fn(&[u8]) -> Result<T, ParseError>,
) -> Check {
    let mut written = Vec::new();
    node_section_with(&mut written, kind, FLAG_PARITY, |out| emit(&value, out));
    let is_read = move |bytes: &[u8]| match sections(bytes).collect::<Vec<_>>()[..] {
        [Ok(Section::Node { kind: k, flags: FLAG_PARITY, body })] => {
            k == kind && parse(body).as_ref() == Ok(&value)
        }
        _ => false,
    };
    Check { name, written, is_read: Box::new(is_read) }
}

/// Inputs as hex words, `-` for one of no bytes.
fn stream(words: &str) -> Vec<Vec<u8>> {
    words.split_whitespace().map(|word| if word == "-" { Vec::new() } else { bytes(word) }).collect()
}

fn block(out: &mut Vec<u8>, input_max: usize, lengths: bool, slots: &[Vec<Vec<u8>>]) {
    emit_block(out, slots.len(), slots[0].len(), input_max, lengths, |slot, i| &slots[slot][i]);
}

fn is_block(block: &[u8], input_max: usize, lengths: bool, slots: &[Vec<Vec<u8>>]) -> bool {
    let mut read = vec![Vec::new(); slots.len()];
    let parsed = parse_block(block, slots.len(), input_max, lengths, 0, |slot, _, input| {
        read[slot].push(input.to_vec());
    });
    parsed.is_ok() && read == slots
}

/// A whole INPUTS section.
fn inputs(
    name: &'static str,
    flags: u8,
    input_max: usize,
    (end, ack_ahead): (i32, i32),
    slots: &[&str],
) -> Check {
    let slots: Vec<Vec<Vec<u8>>> = slots.iter().map(|words| stream(words)).collect();
    let lengths = flags & FLAG_LENGTHS != 0;
    let head = InputsHead { end_low: end as u16, ack_ahead };
    let mut body = Vec::new();
    head.emit(&mut body);
    block(&mut body, input_max, lengths, &slots);
    let mut written = Vec::new();
    Section::Inputs { flags, body: &body }.emit(&mut written);
    let is_read = move |bytes: &[u8]| match sections(bytes).collect::<Vec<_>>()[..] {
        [Ok(Section::Inputs { flags: f, body })] => InputsHead::parse(body)
            .is_ok_and(|(h, block)| f == flags && h == head && is_block(block, input_max, lengths, &slots)),
        _ => false,
    };
    Check { name, written, is_read: Box::new(is_read) }
}

fn fill(name: &'static str, head: FillHead, input_max: usize, words: &str) -> Check {
    let slots = [stream(words)];
    let mut written = Vec::new();
    node_section_with(&mut written, section::FILL, 0, |out| {
        head.emit(out);
        block(out, input_max, false, &slots);
    });
    let is_read = move |bytes: &[u8]| match sections(bytes).collect::<Vec<_>>()[..] {
        [Ok(Section::Node { kind: section::FILL, flags: 0, body })] => FillHead::parse(body)
            .is_ok_and(|(h, block)| h == head && is_block(block, input_max, false, &slots)),
        _ => false,
    };
    Check { name, written, is_read: Box::new(is_read) }
}

fn refusal() -> Check {
    let refusal = Refusal { reason: RefuseReason::BuildId, ours: 0x0102_0304_0506_0708, theirs: 9 };
    let mut written = Vec::new();
    refusal.emit(&mut written);
    Check { name: "refusal", written, is_read: Box::new(move |bytes| Refusal::parse(bytes) == Ok(refusal)) }
}

/// Only written: a digest is compared, never read.
fn settings_digest() -> Check {
    let settings = SessionSettings {
        input_max: 4,
        frame_rate: 60,
        game_settings: 0x0102_0304_0506_0708,
        desync_level: 1,
        window: 16,
    };
    let digest = settings.digest().to_le_bytes();
    let of_window = SessionSettings { window: 8, ..settings }.digest();
    assert_eq!(of_window.to_le_bytes(), digest, "the window is not compared");
    Check {
        name: "settings-digest",
        written: digest.to_vec(),
        is_read: Box::new(move |bytes| bytes == digest),
    }
}

fn ends(of: &[(u8, i32, u8)]) -> SlotEnds {
    let mut ends = SlotEnds::default();
    for &(slot, end, holder) in of {
        ends.set(Slot::new(slot).expect("small"), Frame(end), holder);
    }
    ends
}

/// Whether `src/<file>.rs` has a constant `NAME = VALUE`, of whatever type.
fn is_in_source(file: &str, constant: &str) -> bool {
    let path = format!("{}/src/{file}.rs", env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(&path).unwrap_or_default();
    let (name, value) = constant.split_once(" = ").expect("a constant and its value");
    source
        .lines()
        .any(|line| line.contains(&format!("const {name}: ")) && line.ends_with(&format!(" = {value};")))
}

fn text() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/protocol.md"))
        .expect("the text is there")
}

/// Every vector of the text by name.
fn vectors(text: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for block in text.split("```vectors\n").skip(1) {
        let lines = block.split("```").next().unwrap_or_default().lines();
        let mut current = None;
        for line in lines.map(|line| line.split('#').next().unwrap_or_default()) {
            let mut digits = line;
            if let Some((name, rest)) = line.split_once(" = ") {
                assert!(!found.contains_key(name), "two vectors are named {name}");
                (current, digits) = (Some(name), rest);
            }
            let digits = bytes(digits);
            if let Some(name) = current {
                found.entry(name.to_owned()).or_default().extend(digits);
            }
        }
    }
    found
}

fn bytes(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair =
        |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
    digits.chunks(2).map(|digits| pair(digits).expect("two hex digits a byte")).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string");
        hex
    })
}
