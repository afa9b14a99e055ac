//! B14: inputs come in on one thread at random instants while the game advances on another, and none is ever lost,
//! zeroed or moved between its reading and its use.
//!
//! Each peer has its node on one thread and its session on another; datagrams go through queues in memory and are lost,
//! doubled and reordered. An input is a function of its slot and frame, so every peer knows what the others handed in:
//! whatever is confirmed, handed to the game as confirmed, or digested must be that.
//! `RETICK_FULL=1` (in release, `--test-threads=1`) plays ten million frames with two peers and one million in every other
//! match: a quarter of an hour on two busy cores. `cargo xtask test --only threads` runs the usual ones under a thread
//! sanitizer.
#![expect(clippy::disallowed_methods, reason = "the threads are what is tested; their clock is handed in")]

use crossbeam_channel::{Receiver, Sender, bounded, select};
use parking_lot::Mutex;
use retick::base::{Addr, Frame, Input, Instant, PeerIndex, Rng, Slot};
use retick::bridge::{self, Command, MeshNews, MeshPort};
use retick::config::{MeshConfig, RoomKey, SessionConfig, ValidSessionConfig};
use retick::kit::hash;
use retick::netem::{Link, Netem};
use retick::node::{Node, Output};
use retick::session::{Session, SessionEvent, Step, StepKind, Verdict};
use std::collections::VecDeque;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const INPUT_MAX: usize = 8;
const STATE_SIZE: usize = 64;
const MARK_EVERY: i32 = 60;
/// Once the match runs, its time passes so much faster than real time that the timers of the node come in the way often.
const TIME_SCALE: u64 = 16;
/// No peer gets on for so long: something hangs. Generous, since other programs share the machine.
const HANGS_AFTER: Duration = Duration::from_mins(1);

#[test]
fn b14_two_peers_confirm_what_was_handed_in_while_inputs_come_at_random_instants() {
    Match { peers: 2, window: 16, frames: frames(60_000, 10_000_000), seed: 1 }.play();
}

#[test]
fn b14_three_peers_confirm_what_was_handed_in_in_a_small_window() {
    Match { peers: 3, window: 4, frames: frames(20_000, 1_000_000), seed: 2 }.play();
}

#[test]
fn b14_four_peers_confirm_what_was_handed_in_in_the_largest_window() {
    Match { peers: 4, window: 64, frames: frames(20_000, 1_000_000), seed: 3 }.play();
}

#[test]
fn b14_two_peers_in_lockstep_confirm_what_was_handed_in() {
    Match { peers: 2, window: 0, frames: frames(10_000, 1_000_000), seed: 4 }.play();
}

fn frames(usual: i32, full: i32) -> i32 {
    if std::env::var_os("RETICK_FULL").is_some() { full } else { usual }
}

/// What an owner hands in: never empty and never zeros; sometimes the same for several frames, sometimes of another size.
fn input_of(slot: Slot, frame: Frame) -> Input {
    let run = if slot.get().is_multiple_of(2) { 1 } else { 5 };
    let key = u64::from(slot.get()) << 32 | (frame.0 / run) as u64;
    let bytes = (hash::digest(&key.to_le_bytes()) | 0x0101_0101_0101_0101).to_le_bytes();
    let size = if frame.0 % 1000 < 500 { INPUT_MAX } else { 1 + usize::from(bytes[0]) % INPUT_MAX };
    Input::new(&bytes[..size]).expect("at most eight bytes")
}

/// What the slot of this owner must be confirmed as: nothing before the first input takes effect.
fn wanted(slot: Slot, owner: PeerIndex, frame: Frame) -> Input {
    if frame.0 < delay_of(owner) { Input::EMPTY } else { input_of(slot, frame) }
}

fn delay_of(peer: PeerIndex) -> i32 {
    1 + peer.index() as i32
}

fn slots_of(peer: PeerIndex) -> u8 {
    1 + peer.get() % 2
}

struct Match {
    peers: usize,
    window: u32,
    frames: i32,
    seed: u64,
}

/// What the threads of a match share; nothing of it takes part in what is tested.
struct World {
    peers: usize,
    begun: std::time::Instant,
    /// Not one of the standard library's locks: a thread sanitizer sees through those only where it was built with it.
    room: Mutex<Option<RoomKey>>,
    started: AtomicUsize,
    /// Real time, in µs, from when on time passes faster: an hour away until all have started.
    fast_from: AtomicU64,
    done: AtomicUsize,
    stop: AtomicBool,
}

impl World {
    /// Every peer has a clock of its own.
    fn now(&self, place: usize) -> Instant {
        let real = self.begun.elapsed().as_micros() as u64;
        let fast = real.saturating_sub(self.fast_from.load(Ordering::Relaxed));
        Instant(real + fast * (TIME_SCALE - 1) + place as u64 * 7_654_321)
    }

    /// A handshake ends after five seconds and a start needs a good clock: only then may time pass faster.
    fn note_started(&self) {
        if self.started.fetch_add(1, Ordering::Relaxed) + 1 == self.peers {
            self.fast_from.store(self.begun.elapsed().as_micros() as u64, Ordering::Relaxed);
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.done.load(Ordering::Relaxed) == self.peers
    }
}

/// A thread that fails ends the others.
struct StopsAll<'a>(&'a World);

impl Drop for StopsAll<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop.store(true, Ordering::Relaxed);
        }
    }
}

struct Packet {
    from: Addr,
    bytes: Vec<u8>,
}

fn address(place: u32) -> Addr {
    Addr::opaque(&[b'a' + place as u8]).expect("one byte")
}

impl Match {
    #[expect(clippy::print_stderr, reason = "the time is for people to read")]
    fn play(&self) {
        let world = World {
            peers: self.peers,
            begun: std::time::Instant::now(),
            room: Mutex::new(None),
            started: AtomicUsize::new(0),
            fast_from: AtomicU64::new(3_600_000_000),
            done: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        };
        let (outboxes, inboxes): (Vec<_>, Vec<_>) = (0..self.peers).map(|_| bounded(1024)).unzip();
        let played: Vec<Game> = thread::scope(|scope| {
            let games: Vec<_> = inboxes
                .into_iter()
                .enumerate()
                .map(|(place, inbox)| {
                    let (bell, called) = bounded(1);
                    let waker = Arc::new(move || {
                        // A full one has rung already.
                        let _ = bell.try_send(());
                    });
                    let (port, node_port) = bridge::open(waker);
                    let config = MeshConfig { local_address: Some(address(place as u32)), ..untiring() };
                    let rng = Rng::new(self.seed << 8 | place as u64);
                    let valid = config.try_into().expect("it makes sense");
                    let node = Node::new(valid, node_port, Box::new(rng.clone()), world.now(place));
                    let network = Network {
                        world: &world,
                        place,
                        node,
                        inbox,
                        called,
                        outboxes: outboxes.clone(),
                        air: air(self.seed << 8 | place as u64),
                        rng,
                    };
                    scope.spawn(|| network.run());
                    let world = &world;
                    scope.spawn(move || self.play_one(place, port, world))
                })
                .collect();
            let played = games.into_iter().map(thread::ScopedJoinHandle::join);
            played.map(|game| game.expect("a game thread failed; see above")).collect()
        });
        let marks: Vec<i32> = played.iter().map(|game| game.marks).collect();
        assert!(marks.iter().all(|&n| n >= self.frames / MARK_EVERY - 2), "{marks:?} digests were compared");
        let rollbacks: u64 = played.iter().map(|game| game.session.stats().rollbacks).sum();
        assert!(self.window == 0 || rollbacks > 100, "{rollbacks} rollbacks: nothing came late");
        let seconds = world.begun.elapsed().as_secs_f64();
        let frames = self.frames;
        eprintln!("{} peers, {frames} frames: {seconds:.1} s, {rollbacks} rollbacks", self.peers);
    }

    fn play_one(&self, place: usize, port: MeshPort, world: &World) -> Game {
        let _stops = StopsAll(world);
        let us = join(place, &port, world);
        let config = SessionConfig {
            input_max: INPUT_MAX as u32,
            frame_rate: 1000,
            input_delay: delay_of(us) as u32,
            prediction_window: self.window,
            state_capacity: STATE_SIZE as u64,
            ..SessionConfig::default()
        };
        let config = ValidSessionConfig::try_from(config).expect("it makes sense");
        let session_port = port.open_session(config.settings).expect("room in the queue");
        port.send(Command::SetReady { local_slots: slots_of(us) }).expect("room in the queue");
        let mut game = Game {
            session: Session::new(config, Some(session_port), world.now(place)),
            port,
            us,
            state: State([0; STATE_SIZE]),
            checked: Frame::ZERO,
            oracle: State([0; STATE_SIZE]),
            awaited: VecDeque::new(),
            marks: 0,
        };
        if us == PeerIndex::default() {
            game.start(world);
        }
        game.run(world, place, self.frames, Rng::new(!self.seed ^ place as u64));
        game
    }
}

/// A mesh that forgets nobody: a thread that gets no processor for long is no failure here.
fn untiring() -> MeshConfig {
    MeshConfig { suspect_ms: 0, cut_after_ms: 0, forget_after_ms: 0, ..MeshConfig::default() }
}

fn air(seed: u64) -> Netem {
    let mut air = Netem::new(seed);
    air.set_default_link(Link {
        jitter: Duration::from_millis(2),
        loss_ppm: 20_000,
        duplicate_ppm: 20_000,
        reorder_ppm: 20_000,
        ..Link::default()
    });
    air
}

/// Opens or joins the room and says which member we are.
fn join(place: usize, port: &MeshPort, world: &World) -> PeerIndex {
    let enter = |room: Option<RoomKey>| {
        let command = room.map_or(Command::Host, |room| Command::Join { address: address(0), room });
        port.send(command).expect("room in the queue");
        room
    };
    let room = if place == 0 {
        enter(None)
    } else {
        loop {
            let room = *world.room.lock();
            if room.is_some() {
                break enter(room);
            }
            expect_progress(world);
        }
    };
    loop {
        match port.next_news() {
            Some(MeshNews::Joined { us, room }) => {
                *world.room.lock() = Some(room);
                return us;
            }
            // Nobody answered for five seconds: the machine is busy.
            Some(MeshNews::Refused { us: true, .. }) => {
                enter(room);
            }
            _ => expect_progress(world),
        }
    }
}

/// While the match has not begun.
fn expect_progress(world: &World) {
    assert!(!world.stop.load(Ordering::Relaxed), "another thread failed");
    assert!(world.begun.elapsed() < HANGS_AFTER, "the match does not begin");
    thread::sleep(Duration::from_micros(100));
}

/// The network half of one peer and its thread's loop.
struct Network<'a> {
    world: &'a World,
    place: usize,
    node: Node,
    inbox: Receiver<Packet>,
    called: Receiver<()>,
    outboxes: Vec<Sender<Packet>>,
    air: Netem,
    rng: Rng,
}

impl Network<'_> {
    fn run(mut self) {
        let _stops = StopsAll(self.world);
        let mut wake_at = None;
        while !self.world.is_over() {
            dawdle(&mut self.rng);
            let due = [wake_at, self.air.poll_timeout()].into_iter().flatten().min();
            let pause = due.map_or(Duration::from_millis(50), |at| at.since(self.now())) / TIME_SCALE as u32;
            let (inbox, called) = (self.inbox.clone(), self.called.clone());
            select! {
                recv(called) -> _ => self.node.handle_commands(self.now()),
                recv(inbox) -> packet => self.receive(packet.expect("the match holds a sender")),
                default(pause.min(Duration::from_millis(5))) => {}
            }
            for _ in 0..self.rng.below(6) {
                let Ok(packet) = self.inbox.try_recv() else { break };
                self.receive(packet);
            }
            if wake_at.is_some_and(|at| at <= self.now()) {
                self.node.handle_timeout(self.now());
            }
            wake_at = self.drain();
            while let Some(delivery) = self.air.poll(self.now()) {
                let packet = Packet { from: address(delivery.from), bytes: delivery.bytes };
                // A full one loses it, as a socket does.
                let _ = self.outboxes[delivery.to as usize].try_send(packet);
            }
        }
    }

    fn now(&self) -> Instant {
        self.world.now(self.place)
    }

    fn receive(&mut self, mut packet: Packet) {
        self.node.handle_datagram(packet.from, &mut packet.bytes, self.world.now(self.place));
        self.air.recycle(packet.bytes);
    }

    fn drain(&mut self) -> Option<Instant> {
        let now = self.now();
        loop {
            match self.node.poll_output() {
                Output::Transmit { to, bytes } => {
                    let to = to.opaque_bytes().and_then(|bytes| bytes.first()).expect("one of `address`");
                    self.air.submit(self.place as u32, u32::from(to - b'a'), bytes, now);
                }
                Output::Wait { until, .. } => return until,
                Output::Finished => return None,
            }
        }
    }
}

/// Moves this thread against the others by a little, at random.
fn dawdle(rng: &mut Rng) {
    match rng.below(64) {
        0..4 => thread::yield_now(),
        4 => (0..rng.below(4_000)).for_each(|_| spin_loop()),
        5 if rng.below(32) == 0 => thread::sleep(Duration::from_micros(rng.below(2_000))),
        _ => {}
    }
}

/// Depends on every input that was ever used, and when.
#[derive(Clone, Copy, PartialEq)]
struct State([u8; STATE_SIZE]);

impl State {
    /// `inputs` as a step gives them: `INPUT_MAX` bytes per slot, and the sizes.
    fn advance(&mut self, frame: Frame, inputs: &[u8], sizes: &[u16]) {
        let sizes = sizes.iter().fold(frame.0 as u64, |all, &size| all << 4 | u64::from(size));
        let digest = hash::combine([hash::digest(&self.0), hash::digest(inputs), sizes]);
        self.0.copy_within(8.., 0);
        self.0[STATE_SIZE - 8..].copy_from_slice(&digest.to_le_bytes());
    }

    fn digest(&self) -> u64 {
        hash::digest(&self.0)
    }
}

/// One peer's game: what the library makes of it, and beside it what must come out.
struct Game {
    session: Session,
    port: MeshPort,
    us: PeerIndex,
    state: State,
    /// All frames before were confirmed with the right inputs, and `oracle` is the state there.
    checked: Frame,
    oracle: State,
    /// Marks whose digest the session does not have yet.
    awaited: VecDeque<(Frame, u64)>,
    marks: i32,
}

impl Game {
    /// The coordinator begins when all are ready.
    fn start(&self, world: &World) {
        let mut ready = 0;
        while ready < world.peers - 1 {
            match self.port.next_news() {
                Some(MeshNews::PeerReady { peer, .. }) if peer != self.us => ready += 1,
                _ => expect_progress(world),
            }
        }
        self.port.send(Command::Start { countdown_ms: 300 }).expect("room in the queue");
    }

    /// As fast as it goes, until everybody has `frames`.
    fn run(&mut self, world: &World, place: usize, frames: i32, mut rng: Rng) {
        let mut is_done = false;
        let (mut got_on, mut at) = (std::time::Instant::now(), Frame::ZERO);
        for call in 0u64.. {
            if world.is_over() {
                return;
            }
            dawdle(&mut rng);
            let verdict = self.frame(world.now(place));
            self.check_confirmed();
            self.check_digests();
            self.check_news(world);
            if !is_done && self.checked.0 >= frames {
                is_done = true;
                world.done.fetch_add(1, Ordering::Relaxed);
            }
            if matches!(verdict, Verdict::Stall(_)) {
                thread::yield_now();
            }
            if call % 1024 == 0 {
                if self.checked > at {
                    (got_on, at) = (std::time::Instant::now(), self.checked);
                }
                let (current, stall) = (self.session.current(), self.session.stats().last_stall);
                assert!(
                    got_on.elapsed() < HANGS_AFTER,
                    "peer {} does not get on: {at} is confirmed, {current} is next, {stall:?}",
                    self.us
                );
            }
        }
    }

    fn frame(&mut self, now: Instant) -> Verdict {
        self.session.poll(now);
        for slot in self.session.local_slots() {
            let input = input_of(slot, self.session.current() + delay_of(self.us));
            self.session.add_local_input(slot, input.as_slice()).expect("it is ours");
        }
        let verdict = self.session.begin_frame(now).expect("no list is open, and the node lives");
        for index in 0..self.session.step_count() {
            let step = *self.session.step(index).expect("counted");
            match step.kind {
                StepKind::Save => {
                    let to = self.session.state(index).expect("a buffer");
                    to[..STATE_SIZE].copy_from_slice(&self.state.0);
                    let digest = self.state.digest();
                    self.session.set_saved(index, STATE_SIZE as u64, Some(digest)).expect("a save");
                }
                StepKind::Load => {
                    let from = self.session.state(index).expect("a buffer");
                    self.state.0.copy_from_slice(&from[..STATE_SIZE]);
                }
                StepKind::Advance => self.advance(index, step),
            }
        }
        self.session.end_frame(now).expect("a list is open");
        verdict
    }

    fn advance(&mut self, index: usize, step: Step) {
        let (inputs, sizes) = self.session.inputs(index);
        if step.confirmed {
            let (wanted, wanted_sizes) = self.wanted_row(step.frame);
            let count = sizes.len();
            assert!(
                inputs == &wanted[..inputs.len()] && sizes == &wanted_sizes[..count],
                "peer {}, frame {}: the game was given {inputs:02x?} {sizes:?} as confirmed",
                self.us,
                step.frame
            );
        }
        self.state.advance(step.frame, inputs, sizes);
    }

    /// What all owners handed in for a frame, laid out as a step's inputs.
    fn wanted_row(&self, frame: Frame) -> ([u8; 16 * INPUT_MAX], [u16; 16]) {
        let (mut row, mut sizes) = ([0; 16 * INPUT_MAX], [0; 16]);
        let slots = self.session.start_info().expect("the match has begun").slots;
        for (slot, owner) in Slot::all().zip(slots) {
            let Some(owner) = owner else { continue };
            let input = wanted(slot, owner, frame);
            let at = slot.index() * INPUT_MAX;
            row[at..at + input.len()].copy_from_slice(input.as_slice());
            sizes[slot.index()] = input.len() as u16;
        }
        (row, sizes)
    }

    /// What became confirmed since the last call is what was handed in.
    fn check_confirmed(&mut self) {
        let Some(slots) = self.session.start_info().map(|start| start.slots) else { return };
        while self.checked < self.session.confirmed_end() {
            let frame = self.checked;
            for (slot, owner) in Slot::all().zip(slots) {
                let Some(owner) = owner else { continue };
                let confirmed = self.session.confirmed_input(slot, frame);
                let wanted = wanted(slot, owner, frame);
                assert_eq!(confirmed, Some(wanted), "peer {}, slot {slot}, frame {frame}", self.us);
            }
            if frame.0 % MARK_EVERY == 0 {
                self.awaited.push_back((frame, self.oracle.digest()));
            }
            let (row, sizes) = self.wanted_row(frame);
            let count = self.session.slot_count();
            self.oracle.advance(frame, &row[..count * INPUT_MAX], &sizes[..count]);
            self.checked = frame.next();
        }
    }

    /// The states that the library calls final are those of a game that nothing ever disturbed.
    fn check_digests(&mut self) {
        while let Some(&(frame, wanted)) = self.awaited.front() {
            let Some(digest) = self.session.confirmed_checksum(frame) else { return };
            assert_eq!(digest, wanted, "peer {}, state of frame {frame}", self.us);
            self.awaited.pop_front();
            self.marks += 1;
        }
    }

    fn check_news(&mut self, world: &World) {
        while let Some(event) = self.session.next_event() {
            assert_eq!(event, SessionEvent::Started, "peer {}", self.us);
            world.note_started();
        }
        while let Some(news) = self.port.next_news() {
            assert!(!matches!(news, MeshNews::Left { .. }), "peer {}: {news:?}", self.us);
        }
    }
}
