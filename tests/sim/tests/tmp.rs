//! tmp
use retick_sim::{Setup, World};
use std::time::Duration;
#[test]
fn doubles() {
    let mut world = World::new(1, Setup::new(4).path(40, 10, 2).quiet());
    world.start();
    world.run_for(Duration::from_millis(3003));
    for e in world.net.trace().newest(40) { retick_sim::seeds::say(&format!("{e}")); }
    let before = world.net.sent();
    world.run_for(Duration::from_millis(1000));
    retick_sim::seeds::say(&format!("{} per link", (world.net.sent() - before) / 12));
}
