//! The floor: the least that a full-mesh rollback library can do. A bound, not a product: no handshake, no time-outs,
//! no security, no leavers, no statistics, at most 64 frames under way.
//!
//! One datagram per remote and tick, which carries all that is not acknowledged:
//! `kind+base 1 · newest frame 2 · count 1 · ack distance 1 · one change bit per frame · bytes of each changed input`.
//! With the base bit, the first input is compared with the one before it, which the receiver has; else with zeros.
//! Two saves per tick at most: the first unconfirmed frame and the newest.

use super::{Counts, Peer};
use crate::game::{self, Game};
use crate::match_up::Scenario;
use crate::meter::{Doer, run};
use crate::network::Socket;

/// Frames that are remembered.
const RING: usize = 64;
/// Largest input.
const MAX_INPUT: usize = 16;
/// Most inputs in one datagram.
const MAX_COUNT: i32 = 32;
const KIND: u8 = 2;
const HEADER: usize = 5;

type Input = [u8; MAX_INPUT];

/// What is known of another peer.
#[derive(Clone, Copy)]
struct Remote {
    /// Newest frame of ours that it has.
    acked: i32,
    /// Newest frame of it that we have.
    received: i32,
}

struct Save {
    frame: i32,
    used_at: u64,
    state: Vec<u8>,
}

struct Ideal {
    us: usize,
    socket: Socket,
    size: usize,
    is_held: bool,
    window: i32,
    current: i32,
    remotes: Vec<Remote>,
    /// `[frame % RING * players + player]`: what is known, and what was simulated with.
    inputs: Vec<Input>,
    used: Vec<Input>,
    first_incorrect: i32,
    saves: Vec<Save>,
    saves_made: u64,
    packet: [u8; 1500],
    /// All inputs of one frame.
    row: Vec<u8>,
}

/// One peer.
pub fn seat(us: usize, socket: Socket, scenario: &Scenario) -> Box<dyn Peer> {
    let window = scenario.window.unwrap_or(8);
    let save = || Save { frame: -1, used_at: 0, state: vec![0; Game::new(scenario.state_size).state.len()] };
    Box::new(Ideal {
        us,
        socket,
        size: scenario.input_size,
        is_held: scenario.is_held,
        window: window as i32,
        current: 0,
        remotes: vec![Remote { acked: -1, received: -1 }; scenario.peers],
        inputs: vec![[0; MAX_INPUT]; RING * scenario.peers],
        used: vec![[0; MAX_INPUT]; RING * scenario.peers],
        first_incorrect: i32::MAX,
        saves: (0..window + 4).map(|_| save()).collect(),
        saves_made: 0,
        packet: [0; 1500],
        row: vec![0; scenario.peers * scenario.input_size],
    })
}

impl Ideal {
    #[inline]
    fn at(&self, frame: i32, player: usize) -> usize {
        frame as usize % RING * self.remotes.len() + player
    }

    fn receive(&mut self) {
        let mut bytes = [0; 1500];
        while let Some((length, from)) = self.socket.receive(&mut bytes) {
            if length >= HEADER {
                self.take(from, &bytes);
            }
        }
    }

    fn take(&mut self, from: usize, bytes: &[u8; 1500]) {
        let newest = u16::from_le_bytes([bytes[1], bytes[2]]);
        let newest = self.current + i32::from((newest as i16).wrapping_sub(self.current as i16));
        let count = i32::from(bytes[3]);
        let ack = newest - i32::from(bytes[4] as i8);
        let first = newest - count + 1;
        let remote = &mut self.remotes[from];
        if ack > remote.acked && ack < self.current {
            remote.acked = ack;
        }
        if first > remote.received + 1 {
            return; // A gap; the next datagram fills it.
        }
        let has_base = bytes[0] & 1 == 1 && first > 0;
        let mut input = if has_base { self.inputs[self.at(first - 1, from)] } else { [0; MAX_INPUT] };
        let mut read = HEADER + (count as usize).div_ceil(8);
        for k in 0..count as usize {
            if bytes[HEADER + k / 8] >> (k % 8) & 1 == 1 {
                input[..self.size].copy_from_slice(&bytes[read..read + self.size]);
                read += self.size;
            }
            let frame = first + k as i32;
            if frame == self.remotes[from].received + 1 {
                self.remotes[from].received = frame;
                let at = self.at(frame, from);
                self.inputs[at] = input;
                if frame < self.current && self.used[at][..self.size] != input[..self.size] {
                    self.first_incorrect = self.first_incorrect.min(frame);
                }
            }
        }
    }

    fn send(&mut self, newest: i32) {
        for to in (0..self.remotes.len()).filter(|&to| to != self.us) {
            let Remote { acked, received } = self.remotes[to];
            let count = (newest - acked).min(MAX_COUNT);
            let first = newest - count + 1;
            let has_base = first == acked + 1 && first > 0;
            let mut before = if has_base { self.inputs[self.at(first - 1, self.us)] } else { [0; MAX_INPUT] };
            let mut end = HEADER + (count as usize).div_ceil(8);
            self.packet[0] = KIND | u8::from(has_base);
            self.packet[1..3].copy_from_slice(&(newest as u16).to_le_bytes());
            self.packet[3] = count as u8;
            self.packet[4] = (newest - received).clamp(-128, 127) as i8 as u8;
            self.packet[HEADER..end].fill(0);
            for k in 0..count as usize {
                let input = self.inputs[self.at(first + k as i32, self.us)];
                if input[..self.size] != before[..self.size] {
                    self.packet[HEADER + k / 8] |= 1 << (k % 8);
                    self.packet[end..end + self.size].copy_from_slice(&input[..self.size]);
                    end += self.size;
                    before = input;
                }
            }
            self.socket.send(to, &self.packet[..end]);
        }
    }

    /// Newest frame of which every input is known.
    fn confirmed(&self) -> i32 {
        let others = self.remotes.iter().enumerate().filter(|&(player, _)| player != self.us);
        others.map(|(_, remote)| remote.received).min().unwrap_or(self.current)
    }

    /// The newest saved state at or before a frame.
    fn saved(&self, frame: i32) -> Option<usize> {
        let usable = (0..self.saves.len()).filter(|&i| (0..=frame).contains(&self.saves[i].frame));
        usable.max_by_key(|&i| self.saves[i].frame)
    }

    /// Into the buffer that was used most recently and is not needed any more, so that it is still in the cache.
    fn save(&mut self, game: &mut Game, frame: i32) {
        let base = self.saved(self.confirmed() + 1);
        let is_free = |i: usize| match base {
            _ if self.saves[i].frame == frame => true,
            Some(base) => i != base && self.saves[i].frame < self.saves[base].frame,
            None => self.saves[i].frame < 0,
        };
        let chosen = (0..self.saves.len()).filter(|&i| is_free(i)).max_by_key(|&i| self.saves[i].used_at);
        let save = &mut self.saves[chosen.expect("there are more buffers than frames in the window")];
        self.saves_made += 1;
        save.frame = frame;
        save.used_at = self.saves_made;
        run(Doer::State, || game.save(&mut save.state));
    }

    /// Simulates a frame with what is known, and the newest known input of whoever is late.
    fn step(&mut self, game: &mut Game, frame: i32) {
        for player in 0..self.remotes.len() {
            let newest = if player == self.us { frame } else { self.remotes[player].received.min(frame) };
            let input = if newest < 0 { [0; MAX_INPUT] } else { self.inputs[self.at(newest, player)] };
            let at = self.at(frame, player);
            self.used[at] = input;
            self.row[player * self.size..(player + 1) * self.size].copy_from_slice(&input[..self.size]);
        }
        run(Doer::Game, || game.step(&self.row));
    }

    /// Loads the newest state before the first incorrect frame, and simulates up to the present again.
    fn roll_back(&mut self, game: &mut Game, counts: &mut Counts) {
        let from = self.saved(self.first_incorrect).expect("the first unconfirmed frame is always saved");
        let first = self.saves[from].frame;
        for save in self.saves.iter_mut().filter(|save| save.frame > first) {
            save.frame = -1;
        }
        run(Doer::State, || game.load(&self.saves[from].state));
        let unconfirmed = self.confirmed() + 1;
        for frame in first..self.current {
            if frame == unconfirmed && frame > first {
                self.save(game, frame);
            }
            self.step(game, frame);
        }
        counts.resimulated += (self.current - first) as u64;
    }

    fn advance(&mut self, input: Input, game: &mut Game, counts: &mut Counts) {
        self.receive();
        if self.current - self.confirmed() > self.window {
            counts.stalls += 1;
            self.send(self.current - 1);
            return;
        }
        let at = self.at(self.current, self.us);
        self.inputs[at] = input;
        self.send(self.current);
        if self.first_incorrect < self.current {
            self.roll_back(game, counts);
        }
        self.first_incorrect = i32::MAX;
        self.save(game, self.current);
        self.step(game, self.current);
        self.current += 1;
        counts.frames += 1;
    }
}

impl Peer for Ideal {
    fn lobby(&mut self) -> bool {
        true
    }

    fn tick(&mut self, game: &mut Game, counts: &mut Counts) {
        let mut input = [0; MAX_INPUT];
        game::input(self.us, self.current, self.is_held, &mut input[..self.size]);
        run(Doer::GameHalf, || self.advance(input, game, counts));
    }

    fn frame(&self) -> i32 {
        self.current
    }
}
