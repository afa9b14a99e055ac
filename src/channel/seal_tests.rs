//! Two seals and a pipe that loses, reorders, forges, and is silent for long.
//!
//! Fed by: fixed keys, seeds. Yields: verdicts. Never: a clock, a socket.

use super::*;
use crate::base::Rng;

const HEADER: usize = 6;

fn pair(cipher: Cipher) -> (Seal, Seal) {
    let keys = |send, receive| SessionKeys { send: [send; 32], receive: [receive; 32], cipher };
    (Seal::new(&keys(1, 2), Instant::ZERO), Seal::new(&keys(2, 1), Instant::ZERO))
}

/// A packet of the counter: epoch bit and bytes.
fn packet(seal: &mut Seal, counter: u64, acked: u64, now: Instant) -> (bool, Vec<u8>) {
    let epoch = seal.turn(counter, acked, now);
    let mut bytes = b"headercontent".to_vec();
    bytes[0] = u8::from(epoch);
    seal.seal(counter, HEADER, &mut bytes);
    (epoch, bytes)
}

fn opens(seal: &mut Seal, counter: u64, (epoch, bytes): &(bool, Vec<u8>), now: Instant) -> bool {
    seal.open(*epoch, counter, HEADER, &mut bytes.clone(), now) == Some(&b"content"[..])
}

#[test]
fn a_packet_opens_only_with_its_own_header_counter_and_bytes() {
    for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        let (mut one, mut other) = pair(cipher);
        let (epoch, bytes) = packet(&mut one, 9, 0, Instant::ZERO);
        assert_eq!(bytes.len(), 13 + TAG_SIZE);
        for i in 0..bytes.len() {
            let mut forged = bytes.clone();
            forged[i] ^= 1;
            assert_eq!(other.open(epoch, 9, HEADER, &mut forged, Instant::ZERO), None, "byte {i}");
        }
        assert!(!opens(&mut other, 10, &(epoch, bytes.clone()), Instant::ZERO));
        assert!(opens(&mut other, 9, &(epoch, bytes), Instant::ZERO));
    }
}

#[test]
fn keys_change_by_packets_and_by_time_and_both_ends_follow() {
    for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        let (mut one, mut other) = pair(cipher);
        let mut counter = 1;
        let mut bits = Vec::new();
        for step in 0..5_u64 {
            let now = Instant::ZERO + Duration::from_secs(step);
            let sent = packet(&mut one, counter, counter, now);
            assert!(opens(&mut other, counter, &sent, now));
            bits.push(sent.0);
            counter += REKEY_AFTER_PACKETS;
        }
        assert_eq!(bits, [false, true, false, true, false]);
        let now = Instant::ZERO + Duration::from_secs(4) + REKEY_AFTER;
        let sent = packet(&mut one, counter + 1, counter, now);
        assert!(sent.0 && opens(&mut other, counter + 1, &sent, now), "an hour is over");
        let answer = packet(&mut other, 1, 0, now);
        assert!(!answer.0 && opens(&mut one, 1, &answer, now), "the other direction has a chain of its own");
    }
}

#[test]
fn packets_reordered_across_the_flip_open_and_after_ten_seconds_no_more() {
    let (mut one, mut other) = pair(Cipher::Aes256Gcm);
    let flip = REKEY_AFTER_PACKETS + 5;
    let mut sent: Vec<_> = (flip - 40..flip)
        .map(|counter| (counter, packet(&mut one, counter, u64::from(counter >= flip), Instant::ZERO)))
        .collect();
    sent.extend((flip..flip + 40).map(|counter| (counter, packet(&mut one, counter, 1, Instant::ZERO))));
    assert!(!sent[39].1.0 && sent[40].1.0, "the bit flips once the peer has acknowledged something");
    let mut rng = Rng::new(4);
    for i in (1..sent.len()).rev() {
        sent.swap(i, rng.below(i as u64 + 1) as usize);
    }
    for (counter, bytes) in &sent {
        assert!(opens(&mut other, *counter, bytes, Instant::from_millis(50)), "{counter}");
    }
    let (counter, old) = sent.iter().find(|(_, (epoch, _))| !epoch).expect("some");
    assert!(
        opens(&mut other, *counter, old, Instant::from_millis(10_000)),
        "replays are the window's matter"
    );
    assert!(!opens(&mut other, *counter, old, Instant::from_millis(10_051)), "the key is gone");
}

#[test]
fn t37_forgeries_of_the_other_epoch_change_nothing() {
    let (mut one, mut other) = pair(Cipher::ChaCha20Poly1305);
    let first = packet(&mut one, 1, 0, Instant::ZERO);
    assert!(opens(&mut other, 1, &first, Instant::ZERO));
    let mut rng = Rng::new(8);
    for _ in 0..200 {
        let counter = rng.next_u64();
        assert!(!opens(&mut other, counter, &(true, vec![7; 40]), Instant::ZERO));
        assert!(!opens(&mut other, counter, &(false, vec![7; 40]), Instant::ZERO));
        // A genuine packet under the wrong bit, or cut off.
        assert!(!opens(&mut other, 1, &(true, first.1.clone()), Instant::ZERO));
        assert!(!opens(&mut other, 1, &(false, first.1[..20].to_vec()), Instant::ZERO));
    }
    assert!(other.previous.is_none() && !other.receive_epoch);
    assert!(opens(&mut other, 2, &packet(&mut one, 2, 1, Instant::ZERO), Instant::ZERO));
    let flipped = packet(&mut one, 2 + REKEY_AFTER_PACKETS, 2, Instant::ZERO);
    assert!(flipped.0 && opens(&mut other, 2 + REKEY_AFTER_PACKETS, &flipped, Instant::ZERO));
    for _ in 0..200 {
        let counter = rng.next_u64();
        assert!(!opens(&mut other, counter, &(false, vec![7; 40]), Instant::ZERO), "of the step after");
    }
    let next = packet(&mut one, 3 + REKEY_AFTER_PACKETS, 2, Instant::ZERO);
    assert!(opens(&mut other, 3 + REKEY_AFTER_PACKETS, &next, Instant::ZERO));
}

#[test]
fn who_hears_nothing_for_long_is_never_two_keys_behind() {
    let (mut one, mut other) = pair(Cipher::Aes256Gcm);
    let mut counter = 1;
    let mut now = Instant::ZERO;
    assert!(opens(&mut other, counter, &packet(&mut one, counter, 0, now), now));
    let acked = counter;
    for _ in 0..50 {
        now += Duration::from_mins(30);
        counter += REKEY_AFTER_PACKETS / 2;
        drop(packet(&mut one, counter, acked, now)); // lost
    }
    counter += 1;
    let heard = packet(&mut one, counter, acked, now);
    assert!(heard.0 && opens(&mut other, counter, &heard, now), "one step, however long it took");
    let stale = packet(&mut one, counter + 1, acked, now + 2 * REKEY_AFTER);
    assert!(stale.0, "no further step before the first is acknowledged");
    let next = packet(&mut one, counter + 2, counter, now + 2 * REKEY_AFTER);
    assert!(!next.0 && opens(&mut other, counter + 2, &next, now + 2 * REKEY_AFTER));
}
