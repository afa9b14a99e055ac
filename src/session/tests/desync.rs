//! A wrong state is found, and nothing else is.

use super::*;

fn tell_digest(rig: &Rig, from: u8, frame: i32, value: u64) {
    rig.news.send(SessionNews::Checksum { peer: peer(from), frame: Frame(frame), value }).unwrap();
}

fn desyncs(rig: &mut Rig) -> Vec<(u8, i32)> {
    std::iter::from_fn(|| rig.session.next_event())
        .filter_map(|event| match event {
            SessionEvent::Desync { peer, frame, .. } => Some((peer.get(), frame.0)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_differing_mark_is_reported_once_whoever_is_first() {
    for level in [1, 2] {
        let mut rig = Rig::new(SessionConfig { desync_level: level, ..config(8, 0) }, &[0, 1, 2]);
        // Peer 1 is ahead of us: its digest of frame 60 comes before ours is final; it is wrong.
        tell_digest(&rig, 1, 60, 1234);
        for frame in 0..70u8 {
            rig.tell(1, &[&[frame]]);
            rig.tell(2, &[&[frame]]);
            rig.play();
        }
        assert_eq!(desyncs(&mut rig), [(1, 60)]);
        // Peer 2 is behind: right for 0, wrong for 60.
        let ours = rig.session.confirmed_checksum(Frame(0)).unwrap();
        assert_eq!(rig.checksums[&0], ours);
        tell_digest(&rig, 2, 0, ours);
        tell_digest(&rig, 2, 60, 99);
        tell_digest(&rig, 2, 60, 99);
        tell_digest(&rig, 1, 60, 1234);
        rig.play();
        assert_eq!(desyncs(&mut rig), [(2, 60)]);
        assert_eq!(rig.session.stats().desyncs, 2);
        assert_eq!(rig.session.confirmed_checksum(Frame(31)).is_some(), level == 2);
        rig.tell(1, &[&[0], &[0]]);
        rig.tell(2, &[&[0], &[0]]);
        rig.play();
        rig.check_truth();
    }
}

#[test]
fn a_mark_that_was_predicted_wrongly_is_digested_after_its_correction() {
    for (level, late) in [(1, 3), (1, 8), (2, 3), (2, 8)] {
        let mut rig = Rig::new(SessionConfig { desync_level: level, ..config(8, 0) }, &[0, 1]);
        for frame in 0..200 {
            if frame >= late {
                rig.tell(1, &[&[frame as u8]]);
            }
            rig.play();
            assert!(rig.checksums.keys().all(|&mark| mark <= rig.session.confirmed_end().0));
        }
        for _ in 0..=late {
            rig.tell(1, &[&[0]]);
        }
        rig.play();
        rig.play();
        assert_eq!(rig.checksums.len(), 4, "level {level}");
        rig.tell(1, &[&[0]]);
        rig.tell(1, &[&[0]]);
        rig.play();
        rig.check_truth();
    }
}

#[test]
fn level_2_keeps_the_digests_of_the_last_600_frames() {
    let mut rig = Rig::new(SessionConfig { desync_level: 2, ..config(8, 0) }, &[0]);
    rig.play_times(1300);
    let kept: Vec<i32> = (0..1300).filter(|&f| rig.session.confirmed_checksum(Frame(f)).is_some()).collect();
    assert_eq!(kept, (700..1300).collect::<Vec<_>>());
    rig.check_truth();
}

#[test]
fn without_a_checksum_of_the_game_numbered_slots_send_none() {
    let config = SessionConfig { state_mode: StateMode::Slots, ..config(8, 0) };
    let mut session = Session::new(ValidSessionConfig::try_from(config).unwrap(), None, Instant::ZERO);
    for _ in 0..70 {
        session.begin_frame(Instant::ZERO).unwrap();
        session.end_frame(Instant::ZERO).unwrap();
    }
    assert_eq!(session.confirmed_checksum(Frame(60)), None);
}
