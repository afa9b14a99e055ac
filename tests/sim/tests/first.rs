//! The first things first.

use retick_sim::{Setup, World};
use std::time::Duration;

#[test]
fn four_peers_play_on_a_usual_path() {
    let mut world = World::new(1, Setup::new(4).path(40, 10, 2));
    world.start();
    world.run_for(Duration::from_secs(10));
    world.expect_recovery();
}
