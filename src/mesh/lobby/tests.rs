//! The lobby over a network without delay: line-ups, refusals, departures, rematches.

use super::*;
use std::collections::BTreeMap;

fn identity(n: u8) -> Identity {
    Identity { noise: [n; 32], sign: [n; 32] }
}

fn addr(n: u8) -> Addr {
    Addr::opaque(&[n + 1]).expect("short")
}

fn peer(n: u8) -> PeerIndex {
    PeerIndex::new(n).expect("small")
}

/// `n` lobbies whose messages arrive at once; returns everything that is news.
struct World {
    lobbies: BTreeMap<PeerIndex, Lobby>,
    news: Vec<(PeerIndex, Output)>,
}

impl World {
    fn new(n: u8) -> Self {
        let mut host = Lobby::new(identity(0), 4);
        host.host();
        let mut world = Self { lobbies: BTreeMap::from([(peer(0), host)]), news: Vec::new() };
        for i in 1..n {
            let host = world.lobbies.get_mut(&peer(0)).expect("host");
            let place = host.place_for_guest().expect("room");
            host.admit(place, identity(i), addr(i), Vec::new());
            world.lobbies.insert(place, Lobby::new(identity(i), 4));
            world.settle();
        }
        world
    }

    fn settle(&mut self) {
        loop {
            let mut sent = Vec::new();
            for (&us, lobby) in &mut self.lobbies {
                lobby.advance(Instant::from_millis(1000), 77);
                while let Some(output) = lobby.poll_output() {
                    match output {
                        Output::Send(to, control) => sent.push((us, to, control)),
                        other => self.news.push((us, other)),
                    }
                }
            }
            if sent.is_empty() {
                break;
            }
            for (from, to, control) in sent {
                let Some(lobby) = self.lobbies.get_mut(&to) else { continue };
                if let Control::Admit { you, us, started_attempt, .. } = control {
                    lobby.handle_admit(started_attempt, peer(you), peer(us), identity(us), addr(us));
                } else {
                    lobby.handle_control(from, control);
                }
            }
            self.pair();
        }
    }

    fn pair(&mut self) {
        let all: Vec<_> = self.lobbies.keys().copied().collect();
        for (us, lobby) in &mut self.lobbies {
            for other in
                all.iter().filter(|o| *o != us && lobby.members().contains(**o)).copied().collect::<Vec<_>>()
            {
                lobby.handle_paired(other);
            }
        }
    }

    fn each(&mut self, mut call: impl FnMut(&mut Lobby)) {
        self.lobbies.values_mut().for_each(&mut call);
        self.settle();
    }

    fn starts(&self) -> Vec<Start> {
        self.news.iter().filter_map(|(_, o)| if let Output::Start(s) = o { Some(*s) } else { None }).collect()
    }
}

#[test]
fn all_start_with_one_line_up_once_everybody_is_ready_and_in_step() {
    let mut world = World::new(4);
    world.each(|l| l.set_settings(5));
    world.each(|l| l.set_ready(2));
    world.lobbies.get_mut(&peer(0)).expect("host").want_start(Duration::from_secs(3));
    world.settle();
    assert_eq!(world.starts(), [], "nobody's clock is in step");
    world.each(|l| l.set_clock_synced(true));
    let starts = world.starts();
    assert_eq!(starts.len(), 4);
    assert!(starts.iter().all(|s| *s == starts[0]));
    assert_eq!(starts[0].frame0_at, Instant::from_millis(4000));
    assert_eq!(starts[0].slots.iter().flatten().count(), 8);
    assert_eq!(world.lobbies[&peer(0)].place_for_guest(), Err(NoPlace::Started));
}

#[test]
fn different_settings_are_named_at_both_ends_and_nothing_starts() {
    let mut world = World::new(2);
    world.each(|l| l.set_settings(5));
    world.lobbies.get_mut(&peer(1)).expect("guest").set_settings(6);
    world.each(|l| l.set_ready(1));
    world.each(|l| l.set_clock_synced(true));
    world.lobbies.get_mut(&peer(0)).expect("host").want_start(Duration::ZERO);
    world.settle();
    assert_eq!(world.starts(), []);
    assert!(world.news.contains(&(peer(0), Output::SettingsDiffer(peer(1), 5, 6))));
    assert!(world.news.contains(&(peer(1), Output::SettingsDiffer(peer(1), 5, 6))));
}

#[test]
fn a_rematch_that_is_wanted_before_all_have_left_the_match_begins_when_they_have() {
    let mut world = World::new(2);
    world.each(|l| l.set_settings(5));
    world.each(|l| l.set_ready(1));
    world.each(|l| l.set_clock_synced(true));
    world.lobbies.get_mut(&peer(0)).expect("host").want_start(Duration::ZERO);
    world.settle();
    assert_eq!(world.starts().len(), 2);
    // While it plays, a member answers nothing: so it is here until its match ends.
    let guest = world.lobbies.get_mut(&peer(1)).expect("guest");
    guest.set_clock_synced(false);
    let host = world.lobbies.get_mut(&peer(0)).expect("host");
    host.end_match();
    host.set_settings(5);
    host.set_ready(1);
    host.want_start(Duration::ZERO);
    world.settle();
    let guest = world.lobbies.get_mut(&peer(1)).expect("guest");
    guest.end_match();
    guest.set_clock_synced(true);
    world.settle();
    assert_eq!(world.starts().len(), 2, "it is not ready");
    let guest = world.lobbies.get_mut(&peer(1)).expect("guest");
    guest.set_settings(5);
    guest.set_ready(1);
    world.settle();
    assert_eq!(world.starts().len(), 4);
}

#[test]
fn a_guest_never_gets_a_place_before_the_coordinator() {
    let mut world = World::new(3);
    world.lobbies.remove(&peer(0));
    world.each(|l| l.remove(peer(0)));
    let next = world.lobbies.get_mut(&peer(1)).expect("next");
    assert!(next.is_coordinator());
    assert_eq!(next.place_for_guest(), Ok(peer(3)));
    next.admit(peer(3), identity(3), addr(3), Vec::new());
    assert_eq!(next.place_for_guest(), Ok(peer(4)), "the place of who left is free, not its number");
}

#[test]
fn who_takes_the_place_of_a_member_that_left_unnoticed_is_introduced() {
    let mut world = World::new(3);
    // The others cut member 2 in a match that member 1 was no longer in.
    world.lobbies.get_mut(&peer(0)).expect("host").forget(peer(2));
    let host = world.lobbies.get_mut(&peer(0)).expect("host");
    assert_eq!(host.place_for_guest(), Ok(peer(2)));
    host.admit(peer(2), identity(9), addr(9), Vec::new());
    world.news.clear();
    world.settle();
    let told: Vec<_> = world.news.iter().filter(|(us, _)| *us == peer(1)).map(|(_, o)| o).collect();
    assert!(
        matches!(
            told[..],
            [Output::Removed(_), Output::Introduce { identity: Identity { noise: [9, ..], .. }, .. }]
        ),
        "{told:?}"
    );
}

#[test]
fn a_full_room_has_no_place() {
    let world = World::new(4);
    assert_eq!(world.lobbies[&peer(0)].place_for_guest(), Err(NoPlace::Full));
    assert_eq!(world.lobbies[&peer(1)].place_for_guest(), Err(NoPlace::NotCoordinator));
}
