//! A custom transport with a stand-in node.

use super::*;
use crate::bridge::Command;
use crate::config::RoomKey;
use crate::io::testing::{Heard, Parrot, tick};

#[test]
fn datagrams_go_in_and_come_out_in_order() {
    let (make, hears) = Parrot::nest();
    let mut mesh = CustomMesh::with_node(make).expect("a stand-in can always be made");
    let (friend, room) = (Addr::opaque(b"friend").expect("short"), RoomKey([0; 32]));
    for _ in 0..2 {
        mesh.port.send(Command::Join { address: friend, room }).expect("it is alive");
    }
    assert!(mesh.next_outgoing().is_none(), "nothing runs by itself");
    mesh.run(Instant::ZERO);
    for _ in 0..2 {
        assert_eq!(mesh.next_outgoing(), Some((friend, &b"hello"[..])));
    }
    assert!(mesh.next_outgoing().is_none());
    mesh.receive(friend, b"answer", Instant(5));
    assert_eq!(hears.next(), Heard::Datagram(friend, b"answer".to_vec()));
    mesh.receive(friend, b"", Instant(5));
    mesh.receive(friend, &[0; MAX_DATAGRAM + 1], Instant(5));
    assert_eq!((hears.try_next(), mesh.dropped()), (None, 2));
}

#[test]
fn time_outs_fire_in_run_and_only_when_due() {
    let (make, hears) = Parrot::nest();
    let mut mesh = CustomMesh::with_node(make).expect("a stand-in can always be made");
    tick(&mesh.port, 10);
    mesh.run(Instant::ZERO);
    assert_eq!(mesh.poll_timeout(), Some(Instant::from_millis(10)));
    mesh.run(Instant(9_999));
    assert_eq!(hears.try_next(), None);
    mesh.run(Instant::from_millis(10));
    assert_eq!(hears.try_next(), Some(Heard::Tick(Instant::from_millis(10))));
}

#[test]
fn datagrams_that_nobody_takes_push_out_the_oldest() {
    let (make, _hears) = Parrot::nest();
    let mut mesh = CustomMesh::with_node(make).expect("a stand-in can always be made");
    let friend = |number: usize| Addr::opaque(&number.to_le_bytes()).expect("eight bytes");
    for number in 0..OUTGOING + 3 {
        let address = friend(number);
        mesh.port.send(Command::Join { address, room: RoomKey([0; 32]) }).expect("the queue is emptied");
        mesh.run(Instant::ZERO);
    }
    assert_eq!(mesh.next_outgoing().map(|(to, _)| to), Some(friend(3)));
    assert_eq!(mesh.dropped(), 3);
}

#[test]
fn a_mesh_that_left_is_not_open() {
    let (make, hears) = Parrot::nest();
    let mut mesh = CustomMesh::with_node(make).expect("a stand-in can always be made");
    mesh.port.send(Command::Leave).expect("it is alive");
    mesh.run(Instant::ZERO);
    assert!(!mesh.is_open());
    assert_eq!(hears.next(), Heard::Dropped);
    mesh.run(Instant::ZERO);
    mesh.receive(Addr::opaque(b"x").expect("short"), b"late", Instant::ZERO);
}
