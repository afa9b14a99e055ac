//! T20: a game thread that sleeps through a level load keeps its place: over real sockets its network goes on, the others
//! are told that the game stalls, nobody is dropped, and the match goes on when it wakes.
//!
//! Fed by: two meshes on the IO thread, each game on a thread of its own. Never: waits for a time to pass but in the nap
//! itself; every other wait is for something to happen.
#![cfg(feature = "io")]
#![expect(clippy::disallowed_methods, reason = "a real thread sleeps in real time here")]

use parking_lot::Mutex;
use retick::base::{Addr, Frame, Instant, PeerIndex};
use retick::bridge::{Command, MeshNews, MeshPort};
use retick::config::{MeshConfig, RoomKey, SessionConfig, ValidSessionConfig};
use retick::io::{self, BindConfig, ThreadedMesh};
use retick::session::{Session, SessionEvent, StepKind};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Twice as long as it takes to be dropped for silence.
const NAP: Duration = Duration::from_secs(3);
const CUT_AFTER_MS: u32 = 1_500;
/// The others know within this time; a machine that is busy with other things gets a few more naps to show it.
const TOLD_WITHIN: Duration = Duration::from_millis(250);
const SHORT_NAP: Duration = Duration::from_millis(600);
const NAPS: usize = 6;
/// Whatever is waited for has happened by then.
const DEADLINE: Duration = Duration::from_mins(1);

#[test]
#[expect(clippy::print_stderr, reason = "the times are for people to read")]
fn t20_a_game_thread_that_sleeps_is_told_as_stalled_and_drops_nobody() {
    let shared = Shared::default();
    let host = open();
    let address = Addr::ip(host.handle.local_addrs().v4.expect("loopback"));
    let (watcher, sleeper) = thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            let _stops = StopsAll(&shared);
            let mut peer = Peer::new(open(), &shared, |port| {
                let room = shared.wait(|| *shared.room.lock());
                port.send(Command::Join { address, room }).expect("room in the queue");
            });
            peer.nap_and_catch_up(&shared);
            peer
        });
        let _stops = StopsAll(&shared);
        let mut peer = Peer::new(host, &shared, |port| port.send(Command::Host).expect("room in the queue"));
        peer.watch(&shared);
        (peer, sleeper.join().expect("the sleeper failed; see above"))
    });
    eprintln!("told after {:?}, {} naps", watcher.told_after, shared.naps.load(SeqCst));
    let told = watcher.told_after.iter().min().expect("it was told");
    assert!(*told <= TOLD_WITHIN, "told after {:?}", watcher.told_after);
    for peer in [&watcher, &sleeper] {
        assert!(peer.stalls > 0 || peer.us != watcher.us, "who watches had to wait");
        assert!(peer.session.confirmed_end() > Frame(180), "the time of the nap was played");
    }
    let mark = Frame((watcher.session.confirmed_end().min(sleeper.session.confirmed_end()).0 - 30) / 60 * 60);
    let digests = [&watcher, &sleeper].map(|peer| peer.session.confirmed_checksum(mark));
    assert!(digests[0].is_some() && digests[0] == digests[1], "frame {mark}: {digests:?}");
    drop((watcher, sleeper));
    io::shutdown();
}

/// What the two threads tell each other, outside of what is tested.
#[derive(Default)]
struct Shared {
    room: Mutex<Option<RoomKey>>,
    /// When the sleeper last called in, while it sleeps.
    asleep_since: Mutex<Option<Instant>>,
    naps: AtomicU32,
    told_in_time: AtomicBool,
    caught_up: AtomicU32,
    failed: AtomicBool,
}

impl Shared {
    fn wait<T>(&self, mut ready: impl FnMut() -> Option<T>) -> T {
        let begun = io::now();
        loop {
            if let Some(value) = ready() {
                return value;
            }
            assert!(!self.failed.load(SeqCst), "the other thread failed");
            assert!(io::now().since(begun) < DEADLINE, "it does not come");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

struct StopsAll<'a>(&'a Shared);

impl Drop for StopsAll<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.failed.store(true, SeqCst);
        }
    }
}

fn open() -> ThreadedMesh {
    let config = MeshConfig { suspect_ms: 1_000, cut_after_ms: CUT_AFTER_MS, ..MeshConfig::default() };
    let bind = BindConfig { port: 0, address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)) };
    io::open_threaded(config.try_into().expect("it makes sense"), bind).expect("a socket on loopback")
}

struct Peer {
    mesh: ThreadedMesh,
    session: Session,
    us: PeerIndex,
    state: [u8; 8],
    stalls: u32,
    told_after: Vec<Duration>,
    resumed: u32,
}

impl Peer {
    /// A peer in a match that begins as soon as both are ready.
    fn new(mesh: ThreadedMesh, shared: &Shared, enter: impl FnOnce(&MeshPort)) -> Self {
        enter(&mesh.port);
        let us = shared.wait(|| match mesh.port.next_news() {
            Some(MeshNews::Joined { us, room }) => {
                *shared.room.lock() = Some(room);
                Some(us)
            }
            _ => None,
        });
        let config = ValidSessionConfig::try_from(SessionConfig::default()).expect("the defaults make sense");
        let port = mesh.port.open_session(config.settings).expect("room in the queue");
        mesh.port.send(Command::SetReady { local_slots: 1 }).expect("room in the queue");
        if us == PeerIndex::default() {
            shared.wait(|| {
                let news = mesh.port.next_news()?;
                matches!(news, MeshNews::PeerReady { peer, .. } if peer != us).then_some(())
            });
            mesh.port.send(Command::Start { countdown_ms: 200 }).expect("room in the queue");
        }
        let session = Session::new(config, Some(port), io::now());
        Self { mesh, session, us, state: [0; 8], stalls: 0, told_after: Vec::new(), resumed: 0 }
    }

    /// Plays until something holds.
    fn play_until(&mut self, shared: &Shared, mut done: impl FnMut(&Self) -> bool) {
        shared.wait(|| {
            let (due, _) = self.session.frames_due(io::now());
            (0..due).for_each(|_| self.frame());
            self.take_news(shared);
            done(self).then_some(())
        });
    }

    fn frame(&mut self) {
        for slot in self.session.local_slots() {
            let input = (self.session.current().0 / 7).to_le_bytes();
            self.session.add_local_input(slot, &input).expect("it is ours");
        }
        self.session.begin_frame(io::now()).expect("no list is open");
        for index in 0..self.session.step_count() {
            let kind = self.session.step(index).expect("counted").kind;
            match kind {
                StepKind::Save => {
                    self.session.state(index).expect("a buffer")[..8].copy_from_slice(&self.state);
                    self.session.set_saved(index, 8, None).expect("a save");
                }
                StepKind::Load => {
                    self.state.copy_from_slice(&self.session.state(index).expect("a buffer")[..8]);
                }
                StepKind::Advance => {
                    let mut all = self.state.to_vec();
                    all.extend_from_slice(self.session.inputs(index).0);
                    self.state = retick::kit::hash::digest(&all).to_le_bytes();
                }
            }
        }
        self.session.end_frame(io::now()).expect("a list is open");
        self.stalls += u32::from(self.session.stats().is_stalled);
    }

    fn take_news(&mut self, shared: &Shared) {
        while let Some(news) = self.mesh.port.next_news() {
            match news {
                MeshNews::Left { .. } | MeshNews::Interrupted { .. } => {
                    panic!("peer {}: {news:?}", self.us)
                }
                MeshNews::GameStalled { .. } => {
                    if let Some(since) = *shared.asleep_since.lock() {
                        let after = io::now().since(since);
                        self.told_after.push(after);
                        shared.told_in_time.fetch_or(after <= TOLD_WITHIN, SeqCst);
                    }
                }
                MeshNews::GameResumed { .. } => self.resumed += 1,
                _ => {}
            }
        }
        while let Some(event) = self.session.next_event() {
            assert_eq!(event, SessionEvent::Started, "peer {}", self.us);
        }
    }

    fn is_on_time(&self) -> bool {
        self.session.stats().frames_ahead > -3.0
    }

    fn nap_and_catch_up(&mut self, shared: &Shared) {
        for nap in [NAP].into_iter().chain([SHORT_NAP; NAPS - 1]) {
            let from = self.session.current();
            self.play_until(shared, |peer| peer.session.confirmed_end() > from + 60 && peer.is_on_time());
            if shared.told_in_time.load(SeqCst) {
                break;
            }
            shared.naps.fetch_add(1, SeqCst);
            *shared.asleep_since.lock() = Some(io::now());
            thread::sleep(nap);
            *shared.asleep_since.lock() = None;
        }
        self.end(shared);
    }

    fn watch(&mut self, shared: &Shared) {
        self.play_until(shared, |_| shared.caught_up.load(SeqCst) == 1);
        self.play_until(shared, |peer| peer.resumed > 0 && peer.is_on_time());
        self.end(shared);
    }

    /// Nobody leaves before both have seen what they wait for.
    fn end(&mut self, shared: &Shared) {
        shared.caught_up.fetch_add(1, SeqCst);
        self.play_until(shared, |_| shared.caught_up.load(SeqCst) == 2);
    }
}
