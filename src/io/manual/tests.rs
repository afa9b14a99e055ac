//! Manual mode with stand-in nodes: nothing happens between two turns, everything in them.

use super::*;
use crate::bridge::Command;
use crate::io::testing::{Ears, Heard, Parrot, loopback, say, tick};

#[test]
fn two_meshes_talk_when_both_are_turned() {
    let ((mut a, _), (mut b, b_hears)) = (open(), open());
    say(&a.port, loopback(b.local_addrs().port()));
    assert!(b_hears.try_next().is_none(), "nothing runs by itself");
    a.turn(Duration::ZERO);
    let heard = loop {
        b.turn(Duration::from_secs(1));
        if let Some(heard) = b_hears.try_next() {
            break heard;
        }
    };
    assert!(matches!(heard, Heard::Datagram(_, bytes) if bytes == b"hello"));
}

#[test]
fn a_turn_ends_when_its_time_is_over_or_a_node_is_due() {
    let (mut mesh, hears) = open();
    mesh.turn(Duration::ZERO);
    tick(&mesh.port, 20);
    let before = crate::io::now();
    while hears.try_next().is_none() {
        mesh.turn(Duration::from_secs(10));
    }
    let passed = crate::io::now().since(before);
    assert!(passed >= Duration::from_millis(20) && passed < Duration::from_secs(5), "{passed:?}");
}

#[test]
fn a_mesh_that_left_is_not_open() {
    let (mut mesh, _hears) = open();
    mesh.turn(Duration::ZERO);
    assert!(mesh.is_open());
    mesh.port.send(Command::Leave).expect("it is alive");
    mesh.turn(Duration::ZERO);
    assert!(!mesh.is_open());
    mesh.turn(Duration::ZERO);
}

fn open() -> (ManualMesh, Ears) {
    let (make, ears) = Parrot::nest();
    (ManualMesh::open(BindConfig::default(), make).expect("any port can be bound"), ears)
}
