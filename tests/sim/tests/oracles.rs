//! Every oracle fails when what it looks for is there: lies planted in what the peers report, and a bug in one peer's game.

use retick::base::{Frame, Input, Instant, PeerIndex, Slot};
use retick::bridge::StartInfo;
use retick_sim::oracles::{ALL_NEWEST, ALL_RELIABLE, ALL_UNRELIABLE, Life, Oracles, PAIR_RELIABLE, Player};
use retick_sim::{Setup, Trace, World};
use std::time::Duration;

const MS: fn(u64) -> Duration = Duration::from_millis;
const SEED: u64 = 7;

#[test]
fn true_reports_are_believed() {
    let mut oracles = three();
    for frame in 0..20 {
        (0..3).for_each(|peer| confirm(&mut oracles, peer, frame, |input| input));
    }
    oracles.finish();
    assert_eq!(oracles.violations(), [""; 0]);
}

#[test]
fn an_input_that_its_owner_did_not_hand_in_is_found() {
    let mut oracles = three();
    confirm(&mut oracles, 1, 0, |_| Input::new(&[9, 9, 9, 9]).expect("short"));
    expect(&oracles, "but its owner handed in");
}

#[test]
fn confirmed_inputs_that_differ_are_found() {
    let mut oracles = three();
    for frame in 0..3 {
        confirm(&mut oracles, 0, frame, |input| input);
    }
    confirm(&mut oracles, 1, 0, |input| input);
    confirm(&mut oracles, 1, 1, |_| Input::EMPTY);
    expect(&oracles, "the confirmed inputs of frame 1 differ");
}

#[test]
fn states_that_differ_are_found() {
    let mut oracles = three();
    for (peer, digest) in [(0, 1), (1, 2)] {
        let inputs = inputs(Frame(0));
        oracles.confirmed(peer, &inputs, digest, true);
    }
    expect(&oracles, "the states before frame 0 differ");
}

#[test]
fn a_confirmed_frame_without_an_input_is_found() {
    let mut oracles = three();
    oracles.confirmed(0, &[(slot(0), None)], 0, true);
    expect(&oracles, "holds no input of slot 0");
}

#[test]
fn a_difference_is_excused_only_after_a_cut() {
    let lie: Vec<_> = inputs(Frame(0)).iter().map(|&(slot, _)| (slot, Some(Input::EMPTY))).collect();
    for end in [0, 1] {
        let mut oracles = three();
        oracles.confirmed(0, &inputs(Frame(0)), 0, false);
        oracles.slot_left(1, slot(0), Frame(end), false);
        oracles.confirmed(1, &lie, 0, false);
        oracles.finish();
        let differ =
            oracles.violations().iter().any(|line| line.contains("the confirmed inputs of frame 0 differ"));
        assert_eq!(differ, end == 1, "cut at {end}: {:?}", oracles.violations());
    }
}

#[test]
fn survivors_that_disagree_on_an_end_are_found() {
    let mut oracles = three();
    oracles.ended(2, Life::Crashed(Instant::ZERO));
    oracles.slot_left(0, slot(2), Frame(10), false);
    oracles.slot_left(1, slot(2), Frame(11), false);
    oracles.finish();
    expect(&oracles, "ends at 11 for one and at 10 for the other");
}

#[test]
fn a_cut_of_what_was_confirmed_is_found() {
    let mut oracles = three();
    (0..5).for_each(|frame| confirm(&mut oracles, 0, frame, |input| input));
    oracles.slot_left(0, slot(2), Frame(3), true);
    expect(&oracles, "had confirmed 5 frames");
}

#[test]
fn a_slot_that_leaves_twice_is_found() {
    let mut oracles = three();
    oracles.slot_left(0, slot(2), Frame(3), true);
    oracles.slot_left(0, slot(2), Frame(3), true);
    expect(&oracles, "told twice");
}

#[test]
fn a_cut_of_a_peer_that_everybody_heard_is_found() {
    let silent = |is_silent: bool| {
        let mut oracles = three();
        for ms in (0..2000).step_by(50) {
            for to in [0, 1] {
                if ms < 1000 || !is_silent {
                    oracles.delivered(2, to, Instant::from_millis(ms));
                }
                oracles.delivered(to, 2, Instant::from_millis(ms));
                oracles.delivered(to, 1 - to, Instant::from_millis(ms));
            }
        }
        oracles.slot_left(0, slot(2), Frame(50), false);
        oracles.judge_cut(0, 2, Instant::from_millis(2000));
        oracles.finish();
        oracles.violations().to_vec()
    };
    assert_eq!(silent(true), [""; 0]);
    assert!(silent(false).iter().any(|line| line.contains("most heard it")));
}

#[test]
fn a_reliable_message_that_is_lost_doubled_or_late_is_found() {
    for numbers in [&[0, 2][..], &[0, 0], &[1]] {
        let mut oracles = three();
        for &number in numbers {
            oracles.message(1, 0, ALL_RELIABLE[0], number);
        }
        expect(&oracles, "got reliable message");
    }
    let mut oracles = three();
    oracles.sent(0, 1, PAIR_RELIABLE[0]);
    oracles.finish();
    expect(&oracles, "got 0 of the 1 reliable messages");
}

#[test]
fn an_unreliable_message_that_comes_twice_or_late_is_found() {
    for (stream, numbers, is_wrong) in [
        (ALL_UNRELIABLE, [5, 3], false),
        (ALL_UNRELIABLE, [3, 3], true),
        (ALL_NEWEST, [3, 5], false),
        (ALL_NEWEST, [5, 3], true),
    ] {
        let mut oracles = three();
        for number in numbers {
            oracles.message(1, 0, stream, number);
        }
        assert_eq!(oracles.violations().len(), usize::from(is_wrong), "{stream} {numbers:?}");
    }
}

#[test]
fn matches_that_differ_are_found() {
    let mut oracles = Oracles::new(2, MS(150));
    oracles.started(0, start(0));
    oracles.started(1, StartInfo { frame0_at: Instant(5_000_001), ..start(1) });
    expect(&oracles, "began different matches");
    let mut oracles = Oracles::new(2, MS(150));
    oracles.started(0, start(0));
    oracles.started(1, start(0));
    expect(&oracles, "are both member 0");
}

#[test]
fn clocks_that_are_apart_are_found() {
    let mut oracles = three();
    oracles.mesh_times(&[(0, Instant(1000)), (1, Instant(7000)), (2, Instant(3000))], MS(5));
    expect(&oracles, "differs by 6ms");
}

#[test]
fn a_desync_that_nobody_planted_is_found() {
    let mut oracles = three();
    oracles.desync(0, 1, Frame(60));
    expect(&oracles, "that nobody planted");
    let mut oracles = three();
    oracles.plant(1);
    oracles.desync(0, 1, Frame(60));
    assert_eq!(oracles.violations(), [""; 0]);
}

#[test]
fn a_queue_over_its_limit_is_found() {
    let mut oracles = three();
    oracles.queue(0, "the window", 17, 16);
    expect(&oracles, "the window holds 17");
}

#[test]
fn a_peer_that_stands_still_after_healing_and_a_split_mesh_are_found() {
    let mut oracles = three();
    oracles.progress(&[(0, 180, 180), (1, 180, 10)], 150);
    expect(&oracles, "1 began 180 and confirmed 10");
    let mut oracles = three();
    oracles.slot_left(0, slot(1), Frame(5), false);
    oracles.progress(&[(0, 180, 180), (1, 180, 180)], 150);
    expect(&oracles, "but not the other way round");
    let mut oracles = three();
    for (by, of) in [(0, 2), (1, 2), (2, 0), (2, 1)] {
        oracles.slot_left(by, slot(of), Frame(5), false);
    }
    oracles.progress(&[(0, 180, 180), (1, 180, 180), (2, 180, 180)], 150);
    expect(&oracles, "but not together");
    let mut oracles = three();
    oracles.cut_off(2);
    oracles.progress(&[(0, 180, 180), (1, 180, 180)], 150);
    expect(&oracles, "2 is cut off, but for 0 it is a member");
}

/// A bit that flips in one peer's state is reported at both ends, at the next mark, and nowhere else.
#[test]
fn a_planted_desync_is_told_at_both_ends() {
    for level in [1, 2] {
        let mut setup = Setup::new(3).path(30, 5, 2);
        setup.desync_level = level;
        let mut world = World::new(0xde5, setup);
        world.peers[1].flip_at = Some(Frame(100));
        world.oracles.plant(1);
        world.start();
        world.run_for(MS(5000));
        let at = Frame(120);
        for pair in [(1, 0), (1, 2), (0, 1), (2, 1)] {
            let told = world
                .desyncs()
                .iter()
                .filter(|&&(by, with, _)| (by, with) == pair)
                .map(|&(.., frame)| frame)
                .min();
            assert_eq!(told, Some(at), "{pair:?} of {:?}", world.desyncs());
        }
        assert!(world.desyncs().iter().all(|&(by, with, _)| by == 1 || with == 1));
    }
}

fn slot(index: u8) -> Slot {
    Slot::new(index).expect("below 16")
}

fn start(us: u8) -> StartInfo {
    let member = |index| PeerIndex::new(index).expect("below 16");
    let slots = std::array::from_fn(|index| (index < 3).then(|| member(index as u8)));
    StartInfo { seed: SEED, slots, us: member(us), frame0_at: Instant(5_000_000) }
}

/// Three peers that play the same match.
fn three() -> Oracles {
    let mut oracles = Oracles::new(3, MS(150));
    for index in 0..3 {
        oracles.started(usize::from(index), start(index));
        let player = Player { trace: Trace::Every, seed: SEED, delay: 0, delay_changes: false };
        oracles.set_player(slot(index), player);
    }
    oracles
}

fn inputs(frame: Frame) -> Vec<(Slot, Option<Input>)> {
    (0..3).map(|index| (slot(index), Some(Trace::Every.expected(SEED, slot(index), frame, 0)))).collect()
}

/// A true report, but for what `lie` makes of slot 2's input.
fn confirm(oracles: &mut Oracles, peer: usize, frame: i32, lie: impl Fn(Input) -> Input) {
    let mut inputs = inputs(Frame(frame));
    inputs[2].1 = inputs[2].1.map(lie);
    oracles.confirmed(peer, &inputs, frame as u64, true);
}

fn expect(oracles: &Oracles, what: &str) {
    assert!(
        oracles.violations().iter().any(|line| line.contains(what)),
        "{what}: {:?}",
        oracles.violations()
    );
}
