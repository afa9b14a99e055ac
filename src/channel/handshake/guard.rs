//! Decides which first messages are worth the work of a key exchange, and who must prove its address by a cookie first.
//!
//! In calm times everybody is served at once. Under load, and whoever sends too much, is answered with a cookie: 16 bytes
//! bound to its address and to the minute, which it puts into its next call. Nobody is ever met with silence here.
//! Fed by: addresses and cookies of first messages that know the room, time. Yields: serve, or a cookie.
//! Never: keeps anything per source: a fixed table is indexed by a keyed hash. Never: decides for who does not know the room.

use crate::base::{Addr, Instant};
use crate::wire::handshake::COOKIE_SIZE;
use blake2::Blake2sMac256;
use blake2::digest::{FixedOutput, KeyInit, Update};
use std::net::IpAddr;
use std::time::Duration;
use zeroize::Zeroize;

/// Entries of the table: 32 kB, whoever floods.
const TABLE: usize = 4096;
/// First messages of one source: so many at once, then one each interval.
const SOURCE_BURST: u32 = 20;
const SOURCE_EVERY: Duration = Duration::from_millis(100);
/// Above 20 first messages a second, cookies are asked for.
const LOAD_BURST: u32 = 20;
const LOAD_EVERY: Duration = Duration::from_millis(50);
/// Key exchanges in all: 200 a second are about a tenth of a core.
const BUDGET_BURST: u32 = 40;
const BUDGET_EVERY: Duration = Duration::from_millis(5);
/// Half-open handshakes from which on cookies are asked for.
const HALF_OPEN_CALM: usize = 8;
/// A cookie holds for this minute and the next.
const SECRET_LIFE: Duration = Duration::from_mins(1);

/// A token bucket as one instant: when it will be full again.
#[derive(Clone, Copy, Default)]
struct Bucket(u64);

impl Bucket {
    fn take(&mut self, burst: u32, every: Duration, now: Instant) -> bool {
        let (room, every) = ((every * burst).as_micros() as u64, every.as_micros() as u64);
        let full_at = self.0.max(now.0) + every;
        if full_at > now.0 + room {
            return false;
        }
        self.0 = full_at;
        true
    }

    /// The same, but what is refused counts too, so that a flood is one until it ends.
    fn note(&mut self, burst: u32, every: Duration, now: Instant) -> bool {
        let room = (every * burst).as_micros() as u64;
        let full_at = self.0.max(now.0) + every.as_micros() as u64;
        self.0 = full_at.min(now.0 + 2 * room);
        full_at <= now.0 + room
    }
}

pub(super) struct Guard {
    secret: [u8; 32],
    table: Box<[Bucket]>,
    load: Bucket,
    budget: Bucket,
}

impl Guard {
    /// `secret` is this process's own.
    pub(super) fn new(secret: [u8; 32]) -> Self {
        let table = vec![Bucket::default(); TABLE].into_boxed_slice();
        Self { secret, table, load: Bucket::default(), budget: Bucket::default() }
    }

    /// Whether a first message is served now; otherwise it is answered with [`Guard::cookie`].
    pub(super) fn admits(
        &mut self,
        from: Addr,
        cookie: &[u8; COOKIE_SIZE],
        half_open: usize,
        now: Instant,
    ) -> bool {
        let is_calm = self.load.note(LOAD_BURST, LOAD_EVERY, now) && half_open <= HALF_OPEN_CALM;
        // Who proved its address has a bucket of its own; others share that of their household.
        let is_proven = *cookie != [0; COOKIE_SIZE] && self.is_cookie(from, cookie, now);
        let entry = self.entry(from, is_proven);
        (is_proven || is_calm)
            && self.table[entry].take(SOURCE_BURST, SOURCE_EVERY, now)
            && self.budget.take(BUDGET_BURST, BUDGET_EVERY, now)
    }

    /// What proves this address for the next minute at least.
    pub(super) fn cookie(&self, from: Addr, now: Instant) -> [u8; COOKIE_SIZE] {
        self.cookie_of(from, minute(now))
    }

    fn is_cookie(&self, from: Addr, cookie: &[u8; COOKIE_SIZE], now: Instant) -> bool {
        let minute = minute(now);
        is_same(&self.cookie_of(from, minute), cookie)
            || minute.checked_sub(1).is_some_and(|before| is_same(&self.cookie_of(from, before), cookie))
    }

    /// The secret of a minute is never stored: it is the first half of what is hashed.
    fn cookie_of(&self, from: Addr, minute: u64) -> [u8; COOKIE_SIZE] {
        let mut cookie = [0; COOKIE_SIZE];
        cookie.copy_from_slice(&self.hash(b'c', minute, from, true)[..COOKIE_SIZE]);
        cookie
    }

    fn entry(&self, from: Addr, is_proven: bool) -> usize {
        let [low, high, ..] = self.hash(b'b', 0, from, is_proven);
        usize::from(u16::from_le_bytes([low, high])) % TABLE
    }

    /// Of the whole address, or of the household: an IPv4 address, an IPv6 /56.
    fn hash(&self, purpose: u8, minute: u64, from: Addr, whole: bool) -> [u8; 32] {
        let mut mac = Blake2sMac256::new_from_slice(&self.secret)
            .expect("BLAKE2s takes keys of up to 32 bytes, and the type says 32");
        Update::update(&mut mac, &[purpose, u8::from(whole)]);
        Update::update(&mut mac, &minute.to_le_bytes());
        match from {
            Addr::Ip(at) => {
                match at.ip() {
                    IpAddr::V4(ip) => Update::update(&mut mac, &ip.octets()),
                    IpAddr::V6(ip) => {
                        let octets = ip.octets();
                        Update::update(&mut mac, if whole { &octets[..] } else { &octets[..7] });
                    }
                }
                if whole {
                    Update::update(&mut mac, &at.port().to_le_bytes());
                }
            }
            Addr::Opaque(_) => Update::update(&mut mac, from.opaque_bytes().unwrap_or_default()),
        }
        mac.finalize_fixed().into()
    }
}

fn minute(now: Instant) -> u64 {
    now.0 / SECRET_LIFE.as_micros() as u64
}

fn is_same(one: &[u8; COOKIE_SIZE], other: &[u8; COOKIE_SIZE]) -> bool {
    one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [u8; COOKIE_SIZE] = [0; COOKIE_SIZE];

    fn at(port: u16) -> Addr {
        Addr::ip(std::net::SocketAddr::from(([192, 0, 2, 7], port)))
    }

    #[test]
    fn cookies_are_of_one_address_and_hold_one_to_two_minutes() {
        let guard = Guard::new([1; 32]);
        for (made_s, ends_s) in [(0, 119), (59, 119), (60, 179)] {
            let cookie = guard.cookie(at(1), Instant::from_millis(made_s * 1000));
            for (now_s, holds) in [(made_s, true), (ends_s, true), (ends_s + 1, false)] {
                let now = Instant::from_millis(now_s * 1000);
                assert_eq!(guard.is_cookie(at(1), &cookie, now), holds, "{made_s} {now_s}");
                assert!(!guard.is_cookie(at(2), &cookie, now));
                assert!(!Guard::new([2; 32]).is_cookie(at(1), &cookie, now));
            }
        }
    }

    #[test]
    fn t42_whoever_asks_for_a_cookie_gets_in_during_a_flood_from_the_same_house() {
        let mut guard = Guard::new([1; 32]);
        let (mut served, mut let_in) = (0, 0);
        for ms in 0..10_000 {
            let now = Instant::from_millis(ms);
            for port in 0..5 {
                served += u32::from(guard.admits(at(1000 + port), &NONE, 0, now));
            }
            if ms % 500 == 0 {
                let cookie = guard.cookie(at(7), now);
                let_in += u32::from(guard.admits(at(7), &cookie, 32, now));
            }
        }
        assert_eq!(let_in, 20);
        assert!(served <= SOURCE_BURST, "{served} without a cookie");
        let calm = Instant::from_millis(12_100);
        assert!(guard.admits(at(7), &NONE, 0, calm), "a flood is over two seconds after it ended");
        assert!(!guard.admits(at(7), &NONE, HALF_OPEN_CALM + 1, calm), "many half-open ones are load too");
    }

    #[test]
    fn who_proved_many_addresses_is_held_to_the_budget() {
        let mut guard = Guard::new([1; 32]);
        let mut served = 0;
        for i in 0..100_000_u64 {
            let (from, now) = (at(i as u16), Instant(i * 100));
            let cookie = guard.cookie(from, now);
            served += u32::from(guard.admits(from, &cookie, 0, now));
        }
        assert!((1900..=2100).contains(&served), "{served} in ten seconds");
    }

    #[test]
    fn a_house_is_an_ipv4_address_or_an_ipv6_56() {
        let guard = Guard::new([1; 32]);
        let v6 = |text: &str| Addr::ip(text.parse().expect("an address"));
        assert_eq!(guard.entry(at(1), false), guard.entry(at(2), false));
        assert_ne!(guard.entry(at(1), true), guard.entry(at(2), true));
        let house = guard.entry(v6("[2001:db8:1:2200::1]:5"), false);
        assert_eq!(house, guard.entry(v6("[2001:db8:1:22ff::9]:6"), false));
        assert_ne!(house, guard.entry(v6("[2001:db8:1:2300::1]:5"), false));
    }
}
