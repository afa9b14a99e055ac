//! What both ways of waiting promise, by real sockets and threads.

use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::Duration;

/// Longer than any test waits; nobody is to reach it.
const LONG: Option<Duration> = Some(Duration::from_secs(20));
const AT_ONCE: Option<Duration> = Some(Duration::ZERO);

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("the machine has IPv4");
    socket.set_nonblocking(true).expect("a switch");
    socket
}

macro_rules! promises {
    ($of:ident) => {
        mod $of {
            use super::super::$of::{Waiter, Watched};
            use super::*;

            fn readable(waiter: &mut Waiter, timeout: Option<Duration>) -> Vec<usize> {
                waiter.wait(timeout).expect("it waits");
                waiter.readable().collect()
            }

            #[test]
            fn a_socket_is_told_while_something_waits_in_it() {
                let mut waiter = Waiter::new().expect("the system has one");
                let mut both =
                    [7, 8].map(|key| Watched::new(socket(), &waiter.bell(), key).expect("watched"));
                assert_eq!(readable(&mut waiter, AT_ONCE), [0; 0]);
                let to = both[1].socket().local_addr().expect("bound");
                socket().send_to(b"x", to).expect("sent");
                assert_eq!(readable(&mut waiter, LONG), [8]);
                assert!(both[1].rearm());
                assert_eq!(readable(&mut waiter, LONG), [8], "not read yet");
                both[1].socket().recv_from(&mut [0; 9]).expect("it is there");
                assert!(both[1].rearm());
                assert_eq!(readable(&mut waiter, AT_ONCE), [0; 0]);
            }

            #[test]
            fn what_is_not_watched_is_not_told_until_it_is_again() {
                let mut waiter = Waiter::new().expect("the system has one");
                let mut watched = Watched::new(socket(), &waiter.bell(), 3).expect("watched");
                let to = watched.socket().local_addr().expect("bound");
                socket().send_to(b"x", to).expect("sent");
                watched.unwatch();
                assert_eq!(readable(&mut waiter, AT_ONCE), [0; 0]);
                assert!(watched.rearm());
                assert_eq!(readable(&mut waiter, LONG), [3]);
                drop(watched);
                assert_eq!(readable(&mut waiter, AT_ONCE), [0; 0]);
            }

            #[test]
            fn a_ring_before_a_wait_ends_it_and_only_it() {
                let mut waiter = Waiter::new().expect("the system has one");
                let bell = waiter.bell();
                for _ in 0..200_000 {
                    bell.ring();
                }
                assert_eq!(readable(&mut waiter, None), [0; 0]);
                bell.ring();
                assert_eq!(readable(&mut waiter, None), [0; 0]);
                assert_eq!(readable(&mut waiter, AT_ONCE), [0; 0]);
            }

            #[test]
            fn no_ring_of_another_thread_is_lost() {
                let mut waiter = Waiter::new().expect("the system has one");
                let bell = waiter.bell();
                // Each ring is answered before the next, so one that is lost ends the test by never ending `wait`.
                let (answer, answered) = std::sync::mpsc::sync_channel(0);
                let ringer = thread::spawn(move || {
                    for _ in 0..20_000 {
                        bell.ring();
                        if answered.recv().is_err() {
                            return;
                        }
                    }
                });
                for _ in 0..20_000 {
                    waiter.wait(None).expect("it waits");
                    answer.send(()).expect("the ringer lives");
                }
                ringer.join().expect("it rang");
            }

            #[test]
            fn a_ring_after_the_waiter_is_gone_is_survived() {
                let waiter = Waiter::new().expect("the system has one");
                let bell = waiter.bell();
                let watched = Watched::new(socket(), &bell, 3).expect("watched");
                drop(waiter);
                bell.ring();
                drop(watched);
                bell.ring();
            }
        }
    };
}

promises!(polled);
#[cfg(unix)]
promises!(unix);

/// A port is free again as soon as its owner is gone, also while others wait.
#[cfg(unix)]
#[test]
fn a_waiter_lets_go_of_a_socket_when_it_is_no_longer_watched() {
    let mut waiter = super::unix::Waiter::new().expect("the system has one");
    let watched = super::unix::Watched::new(socket(), &waiter.bell(), 3).expect("watched");
    let address = watched.socket().local_addr().expect("bound");
    waiter.wait(AT_ONCE).expect("it waits");
    assert!(UdpSocket::bind(address).is_err());
    let waits = thread::spawn(move || {
        // Once for the ring of the drop, or at once when it rang before.
        waiter.wait(LONG).expect("it waits");
        waiter.wait(AT_ONCE).expect("it waits");
        waiter
    });
    drop(watched);
    let _waiter = waits.join().expect("it waited");
    UdpSocket::bind(address).expect("nobody has it any more");
}
