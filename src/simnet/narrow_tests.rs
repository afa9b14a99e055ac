//! Real nodes over a line that is narrower than what they have to send.
//!
//! Fed by: seeds. Yields: verdicts. Never: a channel or a core by itself.

use super::*;
use crate::base::PeerIndex;
use crate::bridge::{Command, Delivery, MeshNews};
use crate::channel::LinkStats;
use crate::config::MeshConfig;

/// 10 Mbit/s.
const LINE: u32 = 1_250_000;

#[test]
fn a_megabyte_of_messages_neither_floods_a_narrow_line_nor_wastes_it() {
    for (seed, queue_bytes) in [(1, 32_000), (2, 64_000), (3, 250_000)] {
        let mut pair = Pair::meet(seed);
        pair.net.set_link(0, 1, Link { rate_bytes_s: LINE, queue_bytes, ..quiet() });
        pair.send(1_000, 1_000);
        let took = pair.run_until_arrived(1_000);
        assert!(took <= ms(1_600), "queue {queue_bytes}: {took:?}");
        let sent = pair.stats.bytes_sent;
        assert!(sent <= 1_600_000, "queue {queue_bytes}: {sent} bytes for a million");
        // A second burst knows the line: what goes in comes out.
        let before = (pair.stats.bytes_sent, pair.stats.reliable_resent);
        pair.send(1_000, 1_000);
        let took = pair.run_until_arrived(2_000);
        assert!(took <= ms(1_100), "queue {queue_bytes}: {took:?} the second time");
        let sent = pair.stats.bytes_sent - before.0;
        assert!(sent <= 1_150_000, "queue {queue_bytes}: {sent} bytes for a million the second time");
    }
}

struct Pair {
    net: Simnet,
    host: MeshPort,
    guest: MeshPort,
    arrived: u32,
    /// The host's link to the guest.
    stats: LinkStats,
}

impl Pair {
    fn meet(seed: u64) -> Self {
        let mut net = Simnet::new(seed);
        net.set_default_link(quiet());
        let config = || MeshConfig::default().try_into().expect("the default makes sense");
        let (host, guest) = (net.attach(config()).1, net.attach(config()).1);
        host.send(Command::Host).expect("it is alive");
        net.advance(ms(1));
        let room = std::iter::from_fn(|| host.next_news()).find_map(|news| match news {
            MeshNews::Joined { room, .. } => Some(room),
            _ => None,
        });
        let room = room.expect("the host is in its room at once");
        guest.send(Command::Join { address: Simnet::address(0), room }).expect("it is alive");
        let mut pair = Self { net, host, guest, arrived: 0, stats: LinkStats::default() };
        pair.run(2_000);
        pair
    }

    fn send(&self, count: u32, size: usize) {
        let to = Some(PeerIndex::new(1).expect("below 16"));
        for _ in 0..count {
            let data = self.host.buffer(&vec![7; size]);
            let command = Command::Send { to, stream: 0, delivery: Delivery::Reliable, data };
            self.host.send(command).expect("it is alive and the queue has room");
        }
    }

    fn run(&mut self, for_ms: u64) {
        for _ in 0..for_ms {
            self.net.advance(ms(1));
            while let Some(news) = self.host.next_news() {
                if let MeshNews::Link { stats, .. } = news {
                    self.stats = stats;
                }
            }
            while let Some(news) = self.guest.next_news() {
                self.arrived += u32::from(matches!(news, MeshNews::Message { .. }));
            }
        }
    }

    fn run_until_arrived(&mut self, count: u32) -> Duration {
        let start = self.net.now();
        while self.arrived < count {
            self.run(1);
            assert!(self.net.now().since(start) < ms(60_000), "{} of {count} arrived", self.arrived);
        }
        let took = self.net.now().since(start);
        // The figures of all that.
        self.run(200);
        took
    }
}

fn quiet() -> Link {
    Link { latency: ms(25), ..Link::default() }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
