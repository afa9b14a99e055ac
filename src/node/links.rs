//! All links of a node, and when each wants its next packet.
//!
//! Fed by: the node, which changes links only through `get_mut`. Yields: the earliest deadline, without asking the links that
//! did not change. Never: writes a packet.

use super::link::Link;
use crate::base::limits::MAX_PEERS;
use crate::base::{Instant, PeerIndex, PeerSet};

const NEVER: u64 = u64::MAX;

/// One link per member.
#[derive(Debug)]
pub(super) struct Links {
    by_peer: [Option<Box<Link>>; MAX_PEERS],
    /// In µs; `NEVER` for none, so that the earliest is one minimum over an array.
    due: [u64; MAX_PEERS],
    /// Links that may want a packet at another time than `due` says.
    touched: PeerSet,
}

impl Links {
    pub(super) fn new() -> Self {
        Self { by_peer: [const { None }; MAX_PEERS], due: [NEVER; MAX_PEERS], touched: PeerSet::EMPTY }
    }

    pub(super) fn get(&self, peer: PeerIndex) -> Option<&Link> {
        self.by_peer[peer.index()].as_deref()
    }

    pub(super) fn get_mut(&mut self, peer: PeerIndex) -> Option<&mut Link> {
        self.touched.insert(peer);
        self.by_peer[peer.index()].as_deref_mut()
    }

    pub(super) fn has(&self, peer: PeerIndex) -> bool {
        self.by_peer[peer.index()].is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_peer.iter().all(Option::is_none)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        self.touched = PeerSet::from_bits(u16::MAX);
        self.by_peer.iter_mut().flatten().map(Box::as_mut)
    }

    pub(super) fn set(&mut self, peer: PeerIndex, link: Box<Link>) -> Option<Box<Link>> {
        self.touched.insert(peer);
        self.by_peer[peer.index()].replace(link)
    }

    pub(super) fn take(&mut self, peer: PeerIndex) -> Option<Box<Link>> {
        self.touched.insert(peer);
        self.by_peer[peer.index()].take()
    }

    /// The links that want a packet now.
    pub(super) fn due(&mut self, now: Instant) -> PeerSet {
        self.refresh();
        PeerIndex::all().filter(|peer| self.due[peer.index()] <= now.0).collect()
    }

    /// When the first of them does.
    pub(super) fn poll_timeout(&mut self) -> Option<Instant> {
        self.refresh();
        let earliest = self.due.iter().fold(NEVER, |earliest, &at| earliest.min(at));
        (earliest != NEVER).then_some(Instant(earliest))
    }

    fn refresh(&mut self) {
        for peer in std::mem::take(&mut self.touched) {
            self.due[peer.index()] = self.get(peer).and_then(Link::due_at).map_or(NEVER, |at| at.0);
        }
    }
}
