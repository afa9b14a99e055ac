//! One situation each.

use super::*;

/// Plays `frames` frames with a remote slot 1 whose input changes every frame and comes `late` frames late.
fn play_late(rig: &mut Rig, frames: i32, late: i32) -> Vec<(Verdict, Ran)> {
    let first = rig.session.current().0;
    (first..first + frames)
        .map(|frame| {
            if frame >= late {
                rig.tell(1, &[&[frame as u8, 1]]);
            }
            rig.sample(0, &[frame as u8]);
            rig.play()
        })
        .collect()
}

#[test]
fn a_rollback_pending_at_the_prediction_limit_is_still_done() {
    let mut rig = Rig::new(config(4, 0), &[0, 1]);
    rig.tell(1, &[&[1]]);
    for frame in 0..5 {
        rig.sample(0, &[frame]);
        assert_eq!(rig.play().0, Verdict::Advance);
    }
    assert_eq!(rig.play().0, Verdict::Stall(StallReason::Window(peer(1))));
    // A wrong prediction becomes known while frames 2 to 4 are still missing; the window opens by one.
    rig.tell(1, &[&[7]]);
    let (verdict, ran) = rig.play();
    assert_eq!((verdict, ran.loads, ran.resimulated), (Verdict::Advance, 1, 4));
    // At the limit again: the correction alone.
    assert_eq!(rig.play().0, Verdict::Stall(StallReason::Window(peer(1))));
    rig.tell_cut(1, 2);
    rig.play();
    rig.check_truth();
}

#[test]
fn the_call_that_learns_of_the_start_begins_nothing_so_that_frame_0_has_its_inputs() {
    let mut rig = Rig::new(config(4, 0), &[0, 1]);
    let slot = Slot::new(0).unwrap();
    assert_eq!(
        rig.session.add_local_input(slot, &[5]),
        Err(SessionError::NotLocalSlot),
        "nothing is known yet"
    );
    assert_eq!(rig.session.begin_frame(rig.now), Ok(Verdict::Stall(StallReason::NotStarted)));
    assert_eq!((rig.session.step_count(), rig.session.stats().stalls), (0, 0));
    rig.session.end_frame(rig.now).unwrap();
    rig.sample(0, &[5]);
    assert_eq!(rig.play().0, Verdict::Advance);
    assert_eq!(rig.session.confirmed_input(slot, Frame::ZERO), Input::new(&[5]));
}

#[test]
fn a_correction_without_a_new_frame_is_a_list_of_its_own() {
    let mut rig = Rig::new(config(2, 0), &[0, 1, 2]);
    rig.tell(1, &[&[1]]);
    rig.tell(2, &[&[1]]);
    (0..3).for_each(|_| assert_eq!(rig.play().0, Verdict::Advance));
    rig.tell(1, &[&[9]]);
    let (verdict, ran) = rig.play();
    assert_eq!((verdict, ran.loads, ran.resimulated), (Verdict::ResimulateOnly, 1, 2));
    let stats = rig.session.stats();
    assert_eq!((stats.stalls, stats.last_stall), (1, Some(StallReason::Window(peer(2)))));
    assert_eq!(stats.peers[2].stalls, 1);
    rig.tell(1, &[&[9]]);
    rig.tell(2, &[&[1], &[1]]);
    (0..1).for_each(|_| assert_eq!(rig.play().0, Verdict::Advance));
}

#[test]
fn lockstep_runs_without_a_stall_when_the_delay_covers_the_way() {
    // 50 ms one way are 3 frames; the other side's input for frame f + 4 leaves it at frame f.
    let mut rig = Rig::new(config(0, 4), &[0, 1]);
    rig.tell(1, &[&[], &[], &[], &[]]);
    for frame in 0..300 {
        if frame >= 3 {
            rig.tell(1, &[&[frame as u8]]);
        }
        rig.sample(0, &[frame as u8]);
        let (verdict, ran) = rig.play();
        assert_eq!((verdict, ran.resimulated), (Verdict::Advance, 0), "frame {frame}");
    }
    rig.check_truth();
}

#[test]
fn lockstep_without_delay_sends_its_input_before_it_waits_for_the_others() {
    let mut rig = Rig::new(config(0, 0), &[0, 1]);
    for frame in 0..5u8 {
        rig.sample(0, &[frame]);
        assert_eq!(rig.play().0, Verdict::Stall(StallReason::Window(peer(1))));
        assert_eq!(rig.truth.inputs[&0].last().unwrap(), &[frame]);
        rig.sample(0, &[99]);
        rig.tell(1, &[&[frame]]);
        assert_eq!(rig.play().0, Verdict::Advance);
    }
    rig.check_truth();
}

#[test]
fn a_delay_change_leaves_no_gap_and_no_double() {
    let mut rig = Rig::new(config(8, 0), &[0, 1]);
    let mut samples = Vec::new();
    for frame in 0..150u8 {
        let target = if frame < 5 {
            0
        } else if frame < 80 {
            4
        } else {
            1
        };
        rig.session.set_input_delay(Slot::default(), target).unwrap();
        rig.tell(1, &[&[0]]);
        rig.sample(0, &[frame]);
        samples.push(frame);
        assert_eq!(rig.play().0, Verdict::Advance);
        assert_eq!(
            rig.truth.inputs[&0].len() as i32,
            rig.session.current().0 + i32::from(rig.session.stats().input_delay[0])
        );
    }
    assert_eq!(rig.session.stats().input_delay[0], 1);
    let stamped: Vec<u8> = rig.truth.inputs[&0].iter().map(|input| input[0]).collect();
    let repeats: Vec<usize> = (1..stamped.len()).filter(|&i| stamped[i] == stamped[i - 1]).collect();
    let drops: Vec<usize> = (1..stamped.len()).filter(|&i| stamped[i] == stamped[i - 1] + 2).collect();
    assert_eq!((repeats.len(), drops.len()), (4, 3), "{stamped:?}");
    assert!(repeats.windows(2).all(|pair| pair[1] - pair[0] >= 15));
    assert!(drops.windows(2).all(|pair| pair[1] - pair[0] >= 14));
    rig.check_truth();
}

#[test]
fn right_predictions_never_cause_a_rollback() {
    let mut rig = Rig::new(config(16, 2), &[0, 1]);
    for frame in 0..600 {
        if frame == 9 {
            rig.news.send(inputs_news(1, Frame(0), 2, &[])).unwrap();
            rig.truth.inputs.insert(1, vec![vec![]; 2]);
        }
        if frame > 9 {
            rig.tell(1, &[&[]]);
        }
        assert_eq!(rig.play().0, Verdict::Advance);
    }
    let stats = rig.session.stats();
    assert_eq!((stats.resimulated_frames, stats.rollbacks, stats.loads), (0, 0, 0));
    assert_eq!(stats.confirmed_lag, 8);
}

#[test]
fn at_60_ms_each_frame_costs_at_most_two_saves_and_one_load() {
    let mut rig = Rig::new(SessionConfig { desync_level: 1, ..config(16, 0) }, &[0, 1]);
    let lists = play_late(&mut rig, 600, 4);
    assert!(lists.iter().all(|(verdict, _)| *verdict == Verdict::Advance));
    let stats = rig.session.stats();
    assert!(stats.saves <= 1200 && stats.loads <= 600, "{stats:?}");
    // The minimum: every frame is corrected once more for each frame that its input is late.
    assert!(stats.resimulated_frames <= 600 * 4 * 102 / 100, "{}", stats.resimulated_frames);
    rig.tell(1, &[&[0], &[0], &[0], &[0], &[0]]);
    rig.play();
    rig.check_truth();
    assert_eq!(
        rig.checksums.keys().copied().collect::<Vec<_>>(),
        (0..10).map(|m| m * 60).collect::<Vec<_>>()
    );
}

#[test]
fn a_match_without_predictions_saves_only_marks() {
    let mut rig = Rig::new(config(16, 0), &[0]);
    (0..300).for_each(|_| assert_eq!(rig.play().0, Verdict::Advance));
    assert_eq!(rig.session.stats().saves, 5);
    rig.check_truth();
}

#[test]
fn an_aborted_list_loses_nothing() {
    let mut rig = Rig::new(config(8, 1), &[0, 1]);
    play_late(&mut rig, 20, 3);
    rig.sample(0, &[77]);
    rig.session.begin_frame(rig.now).unwrap();
    assert!(rig.session.is_list_open());
    assert_eq!(rig.session.add_local_input(Slot::default(), &[1]), Err(SessionError::ListOpen));
    assert_eq!(rig.session.begin_frame(rig.now), Err(SessionError::ListOpen));
    rig.read_commands();
    rig.run(1);
    rig.game = Game { frame: -5, mix: 5 };
    rig.session.abort_frame().unwrap();
    assert_eq!(rig.session.end_frame(rig.now), Err(SessionError::NoListOpen));
    rig.sample(0, &[78]);
    let (verdict, ran) = rig.play();
    assert_eq!((verdict, ran.loads), (Verdict::Advance, 1));
    assert_eq!(rig.truth.inputs[&0][21], [77], "the input that was sent stays");
    rig.tell(1, &[&[0], &[0], &[0], &[0], &[0]]);
    rig.play();
    rig.check_truth();
}

#[test]
fn a_cut_in_the_past_is_rolled_back_to_and_one_in_the_future_is_waited_for() {
    for end in [12, 25] {
        let mut rig = Rig::new(config(16, 0), &[0, 1]);
        for frame in 0..12u8 {
            rig.tell(1, &[&[frame]]);
        }
        (0..20).for_each(|_| assert_eq!(rig.play().0, Verdict::Advance));
        for frame in 12..end as u8 {
            rig.tell(1, &[&[frame]]);
        }
        rig.tell_cut(1, end);
        let (_, ran) = rig.play();
        assert_eq!(ran.resimulated, 8);
        (0..40).for_each(|_| assert_eq!(rig.play().0, Verdict::Advance));
        rig.check_truth();
        let left = SessionEvent::SlotLeft { slot: Slot::new(1).unwrap(), peer: peer(1), frame: Frame(end) };
        assert_eq!(rig.session.next_event(), Some(SessionEvent::Started));
        assert_eq!(rig.session.next_event(), Some(left));
        assert_eq!(rig.session.next_event(), None);
    }
}

#[test]
fn whoever_is_cut_off_confirms_nothing_more() {
    let mut rig = Rig::new(config(8, 0), &[0, 1]);
    play_late(&mut rig, 10, 2);
    let confirmed = rig.session.confirmed_end();
    rig.news.send(SessionNews::CutOff).unwrap();
    rig.tell(1, &[&[1], &[2]]);
    assert_eq!(rig.session.begin_frame(rig.now), Ok(Verdict::Stall(StallReason::CutOff)));
    assert_eq!(rig.session.confirmed_end(), confirmed);
    assert_eq!(rig.session.next_event(), Some(SessionEvent::Started));
    assert_eq!(rig.session.next_event(), Some(SessionEvent::CutOff));
}

#[test]
fn a_pending_cut_is_named_as_the_reason_of_a_stall() {
    let mut rig = Rig::new(config(2, 0), &[0, 1]);
    rig.play();
    rig.play();
    assert_eq!(rig.play().0, Verdict::Stall(StallReason::Window(peer(1))));
    rig.news.send(SessionNews::CutPending { peer: peer(1) }).unwrap();
    assert_eq!(rig.play().0, Verdict::Stall(StallReason::Cut(peer(1))));
    rig.tell_cut(1, 0);
    assert_eq!(rig.play().0, Verdict::Advance);
}

#[test]
fn a_node_that_does_not_read_stalls_the_game_and_loses_no_input() {
    let mut rig = Rig::new(config(8, 0), &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    rig.node_sleeps = true;
    let mut verdicts = Vec::new();
    for frame in 0..400 {
        (0..10).for_each(|slot| rig.sample(slot, &[frame as u8, slot]));
        let verdict = rig.session.begin_frame(rig.now).unwrap();
        verdicts.push(verdict);
        // The truth is not known yet, so the list is run without the check of its inputs.
        for i in 0..rig.session.step_count() {
            let step = *rig.session.step(i).unwrap();
            if step.kind == StepKind::Advance {
                let (bytes, sizes) = rig.session.inputs(i);
                rig.game.advance(bytes, sizes, 0);
            } else {
                rig.save(i, &step);
            }
        }
        rig.session.end_frame(rig.now).unwrap();
    }
    assert_eq!(verdicts.last(), Some(&Verdict::Stall(StallReason::Window(peer(0)))));
    rig.node_sleeps = false;
    rig.read_commands();
    rig.play_times(4);
    rig.check_truth();
}

#[test]
fn a_peer_without_slots_takes_inputs_from_far_ahead() {
    let mut rig = Rig::new(config(8, 0), &[1, 2]);
    // Slot 0 comes as one long run, slot 1 leaves behind it in the queue.
    rig.news.send(inputs_news(0, Frame(0), 900, &[3])).unwrap();
    rig.truth.inputs.insert(0, vec![vec![3]; 900]);
    for frame in 0..500 {
        rig.tell(1, &[&[frame as u8]]);
    }
    rig.tell_cut(1, 500);
    (0..900).for_each(|frame| assert_eq!(rig.play().0, Verdict::Advance, "frame {frame}"));
    assert_eq!(rig.session.stats().resimulated_frames, 0);
    rig.check_truth();
}

#[test]
fn a_closed_node_is_told() {
    let mut rig = Rig::new(config(8, 0), &[0, 1]);
    rig.play();
    let (mesh, node) = bridge::open(Arc::new(|| {}));
    drop(mesh);
    rig.node = node;
    rig.node_sleeps = true;
    rig.session.begin_frame(rig.now).unwrap();
    rig.run(rig.session.step_count());
    rig.session.end_frame(rig.now).unwrap();
    assert_eq!(rig.session.begin_frame(rig.now), Err(SessionError::Closed));
}

#[test]
fn refused_calls_leave_the_session_as_it_was() {
    let mut rig = Rig::new(config(8, 0), &[0, 1]);
    let us = Slot::default();
    assert_eq!(rig.session.add_local_input(us, &[1]), Err(SessionError::NotLocalSlot), "not begun");
    assert_eq!(rig.session.end_frame(rig.now), Err(SessionError::NoListOpen));
    rig.play();
    assert_eq!(rig.session.add_local_input(us, &[1, 2, 3]), Err(SessionError::InputTooLong));
    assert_eq!(rig.session.add_local_input(Slot::new(1).unwrap(), &[1]), Err(SessionError::NotLocalSlot));
    assert_eq!(rig.session.set_input_delay(us, 33), Err(SessionError::BadDelay));
    rig.session.begin_frame(rig.now).unwrap();
    rig.read_commands();
    assert_eq!(rig.session.set_saved(9, 0, None), Err(SessionError::NoSuchStep));
    assert_eq!(rig.session.set_saved(0, 13, None), Err(SessionError::StateTooLarge));
    assert_eq!(rig.session.grow_state(0, MAX_STATE + 1), Err(SessionError::StateTooLarge));
    rig.run(rig.session.step_count());
    rig.session.end_frame(rig.now).unwrap();
    rig.tell(1, &[&[], &[]]);
    rig.play();
}

#[test]
fn a_session_without_a_mesh_begins_at_once() {
    let valid = ValidSessionConfig::try_from(SessionConfig { local_slots: 3, ..config(8, 2) }).unwrap();
    let now = Instant::from_millis(500);
    let mut session = Session::new(valid, None, now);
    assert_eq!(session.local_slots().len(), 3);
    assert_eq!(session.frames_due(now).0, 1);
    session.add_local_input(Slot::default(), &[5]).unwrap();
    let mut used = Vec::new();
    for _ in 0..200 {
        assert_eq!(session.begin_frame(now), Ok(Verdict::Advance));
        for i in 0..session.step_count() {
            let step = *session.step(i).unwrap();
            if step.kind == StepKind::Advance {
                assert!(step.confirmed && !step.resimulating);
                assert_eq!(step.slot_status, 0x4444_4444_4444_4000);
                used.push(session.inputs(i).0[0]);
            }
        }
        session.end_frame(now).unwrap();
    }
    assert_eq!(used[..4], [0, 0, 5, 5]);
}
