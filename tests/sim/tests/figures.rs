//! What virtual time costs in real time. Prints; the bar is judged by the benches.

use retick_sim::{Setup, World, seeds};
use std::time::Duration;

/// 4 peers, a minute of play.
#[test]
#[expect(clippy::disallowed_methods, reason = "the figure is real time; nothing depends on it")]
fn virtual_time_match_of_3600_frames() {
    let mut world = World::new(0x3600, Setup::new(4).path(40, 10, 2));
    world.start();
    let (before, calls) = (std::time::Instant::now(), world.calls());
    world.run_for(Duration::from_mins(1));
    let took = before.elapsed();
    let frames = world.peers[0].current().0;
    seeds::say(&format!(
        "3600 frames of 4 peers: {:.3} s of real time, oracles and games included; {} game calls, {frames} frames",
        took.as_secs_f64(),
        world.calls() - calls
    ));
    assert!(frames >= 3590, "{frames}");
    world.expect_recovery();
}
