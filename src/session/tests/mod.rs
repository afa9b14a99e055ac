//! Tests of the session in virtual time: the test is the node, and the game is a mixing function.
//!
//! `Rig` holds a session and the node's end of its bridge, runs the step lists and checks what must hold for each.
//! Never: sleeps, opens a port or starts a thread.

mod desync;
mod pacing;
mod property;
mod scenarios;

use super::*;
use crate::base::Rng;
use crate::bridge::{self, NewsPort, NodePort};
use crate::config::{Predictor, SessionConfig, StateMode};
use std::collections::BTreeMap;
use std::sync::Arc;

const FRAME_US: u64 = 16_667;

/// What a straight-line run of the game needs to know.
#[derive(Default)]
struct Truth {
    /// Inputs of each slot, by frame.
    inputs: BTreeMap<u8, Vec<Vec<u8>>>,
    cuts: BTreeMap<u8, i32>,
}

impl Truth {
    fn input(&self, slot: u8, frame: i32) -> &[u8] {
        let in_time = self.cuts.get(&slot).is_none_or(|&cut| frame < cut);
        self.inputs
            .get(&slot)
            .filter(|_| in_time)
            .and_then(|of| of.get(frame as usize))
            .map_or(&[], Vec::as_slice)
    }

    fn row(&self, frame: i32, slots: usize, input_max: usize) -> (Vec<u8>, Vec<u16>, u16) {
        let mut bytes = vec![0; slots * input_max];
        let mut sizes = vec![0; slots];
        let mut gone = 0;
        for slot in 0..slots {
            let input = self.input(slot as u8, frame);
            bytes[slot * input_max..][..input.len()].copy_from_slice(input);
            sizes[slot] = input.len() as u16;
            gone |= u16::from(self.cuts.get(&(slot as u8)).is_some_and(|&cut| frame >= cut)) << slot;
        }
        (bytes, sizes, gone)
    }

    /// The game's state before frame `end`.
    fn state(&self, end: i32, slots: usize, input_max: usize) -> Game {
        let mut game = Game::default();
        for frame in 0..end {
            let (bytes, sizes, gone) = self.row(frame, slots, input_max);
            game.advance(&bytes, &sizes, gone);
        }
        game
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Game {
    frame: i32,
    mix: u64,
}

impl Game {
    fn advance(&mut self, bytes: &[u8], sizes: &[u16], gone: u16) {
        let eat = |mix: u64, byte: u64| (mix ^ byte).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
        self.mix = bytes.iter().fold(self.mix, |mix, &b| eat(mix, u64::from(b)));
        self.mix = sizes.iter().fold(self.mix, |mix, &s| eat(mix, u64::from(s)));
        self.mix = eat(self.mix, u64::from(gone));
        self.frame += 1;
    }

    fn save(&self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.frame.to_le_bytes());
        bytes[4..].copy_from_slice(&self.mix.to_le_bytes());
        bytes
    }

    fn load(bytes: &[u8]) -> Self {
        Self {
            frame: i32::from_le_bytes(bytes[..4].try_into().unwrap()),
            mix: u64::from_le_bytes(bytes[4..12].try_into().unwrap()),
        }
    }

    fn digest(&self) -> u64 {
        crate::kit::hash::digest(&self.save())
    }
}

/// What one list did.
#[derive(Clone, Copy, Debug, Default)]
struct Ran {
    saves: u32,
    loads: u32,
    resimulated: u32,
}

struct Rig {
    session: Session,
    node: NodePort,
    _mesh: bridge::MeshPort,
    news: NewsPort,
    game: Game,
    slots_of_game: Vec<Option<Game>>,
    truth: Truth,
    now: Instant,
    level: u8,
    window: i32,
    input_max: usize,
    /// Which frames were ever simulated for the first time.
    first_time: i32,
    checksums: BTreeMap<i32, u64>,
    flushes: u32,
    /// The node stops reading commands.
    node_sleeps: bool,
}

impl Rig {
    /// `owners[slot]` is the peer; peer 0 is us.
    fn new(config: SessionConfig, owners: &[u8]) -> Self {
        let (mesh, node) = bridge::open(Arc::new(|| {}));
        let valid = ValidSessionConfig::try_from(config).unwrap();
        let port = mesh.open_session(valid.settings).unwrap();
        let Ok(Command::OpenSession { port: news, .. }) = node.next_command() else { panic!("no port came") };
        let session = Session::new(valid.clone(), Some(port), Instant::ZERO);
        let mut slots = [None; MAX_SLOTS];
        for (slot, &owner) in slots.iter_mut().zip(owners) {
            *slot = PeerIndex::new(owner);
        }
        let us = PeerIndex::new(0).unwrap();
        news.send(SessionNews::Start(StartInfo { seed: 1, slots, us, frame0_at: Instant::ZERO })).unwrap();
        let count = session.state_count() as usize;
        Self {
            session,
            node,
            _mesh: mesh,
            news,
            game: Game::default(),
            slots_of_game: vec![None; count],
            truth: Truth::default(),
            now: Instant::ZERO,
            level: valid.desync_level,
            window: valid.window,
            input_max: usize::from(valid.settings.input_max),
            first_time: 0,
            checksums: BTreeMap::new(),
            flushes: 0,
            node_sleeps: false,
        }
    }

    /// Hands inputs of a remote slot over, and remembers them as the truth.
    fn tell(&mut self, slot: u8, inputs: &[&[u8]]) {
        let known = self.truth.inputs.entry(slot).or_default();
        for &input in inputs {
            let first = Frame(known.len() as i32);
            known.push(input.to_vec());
            self.news.send(inputs_news(slot, first, 1, input)).unwrap();
        }
    }

    /// Queues a record; the session reads when the queue is full.
    fn send(&mut self, news: SessionNews) {
        while self.news.is_full() {
            let before = self.news.len();
            self.session.frames_due(self.now);
            assert!(self.news.len() < before, "the session does not read");
        }
        self.news.send(news).unwrap();
    }

    fn tell_cut(&mut self, slot: u8, end: i32) {
        self.truth.cuts.insert(slot, end);
        self.news.send(SessionNews::Cut { slot: Slot::new(slot).unwrap(), end: Frame(end) }).unwrap();
    }

    /// One frame of play: begins, runs, closes; the clock goes on by a frame.
    fn play(&mut self) -> (Verdict, Ran) {
        self.session.poll(self.now);
        let verdict = self.session.begin_frame(self.now).unwrap();
        self.read_commands();
        let steps = self.session.step_count();
        let ran = self.run(steps);
        self.check_list(verdict, ran);
        assert_eq!(self.session.end_frame(self.now), Ok(()));
        assert_eq!(self.game.frame, self.session.current().0);
        self.now += std::time::Duration::from_micros(FRAME_US);
        (verdict, ran)
    }

    fn play_times(&mut self, frames: i32) {
        for _ in 0..frames {
            self.play();
        }
    }

    fn check_list(&mut self, verdict: Verdict, ran: Ran) {
        assert!(ran.loads <= 1);
        assert!(ran.saves <= 2 || self.level > 1, "{ran:?}");
        match verdict {
            Verdict::Advance => assert_eq!(self.game.frame, self.session.current().0 + 1),
            Verdict::ResimulateOnly => assert!(ran.loads == 1 && self.game.frame == self.session.current().0),
            Verdict::Stall(_) => assert_eq!(self.session.step_count(), 0),
        }
        let past = self.game.frame - self.session.confirmed_end().0;
        assert!(past <= self.window, "{past} frames past the confirmed one");
    }

    /// Runs the first `count` steps as a game would, and checks each.
    fn run(&mut self, count: usize) -> Ran {
        let mut ran = Ran::default();
        for i in 0..count {
            let step = *self.session.step(i).unwrap();
            match step.kind {
                StepKind::Save => {
                    assert_eq!(step.frame.0, self.game.frame, "a save is of the state that the game is in");
                    ran.saves += 1;
                    self.save(i, &step);
                }
                StepKind::Load => {
                    assert_eq!(i, 0, "a load comes first");
                    ran.loads += 1;
                    self.game = match self.session.state(i) {
                        Some(bytes) => Game::load(bytes),
                        None => self.slots_of_game[step.state_index as usize].unwrap(),
                    };
                    assert_eq!(self.game.frame, step.frame.0);
                }
                StepKind::Advance => {
                    assert_eq!(step.frame.0, self.game.frame, "frames come in order");
                    assert_eq!(step.resimulating, step.frame.0 < self.session.current().0);
                    ran.resimulated += u32::from(step.resimulating);
                    self.check_inputs(i, &step);
                    let gone = (0..MAX_SLOTS).fold(0, |gone, s| {
                        gone | u16::from(step.slot_status >> (4 * s) & SLOT_DISCONNECTED != 0) << s
                    });
                    let (bytes, sizes) = self.session.inputs(i);
                    self.game.advance(bytes, sizes, gone);
                    self.first_time = self.first_time.max(self.game.frame);
                }
            }
        }
        ran
    }

    fn save(&mut self, i: usize, step: &Step) {
        let bytes = self.game.save();
        let digest = Some(self.game.digest());
        if self.session.state(i).is_none() {
            self.slots_of_game[step.state_index as usize] = Some(self.game);
            self.session.set_saved(i, 0, digest).unwrap();
            return;
        }
        if step.state_size < 12 {
            self.session.grow_state(i, 12).unwrap();
        }
        self.session.state(i).unwrap()[..12].copy_from_slice(&bytes);
        self.session.set_saved(i, 12, None).unwrap();
    }

    /// A confirmed input is the true one; a predicted one says so.
    fn check_inputs(&self, i: usize, step: &Step) {
        let (bytes, sizes) = self.session.inputs(i);
        let (true_bytes, true_sizes, _) = self.truth.row(step.frame.0, sizes.len(), self.input_max);
        let used = (0..sizes.len()).filter(|&s| step.slot_status >> (4 * s) & SLOT_UNUSED == 0);
        for slot in used {
            let status = step.slot_status >> (4 * slot);
            let is_told = slot_told(&self.truth, slot as u8, step.frame.0);
            if status & SLOT_PREDICTED == 0 && !is_told {
                assert!(self.node_sleeps, "slot {slot}, frame {} was made up", step.frame);
            } else if status & SLOT_PREDICTED == 0 {
                let at = slot * self.input_max..(slot + 1) * self.input_max;
                assert_eq!(bytes[at.clone()], true_bytes[at], "slot {slot}, frame {}", step.frame);
                assert_eq!(sizes[slot], true_sizes[slot]);
            } else {
                assert!(!step.confirmed);
            }
        }
    }

    /// The node's side: local inputs become the truth; each frame of a slot comes once, in order.
    fn read_commands(&mut self) {
        while !self.node_sleeps
            && let Ok(command) = self.node.next_command()
        {
            match command {
                Command::Input { slot, frame, input } => {
                    let known = self.truth.inputs.entry(slot.get()).or_default();
                    assert_eq!(frame.0 as usize, known.len(), "slot {slot} has a gap or a double");
                    known.push(input.as_slice().to_vec());
                }
                Command::Flush { .. } => self.flushes += 1,
                Command::Checksum { frame, value } => {
                    assert_eq!(self.checksums.insert(frame.0, value), None);
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    fn sample(&mut self, slot: u8, bytes: &[u8]) {
        if self.session.start_info().is_none() {
            self.session.frames_due(self.now);
        }
        self.session.add_local_input(Slot::new(slot).unwrap(), bytes).unwrap();
    }

    /// The state equals that of a run with all inputs known from the start, and so does every digest.
    fn check_truth(&self) {
        assert!(self.session.confirmed_end() >= self.session.current(), "something is not confirmed");
        let slots = self.session.slot_count();
        assert_eq!(self.game, self.truth.state(self.game.frame, slots, self.input_max));
        let mut straight = Game::default();
        for frame in 0..self.game.frame {
            if let Some(digest) = self.session.confirmed_checksum(Frame(frame)) {
                assert_eq!(digest, straight.digest(), "digest of frame {frame}");
            }
            if let Some(&digest) = self.checksums.get(&frame) {
                assert_eq!(digest, straight.digest(), "sent digest of frame {frame}");
            }
            let (bytes, sizes, gone) = self.truth.row(frame, slots, self.input_max);
            straight.advance(&bytes, &sizes, gone);
        }
    }
}

fn slot_told(truth: &Truth, slot: u8, frame: i32) -> bool {
    truth.cuts.get(&slot).is_some_and(|&cut| frame >= cut)
        || truth.inputs.get(&slot).is_some_and(|of| of.len() as i32 > frame)
}

fn inputs_news(slot: u8, first: Frame, count: u16, input: &[u8]) -> SessionNews {
    SessionNews::Inputs { slot: Slot::new(slot).unwrap(), first, count, input: Input::new(input).unwrap() }
}

fn config(window: u32, delay: u32) -> SessionConfig {
    SessionConfig {
        prediction_window: window,
        input_delay: delay,
        state_capacity: 8,
        input_max: 2,
        ..SessionConfig::default()
    }
}

fn peer(index: u8) -> PeerIndex {
    PeerIndex::new(index).unwrap()
}
