//! Any seed: a mesh and faults drawn by the swarm; the oracles after every event, then recovery.

use retick_sim::swarm::{Swarm, describe};
use retick_sim::{Fault, World, seeds};
use std::time::Duration;

/// Seeds that failed once.
const KEPT_SWARM: &[u64] = &[
    0x76e8_8c43_a261_9b1a,
    0x0c82_d4aa_eb6c_8da0,
    0x6ea4_2371_4a0e_f3ba,
    0x0d4e_d104_b047_d5f4,
    0x724c_5aa3_db7d_e9f9,
    0x3aab_25a6_9645_3a89,
];
const KEPT_CRASH: &[u64] = &[
    0xa527_b85b_bc20_5422,
    0xe6eb_54ee_d92c_09f6,
    0xd177_8484_b045_139e,
    0xc590_135d_1549_815f,
    0x34f3_8100_127a_bca5,
    0xc590_135d_1549_815f,
    0xe503_7b62_e858_a887,
    0xc7c4_b2e7_2541_ffe5,
    0x28bf_4ae4_9cd1_da6a,
];
const KEPT_LINKS: &[u64] =
    &[0x44f5_f51b_0821_070f, 0xa2f9_6999_bdcc_f113, 0x8a9e_669d_e647_be7c, 0x5ba5_9617_f026_4ddd];

/// Whatever the swarm draws: no divergence, no loss of a message, no wrong cut, and those who remain go on together.
#[test]
fn any_faults() {
    seeds::play("faults", "any_faults", KEPT_SWARM, 2000, |seed| {
        let mut swarm = Swarm::new(seed);
        let mut setup = swarm.setup(2, 8);
        let script = swarm.script(&mut setup, Duration::from_secs(12));
        let line = describe(&setup, &script);
        let mut world = World::new(seed, setup);
        world.note(line);
        world.start();
        for (at, fault) in script {
            world.after(at, fault);
        }
        world.run_for(Duration::from_secs(13));
        world.expect_recovery();
    });
}

/// One of 3 to 10 peers dies at any time: while they meet, at the start, in play, in the agreement on another's death. The
/// others go on, and agree.
#[test]
fn any_one_crash() {
    seeds::play("faults", "any_one_crash", KEPT_CRASH, 750, |seed| {
        let mut swarm = Swarm::new(seed);
        let setup = swarm.setup(3, 10);
        let victim = swarm.peer(&setup);
        let at = if swarm.percent(40) { swarm.between(0, 1500) } else { swarm.between(1500, 8000) };
        let mut world = World::new(seed, setup);
        world.note(format!("{victim} dies at {at} ms"));
        world.after(Duration::from_millis(at), Fault::Crash(victim));
        // The agreement itself: somebody else loses its link for a moment, so that it opens before or after.
        if swarm.percent(25) {
            let other = swarm.peer(world.setup());
            let before = swarm.between(0, 400);
            world.after(Duration::from_millis(at.saturating_sub(before)), Fault::Isolate(other));
            world.after(Duration::from_millis(at + 100), Fault::Heal);
        }
        world.open();
        world.run_for(Duration::from_secs(10));
        world.expect_started_or_dead_room();
        world.expect_recovery();
    });
}

/// Links that are bad in every way, and nobody dies: nobody is cut who was not silent, and all frames agree.
#[test]
fn any_links() {
    seeds::play("faults", "any_links", KEPT_LINKS, 500, |seed| {
        let mut swarm = Swarm::new(seed);
        let setup = swarm.setup(2, 6);
        let mut world = World::new(seed, setup);
        world.start();
        for number in 0..6 {
            let peer = swarm.peer(world.setup());
            let link = swarm.link();
            world.after(Duration::from_millis(1000 * number + 300), Fault::Path(peer, link));
        }
        world.run_for(Duration::from_secs(7));
        world.expect_recovery();
    });
}
