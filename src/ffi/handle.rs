//! The handle table: numbers that name objects, never memory.
//!
//! Fed by: create, destroy and every call. Yields: the object, locked for one call, or the reason why not.
//! Never: frees the table, follows a number without checking it, blocks on a lock that a call may hold for long.
//!
//! An id is kind and index and a generation that never repeats. It is compared without a lock; the object behind it is
//! try-locked, so that a second thread, or the game's code inside a call, gets BUSY. A poisoned object stays until it is
//! destroyed; one with an open step list outlives `shutdown` until the list is closed.

use super::convert::{self, IoMode, MeshSetup};
use super::guard::{self, Failure, Outcome};
use super::handles::{retick_mesh, retick_session, retick_simnet};
use super::library::{RETICK_OK, retick_result};
use super::log;
use super::mesh_handle::MeshHandle;
use super::session_handle::{Clock, Open, SessionHandle};
use super::session_types::retick_session_config;
use super::simnet_handle::SimnetHandle;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Most handles at once: 64 sessions of 16 peers in one process.
const CELLS: usize = 1024;
const INDEX_BITS: u32 = 16;
const KIND_BITS: u32 = 8;

/// What an id may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Mesh = 0x4d,
    Session = 0x53,
    Simnet = 0x4e,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Mesh => "mesh",
            Self::Session => "session",
            Self::Simnet => "net",
        }
    }
}

enum Object {
    Mesh(Box<MeshHandle>),
    Session(Box<SessionHandle>),
    Simnet(Box<SimnetHandle>),
}

const LIVE: u8 = 0;
/// A panic went through it.
const POISONED: u8 = 1;
/// `shutdown` came while a step list was open.
const DEAD: u8 = 2;

struct Cell {
    /// The id of the object in it; 0 = none.
    id: AtomicU64,
    condition: AtomicU8,
    object: Mutex<Option<Object>>,
}

static TABLE: [Cell; CELLS] =
    [const { Cell { id: AtomicU64::new(0), condition: AtomicU8::new(LIVE), object: Mutex::new(None) } };
        CELLS];

/// The next generation. It starts at an odd place, so that small numbers are no ids.
static GENERATION: AtomicU64 = AtomicU64::new(0x5e_71c4);

fn create(kind: Kind, object: Object) -> Outcome<u64> {
    for (index, cell) in TABLE.iter().enumerate() {
        if cell.id.load(Ordering::Acquire) != 0 {
            continue;
        }
        let Some(mut place) = cell.object.try_lock().filter(|place| place.is_none()) else { continue };
        let generation = GENERATION.fetch_add(1, Ordering::Relaxed);
        let id = generation << (INDEX_BITS + KIND_BITS) | (kind as u64) << INDEX_BITS | index as u64;
        *place = Some(object);
        cell.condition.store(LIVE, Ordering::Relaxed);
        cell.id.store(id, Ordering::Release);
        return Ok(id);
    }
    Err(Failure::large(format!("{CELLS} handles exist already; destroy those that are not needed")))
}

fn find(kind: Kind, id: u64) -> Outcome<&'static Cell> {
    if id == 0 {
        return Err(Failure::handle(format!("{} is null; create one first", kind.name())));
    }
    let index = (id & ((1 << INDEX_BITS) - 1)) as usize;
    let of_kind = id >> INDEX_BITS & ((1 << KIND_BITS) - 1) == kind as u64;
    TABLE
        .get(index)
        .filter(|cell| of_kind && cell.id.load(Ordering::Acquire) == id)
        .ok_or_else(|| no_longer(kind))
}

fn no_longer(kind: Kind) -> Failure {
    Failure::handle(format!(
        "{} names nothing: it was destroyed, is of another kind, or was never made",
        kind.name()
    ))
}

fn lock(kind: Kind, id: u64, waits: bool) -> Outcome<(&'static Cell, MutexGuard<'static, Option<Object>>)> {
    let cell = find(kind, id)?;
    let place = if waits { Some(cell.object.lock()) } else { cell.object.try_lock() };
    let Some(place) = place else {
        return Err(Failure::busy(format!(
            "another call is in this {} now (on another thread, or around this callback)",
            kind.name()
        )));
    };
    // It may have been destroyed while we came here.
    if cell.id.load(Ordering::Acquire) != id || place.is_none() {
        return Err(no_longer(kind));
    }
    Ok((cell, place))
}

fn check_condition(cell: &Cell, kind: Kind) -> Outcome<()> {
    match cell.condition.load(Ordering::Acquire) {
        POISONED => Err(Failure::panic(format!(
            "an earlier call ran into a bug in retick, and this {} is unusable since; destroy it",
            kind.name()
        ))),
        DEAD => {
            Err(Failure::shut_down("retick_shutdown was called while a step list was open; close the list"))
        }
        _ => Ok(()),
    }
}

/// Runs `body`; a panic poisons the handle.
fn run<T>(cell: &Cell, body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let outcome = guard::catch(body);
    if outcome.is_err() {
        cell.condition.store(POISONED, Ordering::Release);
    }
    outcome.and_then(|outcome| outcome)
}

/// Runs a call on a mesh.
pub(super) fn with_mesh<T>(
    mesh: retick_mesh,
    body: impl FnOnce(&mut MeshHandle) -> Outcome<T>,
) -> Outcome<T> {
    let (cell, mut place) = lock(Kind::Mesh, mesh.id, false)?;
    check_condition(cell, Kind::Mesh)?;
    let Some(Object::Mesh(object)) = place.as_mut() else { return Err(no_longer(Kind::Mesh)) };
    run(cell, || body(object))
}

/// Runs a call on a simulated network.
pub(super) fn with_simnet<T>(
    net: retick_simnet,
    body: impl FnOnce(&mut SimnetHandle) -> Outcome<T>,
) -> Outcome<T> {
    let (cell, mut place) = lock(Kind::Simnet, net.id, false)?;
    check_condition(cell, Kind::Simnet)?;
    let Some(Object::Simnet(object)) = place.as_mut() else { return Err(no_longer(Kind::Simnet)) };
    run(cell, || body(object))
}

/// Which step list a call of a session wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// None may be open.
    NoList,
    /// It does not matter.
    Any,
    /// One that the game runs.
    List,
    /// One that the game or `retick_session_advance` runs.
    AnyList,
    /// One that the game runs, to close it: also when the handle is poisoned or dead.
    Close,
    /// The one that `retick_session_advance` runs, by itself.
    Drive,
}

/// Runs a call on a session.
pub(super) fn with_session<T>(
    session: retick_session,
    need: Need,
    body: impl FnOnce(&mut SessionHandle) -> Outcome<T>,
) -> Outcome<T> {
    let (cell, mut place) = lock(Kind::Session, session.id, need == Need::Drive)?;
    let Some(Object::Session(object)) = place.as_mut() else { return Err(no_longer(Kind::Session)) };
    let open = object.open();
    if let Err(failure) = check_condition(cell, Kind::Session) {
        let closes = match need {
            Need::Close => open == Open::ByGame,
            Need::Drive => true,
            _ => false,
        };
        if closes && cell.condition.load(Ordering::Acquire) == DEAD {
            take_out(cell, place);
        } else if closes {
            object.forget_list();
        }
        return Err(failure);
    }
    match (need, open) {
        (Need::NoList, Open::ByGame) => {
            return Err(Failure::busy(
                "a step list is open; close it with retick_session_end_frame or _abort_frame",
            ));
        }
        (Need::NoList | Need::List | Need::Close, Open::ByLibrary) => {
            return Err(Failure::busy(
                "retick_session_advance is running; this call makes no sense inside a callback",
            ));
        }
        (Need::List | Need::AnyList, Open::No) => {
            return Err(Failure::state("no step list is open; begin one with retick_session_begin_frame"));
        }
        _ => {}
    }
    run(cell, || body(object))
}

/// Frees the cell, then drops the object outside of the lock.
fn take_out(cell: &Cell, mut place: MutexGuard<'_, Option<Object>>) {
    let object = place.take();
    cell.id.store(0, Ordering::Release);
    drop(place);
    // A bug in a destructor must not reach the caller; there is nothing left to poison.
    let _ = guard::catch(|| drop(object));
}

fn destroy(kind: Kind, id: u64) -> Outcome {
    if id == 0 {
        return Ok(RETICK_OK);
    }
    let (cell, place) = lock(kind, id, false)?;
    if let Some(Object::Session(session)) = place.as_ref()
        && session.open() != Open::No
    {
        return Err(Failure::busy("a step list is open; close it first"));
    }
    take_out(cell, place);
    Ok(RETICK_OK)
}

/// See `retick_mesh_destroy`.
pub(super) fn destroy_mesh(mesh: retick_mesh) -> Outcome {
    if mesh.id != 0 && check_condition(find(Kind::Mesh, mesh.id)?, Kind::Mesh).is_ok() {
        with_mesh(mesh, |mesh| {
            mesh.say_goodbye();
            Ok(())
        })?;
    }
    destroy(Kind::Mesh, mesh.id)
}

/// See `retick_session_destroy`.
pub(super) fn destroy_session(session: retick_session) -> Outcome {
    destroy(Kind::Session, session.id)
}

/// See `retick_simnet_destroy`.
pub(super) fn destroy_simnet(net: retick_simnet) -> Outcome {
    destroy(Kind::Simnet, net.id)
}

/// See `retick_simnet_create`.
pub(super) fn create_simnet(seed: u64) -> Outcome<u64> {
    create(Kind::Simnet, Object::Simnet(Box::new(SimnetHandle::new(seed))))
}

/// See `retick_mesh_create`.
pub(super) fn create_mesh(setup: MeshSetup) -> Outcome<u64> {
    let mesh = match setup.io {
        IoMode::Simnet(net) => with_simnet(net, |net| Ok(MeshHandle::on_simnet(net.attach(setup.config))))?,
        io => MeshHandle::open(io, setup.config)?,
    };
    create(Kind::Mesh, Object::Mesh(Box::new(mesh)))
}

/// See `retick_session_create`.
pub(super) fn create_session(config: &retick_session_config, mesh: retick_mesh) -> Outcome<u64> {
    let valid = convert::session_config(config)?;
    let session = if mesh.id == 0 {
        SessionHandle::new(valid, config, None, Clock::Os, None)
    } else {
        with_mesh(mesh, |mesh| {
            let (port, clock, marker) = mesh.open_session(valid.settings)?;
            Ok(SessionHandle::new(valid, config, Some(port), clock, Some(marker)))
        })?
    };
    create(Kind::Session, Object::Session(Box::new(session)))
}

/// See `retick_shutdown`.
pub(super) fn shutdown() -> Outcome<retick_result> {
    if guard::is_in_user_code() {
        return Err(Failure::busy("a callback of the game is running; shut down from outside of it"));
    }
    // Sessions first, then the meshes that they use, then the networks that those use.
    for kind in [Kind::Session, Kind::Mesh, Kind::Simnet] {
        for cell in &TABLE {
            let id = cell.id.load(Ordering::Acquire);
            if id == 0 || id >> INDEX_BITS & ((1 << KIND_BITS) - 1) != kind as u64 {
                continue;
            }
            // A call on another thread is waited for; none lasts, since user code runs without this lock (the
            // predictor aside, which returns at once).
            let mut place = cell.object.lock();
            match place.as_mut() {
                Some(Object::Session(session)) if session.open() != Open::No => {
                    cell.condition.store(DEAD, Ordering::Release);
                    continue;
                }
                Some(Object::Mesh(mesh)) if cell.condition.load(Ordering::Acquire) == LIVE => {
                    let _ = guard::catch(|| mesh.say_goodbye());
                }
                _ => {}
            }
            take_out(cell, place);
        }
    }
    crate::io::shutdown();
    log::reset();
    Ok(RETICK_OK)
}

#[cfg(test)]
mod tests;
