//! Exactly one datagram is lost, each in turn.

use retick_sim::{Fault, Setup, World, seeds};
use std::time::Duration;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn quiet() -> World {
    World::new(0x10_5e, Setup::new(3).path(20, 0, 0).quiet())
}

/// From the first handshake to frame 0.
#[test]
fn join_survives_the_loss_of_any_single_datagram() {
    let mut tried = 0;
    for number in 0.. {
        let mut world = quiet();
        world.net.drop_exactly(number);
        world.start();
        let needed = world.net.sent();
        world.run_for(MS(500));
        if world.remaining().len() != 3 {
            world.fail(&format!("without datagram {number} only {:?} play", world.remaining()));
        }
        tried = number;
        if needed <= number {
            break;
        }
    }
    seeds::say(&format!("join: survives the loss of each of {tried} datagrams"));
    assert!(tried > 50, "a join of three takes more than {tried} datagrams");
}

/// From the goodbye until the others have let go.
#[test]
fn leave_survives_the_loss_of_any_single_datagram() {
    let play = |lost: Option<u64>| {
        let mut world = quiet();
        world.start();
        world.run_for(MS(500));
        let first = world.net.sent();
        if let Some(number) = lost {
            world.net.drop_exactly(first + number);
        }
        world.apply(Fault::Leave(1));
        let begun = world.now();
        let slot = world.peers[1].session.local_slots().first().expect("plays one");
        while [0, 2].iter().any(|&p| world.oracles.end_of(p, slot).is_none()) {
            world.run_for(MS(10));
            if world.now().since(begun) > MS(1000) {
                world.fail(&format!("a second after the goodbye it is still waited for (lost: {lost:?})"));
            }
        }
        let sent = world.net.sent() - first;
        let took = world.now().since(begun);
        world.expect_recovery();
        assert_eq!(world.remaining(), [0, 2]);
        (sent, took)
    };
    let (sent, took) = play(None);
    let slowest = (0..sent).map(|number| play(Some(number)).1).max().unwrap_or_default();
    seeds::say(&format!("leave: {took:?}, and {slowest:?} at most when any of {sent} datagrams is lost"));
    assert!(took <= MS(150), "a goodbye is no time-out: {took:?}");
}
