//! What a frame costs on the game thread: no heap allocation in steady play, rollbacks included, and (printed, never
//! asserted) its time.
//!
//! The test is the node: it hands nine remote slots' inputs over 60 ms late, and reads the commands. It needs its own
//! allocator, so it runs without the C edge, which has one: `cargo test --no-default-features --features ring --test session_frame`.
#![cfg(not(feature = "ffi"))]

use retick::base::{Frame, Input, Instant, PeerIndex, Slot};
use retick::bridge::{self, Command, NewsPort, NodePort, SessionNews, StartInfo};
use retick::config::{SessionConfig, ValidSessionConfig};
use retick::session::{Session, StepKind};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending counts nothing.
    let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
}

// SAFETY: every call is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const LATE: i32 = 4;
const SLOTS: u8 = 10;

struct Match {
    session: Session,
    node: NodePort,
    news: NewsPort,
    _mesh: bridge::MeshPort,
    frame: i32,
}

impl Match {
    fn new(desync_level: u32) -> Self {
        let config =
            SessionConfig { desync_level, input_delay: 0, state_capacity: 256, ..SessionConfig::default() };
        let valid = ValidSessionConfig::try_from(config).expect("the defaults make sense");
        let (mesh, node) = bridge::open(Arc::new(|| {}));
        let port = mesh.open_session(valid.settings).expect("the queue is empty");
        let Ok(Command::OpenSession { port: news, .. }) = node.next_command() else { panic!("no port came") };
        let mut slots = [None; 16];
        slots.iter_mut().zip(0..SLOTS).for_each(|(slot, owner)| *slot = PeerIndex::new(owner));
        let start = StartInfo { seed: 0, slots, us: PeerIndex::default(), frame0_at: Instant::ZERO };
        news.send(SessionNews::Start(start)).expect("the session lives");
        let session = Session::new(valid, Some(port), Instant::ZERO);
        Self { session, node, news, _mesh: mesh, frame: 0 }
    }

    fn tell(&mut self) {
        let first = self.frame - LATE;
        for slot in (1..SLOTS).filter(|_| first >= 0).filter_map(Slot::new) {
            let input = Input::new(&[first as u8, slot.get(), 1, 2]).expect("four bytes");
            let news = SessionNews::Inputs { slot, first: Frame(first), count: 1, input };
            self.news.send(news).expect("the session lives");
        }
    }

    fn play(&mut self) {
        let now = Instant(self.frame as u64 * 16_667);
        self.session.frames_due(now);
        self.session.add_local_input(Slot::default(), &[self.frame as u8]).expect("slot 0 is ours");
        self.session.begin_frame(now).expect("no list is open");
        for i in 0..self.session.step_count() {
            let step = *self.session.step(i).expect("a step of the list");
            if step.kind == StepKind::Save {
                self.session.set_saved(i, 64, None).expect("a save step");
            }
        }
        self.session.end_frame(now).expect("a list is open");
        self.frame += 1;
    }

    fn read(&mut self) {
        while self.node.next_command().is_ok() {}
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "the time is for people to read")]
fn a_frame_in_steady_play_allocates_nothing_and_its_time_is_printed() {
    for level in [1, 2] {
        let mut played = Match::new(level);
        let (mut before, mut spent) = (0, std::time::Duration::ZERO);
        let frames = 3000;
        for frame in 0..frames + 300 {
            if frame == 300 {
                before = ALLOCATIONS.get();
                spent = std::time::Duration::ZERO;
            }
            played.tell();
            let from = std::time::Instant::now();
            played.play();
            spent += from.elapsed();
            played.read();
        }
        assert_eq!(ALLOCATIONS.get() - before, 0, "level {level}");
        let stats = played.session.stats();
        assert!(stats.rollbacks > 3000 && stats.resimulated_frames > 12_000, "{stats:?}");
        eprintln!("level {level}: {:.2} µs per frame", spent.as_secs_f64() * 1e6 / f64::from(frames));
        let control = Box::new(level);
        assert!(ALLOCATIONS.get() > before, "the counter counts {control}");
    }
}
