//! Two channels over a pipe in virtual time that loses, reorders and doubles by seed.
//!
//! Fed by: seeds. Yields: verdicts. Never: a clock, a socket.

use super::*;
use crate::base::Rng;
use crate::wire::section;
use std::collections::{BTreeMap, BTreeSet};

const DATAGRAM: usize = 1200;

#[test]
fn reliable_messages_come_once_and_in_order_whatever_the_pipe_does() {
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let mut pipe = Pipe::new(
            seed,
            Path {
                latency_us: 200 + rng.below(120_000),
                jitter_us: rng.below(40_000),
                loss_ppm: rng.below(300_000) as u32,
                duplicate_ppm: rng.below(100_000) as u32,
            },
        );
        pipe.frames = rng.chance_ppm(500_000);
        if rng.chance_ppm(700_000) {
            pipe.start_near_wrap();
        }
        let mut to_send = [400_u32, 400];
        let mut end = Instant::from_millis(2_000);
        while to_send != [0, 0] {
            for (end, left) in to_send.iter_mut().enumerate() {
                for _ in 0..rng.below(12).min(u64::from(*left)) {
                    let size = if rng.chance_ppm(600_000) { rng.below(64) } else { rng.below(1000) };
                    *left -= u32::from(pipe.send(end, rng.below(9) as u8, 8 + size as usize));
                }
            }
            pipe.run_until(end, seed);
            end += Duration::from_millis(20 + rng.below(100));
            assert!(end < Instant::from_millis(300_000), "seed {seed}: it comes through in the end");
        }
        pipe.run_until(end + Duration::from_secs(30), seed);
        for end in &mut pipe.ends {
            assert_eq!(end.sent, end.peer_got, "seed {seed}");
            let stats = end.channel.stats(pipe.now);
            assert_eq!((stats.reliable_waiting, stats.dropped_malformed, stats.dropped_forged), (0, 0, 0));
            assert!(end.channel.receiving.is_empty(), "seed {seed}: nothing is held back");
        }
    }
}

#[test]
fn a_small_message_is_hardly_later_at_five_percent_loss() {
    let mut pipe =
        Pipe::new(3, Path { latency_us: 40_000, jitter_us: 20_000, loss_ppm: 50_000, ..Path::default() });
    pipe.run_until(Instant::from_millis(3_000), 3);
    let mut delays = Vec::new();
    for i in 0..1_000_u64 {
        let sent = Instant::from_millis(3_000 + i * 50);
        pipe.run_until(sent, 3);
        assert!(pipe.send(0, 1, 16));
        pipe.run_until(sent + Duration::from_millis(49), 3);
        pipe.ends[0].arrived.drain(..).for_each(|at| delays.push(at.since(sent)));
    }
    delays.sort();
    let p99 = delays[delays.len() * 99 / 100];
    assert!(delays.len() > 980 && p99 <= Duration::from_millis(60 + 25), "{p99:?} of {}", delays.len());
}

#[test]
fn a_full_window_gives_the_message_back() {
    let mut channel = pair().0;
    let mut accepted = 0;
    while channel.send_message(1, Delivery::Reliable, vec![7]).is_ok() {
        accepted += 1;
    }
    assert_eq!(accepted, 4096 - 64, "the others are the mesh's");
    assert_eq!(channel.send_message(2, Delivery::Reliable, vec![7]), Err(vec![7]));
    assert_eq!(channel.send_message(9, Delivery::Unreliable, vec![7]), Err(vec![7]), "no such stream");
    let long = vec![0; channel.max_message() + 1];
    assert_eq!(channel.send_message(1, Delivery::Unreliable, long.clone()), Err(long));
    assert_eq!(channel.max_message(), 1024);
}

#[test]
fn the_longest_message_fits_the_smallest_datagram() {
    let keys = [keys(1, 2), keys(2, 1)];
    let [one, other] = keys.map(|keys| Channel::new(keys, 600, Instant::ZERO));
    let (mut one, mut other) = (one, other);
    exchange(&mut other, &mut one, Instant::ZERO);
    let longest = one.max_message();
    one.send_message(1, Delivery::Reliable, vec![1; longest]).expect("fits");
    let packet = exchange(&mut one, &mut other, Instant::ZERO);
    assert!(packet.len() <= 600);
    assert_eq!(other.take_reliable().map(|message| message.data.len()), Some(longest));
}

#[test]
fn a_lone_message_of_64_bytes_costs_at_most_what_the_bar_says() {
    for (delivery, overhead) in [(Delivery::Unreliable, 25), (Delivery::Reliable, 27)] {
        let (mut one, mut other) = pair();
        // Calm: both pings asked and answered.
        for _ in 0..3 {
            exchange(&mut one, &mut other, Instant::ZERO);
            exchange(&mut other, &mut one, Instant::ZERO);
        }
        one.send_message(1, delivery, vec![0; 64]).expect("room");
        let packet = exchange(&mut one, &mut other, Instant::from_millis(1));
        assert_eq!(packet.len(), 64 + overhead, "{delivery:?}");
    }
}

#[test]
fn sections_of_the_node_pass_untouched_and_inputs_come_last() {
    let (mut one, mut other) = pair();
    one.send_message(0, Delivery::Reliable, vec![5]).expect("room");
    let mut sections = Vec::new();
    section::node_section(&mut sections, section::SUSPECT, &[1, 2]);
    section::node_section_with(&mut sections, section::FILL, 3, |out| out.push(9));
    let mut last = Vec::new();
    Section::Inputs { flags: 2, body: &[0, 0, 7] }.emit(&mut last);
    let mut packet = Vec::new();
    one.write_packet(&sections, &last, Instant::ZERO, Instant::ZERO, &mut packet);
    let mut seen = Vec::new();
    let result = other.handle_packet(&mut packet, Instant::ZERO, &mut |section| match section {
        Section::Node { kind, flags, body } => seen.push((kind, flags, body.to_vec())),
        Section::Inputs { flags, body } => seen.push((section::INPUTS, flags, body.to_vec())),
        other => panic!("{other:?} is the channel's own"),
    });
    assert_eq!(result, Ok(()));
    let expected =
        [(section::SUSPECT, 0, vec![1, 2]), (section::FILL, 3, vec![9]), (section::INPUTS, 2, vec![0, 0, 7])];
    assert_eq!(seen, expected);
    assert_eq!(other.poll_message().map(|message| message.data), Some(vec![5]));
}

#[test]
fn an_older_unreliable_message_of_a_newest_stream_is_dropped() {
    let (mut one, mut other) = pair();
    let mut packets = Vec::new();
    for i in 0..4 {
        one.send_message(1, Delivery::UnreliableNewest, vec![i]).expect("room");
        one.send_message(2, Delivery::Unreliable, vec![i]).expect("room");
        packets.push(write(&mut one, Instant::ZERO));
    }
    for i in [1, 0, 3, 2] {
        take(&mut other, &mut packets[i].clone(), Instant::ZERO).expect("fresh");
    }
    let mut got = [Vec::new(), Vec::new()];
    while let Some(message) = other.poll_message() {
        got[usize::from(message.stream) - 1].push(message.data[0]);
    }
    assert_eq!(got, [vec![1, 3], vec![1, 0, 3, 2]]);
    // Waiting ones are replaced by the newest, and every vector comes back.
    for i in 0..4 {
        one.send_message(1, Delivery::UnreliableNewest, vec![i]).expect("room");
    }
    let mut packet = write(&mut one, Instant::ZERO);
    take(&mut other, &mut packet, Instant::ZERO).expect("fresh");
    assert_eq!(other.poll_message().map(|message| message.data), Some(vec![3]));
    assert_eq!(std::iter::from_fn(|| one.poll_released()).count(), 12);
}

#[test]
fn a_new_reliable_message_is_acknowledged_within_four_ms() {
    let (mut one, mut other) = calm_pair();
    let now = Instant::from_millis(100);
    one.send_message(1, Delivery::Reliable, vec![1]).expect("room");
    assert!(one.poll_timeout() <= Some(now), "a queued message wants a packet now");
    exchange(&mut one, &mut other, now);
    assert_eq!(other.poll_timeout(), Some(now + Duration::from_millis(4)));
    let at = now + Duration::from_millis(4);
    exchange(&mut other, &mut one, at);
    assert_eq!(one.stats(at).reliable_waiting, 0);
    assert!(other.poll_timeout() > Some(at));
    assert!(one.poll_timeout() > Some(at));
}

#[test]
fn twelve_packets_of_any_kind_are_acknowledged_at_once() {
    let (mut one, mut other) = calm_pair();
    let now = Instant::from_millis(100);
    for i in 1..=12 {
        assert!(other.poll_timeout() > Some(now), "{i}");
        exchange(&mut one, &mut other, now);
    }
    assert_eq!(other.poll_timeout(), Some(now));
}

#[test]
fn one_way_traffic_never_leaves_more_than_a_header_confirms_uncovered() {
    let mut pipe = Pipe::new(9, Path { latency_us: 20_000, ..Path::default() });
    pipe.frames = true;
    pipe.silent = [false, true]; // the second end sends only when its channel asks
    pipe.run_until(Instant::from_millis(20_000), 9);
    assert!(pipe.most_uncovered <= 12, "{}", pipe.most_uncovered);
    let stats = pipe.ends[0].channel.stats(pipe.now);
    assert!(stats.packets_sent > 1_000 && stats.loss_sent_ppm == 0, "{stats:?}");
}

#[test]
fn the_round_trip_converges_on_a_short_path_between_clocks_that_differ() {
    let mut pipe = Pipe::new(4, Path { latency_us: 300, ..Path::default() });
    pipe.frames = true;
    pipe.ends[1].clock_us = 77_000_000_000;
    *pipe.ends[1].channel = Channel::new(keys(2, 1), DATAGRAM, Instant(77_000_000_000));
    for end in &mut pipe.ends {
        end.channel.set_ping_every(Duration::from_millis(15));
    }
    pipe.run_until(Instant::from_millis(1_000), 4);
    for end in &mut pipe.ends {
        let rtt = end.channel.rtt().as_micros();
        assert!(rtt.abs_diff(600) <= 50, "{rtt} µs");
        assert!(end.channel.is_rtt_measured());
        let samples: Vec<_> = std::iter::from_fn(|| end.channel.poll_clock_sample()).collect();
        assert!((50..=68).contains(&samples.len()), "one per ping, every 15 ms: {}", samples.len());
        let difference = 77_000_000_000_i64 * if end.clock_us == 0 { 1 } else { -1 };
        for sample in samples {
            let middle = (sample.sent.0 + sample.received.0) as i64 / 2;
            let measured = sample.mesh_at_peer.0 as i64 - middle;
            assert!((measured - difference).abs() <= 1, "{measured}");
        }
    }
}

#[test]
fn loss_is_counted_in_both_directions() {
    let mut pipe =
        Pipe::new(5, Path { latency_us: 30_000, jitter_us: 5_000, loss_ppm: 100_000, ..Path::default() });
    pipe.frames = true;
    let (mut sent, mut received) = (0, 0);
    for second in 4..44 {
        pipe.run_until(Instant::from_millis(second * 1_000), 5);
        let stats = pipe.ends[0].channel.stats(pipe.now);
        sent += stats.loss_sent_ppm / 40;
        received += stats.loss_received_ppm / 40;
    }
    for ppm in [sent, received] {
        assert!((85_000..115_000).contains(&ppm), "10 % are lost: {ppm}");
    }
}

#[cfg(not(feature = "bench-unsealed"))]
#[test]
fn forged_cut_and_replayed_packets_change_nothing() {
    let (mut one, mut other) = calm_pair();
    one.send_message(1, Delivery::Reliable, vec![1, 2, 3]).expect("room");
    other.send_message(1, Delivery::Reliable, vec![4]).expect("room");
    let now = Instant::from_millis(50);
    exchange(&mut other, &mut one, now);
    let packet = write(&mut one, now);
    let before = state(&mut other);
    let mut forged = 0;
    for i in 0..packet.len() {
        for bit in 0..8 {
            let mut bytes = packet.clone();
            bytes[i] ^= 1 << bit;
            assert!(take(&mut other, &mut bytes, now).is_err(), "byte {i} bit {bit}");
            forged += 1;
        }
        assert!(take(&mut other, &mut packet[..i].to_vec(), now).is_err());
        forged += 1;
    }
    assert_eq!(state(&mut other), before);
    let stats = other.stats(now);
    assert_eq!(stats.dropped_forged + stats.dropped_malformed + stats.dropped_replayed, forged);
    take(&mut other, &mut packet.clone(), now).expect("untouched");
    let after = state(&mut other);
    assert_ne!(after, before);
    assert_eq!(take(&mut other, &mut packet.clone(), now), Err(DropReason::Replayed));
    assert!(take(&mut one, &mut packet.clone(), now).is_err(), "our own packet, thrown back");
    assert_eq!(state(&mut other), after);
}

#[test]
fn a_packet_that_left_no_room_does_not_ask_for_the_next_without_pause() {
    let (mut one, mut other) = calm_pair();
    let now = Instant::from_millis(100);
    one.send_message(1, Delivery::Reliable, vec![1; 1000]).expect("room");
    let mut packet = Vec::new();
    let mut sections = Vec::new();
    section::node_section(&mut sections, section::FILL, &[0; 1100]);
    one.write_packet(&sections, &[], now, now, &mut packet);
    assert_eq!(one.poll_timeout(), Some(now + Duration::from_millis(1)));
    exchange(&mut one, &mut other, now + Duration::from_millis(1));
    assert_eq!(other.take_reliable().map(|message| message.data.len()), Some(1000));
}

#[test]
fn a_large_message_goes_again_as_soon_as_its_loss_is_known_and_no_sooner() {
    let round_trip = Duration::from_millis(200);
    let (mut one, mut other) = pair();
    // Measure the path first.
    exchange(&mut one, &mut other, Instant::ZERO);
    let mut flight = write(&mut other, Instant::ZERO);
    take(&mut one, &mut flight, Instant::ZERO + round_trip).expect("fresh");
    assert_eq!(one.rtt(), round_trip);
    let start = Instant::from_millis(400);
    let mut answers = BTreeMap::new();
    let mut again = None;
    one.send_message(1, Delivery::Reliable, vec![1; 500]).expect("room");
    for i in 0..40 {
        let now = start + i * Duration::from_millis(16);
        flight = write(&mut one, now);
        if i > 0 {
            if flight.len() > 500 {
                again = Some(now.since(start));
                break;
            }
            take(&mut other, &mut flight, now).expect("fresh"); // the first one is lost
            answers.insert(now + round_trip, write(&mut other, now));
        }
        while let Some(answer) = answers.first_entry().filter(|answer| *answer.key() <= now) {
            take(&mut one, &mut answer.remove(), now).expect("fresh");
        }
    }
    let again = again.expect("it goes again");
    // One sent 25 ms later must be acknowledged: the second frame after it, and the next frame is when we can act.
    assert!(again >= round_trip + Duration::from_millis(25), "{again:?}");
    assert!(
        again <= round_trip + Duration::from_millis(25 + 2 * 16),
        "the timeout would be 400 ms: {again:?}"
    );
    assert_eq!(one.stats(start).reliable_resent, 1);
}

#[test]
fn a_large_message_without_any_answer_goes_again_ever_more_slowly() {
    let (mut one, _) = calm_pair();
    one.send_message(1, Delivery::Reliable, vec![1; 500]).expect("room");
    let mut sent = Vec::new();
    while one.poll_timeout() < Some(Instant::from_millis(10_000)) {
        let now = one.poll_timeout().expect("pings never end").max(Instant::from_millis(1));
        if write(&mut one, now).len() > 500 {
            sent.push(now);
        }
    }
    let gaps: Vec<_> = sent.windows(2).map(|pair| pair[1].since(pair[0]).as_millis()).collect();
    assert_eq!(gaps[..6], [50, 50, 50, 100, 200, 400], "{gaps:?}");
    assert!(gaps[6..].iter().all(|gap| (400..=1_000).contains(gap)) && sent.len() < 20, "{gaps:?}");
}

#[cfg(not(feature = "bench-unsealed"))]
#[test]
fn the_golden_packet_of_the_protocol_text() {
    let mut one = pair().0;
    one.set_sender(3);
    one.send_message(1, Delivery::Reliable, b"hi".to_vec()).expect("room");
    let mut last = Vec::new();
    Section::Inputs { flags: 0, body: &[1, 0, 0, 1, 1, 7] }.emit(&mut last);
    let mut packet = Vec::new();
    one.write_packet(&[], &last, Instant(0x1_0203_0405), Instant::ZERO, &mut packet);
    assert_eq!(
        format!("{packet:02x?}").replace([',', ' ', '[', ']'], ""),
        "800301000000a16f42c3a096acd7938a2851a651d52149b60ac0e86daea70c7254fc03eae132e9e96d"
    );
}

#[test]
fn a_burst_leaves_in_full_packets_and_then_waits() {
    let (mut one, mut other) = calm_pair();
    let now = Instant::from_millis(100);
    for i in 0..150_u8 {
        one.send_message(1, Delivery::Reliable, vec![i; 100]).expect("room");
    }
    let mut packets = 0;
    while one.poll_timeout() <= Some(now) {
        exchange(&mut one, &mut other, now);
        packets += 1;
    }
    assert_eq!(packets, 150_usize.div_ceil((DATAGRAM - 22) / 105));
    for i in 0..150 {
        assert_eq!(other.take_reliable().map(|message| message.data[0]), Some(i));
    }
}

#[test]
fn a_burst_whose_packets_overtake_each_other_is_not_sent_twice() {
    for seed in 0..10 {
        let mut pipe = Pipe::new(seed, Path { latency_us: 40_000, jitter_us: 20_000, ..Path::default() });
        pipe.start_near_wrap();
        pipe.run_until(Instant::from_millis(1_000), seed);
        for i in 1..=250 {
            assert!(pipe.send(0, 1, 100));
            pipe.run_until(Instant(1_000_000 + i * 160), seed);
        }
        pipe.run_until(Instant::from_millis(2_000), seed);
        let stats = pipe.ends[0].channel.stats(pipe.now);
        assert_eq!((stats.reliable_waiting, stats.reliable_resent), (0, 0), "seed {seed}");
    }
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_is_counted_and_the_rest_of_its_packet_taken() {
    let (mut one, mut other) = calm_pair();
    let now = Instant::from_millis(100);
    one.send_message(1, Delivery::Reliable, vec![1; 500]).expect("room");
    write(&mut one, now);
    other.send_message(1, Delivery::Reliable, vec![2]).expect("room");
    // A hostile peer: it claims 500 packets of ours, with the extended bits.
    other.incoming.start_at(500);
    for _ in 0..7 {
        other.incoming.commit(500, now);
    }
    assert!(other.incoming.extended().is_some());
    exchange(&mut other, &mut one, now);
    let stats = one.stats(now);
    assert_eq!((stats.dropped_malformed, stats.reliable_waiting), (1, 1));
    assert_eq!(one.take_reliable().map(|message| message.data), Some(vec![2]));
}

#[test]
fn what_the_pace_holds_back_holds_back_neither_the_mesh_nor_what_the_node_writes() {
    let mut one = calm_pair().0;
    let now = Instant::from_millis(100);
    let mut left = 0;
    for _ in 0..200 {
        one.send_message(1, Delivery::Unreliable, vec![0; 1_000]).expect("room");
    }
    while one.poll_timeout() <= Some(now) {
        left += write(&mut one, now).len();
    }
    assert!((30_000..60_000).contains(&left), "{left} bytes of a burst left at once");
    let small = write(&mut one, now).len();
    assert!(small < 40, "a packet that goes anyway takes {small} bytes: no message rides in it");
    one.send_message(0, Delivery::Reliable, vec![0; 500]).expect("room");
    assert!(one.poll_timeout() <= Some(now), "the mesh's own message does not wait");
    let control = write(&mut one, now).len();
    assert!((500..560).contains(&control), "it left alone: {control} bytes");
    let next = one.poll_timeout().expect("pings never end");
    assert!(next > now && next <= now + Duration::from_millis(5), "{next}");
    assert!(write(&mut one, next).len() > 1_000, "the messages go on");
}

#[test]
fn a_burst_of_reliable_messages_waits_for_its_pace_too() {
    let mut one = calm_pair().0;
    one.sending.handle_window(crate::base::limits::LINK_WINDOW);
    let now = Instant::from_millis(100);
    for _ in 0..100 {
        one.send_message(1, Delivery::Reliable, vec![0; 1_000]).expect("room");
    }
    let mut at = now;
    let mut left = 0;
    while left < 100_000 {
        left += write(&mut one, at).len();
        at = at.max(one.poll_timeout().expect("pings never end"));
    }
    let took = at.since(now).as_millis();
    assert!((7..=15).contains(&took), "100 kB left within {took} ms, at 6.5 MB/s less what may run ahead");
}

// ---- helpers ----

/// What a pipe does to packets, both ways.
#[derive(Clone, Copy, Default)]
pub(super) struct Path {
    pub(super) latency_us: u64,
    pub(super) jitter_us: u64,
    pub(super) loss_ppm: u32,
    pub(super) duplicate_ppm: u32,
}

pub(super) struct End {
    pub(super) channel: Box<Channel>,
    /// What its clock shows at the pipe's time zero.
    clock_us: u64,
    next_frame: Instant,
    /// Per stream, the numbers of the messages sent, and those that the other side got of them.
    pub(super) sent: BTreeMap<u8, Vec<u32>>,
    pub(super) peer_got: BTreeMap<u8, Vec<u32>>,
    released: BTreeSet<u32>,
    unreliable: BTreeSet<u32>,
    pub(super) arrived: Vec<Instant>,
    next_number: u32,
}

pub(super) struct Pipe {
    pub(super) ends: [End; 2],
    pub(super) path: Path,
    rng: Rng,
    pub(super) now: Instant,
    flying: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    order: u64,
    /// Both send 60 packets a second; else every 50 ms.
    pub(super) frames: bool,
    pub(super) silent: [bool; 2],
    most_uncovered: u8,
}

fn keys(send: u8, receive: u8) -> SessionKeys {
    SessionKeys { send: [send; 32], receive: [receive; 32], cipher: Cipher::Aes256Gcm }
}

pub(super) fn pair() -> (Channel, Channel) {
    (Channel::new(keys(1, 2), DATAGRAM, Instant::ZERO), Channel::new(keys(2, 1), DATAGRAM, Instant::ZERO))
}

/// Both have asked and answered a ping, and owe nothing.
pub(super) fn calm_pair() -> (Channel, Channel) {
    let (mut one, mut other) = pair();
    for _ in 0..3 {
        exchange(&mut one, &mut other, Instant::ZERO);
        exchange(&mut other, &mut one, Instant::ZERO);
    }
    exchange(&mut one, &mut other, Instant::ZERO);
    exchange(&mut other, &mut one, Instant::ZERO);
    other.incoming.note_told(true);
    (one, other)
}

pub(super) fn write(channel: &mut Channel, now: Instant) -> Vec<u8> {
    let mut packet = Vec::new();
    channel.write_packet(&[], &[], now, now, &mut packet);
    packet
}

pub(super) fn take(channel: &mut Channel, packet: &mut [u8], now: Instant) -> Result<(), DropReason> {
    channel.handle_packet(packet, now, &mut |_| {})
}

pub(super) fn exchange(from: &mut Channel, to: &mut Channel, now: Instant) -> Vec<u8> {
    let packet = write(from, now);
    take(to, &mut packet.clone(), now).expect("an honest packet is taken");
    packet
}

/// Everything that a packet may change, apart from the counters of dropped ones.
#[cfg(not(feature = "bench-unsealed"))]
fn state(channel: &mut Channel) -> String {
    let dropped = channel.stats;
    channel.stats.dropped_forged = 0;
    channel.stats.dropped_malformed = 0;
    channel.stats.dropped_replayed = 0;
    let state = format!("{channel:?}");
    channel.stats = dropped;
    state
}

impl Pipe {
    pub(super) fn new(seed: u64, path: Path) -> Self {
        let (one, other) = pair();
        let end = |channel, offset| End {
            channel: Box::new(channel),
            clock_us: 0,
            next_frame: Instant(offset),
            sent: BTreeMap::new(),
            peer_got: BTreeMap::new(),
            released: BTreeSet::new(),
            unreliable: BTreeSet::new(),
            arrived: Vec::new(),
            next_number: 0,
        };
        Self {
            ends: [end(one, 0), end(other, 7_000)],
            path,
            rng: Rng::new(seed ^ 0x5eed),
            now: Instant::ZERO,
            flying: BTreeMap::new(),
            order: 0,
            frames: false,
            silent: [false; 2],
            most_uncovered: 0,
        }
    }

    /// Sequence numbers and packet counters pass 65,535 soon.
    pub(super) fn start_near_wrap(&mut self) {
        for end in &mut self.ends {
            end.channel.outgoing.start_at(65_500);
            end.channel.incoming.start_at(65_500);
            end.channel.sending.start_at(65_500);
            end.channel.receiving.start_at(65_500);
        }
    }

    pub(super) fn send(&mut self, end: usize, stream: u8, size: usize) -> bool {
        self.send_as(end, stream, Delivery::Reliable, size)
    }

    pub(super) fn send_as(&mut self, end: usize, stream: u8, delivery: Delivery, size: usize) -> bool {
        let end = &mut self.ends[end];
        let mut data = end.next_number.to_le_bytes().to_vec();
        data.resize(size, 0xaa);
        if end.channel.send_message(stream, delivery, data).is_err() {
            return false;
        }
        end.sent.entry(stream).or_default().push(end.next_number);
        if delivery != Delivery::Reliable {
            end.unreliable.insert(end.next_number);
        }
        end.next_number += 1;
        true
    }

    fn local(&self, end: usize) -> Instant {
        Instant(self.now.0 + self.ends[end].clock_us)
    }

    fn wants_at(&self, index: usize) -> Instant {
        let end = &self.ends[index];
        let channel = end.channel.poll_timeout().expect("pings never end");
        let channel = Instant(channel.0.saturating_sub(end.clock_us));
        if self.silent[index] { channel } else { channel.min(end.next_frame) }
    }

    pub(super) fn run_until(&mut self, until: Instant, seed: u64) {
        loop {
            let flight = self.flying.keys().next().map(|key| key.0);
            let next = flight.into_iter().chain([self.wants_at(0), self.wants_at(1)]).min();
            let Some(next) = next.filter(|&at| at <= until) else {
                break;
            };
            self.now = self.now.max(next);
            while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to, bytes) = entry.remove();
                self.deliver(to, bytes, seed);
            }
            for end in 0..2 {
                while self.wants_at(end) <= self.now {
                    self.write(end);
                }
            }
        }
        self.now = self.now.max(until);
    }

    fn write(&mut self, index: usize) {
        let now = self.local(index);
        let end = &mut self.ends[index];
        let mut packet = Vec::new();
        end.channel.write_packet(&[], &[], now, now, &mut packet);
        assert!(packet.len() <= DATAGRAM);
        let interval = if self.frames { 16_667 } else { 50_000 };
        end.next_frame = Instant(self.now.0 + interval);
        let copies = 1 + u64::from(self.rng.chance_ppm(self.path.duplicate_ppm));
        if self.rng.chance_ppm(self.path.loss_ppm) {
            return;
        }
        for _ in 0..copies {
            let delay = self.path.latency_us + self.rng.below(self.path.jitter_us + 1);
            self.order += 1;
            self.flying.insert((Instant(self.now.0 + delay), self.order), (1 - index, packet.clone()));
        }
    }

    fn deliver(&mut self, to: usize, mut bytes: Vec<u8>, seed: u64) {
        let now = self.local(to);
        let [a, b] = &mut self.ends;
        let (end, peer) = if to == 0 { (a, b) } else { (b, a) };
        match end.channel.handle_packet(&mut bytes, now, &mut |_| {}) {
            Ok(()) | Err(DropReason::Replayed) => {}
            Err(reason) => panic!("seed {seed}: an honest packet was {reason:?}"),
        }
        self.most_uncovered = self.most_uncovered.max(end.channel.incoming.uncovered());
        while let Some(message) = end.channel.poll_message().or_else(|| end.channel.take_reliable()) {
            let number = u32::from_le_bytes(message.data[..4].try_into().expect("at least 8 bytes"));
            peer.peer_got.entry(message.stream).or_default().push(number);
            peer.arrived.push(self.now);
            end.channel.recycle(message.data);
        }
        while let Some(data) = end.channel.poll_released() {
            let number = u32::from_le_bytes(data[..4].try_into().expect("at least 8 bytes"));
            assert!(end.released.insert(number), "seed {seed}: {number} came back twice");
            if end.unreliable.contains(&number) {
                continue;
            }
            let got = end.peer_got.values().flatten().any(|&got| got == number);
            let early = peer.channel.receiving.holds(&data[..4]);
            assert!(got || early, "seed {seed}: {number} was acknowledged but never arrived");
        }
    }
}
