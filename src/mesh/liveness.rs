//! Decides when a peer that fell silent is suspect, expired, or to be forgotten.
//!
//! Fed by: when each peer was last heard (authenticated packets only) and time. Yields: changes, through `poll_output`.
//! Never: decides a cut; it only says what this member alone believes.

use crate::base::{Instant, PeerIndex, PeerSet};
use std::collections::VecDeque;
use std::time::Duration;

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Silent for `suspect`; reported once per silence.
    Suspect(PeerIndex),
    /// Heard again after it was suspect.
    Resumed(PeerIndex, Duration),
    /// Silent for `forget_after`; it is no longer watched.
    Forget(PeerIndex),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Watch {
    heard_at: Instant,
    suspect: bool,
}

/// Limits; `None` = never.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Three heartbeats fit into the default, so one lost packet never makes a peer suspect.
    pub suspect: Option<Duration>,
    /// Silence after which this member's own word is enough where there is nobody else to ask.
    pub expire: Option<Duration>,
    /// Silence after which keys and membership go.
    pub forget: Option<Duration>,
}

/// The liveness core of one node.
#[derive(Debug)]
pub struct Liveness {
    limits: Limits,
    peers: [Option<Watch>; crate::base::limits::MAX_PEERS],
    suspects: PeerSet,
    outputs: VecDeque<Output>,
    /// No deadline lies before this: most calls end at one comparison.
    next_at: Option<Instant>,
}

impl Liveness {
    /// Watches nobody.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            peers: [None; 16],
            suspects: PeerSet::EMPTY,
            outputs: VecDeque::with_capacity(16),
            next_at: None,
        }
    }

    /// Watches a peer from now on.
    pub fn add(&mut self, peer: PeerIndex, now: Instant) {
        self.peers[peer.index()] = Some(Watch { heard_at: now, suspect: false });
        self.suspects.remove(peer);
        self.next_at = Some(now);
    }

    /// Watches it no more.
    pub fn remove(&mut self, peer: PeerIndex) {
        self.peers[peer.index()] = None;
        self.suspects.remove(peer);
    }

    /// An authenticated packet came.
    pub fn handle_packet(&mut self, peer: PeerIndex, now: Instant) {
        let Some(watch) = self.peers[peer.index()].as_mut() else { return };
        if watch.suspect {
            watch.suspect = false;
            self.suspects.remove(peer);
            self.outputs.push_back(Output::Resumed(peer, now.since(watch.heard_at)));
            self.next_at = Some(now);
        }
        watch.heard_at = now;
    }

    /// This node itself did not run for so long (a suspended machine, a stopped process): nobody was silent meanwhile.
    pub fn handle_own_pause(&mut self, pause: Duration) {
        for watch in self.peers.iter_mut().flatten() {
            watch.heard_at += pause;
        }
    }

    /// Peers that this member suspects.
    pub fn suspects(&self) -> PeerSet {
        self.suspects
    }

    /// Peers silent for so long that this member's own word is enough.
    pub fn expired(&self, now: Instant) -> PeerSet {
        let Some(expire) = self.limits.expire else { return PeerSet::EMPTY };
        PeerIndex::all()
            .filter(|p| self.peers[p.index()].is_some_and(|w| w.heard_at + expire <= now))
            .collect()
    }

    /// Fires what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.next_at.is_none_or(|at| at > now) {
            return;
        }
        for peer in PeerIndex::all() {
            let Some(watch) = self.peers[peer.index()].as_mut() else { continue };
            if self.limits.forget.is_some_and(|limit| watch.heard_at + limit <= now) {
                self.peers[peer.index()] = None;
                self.suspects.remove(peer);
                self.outputs.push_back(Output::Forget(peer));
                continue;
            }
            if !watch.suspect && self.limits.suspect.is_some_and(|limit| watch.heard_at + limit <= now) {
                watch.suspect = true;
                self.suspects.insert(peer);
                self.outputs.push_back(Output::Suspect(peer));
            }
        }
        self.next_at = self
            .peers
            .iter()
            .flatten()
            .flat_map(|watch| {
                let suspect = self.limits.suspect.filter(|_| !watch.suspect);
                [suspect, self.limits.expire, self.limits.forget]
                    .into_iter()
                    .flatten()
                    .map(|limit| watch.heard_at + limit)
            })
            .filter(|at| *at > now)
            .min();
    }

    /// The next change; `None` once drained.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When `handle_timeout` must next be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        suspect: Some(Duration::from_millis(150)),
        expire: Some(Duration::from_millis(400)),
        forget: Some(Duration::from_secs(15)),
    };

    fn peer(index: u8) -> PeerIndex {
        PeerIndex::new(index).expect("small")
    }

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn drain(core: &mut Liveness, now: Instant) -> Vec<Output> {
        core.handle_timeout(now);
        assert!(core.poll_timeout().is_none_or(|next| next > now), "a due deadline stayed");
        std::iter::from_fn(|| core.poll_output()).collect()
    }

    #[test]
    fn a_silent_peer_becomes_suspect_once_then_expires_then_is_forgotten() {
        let mut core = Liveness::new(LIMITS);
        core.add(peer(3), at(0));
        assert_eq!(drain(&mut core, at(149)), []);
        assert_eq!(drain(&mut core, at(150)), [Output::Suspect(peer(3))]);
        assert_eq!(drain(&mut core, at(300)), []);
        assert!(core.expired(at(399)).is_empty());
        assert!(core.expired(at(400)).contains(peer(3)));
        assert_eq!(drain(&mut core, at(15_000)), [Output::Forget(peer(3))]);
        assert_eq!(core.poll_timeout(), None);
    }

    #[test]
    fn time_in_which_we_did_not_run_is_no_silence_of_others() {
        let mut core = Liveness::new(LIMITS);
        core.add(peer(1), at(0));
        core.handle_own_pause(Duration::from_mins(1));
        assert_eq!(drain(&mut core, at(60_100)), []);
        assert_eq!(drain(&mut core, at(60_150)), [Output::Suspect(peer(1))]);
    }

    #[test]
    fn a_packet_ends_the_suspicion_and_tells_how_long_it_was() {
        let mut core = Liveness::new(LIMITS);
        core.add(peer(1), at(0));
        drain(&mut core, at(200));
        core.handle_packet(peer(1), at(230));
        assert_eq!(drain(&mut core, at(230)), [Output::Resumed(peer(1), Duration::from_millis(230))]);
        assert!(core.suspects().is_empty());
        assert_eq!(drain(&mut core, at(380)), [Output::Suspect(peer(1))]);
    }
}
