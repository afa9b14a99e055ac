//! Where the peer is, and when it may have moved: a NAT that forgot its mapping, or another network.
//!
//! The newest authenticated packet from another address asks a question there: eight random bytes, sealed. Only their return
//! from that address moves the path; a newer packet from where the peer is known to be ends the question.
//! Fed by: authenticated packets and where they came from, time, entropy. Yields: challenges to send, and the move.
//! Never: moves by a packet alone (whoever copies one can send it from elsewhere), or lets more bytes go to an address that
//! has not answered than came from there.

use crate::base::limits::{MAX_HEADER, TAG_SIZE};
use crate::base::{Addr, Entropy, Instant};
use crate::wire::link::{PATH_SECTION, TOKEN_SIZE};
use std::time::Duration;

/// A challenge is repeated after this long, by the next packet that comes from there.
const CHALLENGE_EVERY: Duration = Duration::from_millis(50);
/// Most bytes of a packet that holds a challenge and nothing else.
pub(super) const CHALLENGE_SIZE: usize = MAX_HEADER + PATH_SECTION + TAG_SIZE;

/// One authenticated packet, as far as the path is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Came {
    /// Where from.
    pub from: Addr,
    /// All its bytes.
    pub size: usize,
    /// No packet of this peer with a higher counter came before.
    pub is_newest: bool,
    /// The response in it.
    pub response: Option<[u8; TOKEN_SIZE]>,
}

/// What follows from a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Stay,
    /// Send a packet with this challenge, and nothing else, there.
    Challenge(Addr, [u8; TOKEN_SIZE]),
    /// The peer is at another address from now on.
    Moved,
}

/// The path to one peer.
#[derive(Debug)]
pub struct Path {
    addr: Addr,
    question: Option<Question>,
}

#[derive(Debug)]
struct Question {
    to: Addr,
    token: [u8; TOKEN_SIZE],
    /// Bytes that came from there and were not answered by as many.
    credit: usize,
    asked_at: Option<Instant>,
}

impl Path {
    /// A path to where a handshake found the peer.
    pub fn new(addr: Addr) -> Self {
        Self { addr, question: None }
    }

    /// Where packets to the peer go.
    pub fn addr(&self) -> Addr {
        self.addr
    }

    /// An authenticated packet of the peer came, for the first time.
    pub fn handle_packet(&mut self, came: Came, now: Instant, entropy: &mut dyn Entropy) -> Step {
        let Came { from, size, is_newest, response } = came;
        if from == self.addr {
            if is_newest {
                self.question = None;
            }
            return Step::Stay;
        }
        let is_asked = |question: &Question| question.to == from && question.asked_at.is_some();
        if let Some(question) = self.question.as_ref().filter(|question| is_asked(question))
            && response == Some(question.token)
        {
            self.addr = from;
            self.question = None;
            return Step::Moved;
        }
        if !is_newest {
            return Step::Stay;
        }
        if self.question.as_ref().is_none_or(|question| question.to != from) {
            let mut token = [0; TOKEN_SIZE];
            entropy.fill(&mut token);
            self.question = Some(Question { to: from, token, credit: 0, asked_at: None });
        }
        let Some(question) = self.question.as_mut() else { return Step::Stay };
        question.credit = question.credit.saturating_add(size);
        let is_due = question.asked_at.is_none_or(|at| at + CHALLENGE_EVERY <= now);
        if !is_due || question.credit < CHALLENGE_SIZE {
            return Step::Stay;
        }
        question.credit -= CHALLENGE_SIZE;
        question.asked_at = Some(now);
        Step::Challenge(from, question.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;

    fn at(name: &str) -> Addr {
        Addr::opaque(name.as_bytes()).expect("short")
    }

    fn came(from: &str, size: usize) -> Came {
        Came { from: at(from), size, is_newest: true, response: None }
    }

    struct Under {
        path: Path,
        rng: Rng,
        sent: std::collections::BTreeMap<Addr, (usize, usize)>,
    }

    impl Under {
        fn new() -> Self {
            Self { path: Path::new(at("home")), rng: Rng::new(1), sent: std::collections::BTreeMap::new() }
        }

        fn take(&mut self, came: Came, ms: u64) -> Step {
            let step = self.path.handle_packet(came, Instant::from_millis(ms), &mut self.rng);
            let (received, sent) = self.sent.entry(came.from).or_default();
            *received += came.size;
            *sent += if let Step::Challenge(..) = step { CHALLENGE_SIZE } else { 0 };
            assert!(*sent <= *received, "{sent} bytes for {received}");
            step
        }

        fn token(&mut self, from: &str, ms: u64) -> [u8; TOKEN_SIZE] {
            let Step::Challenge(to, token) = self.take(came(from, 40), ms) else { panic!("no challenge") };
            assert_eq!(to, at(from));
            token
        }
    }

    #[test]
    fn t25_only_the_right_response_from_the_new_address_moves_the_path() {
        let mut under = Under::new();
        let token = under.token("away", 0);
        let answer = |from: &str, token| Came { response: Some(token), ..came(from, 40) };
        for (wrong, is_newest) in [([0; 8], true), ([0; 8], false)] {
            under.take(Came { is_newest, ..answer("away", wrong) }, 1);
        }
        // The right bytes from elsewhere begin another question, by which the old bytes mean nothing.
        assert_ne!(under.take(answer("elsewhere", token), 2), Step::Moved);
        assert_ne!(under.take(answer("away", token), 3), Step::Moved);
        assert_eq!(under.path.addr(), at("home"));
        let token = under.path.question.as_ref().expect("asked again").token;
        let late = Came { is_newest: false, ..answer("away", token) };
        assert_eq!(under.take(late, 4), Step::Moved, "another packet may overtake the response");
        assert_eq!(under.path.addr(), at("away"));
    }

    #[test]
    fn a_newer_packet_from_the_known_address_ends_the_question() {
        let mut under = Under::new();
        let token = under.token("copy", 0);
        under.take(came("home", 30), 1);
        let answer = Came { is_newest: false, response: Some(token), ..came("copy", 40) };
        assert_eq!(under.take(answer, 2), Step::Stay);
        assert_eq!(under.path.addr(), at("home"));
    }

    #[test]
    fn a_response_to_what_was_not_asked_means_nothing() {
        let mut under = Under::new();
        // Too short to be answered: the question stands, but nobody was asked.
        assert_eq!(under.take(came("away", 10), 0), Step::Stay);
        let token = under.path.question.as_ref().expect("stands").token;
        assert_ne!(under.take(Came { response: Some(token), ..came("away", 10) }, 1), Step::Moved);
    }

    #[test]
    fn t41_no_address_gets_more_bytes_than_came_from_it_however_they_come() {
        let mut under = Under::new();
        let mut rng = Rng::new(5);
        for ms in 0..20_000 {
            let name = ["home", "a", "b", "c"][rng.below(4) as usize];
            let size = 22 + rng.below(60) as usize;
            under.take(Came { is_newest: rng.chance_ppm(700_000), ..came(name, size) }, ms);
        }
        assert!(under.sent.values().any(|(_, sent)| *sent > 0));
    }

    #[test]
    fn a_challenge_is_repeated_at_a_bounded_pace() {
        let mut under = Under::new();
        let asked = (0..1_000).filter(|ms| under.take(came("away", 1_200), *ms) != Step::Stay).count();
        assert_eq!(asked, 20);
    }
}
