//! A whole mesh in virtual time: real network halves on a simulated network, and games that use them as games do.
//!
//! Fed by: a setup, a script of faults, and the test that lets time pass. Yields: what the oracles found, as a panic that
//! says how to play the same again. Never: depends on anything but its seed and the calls of the test.

use crate::oracles::{ALL_NEWEST, ALL_RELIABLE, ALL_UNRELIABLE, Life, Oracles, PAIR_RELIABLE, Player};
use crate::peer::Peer;
use crate::setup::{Fault, Setup};
use retick::base::{Frame, Instant, PeerIndex, Slot};
use retick::bridge::{Command, Delivery, LeaveReason, MeshNews, RefuseReason};
use retick::config::{MeshConfig, ValidMeshConfig};
use retick::netem::Link;
use retick::session::SessionEvent;
use retick::simnet::{Simnet, What};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

/// Lines of the log that a failure prints.
const LOG_LINES: usize = 40;
/// Without a fault for so long, no cut can be under way any more.
const CALM_AFTER: Duration = Duration::from_secs(4);
/// After healing, the mesh gets so long to find back to normal.
const SETTLE: Duration = Duration::from_secs(3);
/// Then it is watched for so long.
const WATCH: Duration = Duration::from_secs(3);

/// A mesh.
pub struct World {
    /// The network, for what a test wants to do to it itself.
    pub net: Simnet,
    /// All processes, by number of attachment.
    pub peers: Vec<Peer>,
    /// What must hold.
    pub oracles: Oracles,
    seed: u64,
    setup: Setup,
    script: VecDeque<(Instant, Fault)>,
    log: VecDeque<String>,
    last_fault: Instant,
    faults: bool,
    traced: u64,
    next_clock_check: Instant,
    calls: u64,
    desyncs: Vec<(usize, usize, Frame)>,
    /// How much paths varied so far.
    jitter: Duration,
    /// Some links are down.
    is_broken: bool,
}

impl World {
    /// All processes run, nobody is in a room.
    pub fn new(seed: u64, setup: Setup) -> Self {
        let mut net = Simnet::new(seed);
        net.set_default_link(setup.link);
        let config = MeshConfig { max_peers: setup.peers.len().max(2) as u32, ..MeshConfig::default() };
        let suspect = Duration::from_millis(u64::from(config.suspect_ms));
        let config = ValidMeshConfig::try_from(config).expect("setups stay in range");
        let mut peers = Vec::new();
        for (index, of) in setup.peers.iter().enumerate() {
            let (number, port) = net.attach_with_clock(config.clone(), of.clock_offset);
            net.set_clock_skew_ppm(number, of.skew_ppm);
            let mut peer = Peer::new(port, &setup, index, seed, net.local_now(number));
            peer.next_call = Instant::ZERO + of.phase;
            peers.push(peer);
        }
        Self {
            oracles: Oracles::new(peers.len(), suspect),
            net,
            peers,
            seed,
            setup,
            script: VecDeque::new(),
            log: VecDeque::new(),
            last_fault: Instant::ZERO,
            faults: false,
            traced: 0,
            next_clock_check: Instant::ZERO,
            calls: 0,
            desyncs: Vec::new(),
            jitter: Duration::ZERO,
            is_broken: false,
        }
    }

    /// Virtual time.
    pub fn now(&self) -> Instant {
        self.net.now()
    }

    /// What it began with.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Adds to the script: so long after now.
    pub fn after(&mut self, by: Duration, fault: Fault) {
        let at = self.now() + by;
        let place = self.script.partition_point(|&(earlier, _)| earlier <= at);
        self.script.insert(place, (at, fault));
    }

    /// Everybody joins at its time, and the match starts by itself once all are ready.
    pub fn open(&mut self) {
        assert!(self.peers[0].command(Command::Host), "the queue is empty at first");
        for index in 1..self.peers.len() {
            let at = self.now() + self.setup.join_every * index as u32;
            self.peers[index].join_at = Some(at);
        }
    }

    /// Opens, and runs until frame 0 is there for everybody.
    pub fn start(&mut self) {
        self.open();
        let end = self.now() + Duration::from_secs(20);
        while !self.peers.iter().all(|peer| !peer.is_running || peer.is_out || peer.current() > Frame::ZERO) {
            if self.now() >= end {
                let who: Vec<_> = (0..self.peers.len()).filter(|&p| !self.peers[p].started).collect();
                self.fail(&format!("20 s after the opening, {who:?} did not start"));
            }
            self.run_for(Duration::from_millis(20));
        }
    }

    /// Lets time pass.
    pub fn run_for(&mut self, by: Duration) {
        self.run_until(self.now() + by);
    }

    /// Lets time pass up to an instant of network time.
    pub fn run_until(&mut self, end: Instant) {
        loop {
            let next = self.next_event().min(end);
            let now = self.now();
            if next > now {
                self.net.advance(next.since(now));
                self.read_trace();
            }
            let now = self.now();
            let mut is_busy = false;
            while let Some(&(_, fault)) = self.script.front().filter(|&&(at, _)| at <= now) {
                self.script.pop_front();
                self.apply(fault);
                is_busy = true;
            }
            for index in 0..self.peers.len() {
                let peer = &mut self.peers[index];
                if peer.paused_until != Instant::ZERO && peer.paused_until <= now {
                    peer.paused_until = Instant::ZERO;
                    self.net.set_paused(index as u32, false);
                    self.note(format!("{index} goes on"));
                    is_busy = true;
                }
                if self.is_due(index) {
                    self.call(index);
                    is_busy = true;
                }
            }
            self.check_clocks();
            self.expect_no_violation();
            if now >= end && !is_busy {
                return;
            }
        }
    }

    fn is_due(&self, index: usize) -> bool {
        let peer = &self.peers[index];
        peer.is_running && peer.next_call <= self.now()
    }

    fn next_event(&self) -> Instant {
        let calls = self.peers.iter().filter(|peer| peer.is_running).map(|peer| peer.next_call);
        let ends = self.peers.iter().map(|peer| peer.paused_until).filter(|&at| at != Instant::ZERO);
        let script = self.script.front().map(|&(at, _)| at);
        calls.chain(ends).chain(script).min().unwrap_or(Instant(u64::MAX))
    }

    fn read_trace(&mut self) {
        let trace = self.net.trace();
        let new = trace.pushed() - self.traced;
        self.traced = trace.pushed();
        for entry in trace.newest(new as usize) {
            if entry.what == What::Delivered
                && let Some(to) = entry.to
            {
                self.oracles.delivered(entry.from as usize, to as usize, entry.at);
            }
        }
    }

    /// Nothing went wrong lately, so nobody can be in the middle of a cut.
    fn is_calm(&self) -> bool {
        !self.faults || self.now().since(self.last_fault) >= CALM_AFTER
    }

    /// Lets it happen now.
    pub fn apply(&mut self, fault: Fault) {
        self.note(format!("fault: {fault}"));
        let now = self.now();
        if !fault.is_mere_change() || fault == Fault::Heal {
            self.faults = true;
            self.last_fault = now;
        }
        if matches!(fault, Fault::Split(_)) {
            self.oracles.excuse_cuts(Some(Instant(u64::MAX)));
        }
        match fault {
            Fault::Crash(peer) => {
                self.net.detach(peer as u32);
                self.peers[peer].is_running = false;
                self.peers[peer].paused_until = Instant::ZERO;
                self.oracles.ended(peer, Life::Crashed(now));
            }
            Fault::Leave(peer) => {
                self.peers[peer].command(Command::Leave);
                self.peers[peer].is_running = false;
                self.oracles.ended(peer, Life::Left(now));
            }
            Fault::Pause(peer, by) if self.peers[peer].is_running => {
                self.net.set_paused(peer as u32, true);
                self.peers[peer].paused_until = now + by;
                self.peers[peer].next_call = now + by;
                self.last_fault = now + by;
            }
            Fault::Pause(..) => {}
            Fault::Hang(peer, by) => {
                self.peers[peer].hung_until = now + by;
                self.peers[peer].next_call = self.peers[peer].next_call.max(now + by);
            }
            Fault::Slow(peer, by) => self.peers[peer].slow_until = now + by,
            Fault::OneWay(from, to) => self.down(|a, b| (a, b) == (from, to)),
            Fault::OneLink(a, b) => self.down(|from, to| (from, to) == (a, b) || (from, to) == (b, a)),
            Fault::Isolate(peer) => self.down(|from, to| from == peer || to == peer),
            Fault::Mute(peer) => self.down(|from, _| from == peer),
            Fault::Deafen(peer) => self.down(|_, to| to == peer),
            Fault::Split(side) => self.down(|from, to| (side >> from & 1) != (side >> to & 1)),
            Fault::Heal => self.heal(),
            Fault::Path(peer, link) => {
                self.set_links(|from, to| (from == peer || to == peer).then_some(link));
            }
            Fault::Delay(peer, frames) => {
                for slot in self.peers[peer].session.local_slots() {
                    self.peers[peer].session.set_input_delay(slot, frames).expect("a local slot");
                }
            }
            Fault::Skew(peer, ppm) => {
                self.net.set_clock_skew_ppm(peer as u32, ppm);
                self.peers[peer].skew_ppm = ppm;
            }
        }
    }

    fn down(&mut self, is_down: impl Fn(usize, usize) -> bool) {
        self.is_broken = true;
        let down = Link { down: true, ..self.setup.link };
        self.set_links(|from, to| is_down(from, to).then_some(down));
    }

    fn set_links(&mut self, link: impl Fn(usize, usize) -> Option<Link>) {
        for from in 0..self.peers.len() {
            for to in (0..self.peers.len()).filter(|&to| to != from) {
                if let Some(link) = link(from, to) {
                    // A path that grew may have grown one way only, for all that a clock can tell.
                    let grown = link.latency.saturating_sub(self.setup.link.latency);
                    let shrunk = self.setup.link.latency.saturating_sub(link.latency);
                    self.jitter = self.jitter.max(link.jitter + grown + shrunk);
                    self.net.set_link(from as u32, to as u32, link);
                }
            }
        }
    }

    fn heal(&mut self) {
        self.is_broken = false;
        let link = self.setup.link;
        if self.oracles.are_cuts_excused() {
            self.oracles.excuse_cuts(Some(self.now() + CALM_AFTER));
        }
        self.set_links(|_, _| Some(link));
        let now = self.now();
        for index in 0..self.peers.len() {
            let peer = &mut self.peers[index];
            if peer.paused_until != Instant::ZERO {
                peer.paused_until = Instant::ZERO;
                self.net.set_paused(index as u32, false);
            }
            if peer.hung_until > now || peer.next_call > now + Duration::from_millis(50) {
                peer.hung_until = now;
                peer.next_call = now;
            }
            peer.slow_until = now;
        }
    }

    /// One call of one game.
    fn call(&mut self, index: usize) {
        self.calls += 1;
        let now = self.now();
        self.lobby(index);
        let local_now = self.net.local_now(index as u32);
        let peer = &mut self.peers[index];
        let was_started = peer.started;
        let call = peer.frames(local_now);
        peer.next_call = (peer.next_call + peer.period(now)).max(now);
        if !was_started && peer.started {
            self.began(index);
        }
        if let Some(reason) = call.stall.filter(|_| self.peers[index].stall_run == 1) {
            let frame = self.peers[index].current();
            self.note(format!("{index} stalls at frame {frame}: {reason:?}"));
        }
        self.events(index);
        if call.due > 0 {
            self.report_confirmed(index);
        }
        self.look_at_queues(index);
        self.send_messages(index);
    }

    /// What a player does before the match: join, be ready, start.
    fn lobby(&mut self, index: usize) {
        let now = self.now();
        while let Some(news) = self.peers[index].next_news() {
            self.mesh_news(index, news);
        }
        if self.peers[index].join_at.is_some_and(|at| at <= now) && self.peers[index].us.is_none() {
            let by = (0..self.peers.len()).find(|&p| self.peers[p].is_running && self.peers[p].us.is_some());
            let room = self.peers.iter().find_map(|peer| peer.room);
            let address = Simnet::address(by.unwrap_or(0) as u32);
            if let (Some(room), true) = (room, by.is_some() || self.peers[0].room.is_some()) {
                self.note(format!("{index} joins at {address:?}"));
                self.peers[index].command(Command::Join { address, room });
                self.peers[index].join_at = None;
            } else if !self.peers[0].is_running {
                self.peers[index].is_out = true;
            }
        }
        // Whom the host let in and died before it told others of him is alone in his room, and nobody waits for him.
        let host_is_gone = !self.peers[0].is_running;
        let is_alone = |peer: &Peer| host_is_gone && peer.us.is_some() && peer.members.len() <= 1;
        let expected =
            self.peers.iter().filter(|peer| peer.is_running && !peer.is_out && !is_alone(peer)).count();
        let peer = &mut self.peers[index];
        if peer.us.is_some() && !peer.said_ready {
            peer.said_ready = true;
            peer.command(Command::SetReady { local_slots: peer.slots() });
        }
        if !peer.said_start && peer.may_start(expected) {
            peer.said_start = true;
            peer.command(Command::Start { countdown_ms: 100 });
            self.note(format!("{index} starts the match"));
        }
    }

    fn mesh_news(&mut self, index: usize, news: MeshNews) {
        match news {
            MeshNews::Link { .. } | MeshNews::Counters { .. } | MeshNews::Clock(_) => {}
            MeshNews::Message { peer, stream, data, .. } => {
                let number =
                    data.get(..4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
                if let Some(from) = self.number_of(peer) {
                    self.oracles.message(index, from, stream, number);
                }
                self.peers[index].port.recycle(data);
            }
            MeshNews::Refused { refusal, us: true, .. } => {
                self.note(format!("{index} is refused: {refusal:?}"));
                if refusal.reason == RefuseReason::NoAnswer {
                    self.peers[index].join_at = Some(self.now() + Duration::from_millis(100));
                } else {
                    self.peers[index].is_out = true;
                }
            }
            MeshNews::Left { peer, reason } => {
                self.note(format!("{index}: {peer} left, {reason:?}"));
                if Some(peer) == self.peers[index].us && reason == LeaveReason::CutOff {
                    self.be_cut_off(index);
                }
            }
            other => self.note(format!("{index}: {other:?}")),
        }
    }

    /// The process that is this member.
    pub fn number_of(&self, peer: PeerIndex) -> Option<usize> {
        (0..self.peers.len())
            .filter(|&p| self.peers[p].us == Some(peer))
            .max_by_key(|&p| (self.peers[p].is_running, self.peers[p].started))
    }

    fn began(&mut self, index: usize) {
        let Some(start) = self.peers[index].session.start_info().copied() else { return };
        self.note(format!("{index}: begins, frame 0 at mesh time {}", start.frame0_at));
        self.oracles.started(index, start);
        for slot in Slot::all() {
            let Some(owner) = start.slots[slot.index()].and_then(|owner| self.number_of(owner)) else {
                continue;
            };
            let player = Player {
                trace: self.setup.trace,
                seed: self.seed,
                delay: self.setup.peers[owner].delay,
                delay_changes: self.setup.delay_changes,
            };
            self.oracles.set_player(slot, player);
        }
    }

    fn be_cut_off(&mut self, index: usize) {
        if !self.oracles.is_cut_off(index) {
            self.note(format!("{index} is cut off"));
            self.oracles.cut_off(index);
            // Of those who went on without it, one stands for all; it may not have heard of the result yet.
            let others = (0..self.peers.len()).filter(|&p| p != index && self.peers[p].is_running);
            let judge = others.min_by_key(|&p| {
                (self.oracles.is_member(p, index), self.oracles.is_cut_off(p) || !self.peers[p].started)
            });
            if let Some(judge) = judge {
                self.oracles.judge_cut(judge, index, self.now());
            }
        }
    }

    fn events(&mut self, index: usize) {
        while let Some(event) = self.peers[index].next_event() {
            match event {
                SessionEvent::Started => {}
                SessionEvent::SlotLeft { slot, peer, frame } => {
                    self.note(format!("{index}: slot {slot} of {peer} ends at {frame}"));
                    if let Some(leaver) = self.number_of(peer) {
                        self.oracles.judge_cut(index, leaver, self.now());
                    }
                    self.oracles.slot_left(index, slot, frame, self.is_calm());
                }
                SessionEvent::Desync { peer, frame, .. } => {
                    self.note(format!("{index}: desync with {peer} at {frame}"));
                    let other = self.number_of(peer).unwrap_or(index);
                    self.desyncs.push((index, other, frame));
                    self.oracles.desync(index, other, frame);
                }
                SessionEvent::CutOff => self.be_cut_off(index),
                SessionEvent::Overflow { dropped } => {
                    self.oracles.queue(index, "events", u64::from(dropped), 0);
                }
            }
        }
    }

    fn report_confirmed(&mut self, index: usize) {
        if self.oracles.is_cut_off(index) {
            return;
        }
        let calm = self.is_calm();
        let peer = &self.peers[index];
        let Some(start) = peer.session.start_info() else { return };
        let end = peer.session.confirmed_end().min(peer.session.current());
        for frame in self.oracles.confirmed_frames(index)..end.0 {
            let frame = Frame(frame);
            let inputs: Vec<_> = Slot::all()
                .filter(|slot| start.slots[slot.index()].is_some())
                .map(|slot| (slot, peer.session.confirmed_input(slot, frame)))
                .collect();
            let digest = peer.game.digest_before(frame).unwrap_or(0);
            self.oracles.confirmed(index, &inputs, digest, calm);
        }
    }

    fn look_at_queues(&mut self, index: usize) {
        if !self.peers[index].calls.is_multiple_of(30) || !self.peers[index].started {
            return;
        }
        let stats = self.peers[index].session.stats();
        let pool = u64::from(self.peers[index].session.state_count());
        self.oracles.queue(
            index,
            "the session's list of early inputs",
            u64::from(stats.inputs_waiting),
            4096,
        );
        self.oracles.queue(index, "the pool of states", u64::from(stats.states_live), pool);
        let lag = stats.confirmed_lag as u64;
        self.oracles.queue(index, "the prediction window", lag, stats.window as u64);
    }

    fn send_messages(&mut self, index: usize) {
        let calls = self.peers[index].calls as usize;
        if !self.setup.messages
            || !self.peers[index].started
            || !(calls + index * 7).is_multiple_of(20)
            || self.oracles.is_cut_off(index)
        {
            return;
        }
        let others: Vec<usize> = (0..self.peers.len()).filter(|&p| p != index).collect();
        let turn = (calls + index * 7) / 20;
        let stream = ALL_RELIABLE[turn % 2];
        let number = self.oracles.next_number(index, others[0], stream);
        if self.send(index, None, stream, Delivery::Reliable, number) {
            for &other in &others {
                self.oracles.sent(index, other, stream);
            }
        }
        let to = others[turn % others.len()];
        if let Some(member) = self.peers[to].us.filter(|m| self.peers[index].connected.contains(*m)) {
            let stream = PAIR_RELIABLE[turn / 2 % 2];
            let number = self.oracles.next_number(index, to, stream);
            if self.send(index, Some(member), stream, Delivery::Reliable, number) {
                self.oracles.sent(index, to, stream);
            }
        }
        let number = calls as u32;
        self.send(index, None, ALL_UNRELIABLE, Delivery::Unreliable, number);
        self.send(index, None, ALL_NEWEST, Delivery::UnreliableNewest, number);
    }

    fn send(&self, index: usize, to: Option<PeerIndex>, stream: u8, delivery: Delivery, number: u32) -> bool {
        let peer = &self.peers[index];
        let mut data = peer.port.buffer(&number.to_le_bytes());
        data.resize(4 + (number as usize * 5) % 40, index as u8);
        peer.command(Command::Send { to, stream, delivery, data })
    }

    fn check_clocks(&mut self) {
        let now = self.now();
        if now < self.next_clock_check {
            return;
        }
        self.next_clock_check = now + Duration::from_millis(250);
        // A clock judges how quick an answer was by the last 16 pings: so long a path that changed misleads it. Who cannot
        // ping the coordinator at all goes by what it learnt of its drift, for as long as that lasts.
        if self.is_broken || self.faults && now.since(self.last_fault) < Duration::from_secs(8) {
            return;
        }
        let mut times = Vec::new();
        for (index, peer) in self.peers.iter().enumerate() {
            let is_with_us = peer.is_running && peer.started && !self.oracles.is_cut_off(index);
            if is_with_us && peer.next_call <= now + Duration::from_millis(50) {
                let local = self.net.local_now(index as u32);
                times.push((index, peer.session.clock().mesh_time(local)));
            }
        }
        let tolerance = self.setup.clock_tolerance() + self.jitter;
        // After a split each side keeps a time of its own.
        while let Some(&(first, _)) = times.first() {
            let is_with = |other: usize| other == first || self.oracles.is_member(first, other);
            let side: Vec<_> = times.iter().copied().filter(|&(other, _)| is_with(other)).collect();
            times.retain(|&(other, _)| !side.iter().any(|&(one, _)| one == other));
            self.oracles.mesh_times(&side, tolerance);
        }
    }

    /// How long ago a peer's next frame should have begun by its own clock, in frames.
    pub fn lateness(&self, peer: usize) -> f64 {
        let of = &self.peers[peer];
        let Some(start) = of.session.start_info() else { return 0.0 };
        let mesh = of.session.clock().mesh_time(self.net.local_now(peer as u32));
        let passed = mesh.0 as f64 - start.frame0_at.0 as f64;
        passed * 60.0 / 1e6 - f64::from(of.current().0)
    }

    /// Who still plays: runs, started, and was not cut off.
    pub fn remaining(&self) -> Vec<usize> {
        (0..self.peers.len())
            .filter(|&p| self.peers[p].is_running && self.peers[p].started && !self.oracles.is_cut_off(p))
            .collect()
    }

    /// After a death before the start: those who are in the room with others play, unless the room died with its host.
    /// A member that died in the lobby is missed after 15 s.
    pub fn expect_started_or_dead_room(&mut self) {
        let end = self.now() + Duration::from_secs(20);
        while self.now() < end
            && self.peers.iter().any(|peer| peer.is_running && !peer.is_out && !peer.started)
        {
            self.run_for(Duration::from_millis(500));
        }
        for (index, peer) in self.peers.iter().enumerate() {
            let with_others = (0..self.peers.len()).any(|p| {
                let other = &self.peers[p];
                p != index && other.is_running && other.us.is_some_and(|us| peer.members.contains(us))
            });
            if peer.is_running && !peer.is_out && peer.us.is_some() && with_others && !peer.started {
                self.fail(&format!("{index} is in the room with others, but the match did not start for it"));
            }
        }
    }

    /// The second half of a run: all links are good again, and those who remain must go on, together.
    pub fn expect_recovery(&mut self) {
        self.script.clear();
        self.apply(Fault::Heal);
        self.run_for(SETTLE);
        let before: Vec<_> = self.remaining().iter().map(|&p| self.standing(p)).collect();
        let who = self.remaining();
        self.run_for(WATCH);
        if who.is_empty() && self.peers.iter().any(|peer| peer.is_running && peer.started) {
            self.fail("nobody plays on");
        }
        let done: Vec<_> = who
            .iter()
            .zip(before)
            .map(|(&p, (begun, confirmed))| {
                let (begun_now, confirmed_now) = self.standing(p);
                (p, begun_now - begun, confirmed_now - confirmed)
            })
            .collect();
        self.oracles.progress(&done, 150);
        self.messages_stop();
        self.run_for(Duration::from_secs(1));
        self.oracles.finish();
        self.expect_no_violation();
    }

    fn messages_stop(&mut self) {
        self.setup.messages = false;
    }

    fn standing(&self, peer: usize) -> (i32, i32) {
        (self.peers[peer].session.current().0, self.peers[peer].session.confirmed_end().0)
    }

    /// Desyncs that were told: by whom, with whom, at which frame.
    pub fn desyncs(&self) -> &[(usize, usize, Frame)] {
        &self.desyncs
    }

    /// Game calls so far.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    fn expect_no_violation(&self) {
        if !self.oracles.violations().is_empty() {
            self.fail(&self.oracles.violations().join("\n"));
        }
    }

    /// Notes what a failure will print.
    pub fn note(&mut self, what: impl std::fmt::Display) {
        if self.log.len() == LOG_LINES * 4 {
            self.log.pop_front();
        }
        let at = self.now();
        self.log.push_back(format!("{at} {what}"));
    }

    /// The run is wrong: says what, in which world, and what happened last.
    pub fn fail(&self, what: &str) -> ! {
        let mut text = format!("{what}\nat {} in a world of {}\n", self.now(), self.setup);
        let skipped = self.log.len().saturating_sub(LOG_LINES);
        for line in self.log.iter().skip(skipped) {
            let _ = writeln!(text, "  {line}");
        }
        text.push_str("newest datagrams:\n");
        for entry in self.net.trace().newest(LOG_LINES) {
            let _ = writeln!(text, "  {entry}");
        }
        for (index, peer) in self.peers.iter().enumerate() {
            let stats = peer.session.stats();
            let _ = writeln!(
                text,
                "  {index}: member {:?}, frame {}, confirmed {}, running {}, cut off {}, last stall {:?}",
                peer.us,
                stats.frame,
                stats.confirmed_frame,
                peer.is_running,
                self.oracles.is_cut_off(index),
                stats.last_stall
            );
        }
        panic!("{text}");
    }
}
