//! Real nodes join over bad links: what is said at the first moment must arrive.

use super::*;
use crate::bridge::{Command, Delivery, MeshNews};
use crate::config::{MeshConfig, RoomKey};

#[test]
fn a_guest_hears_what_the_host_said_first_whichever_single_datagram_is_lost() {
    let quiet = Link { latency: ms(20), ..Link::default() };
    let sent = join(1, quiet, None).expect("nothing is lost");
    for lost in 0..sent {
        join(1, quiet, Some(lost)).unwrap_or_else(|trace| panic!("without datagram {lost}:\n{trace}"));
    }
}

#[test]
fn a_guest_hears_what_the_host_said_first_over_a_bad_link() {
    let bad =
        Link { latency: ms(5), jitter: ms(10), loss_ppm: 200_000, duplicate_ppm: 50_000, ..Link::default() };
    for seed in 0..100 {
        join(seed, bad, None).unwrap_or_else(|trace| panic!("seed {seed}:\n{trace}"));
    }
}

/// A guest joins, and the host says something as soon as it sees it. How many datagrams that took.
fn join(seed: u64, link: Link, lost: Option<u64>) -> Result<u64, String> {
    let mut net = Simnet::new(seed);
    net.set_default_link(link);
    if let Some(number) = lost {
        net.drop_exactly(number);
    }
    let config = || MeshConfig::default().try_into().expect("the default makes sense");
    let (host, guest) = (net.attach(config()).1, net.attach(config()).1);
    host.send(Command::Host).expect("it is alive");
    let (mut room, mut hears): (Option<RoomKey>, _) = (None, false);
    for _ in 0..2000 {
        net.advance(ms(5));
        while let Some(news) = host.next_news() {
            match news {
                MeshNews::Joined { room: ours, .. } => {
                    room = Some(ours);
                    let address = Simnet::address(0);
                    guest.send(Command::Join { address, room: ours }).expect("it is alive");
                }
                MeshNews::PeerConnected { peer, .. } => {
                    let (delivery, data) = (Delivery::Reliable, host.buffer(b"welcome"));
                    let command = Command::Send { to: Some(peer), stream: 3, delivery, data };
                    host.send(command).expect("it is alive");
                }
                _ => {}
            }
        }
        while let Some(news) = guest.next_news() {
            hears |= matches!(&news, MeshNews::Message { stream: 3, data, .. } if data == b"welcome");
        }
        if hears {
            return Ok(net.sent());
        }
    }
    assert!(room.is_some(), "the host is in its room at once");
    Err(net.trace().to_string())
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
