//! Whatever comes when: once all is known, the game is where a straight-line run with the true inputs is.
//!
//! Each seed draws a match: slots, owners, window, delays, predictor, state mode, desync level, arrival pattern, delay
//! changes, aborted lists and a leaver.

use super::*;

struct Plan {
    rng: Rng,
    /// True inputs of each remote slot, far ahead.
    ahead: BTreeMap<u8, Vec<Vec<u8>>>,
    /// Frames handed over of each remote slot.
    told: BTreeMap<u8, usize>,
    cut: Option<(u8, i32)>,
}

const FRAMES: i32 = 260;

fn draw_inputs(rng: &mut Rng, input_max: usize, hold: u64) -> Vec<Vec<u8>> {
    let mut now = Vec::new();
    (0..FRAMES + 200)
        .map(|_| {
            if rng.below(hold) == 0 {
                now = (0..rng.below(input_max as u64 + 1)).map(|_| rng.below(3) as u8).collect();
            }
            now.clone()
        })
        .collect()
}

impl Plan {
    /// Hands over up to `most` further frames of a slot, equal neighbours as one record.
    fn deliver(&mut self, rig: &mut Rig, slot: u8, most: usize) {
        let told = self.told.entry(slot).or_default();
        let inputs = &self.ahead[&slot];
        let cut =
            self.cut.filter(|&(leaver, _)| leaver == slot).map_or(inputs.len(), |(_, end)| end as usize);
        let end = (*told + most).min(inputs.len()).min(cut);
        while *told < end {
            let input = &inputs[*told];
            let run = inputs[*told..end].iter().take_while(|next| *next == input).count();
            rig.send(inputs_news(slot, Frame(*told as i32), run as u16, input));
            rig.truth.inputs.entry(slot).or_default().extend(vec![input.clone(); run]);
            *told += run;
        }
    }
}

fn run_seed(seed: u64) {
    let mut rng = Rng::new(seed);
    let slots = 1 + rng.below(16) as usize;
    let peers = 1 + rng.below(6);
    let mut owners: Vec<u8> = (0..slots).map(|_| rng.below(peers) as u8).collect();
    if rng.below(8) > 0 {
        owners[rng.below(slots as u64) as usize] = 0;
    }
    let window = [0, 1, 2, 4, 8, 16, 30, 64][rng.below(8) as usize];
    let mut config = config(window, rng.below(8) as u32);
    config.input_max = 1 + rng.below(6) as u32;
    config.desync_level = rng.below(3) as u32;
    config.predictor = [Predictor::RepeatLast, Predictor::Zero, Predictor::Game][rng.below(3) as usize];
    config.state_mode = [StateMode::Bytes, StateMode::Regions, StateMode::Slots][rng.below(3) as usize];
    let input_max = config.input_max as usize;
    let mut rig = Rig::new(config, &owners);
    rig.session.set_predictor(Box::new(|slot, frame, last| match (i32::from(slot.get()) + frame.0) % 3 {
        0 => *last,
        1 => Input::EMPTY,
        _ => Input::new(&[1]).unwrap(),
    }));
    let local: Vec<u8> = (0..slots as u8).filter(|&s| owners[s as usize] == 0).collect();
    for &slot in &local {
        rig.session.set_input_delay(Slot::new(slot).unwrap(), rng.below(7) as u32).unwrap();
    }
    let hold = [1, 2, 12][rng.below(3) as usize];
    let remote: Vec<u8> = (0..slots as u8).filter(|&s| owners[s as usize] != 0).collect();
    let mut plan = Plan {
        ahead: remote.iter().map(|&s| (s, draw_inputs(&mut rng, input_max, hold))).collect(),
        told: BTreeMap::new(),
        cut: None,
        rng,
    };
    let cut_at = plan.rng.below(FRAMES as u64) as i32;
    let burst = 1 + plan.rng.below(12);
    let aborts = plan.rng.below(2) == 0;
    let mut calls = 0;
    while rig.session.current().0 < FRAMES {
        calls += 1;
        assert!(
            calls < 100 * FRAMES,
            "no progress at frame {}: {:?}",
            rig.session.current(),
            rig.session.stats()
        );
        for &slot in &remote {
            if plan.rng.below(burst) == 0 {
                let most = plan.rng.below(2 * burst + 1) as usize;
                plan.deliver(&mut rig, slot, most);
            }
        }
        cut_one(&mut plan, &mut rig, &remote, cut_at);
        for &slot in &local {
            if plan.rng.below(4) > 0 {
                let len = plan.rng.below(input_max as u64 + 1) as usize;
                let bytes: Vec<u8> = (0..len).map(|_| plan.rng.below(4) as u8).collect();
                rig.sample(slot, &bytes);
            }
            if plan.rng.below(40) == 0 {
                rig.session.set_input_delay(Slot::new(slot).unwrap(), plan.rng.below(7) as u32).unwrap();
            }
        }
        rig.node_sleeps = plan.rng.below(16) == 0;
        if aborts && plan.rng.below(20) == 0 {
            abort_somewhere(&mut rig, &mut plan.rng);
        }
        rig.play();
    }
    // All up to here becomes known, and the last corrections are made.
    rig.node_sleeps = false;
    for &slot in &remote {
        let told = plan.told.get(&slot).copied().unwrap_or(0);
        plan.deliver(&mut rig, slot, (FRAMES as usize + 8).saturating_sub(told));
    }
    rig.play_times(3);
    rig.check_truth();
    if rig.level > 0 {
        let marks: Vec<i32> = rig.checksums.keys().copied().collect();
        assert!(marks.starts_with(&[0, 60, 120, 180, 240]), "digests of marks were lost: {marks:?}");
    }
    if rig.level > 1 {
        (0..FRAMES).for_each(|f| assert!(rig.session.confirmed_checksum(Frame(f)).is_some(), "frame {f}"));
    }
}

/// One slot leaves: its inputs up to the cut are handed over, then the cut.
fn cut_one(plan: &mut Plan, rig: &mut Rig, remote: &[u8], at: i32) {
    if plan.cut.is_some() || remote.is_empty() || rig.session.current().0 < at {
        return;
    }
    let slot = remote[plan.rng.below(remote.len() as u64) as usize];
    let told = plan.told.get(&slot).copied().unwrap_or(0) as i32;
    let end = told + plan.rng.below(20) as i32;
    plan.cut = Some((slot, end));
    plan.deliver(rig, slot, usize::MAX / 2);
    rig.tell_cut(slot, end);
}

/// Begins a list, runs a part of it, and takes it back.
fn abort_somewhere(rig: &mut Rig, rng: &mut Rng) {
    let before = rig.session.current();
    rig.session.begin_frame(rig.now).unwrap();
    rig.read_commands();
    let steps = rig.session.step_count();
    rig.run(rng.below(steps as u64 + 1) as usize);
    rig.session.abort_frame().unwrap();
    assert_eq!(rig.session.current(), before);
    if before == Frame::ZERO {
        // No state exists yet: the game begins anew by itself.
        rig.game = Game::default();
    }
}

#[test]
fn any_arrival_order_ends_in_the_state_of_a_straight_line_run() {
    for seed in 0..400 {
        assert!(std::panic::catch_unwind(|| run_seed(seed)).is_ok(), "seed {seed} failed");
    }
}
