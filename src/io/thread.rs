//! The one IO thread of the process: started with the first mesh, gone with the last.
//!
//! Fed by: mesh handles that open, change and close. Yields: turns of the driver for all of them.
//! Never: outlives `shutdown`; leaves a thread behind that nobody joins; hands out a mesh whose thread is gone.

use super::conditioner::Setting;
use super::datagrams::Counters;
use super::entropy::OsEntropy;
use super::poll::{Bell, Waiter};
use super::socket::{BindConfig, Bound, LocalAddrs};
use super::turn::{Driver, Endpoint, Line, bury, text_of, waker};
use super::{OpenError, clock, cpu};
use crate::bridge::{self, MeshPort, NodePort};
use crate::config::ValidMeshConfig;
use crate::netem::Link;
use crate::node::Node;
use crate::simnet::Drive;
use crossbeam_channel::RecvTimeoutError;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long closing the last mesh waits for the thread. Longer only while a node says goodbye: then the thread ends by
/// itself, and the next opening or `shutdown` joins it.
const JOIN_WITHIN: Duration = Duration::from_millis(20);

/// A mesh that the IO thread runs. Dropping it closes the mesh.
pub struct ThreadedMesh {
    /// The game half's end.
    pub port: MeshPort,
    /// What belongs to the thread.
    pub handle: ThreadHandle,
}

/// Dropped after the port: the node sees that the game half is gone, has at most 300 ms to say goodbye, and ends.
pub struct ThreadHandle {
    runtime: &'static Runtime,
    hub: Arc<Hub>,
    id: usize,
    line: Arc<Line>,
    local: LocalAddrs,
    counters: Arc<Counters>,
}

/// Opens a mesh on sockets of its own and has the IO thread run it.
pub fn open_threaded(config: ValidMeshConfig, bind: BindConfig) -> Result<ThreadedMesh, OpenError> {
    PROCESS.open(bind, |port| node(config, port))
}

/// Closes every mesh of the IO thread and joins it. May be called again; a mesh opened later starts it anew.
pub fn shutdown() {
    PROCESS.shutdown();
}

/// How many IO threads run.
pub fn thread_count_for_tests() -> usize {
    PROCESS.threads.load(Ordering::Acquire)
}

/// A real node with real keys.
pub(super) fn node(mut config: ValidMeshConfig, port: NodePort) -> Result<Box<dyn Drive>, OpenError> {
    if config.unix_time_s == 0 {
        config.unix_time_s = clock::unix_time_s();
    }
    config.has_aes = cpu::has_aes();
    Ok(Box::new(Node::new(config, port, Box::new(OsEntropy::open()?), clock::now())))
}

impl ThreadHandle {
    /// Where it listens.
    pub fn local_addrs(&self) -> LocalAddrs {
        self.local
    }

    /// What its sockets went through.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Outgoing datagrams pass a link like this from now on, each destination with luck of its own.
    pub fn set_conditioner(&self, link: Link, seed: u64) {
        self.line.condition(Setting { link, seed }, &self.hub.bell);
    }
}

impl Drop for ThreadHandle {
    fn drop(&mut self) {
        self.runtime.close(&self.hub, self.id);
    }
}

/// What handles tell the thread.
enum Control {
    Add(Box<Endpoint>),
    Close {
        id: usize,
    },
    /// Ends when the last endpoint is gone.
    EndWhenEmpty,
    /// Ends now.
    End,
    /// Fails, as by a defect of ours.
    #[cfg(test)]
    Fail,
}

/// What a thread and its handles share.
struct Hub {
    bell: Bell,
    /// `None`: the thread will look at nothing any more.
    controls: Mutex<Option<Vec<Control>>>,
}

impl Hub {
    fn new(bell: Bell) -> Self {
        Self { bell, controls: Mutex::new(Some(Vec::new())) }
    }

    /// Says whether the thread will see it; if not, what it held is dropped.
    fn tell(&self, control: Control) -> bool {
        let is_told = self.controls.lock().as_mut().map(|controls| controls.push(control)).is_some();
        if is_told {
            self.bell.ring();
        }
        is_told
    }

    /// The thread takes what it was told.
    fn take(&self, into: &mut Vec<Control>) {
        if let Some(controls) = self.controls.lock().as_mut() {
            std::mem::swap(into, controls);
        }
    }

    /// The thread ends: whoever tells it something from now on learns that it did.
    fn end(&self) {
        for control in self.controls.lock().take().unwrap_or_default() {
            if let Control::Add(endpoint) = control {
                bury(*endpoint);
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.controls.lock().is_none()
    }
}

/// The threads of a process; there is one runtime, and tests have their own.
struct Runtime {
    state: Mutex<State>,
    threads: AtomicUsize,
}

static PROCESS: Runtime = Runtime::new();

struct State {
    running: Option<Running>,
    /// Threads whose last node still says goodbye.
    ending: Vec<(Arc<Hub>, JoinHandle<()>)>,
    next_id: usize,
}

struct Running {
    hub: Arc<Hub>,
    thread: JoinHandle<()>,
    meshes: usize,
    ended: crossbeam_channel::Receiver<()>,
}

impl Runtime {
    const fn new() -> Self {
        let state = State { running: None, ending: Vec::new(), next_id: 0 };
        Self { state: Mutex::new(state), threads: AtomicUsize::new(0) }
    }

    fn open(
        &'static self,
        bind: BindConfig,
        make: impl FnOnce(NodePort) -> Result<Box<dyn Drive>, OpenError>,
    ) -> Result<ThreadedMesh, OpenError> {
        let bound = Bound::bind(bind)?;
        let (local, counters, line) =
            (bound.local_addrs(), Arc::<Counters>::default(), Arc::<Line>::default());
        let mut state = self.state.lock();
        state.join_ended();
        let id = state.next_id;
        state.next_id += 1;
        let running = match state.running.take() {
            Some(running) if !running.hub.has_ended() => running,
            failed => {
                // Its meshes were told by their closed queues.
                state.ending.extend(failed.map(|running| (running.hub, running.thread)));
                self.start()?
            }
        };
        let hub = Arc::clone(&running.hub);
        let running = state.running.insert(running);
        let (port, node_port) = bridge::open(waker(hub.bell.clone(), Arc::clone(&line)));
        let endpoint = make(node_port).and_then(|node| {
            let sockets = bound.watch(&hub.bell, id, Arc::clone(&counters)).map_err(|error| OpenError {
                message: format!(
                    "The UDP sockets could not be watched ({error}); too many files may be open."
                ),
            })?;
            Ok(Endpoint::new(id, node, sockets, Arc::clone(&line)))
        });
        match endpoint {
            Ok(endpoint) => {
                running.meshes += 1;
                // Should the thread fail at this very moment, the mesh learns it as all the others do.
                hub.tell(Control::Add(Box::new(endpoint)));
            }
            Err(error) => {
                if running.meshes == 0 {
                    hub.tell(Control::EndWhenEmpty);
                    self.retire(state);
                }
                return Err(error);
            }
        }
        Ok(ThreadedMesh { port, handle: ThreadHandle { runtime: self, hub, id, line, local, counters } })
    }

    fn start(&'static self) -> Result<Running, OpenError> {
        let failed = |error: std::io::Error| OpenError {
            message: format!(
                "The IO thread could not be started ({error}); too many files or threads may be open."
            ),
        };
        let waiter = Waiter::new().map_err(failed)?;
        let hub = Arc::new(Hub::new(waiter.bell()));
        let (end, ended) = crossbeam_channel::bounded(1);
        let counted = Counted::new(&self.threads);
        let thread = thread::Builder::new()
            .name("retick-io".into())
            .spawn({
                let hub = Arc::clone(&hub);
                move || {
                    let _counted = counted;
                    let mut driver = Driver::new(waiter);
                    // A node that fails ends alone (`turn`); this is about the driver itself. The game sees its meshes close.
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(&hub, &mut driver))) {
                        log::error!(
                            "io: the IO thread failed, and its meshes end: {}",
                            text_of(panic.as_ref())
                        );
                    }
                    driver.bury_all();
                    hub.end();
                    let _ = end.send(());
                }
            })
            .map_err(failed)?;
        Ok(Running { hub, thread, meshes: 0, ended })
    }

    fn close(&self, hub: &Arc<Hub>, id: usize) {
        let mut state = self.state.lock();
        // A handle may outlive its thread, and another may run by now.
        let Some(running) = state.running.as_mut().filter(|running| Arc::ptr_eq(&running.hub, hub)) else {
            return;
        };
        running.meshes -= 1;
        hub.tell(Control::Close { id });
        if running.meshes == 0 {
            hub.tell(Control::EndWhenEmpty);
            self.retire(state);
        }
    }

    /// The running thread has been told to end: joins it now if it is quick, else leaves it to be joined later. It is
    /// listed as ending all the while, so that a `shutdown` on another thread ends and joins it.
    fn retire(&self, mut state: parking_lot::MutexGuard<'_, State>) {
        let Some(Running { hub, thread, ended, .. }) = state.running.take() else { return };
        state.ending.push((Arc::clone(&hub), thread));
        drop(state);
        if ended.recv_timeout(JOIN_WITHIN) == Err(RecvTimeoutError::Timeout) {
            return;
        }
        let mut state = self.state.lock();
        let position = state.ending.iter().position(|(ending, _)| Arc::ptr_eq(ending, &hub));
        let thread = position.map(|at| state.ending.swap_remove(at).1);
        drop(state);
        if let Some(thread) = thread {
            join(thread);
        }
    }

    fn shutdown(&self) {
        let mut state = self.state.lock();
        let running = state.running.take().map(|running| (running.hub, running.thread));
        let threads: Vec<_> = state.ending.drain(..).chain(running).collect();
        drop(state);
        for (hub, _) in &threads {
            hub.tell(Control::End);
        }
        for (_, thread) in threads {
            join(thread);
        }
    }
}

impl State {
    /// Joins those threads that ended meanwhile.
    fn join_ended(&mut self) {
        for (hub, thread) in std::mem::take(&mut self.ending) {
            if thread.is_finished() { join(thread) } else { self.ending.push((hub, thread)) }
        }
    }
}

/// The thread: turns until told to end.
fn run(hub: &Hub, driver: &mut Driver) {
    let mut controls = Vec::new();
    let mut ends_when_empty = false;
    loop {
        hub.take(&mut controls);
        for control in controls.drain(..) {
            match control {
                Control::Add(endpoint) => driver.add(*endpoint),
                Control::Close { id } => driver.close(id, clock::now()),
                Control::EndWhenEmpty => ends_when_empty = true,
                Control::End => {
                    // A last time, so that goodbyes still go out.
                    driver.run_all();
                    return;
                }
                #[cfg(test)]
                Control::Fail => panic!("told to"),
            }
        }
        if ends_when_empty && driver.is_empty() {
            return;
        }
        driver.turn(ends_when_empty.then_some(JOIN_WITHIN));
    }
}

/// Counts a thread while it runs.
struct Counted(&'static AtomicUsize);

impl Counted {
    fn new(count: &'static AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn join(thread: JoinHandle<()>) {
    // What failed in it was told to the log there.
    let _ = thread.join();
}

#[cfg(test)]
mod tests;
