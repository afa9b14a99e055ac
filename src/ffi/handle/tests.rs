//! Unit tests of the handle table: what a panic does, and does not.
//!
//! Fed by: planted panics. Yields: pass or fail. Never: calls `shutdown`, which would reach other tests' handles.

use super::*;
use crate::ffi::guard::{call, with_last_error};
use crate::ffi::library::{RETICK_ERR_BUSY, RETICK_ERR_INVALID_HANDLE, RETICK_ERR_PANIC};
use crate::ffi::ptr::Sized32;
use std::process::Command;

/// Set for the child process in which a test looks at what a panic prints.
const CHILD: &str = "RETICK_TEST_PANIC";

fn net() -> retick_simnet {
    retick_simnet { id: create_simnet(7).expect("room in the table") }
}

fn last_error() -> String {
    with_last_error(|text| String::from_utf8_lossy(text).into_owned())
}

fn plant(net: retick_simnet) -> retick_result {
    call("retick_planted", || with_simnet(net, |_| -> Outcome { panic!("planted {}", 42) }))
}

#[test]
fn e15_a_panic_is_a_code_with_its_text_and_poisons_only_its_handle() {
    let (one, other) = (net(), net());
    assert_eq!(plant(one), RETICK_ERR_PANIC);
    assert!(last_error().starts_with("retick_planted: a bug in retick: planted 42 ("), "{}", last_error());
    let touch = |net| call("retick_touch", || with_simnet(net, |net| Ok(net.now_us() as i32)));
    assert_eq!(touch(one), RETICK_ERR_PANIC);
    assert!(last_error().contains("destroy it"));
    assert_eq!(touch(other), RETICK_OK);
    assert_eq!(call("destroy", || destroy_simnet(one)), RETICK_OK);
    assert_eq!(touch(one), RETICK_ERR_INVALID_HANDLE);
    assert_eq!(call("destroy", || destroy_simnet(other)), RETICK_OK);
    // Without a handle there is nothing to poison.
    assert_eq!(call("retick_planted", || panic!("again")), RETICK_ERR_PANIC);
    assert!(last_error().contains("again"));
}

#[test]
fn e15_a_poisoned_session_keeps_its_step_list_until_it_is_closed() {
    let id =
        create_session(&retick_session_config::defaults(), retick_mesh { id: 0 }).expect("room in the table");
    let session = retick_session { id };
    let begin = with_session(session, Need::NoList, |s| s.begin_frame(88, Open::ByGame));
    let (_, steps, count) = begin.expect("a local session begins at once");
    assert!(count > 0);
    let planted = || with_session(session, Need::Any, |_| -> Outcome { panic!("planted") });
    assert_eq!(call("planted", planted), RETICK_ERR_PANIC);
    assert_eq!(call("destroy", || destroy_session(session)), RETICK_ERR_BUSY);
    // SAFETY: the list is open, so its first record is there.
    assert!(unsafe { (*steps).kind } > 0);
    let end = || with_session(session, Need::Close, SessionHandle::end_frame);
    assert_eq!(call("end", end), RETICK_ERR_PANIC);
    assert_eq!(call("destroy", || destroy_session(session)), RETICK_OK);
}

#[test]
fn e15_a_panic_of_ours_prints_nothing_and_one_of_others_prints_as_ever() {
    let test = "ffi::handle::tests::e15_child_that_panics";
    let stderr_of = |whose: &str| {
        let test_program = std::env::current_exe().expect("this test is a file");
        let output = Command::new(test_program)
            .args(["--exact", test, "--nocapture"])
            .env(CHILD, whose)
            .output()
            .expect("it can be run again");
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(stderr_of("ours"), "");
    assert!(stderr_of("others").contains("not a bug in retick"));
}

#[test]
fn e15_child_that_panics() {
    match std::env::var(CHILD).as_deref() {
        Ok("ours") => assert_eq!(plant(net()), RETICK_ERR_PANIC),
        Ok(_) => {
            assert_eq!(call("nothing", || Ok(RETICK_OK)), RETICK_OK);
            assert!(std::panic::catch_unwind(|| panic!("not a bug in retick")).is_err());
        }
        // Only the test above asks for it.
        Err(_) => {}
    }
}

#[test]
fn an_id_is_used_once() {
    let ids: Vec<_> = (0..20)
        .map(|_| {
            let net = net();
            assert_eq!(call("destroy", || destroy_simnet(net)), RETICK_OK);
            net.id
        })
        .collect();
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), ids.len());
}
