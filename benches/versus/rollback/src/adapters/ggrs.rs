//! GGRS, used as its own example does; the socket does what its own UDP socket does (bincode both ways).
//!
//! Fed by: ticks. Yields: saves, loads and steps of the game. Never: turns an option from its default but those of the scenario.

use super::{Counts, Peer, Words, address, peer_at};
use crate::game::{self, Game};
use crate::match_up::Scenario;
use crate::meter::{Doer, run};
use crate::network::Socket;
use ggrs::{
    Config, DesyncDetection, GgrsError, GgrsEvent, GgrsRequest, Message, NonBlockingSocket, P2PSession,
    PlayerType, PredictRepeatLast, SessionBuilder, SessionState,
};
use std::marker::PhantomData;
use std::net::SocketAddr;

struct Types<I>(PhantomData<I>);

impl<I: Words> Config for Types<I> {
    type Input = I;
    type InputPredictor = PredictRepeatLast;
    type State = Vec<u8>;
    type Address = SocketAddr;
}

struct Udp {
    socket: Socket,
    buffer: Vec<u8>,
}

impl NonBlockingSocket<SocketAddr> for Udp {
    fn send_to(&mut self, message: &Message, to: &SocketAddr) {
        let bytes = bincode::serialize(message).expect("a message of the library can be written");
        self.socket.send(peer_at(to), &bytes);
    }

    fn receive_all_messages(&mut self) -> Vec<(SocketAddr, Message)> {
        let mut messages = Vec::new();
        while let Some((length, from)) = self.socket.receive(&mut self.buffer) {
            if let Ok(message) = bincode::deserialize(&self.buffer[..length]) {
                messages.push((address(from), message));
            }
        }
        messages
    }
}

struct Ggrs<I: Words> {
    us: usize,
    session: P2PSession<Types<I>>,
    size: usize,
    is_held: bool,
    has_checksum: bool,
    row: Vec<u8>,
}

/// One peer.
pub fn seat<I: Words>(us: usize, socket: Socket, scenario: &Scenario) -> Box<dyn Peer> {
    let desync = match scenario.desync_every {
        0 => DesyncDetection::Off,
        every => DesyncDetection::On { interval: every as u32 },
    };
    let build = || -> Result<_, GgrsError> {
        let mut builder = SessionBuilder::<Types<I>>::new()
            .with_num_players(scenario.peers)?
            .with_max_prediction_window(scenario.window.unwrap_or(8))
            .with_input_delay(scenario.delay)
            .with_fps(60)?
            .with_desync_detection_mode(desync);
        for player in 0..scenario.peers {
            let kind = if player == us { PlayerType::Local } else { PlayerType::Remote(address(player)) };
            builder = builder.add_player(kind, player)?;
        }
        builder.start_p2p_session(Udp { socket, buffer: vec![0; 4096] })
    };
    Box::new(Ggrs {
        us,
        session: build().expect("the scenario makes sense"),
        size: scenario.input_size,
        is_held: scenario.is_held,
        has_checksum: scenario.desync_every > 0,
        row: Vec::with_capacity(1024),
    })
}

impl<I: Words> Ggrs<I> {
    fn run_request(&mut self, request: GgrsRequest<Types<I>>, game: &mut Game) -> u64 {
        match request {
            GgrsRequest::SaveGameState { cell, frame } => {
                game.saves += 1;
                let checksum = self.has_checksum.then(|| u128::from(game.hash()));
                run(Doer::State, || cell.save(frame, Some(game.state.clone()), checksum));
                0
            }
            GgrsRequest::LoadGameState { cell, .. } => {
                game.loads += 1;
                run(Doer::State, || game.state = cell.load().expect("it was saved"));
                0
            }
            GgrsRequest::AdvanceFrame { inputs } => {
                run(Doer::Game, || {
                    self.row.clear();
                    inputs.iter().for_each(|(input, _)| input.append_to(&mut self.row));
                    game.step(&self.row);
                });
                run(Doer::GameHalf, || drop(inputs));
                1
            }
        }
    }
}

impl<I: Words> Peer for Ggrs<I> {
    fn lobby(&mut self) -> bool {
        self.session.poll_remote_clients();
        self.session.events().for_each(drop);
        self.session.current_state() == SessionState::Running
    }

    fn tick(&mut self, game: &mut Game, counts: &mut Counts) {
        let before = self.frame();
        let mut bytes = [0; 16];
        game::input(self.us, before, self.is_held, &mut bytes[..self.size]);
        let requests = run(Doer::GameHalf, || {
            for event in self.session.events() {
                match event {
                    GgrsEvent::DesyncDetected { .. } => counts.desyncs += 1,
                    GgrsEvent::Disconnected { .. } => counts.left += 1,
                    _ => {}
                }
            }
            self.session.add_local_input(self.us, I::of(&bytes[..self.size]))?;
            self.session.advance_frame()
        });
        match requests {
            Ok(requests) => {
                let steps: u64 = requests.into_iter().map(|request| self.run_request(request, game)).sum();
                let new = (self.frame() - before) as u64;
                counts.frames += new;
                counts.resimulated += steps - new;
            }
            Err(GgrsError::PredictionThreshold) => {}
            Err(_) => counts.errors += 1,
        }
        counts.stalls += u64::from(self.frame() == before);
    }

    fn frame(&self) -> i32 {
        self.session.current_frame()
    }
}
