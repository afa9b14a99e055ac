//! What a mesh handle says when its network half is gone.
//!
//! Fed by: a bridge whose far end is dropped. Yields: pass or fail. Never: a socket, a thread.

use super::*;
use crate::bridge::{self, NodePort};
use crate::ffi::event_types::{RETICK_EVENT_FAILED, RETICK_EVENT_JOINED, RETICK_EVENT_PEER_JOINED};
use crate::ffi::library::RETICK_ERR_SHUT_DOWN;
use std::ffi::CStr;

#[test]
fn a_mesh_whose_network_half_failed_says_so_once_and_in_every_call() {
    let (mut mesh, node) = mesh();
    mesh.host().expect("room in the queue");
    node.tell(MeshNews::Joined { us: PeerIndex::default(), room: RoomKey([0; 32]) })
        .expect("room in the queue");
    mesh.poll().expect("never fails");
    assert_eq!(kinds(&mut mesh), [RETICK_EVENT_JOINED]);
    let member = PeerIndex::new(1).expect("small");
    node.tell(MeshNews::PeerJoined { peer: member }).expect("room in the queue");
    drop(node);
    mesh.poll().expect("never fails");
    assert_eq!(
        kinds(&mut mesh),
        [RETICK_EVENT_PEER_JOINED, RETICK_EVENT_FAILED],
        "what it told before counts"
    );
    mesh.poll().expect("never fails");
    assert_eq!(kinds(&mut mesh), []);
    let calls: [fn(&mut MeshHandle) -> Outcome<retick_result>; 4] = [
        MeshHandle::host,
        |mesh| mesh.set_ready(1),
        |mesh| mesh.start(0),
        |mesh| mesh.send(None, 0, Delivery::Reliable, b"hello"),
    ];
    for call in calls {
        assert_eq!(call(&mut mesh).expect_err("nobody is there").code, RETICK_ERR_SHUT_DOWN);
    }
    assert_eq!(mesh.leave().expect("there is nothing to leave"), RETICK_OK);
    mesh.say_goodbye();
}

#[test]
fn a_mesh_that_left_ends_without_a_word() {
    let (mut mesh, node) = mesh();
    mesh.host().expect("room in the queue");
    mesh.leave().expect("room in the queue");
    drop(node);
    mesh.poll().expect("never fails");
    assert_eq!(kinds(&mut mesh), []);
}

fn mesh() -> (MeshHandle, NodePort) {
    let (port, node) = bridge::open(Arc::new(|| {}));
    (MeshHandle::new(Driver::Simnet(port), Clock::Os, String::new(), 1200), node)
}

fn kinds(mesh: &mut MeshHandle) -> Vec<u32> {
    let events = std::iter::from_fn(|| mesh.next_event());
    events
        .map(|event| {
            // SAFETY: an event's text ends with a NUL and lives until the next poll.
            let text = unsafe { CStr::from_ptr(event.text) };
            assert!(!text.is_empty());
            event.kind
        })
        .collect()
}
