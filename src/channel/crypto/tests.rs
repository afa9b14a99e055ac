//! Both ciphers do what is asked of them, and both implementations the same.
//!
//! Fed by: fixed keys. Yields: verdicts. Never: a clock, a socket.

use super::*;

const BOTH: [Cipher; 2] = [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];

#[test]
fn aes_is_taken_only_where_both_ends_have_it_in_hardware() {
    assert_eq!(Cipher::agreed(true, true), Cipher::Aes256Gcm);
    for (ours, theirs) in [(true, false), (false, true), (false, false)] {
        assert_eq!(Cipher::agreed(ours, theirs), Cipher::ChaCha20Poly1305);
    }
}

#[test]
fn what_was_sealed_opens_only_whole_and_with_its_own_nonce_and_key() {
    for cipher in BOTH {
        let key = Key::new(cipher, &[7; 32]);
        let mut sealed = b"content".to_vec();
        let tag = key.seal(9, b"header", &mut sealed);
        sealed.extend_from_slice(&tag);
        for i in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[i] ^= 1;
            assert!(key.open(9, b"header", &mut forged).is_none(), "{cipher:?}, byte {i}");
        }
        for len in 0..sealed.len() {
            assert!(key.open(9, b"header", &mut sealed[..len].to_vec()).is_none());
        }
        assert!(key.open(9, b"heaDer", &mut sealed.clone()).is_none());
        assert!(key.open(10, b"header", &mut sealed.clone()).is_none());
        assert!(Key::new(cipher, &[8; 32]).open(9, b"header", &mut sealed.clone()).is_none());
        assert_eq!(key.open(9, b"header", &mut sealed).as_deref(), Some(&b"content"[..]));
    }
}

#[test]
fn the_next_key_is_noises_rekey() {
    for cipher in BOTH {
        let key = Key::new(cipher, &[3; 32]);
        let mut expected = [0; 32];
        key.seal(u64::MAX, &[], &mut expected);
        assert_eq!(key.next().raw, expected);
        assert_ne!(key.next().next().raw, expected);
    }
}

#[cfg(all(feature = "ring", feature = "pure-rust-crypto"))]
#[test]
fn ring_and_pure_rust_open_what_the_other_sealed_and_believe_its_signatures() {
    for cipher in BOTH {
        let key: [u8; 32] = std::array::from_fn(|i| i as u8 * 7);
        let (one, other) = (with_ring::Aead::new(cipher, &key), pure::Aead::new(cipher, &key));
        for size in (0..80).chain([255, 256, 1199, 1200]) {
            let content: Vec<u8> = (0..size).map(|i| i as u8).collect();
            let nonce = bytes_of(size as u64 + (1 << 40));
            let (mut by_ring, mut by_pure) = (content.clone(), content.clone());
            let tags = [one.seal(&nonce, b"aad", &mut by_ring), other.seal(&nonce, b"aad", &mut by_pure)];
            assert_eq!((&by_ring, tags[0]), (&by_pure, tags[1]), "{cipher:?}, {size} bytes");
            by_ring.extend_from_slice(&tags[0]);
            by_pure.extend_from_slice(&tags[1]);
            assert_eq!(other.open(&nonce, b"aad", &mut by_ring).as_deref(), Some(&content[..]));
            assert_eq!(one.open(&nonce, b"aad", &mut by_pure).as_deref(), Some(&content[..]));
        }
    }
    let (one, other) = (with_ring::SigningKey::from_seed(&[5; 32]), pure::SigningKey::from_seed(&[5; 32]));
    assert_eq!(one.public(), other.public());
    assert_eq!(one.sign(b"message"), other.sign(b"message"));
    let (public, signature) = (one.public(), one.sign(b"message"));
    assert!(
        pure::verify(&public, b"message", &signature) && with_ring::verify(&public, b"message", &signature)
    );
    assert!(!pure::verify(&public, b"massage", &signature));
}
