//! Fifty meshes one after the other in one process; alone in its file, since it looks at the process's memory.

use retick_sim::swarm::Swarm;
use retick_sim::{Setup, World, seeds};
use std::time::Duration;

/// Each begins at frame 0 and inherits nothing; memory does not grow.
#[test]
fn b09_fifty_sessions_in_one_process() {
    let mut resident = Vec::new();
    for number in 0..50 {
        let mut swarm = Swarm::new(number);
        let mut world = World::new(number, Setup::new(3).path(30, 5, 2));
        for peer in &world.peers {
            assert_eq!(peer.current().0, 0);
        }
        world.start();
        world.run_for(Duration::from_millis(swarm.between(200, 6000)));
        world.expect_recovery();
        assert!(world.desyncs().is_empty());
        drop(world);
        resident.push(resident_kb());
    }
    let (early, late) = (resident[9], resident[49]);
    seeds::say(&format!("b09: {early} kB resident after 10 sessions, {late} kB after 50"));
    assert!(late <= early + 4096, "{early} kB after 10 sessions, {late} kB after 50");
}

/// What `/proc` says; 0 where there is none.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
