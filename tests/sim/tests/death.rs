//! Deaths, silences and broken links, one at a time: what the survivors lose, and that they agree.

use retick_sim::seeds::{self, say};
use retick_sim::swarm::Swarm;
use retick_sim::{Fault, Setup, World};
use std::time::Duration;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Seeds that failed once.
const KEPT_FIGURES: &[u64] = &[];

/// One of 4 to 10 peers dies at 60 ms and 2 % loss: survivors lose 15 frames in the median, 24 at p99, and half a second at
/// most.
#[test]
fn death_costs_survivors_a_quarter_of_a_second() {
    let mut lost = Vec::new();
    seeds::play("death", "death_costs_survivors_a_quarter_of_a_second", KEPT_FIGURES, 300, |seed| {
        lost.extend(frames_lost_by_a_death(seed, 0, 60, 2));
    });
    expect_lost("60 ms, 2 % loss", &mut lost, 15, 24);
}

/// The same at 20 % loss and 40 ms jitter: 18 and 40 frames.
#[test]
fn death_on_bad_paths_costs_little_more() {
    let mut lost = Vec::new();
    seeds::play("death", "death_on_bad_paths_costs_little_more", KEPT_FIGURES, 300, |seed| {
        lost.extend(frames_lost_by_a_death(seed, 40, 60, 20));
    });
    expect_lost("60 ms, 20 % loss, 40 ms jitter", &mut lost, 18, 40);
}

/// Frames in which each survivor could not go on, in the two seconds after the death.
fn frames_lost_by_a_death(seed: u64, jitter_ms: u64, latency_ms: u64, loss_percent: u32) -> Vec<u64> {
    let mut swarm = Swarm::new(seed);
    let peers = swarm.between(4, 10) as usize;
    let mut world = World::new(seed, Setup::new(peers).path(latency_ms, jitter_ms, loss_percent));
    let victim = swarm.peer(world.setup());
    world.start();
    world.run_for(MS(swarm.between(1500, 2500)));
    let before: Vec<u64> = world.peers.iter().map(|peer| peer.stalled).collect();
    world.apply(Fault::Crash(victim));
    world.run_for(MS(2000));
    let lost = (0..peers).filter(|&p| p != victim).map(|p| world.peers[p].stalled - before[p]).collect();
    for index in (0..peers).filter(|&p| p != victim) {
        let left = world.peers[index].session.stats();
        let member = world.peers[victim].us.expect("it played");
        let is_out = retick::base::Slot::all()
            .filter(|s| {
                world.peers[index].session.start_info().is_some_and(|i| i.slots[s.index()] == Some(member))
            })
            .all(|slot| world.oracles.end_of(index, slot).is_some());
        if !is_out {
            world.fail(&format!(
                "2 s after the death, {index} still waits for {victim}: {:?}",
                left.last_stall
            ));
        }
    }
    world.expect_recovery();
    if world.remaining().len() != peers - 1 {
        world.fail("the survivors do not go on as one");
    }
    lost
}

fn expect_lost(what: &str, lost: &mut [u64], median_bar: u64, p99_bar: u64) {
    lost.sort_unstable();
    let at = |part: usize| lost[(lost.len() - 1) * part / 100];
    say(&format!(
        "death at {what}: {} survivors lose {} frames in the median, {} at p90, {} at p99, {} at most",
        lost.len(),
        at(50),
        at(90),
        at(99),
        at(100)
    ));
    assert!(at(50) <= median_bar, "median {} > {median_bar}", at(50));
    // A single seed has no p99.
    if lost.len() > 100 {
        assert!(at(99) <= p99_bar, "p99 {} > {p99_bar}", at(99));
    }
}

/// The decider dies at any moment of the agreement on another's death.
#[test]
fn the_decider_may_die_during_the_agreement() {
    let every = if seeds::is_full() { 2 } else { 10 };
    for after in (0..600).step_by(every) {
        let mut world = World::new(0xdec1, Setup::new(5).path(40, 10, 5));
        world.start();
        world.run_for(MS(1000));
        world.apply(Fault::Crash(3));
        world.run_for(MS(after));
        world.apply(Fault::Crash(0));
        world.run_for(MS(2000));
        world.expect_recovery();
        if world.remaining() != [1, 2, 4] {
            world.fail(&format!("decider dead after {after} ms: {:?} go on", world.remaining()));
        }
    }
}

/// Two at once, and a third a moment later.
#[test]
fn three_of_seven_may_die_within_a_moment() {
    for after in [0, 60, 140, 170, 200, 260, 330] {
        let mut world = World::new(0x3d1e + after, Setup::new(7).path(50, 10, 3));
        world.start();
        world.run_for(MS(1500));
        world.apply(Fault::Crash(2));
        world.apply(Fault::Crash(6));
        world.run_for(MS(after));
        world.apply(Fault::Crash(0));
        world.run_for(MS(3000));
        world.expect_recovery();
        if world.remaining() != [1, 3, 4, 5] {
            world.fail(&format!("{:?} go on", world.remaining()));
        }
    }
}

/// Only one link is down, both ways or one: inputs go round, nobody is cut, the game keeps its speed.
#[test]
fn one_broken_link_is_bridged_by_the_others() {
    for (peers, window) in [(3, 16), (4, 16), (6, 16), (8, 10)] {
        for fault in [Fault::OneLink(1, 2), Fault::OneWay(0, 1), Fault::OneWay(2, 0)] {
            let setup = Setup::new(peers).path(30, 5, 2).window(window);
            let mut world = World::new(0x01e + peers as u64, setup);
            world.start();
            world.run_for(MS(1000));
            let before: Vec<i32> = world.peers.iter().map(|peer| peer.current().0).collect();
            world.apply(fault);
            world.run_for(MS(8000));
            for (index, before) in before.iter().enumerate() {
                let frames = world.peers[index].current().0 - before;
                if frames < 450 {
                    world.fail(&format!("{index} played {frames} of 480 frames: {fault}"));
                }
            }
            world.expect_recovery();
            assert_eq!(world.remaining().len(), peers, "nobody is cut while others hear it");
        }
    }
}

/// A peer that is heard by nobody but hears all, and one that hears nobody but is heard: it is cut, the others go on.
#[test]
fn an_asymmetric_partition_cuts_the_odd_one() {
    for (number, fault) in
        [Fault::Mute(2), Fault::Deafen(2), Fault::Mute(0), Fault::Deafen(0)].into_iter().enumerate()
    {
        let odd = if number < 2 { 2 } else { 0 };
        let mut world = World::new(0xa51 + number as u64, Setup::new(4).path(40, 10, 2));
        world.start();
        world.run_for(MS(1000));
        world.apply(fault);
        world.run_for(MS(4000));
        world.expect_recovery();
        let rest: Vec<usize> = (0..4).filter(|&p| p != odd).collect();
        for &one in &rest {
            for &other in rest.iter().filter(|&&other| other != one) {
                if !world.oracles.is_member(one, other) {
                    world.fail(&format!("{fault}: {one} lost {other}"));
                }
            }
            if world.oracles.is_cut_off(one) {
                world.fail(&format!("{fault}: {one} is cut off"));
            }
        }
    }
}

/// A process that stands still for 3 s is cut and learns it; the others go on within half a second.
#[test]
fn a_pause_of_3_s_cuts_a_peer_and_it_learns_so() {
    for victim in [0, 1, 3] {
        let mut world = World::new(0x9a5e + victim as u64, Setup::new(4).path(40, 10, 2));
        world.start();
        world.run_for(MS(1000));
        for peer in &mut world.peers {
            peer.longest_stall = 0;
        }
        world.apply(Fault::Pause(victim, MS(3000)));
        world.run_for(MS(2900));
        for index in (0..4).filter(|&p| p != victim) {
            let stall = world.peers[index].longest_stall;
            if stall > 30 {
                world.fail(&format!("{index} stood still for {stall} frames"));
            }
        }
        world.run_for(MS(1500));
        if !world.oracles.is_cut_off(victim) {
            world.fail(&format!("{victim} was not told that the others went on"));
        }
        world.expect_recovery();
        assert_eq!(world.remaining().len(), 3);
    }
}

/// The coordinator dies at any moment around the start: the others play, in that match or, when they have missed it in the
/// lobby, in the next.
#[test]
fn the_coordinator_may_die_around_the_start() {
    let every = if seeds::is_full() { 10 } else { 50 };
    for at in (150..1300).step_by(every) {
        let mut world = World::new(0xc0_0d, Setup::new(4).path(30, 10, 3));
        world.after(MS(at), Fault::Crash(0));
        world.open();
        world.run_for(MS(3000));
        world.expect_started_or_dead_room();
        world.expect_recovery();
        let joined = (1..4).filter(|&p| world.peers[p].us.is_some() && !world.peers[p].is_out).count();
        if joined >= 2 && world.remaining().len() != joined {
            world.fail(&format!("coordinator dead at {at} ms: {:?} of {joined} go on", world.remaining()));
        }
    }
}
