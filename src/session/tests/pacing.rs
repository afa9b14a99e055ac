//! When frames are due by the mesh clock.

use super::*;

/// Calls `frames_due` as a game of 60 pictures a second would, and plays what is due; says how many at each call.
fn run(rig: &mut Rig, calls: usize, mut picture_us: impl FnMut(usize) -> u64) -> Vec<u32> {
    (0..calls)
        .map(|call| {
            let (frames, alpha) = rig.session.frames_due(rig.now);
            assert!((0.0..=1.0).contains(&alpha));
            let at = rig.now;
            rig.play_times(frames as i32);
            rig.now = at + std::time::Duration::from_micros(picture_us(call));
            frames
        })
        .collect()
}

#[test]
fn ten_frames_late_is_repaid_with_at_most_two_extra_frames_a_call() {
    let mut rig = Rig::new(config(16, 0), &[0]);
    rig.now = Instant(10 * FRAME_US + 3_000);
    let due = run(&mut rig, 120, |_| FRAME_US);
    assert!(due.iter().all(|&frames| (1..=3).contains(&frames)), "{due:?}");
    assert_eq!(due.iter().map(|frames| frames - 1).sum::<u32>(), 10, "exactly what was missed");
    assert!(due[6..].iter().all(|&frames| frames == 1), "{due:?}");
    assert!(rig.session.stats().frames_ahead.abs() <= 0.5);
}

#[test]
fn seconds_late_still_gives_three_frames_a_call() {
    let mut rig = Rig::new(config(16, 0), &[0]);
    rig.now = Instant::from_millis(30_000);
    assert!(run(&mut rig, 50, |_| FRAME_US).iter().all(|&frames| frames == 3));
    assert!(rig.session.stats().frames_ahead < -1000.0);
}

#[test]
fn nothing_is_due_ahead_of_the_schedule_or_before_the_start() {
    let mut rig = Rig::new(config(16, 0), &[0]);
    rig.play();
    rig.play();
    rig.play();
    rig.now = Instant(FRAME_US + 100);
    assert_eq!(rig.session.frames_due(rig.now).0, 0);
    assert_eq!(rig.session.frames_due(Instant(3 * FRAME_US)).0, 1);

    let (mesh, node) = bridge::open(Arc::new(|| {}));
    let valid = ValidSessionConfig::try_from(config(16, 0)).unwrap();
    let port = mesh.open_session(valid.settings).unwrap();
    let mut early = Session::new(valid, Some(port), Instant::ZERO);
    assert_eq!(early.frames_due(Instant::from_millis(900)), (0, 0.0));
    assert_eq!(early.begin_frame(Instant::ZERO), Ok(Verdict::Stall(StallReason::NotStarted)));
    drop(node);
}

#[test]
fn the_schedule_follows_the_mesh_clock_and_jittered_calls_never_double_a_frame() {
    let mut rig = Rig::new(config(16, 0), &[0]);
    let ahead_1s =
        ClockModel { local_at: Instant::ZERO, mesh_at: Instant::from_millis(1000), rate_ppb: 5_000_000 };
    rig.news.send(SessionNews::Clock(ahead_1s)).unwrap();
    run(&mut rig, 60, |_| FRAME_US);
    // A clock that is 0.5 % fast: one extra frame in 200, and never two at once.
    let mut rng = Rng::new(3);
    let due = run(&mut rig, 2000, |_| FRAME_US - 1500 + rng.below(3000));
    let frames: u32 = due.iter().sum();
    assert!((2005..=2015).contains(&frames), "{frames}");
    let doubled = due.iter().filter(|&&frames| frames > 1).count();
    assert!(doubled <= 30, "{doubled}");
}
