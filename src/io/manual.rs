//! A mesh without a thread: the caller runs the driver's iteration.
//!
//! Fed by: `turn`. Yields: the same as the IO thread. Never: runs while nobody calls; others see silence then.

use super::OpenError;
use super::conditioner::Setting;
use super::datagrams::Counters;
use super::poll::{Bell, Waiter};
use super::socket::{BindConfig, Bound, LocalAddrs};
use super::thread::node;
use super::turn::{Driver, Endpoint, Line, waker};
use crate::bridge::{self, MeshPort, NodePort};
use crate::config::ValidMeshConfig;
use crate::netem::Link;
use crate::simnet::Drive;
use std::sync::Arc;
use std::time::Duration;

/// A mesh has one endpoint.
const ID: usize = 0;

/// A mesh that its owner runs. Dropping it closes the sockets at once; send `Leave` and turn until `is_open` is false to
/// say goodbye before.
pub struct ManualMesh {
    /// The game half's end.
    pub port: MeshPort,
    driver: Driver,
    bell: Bell,
    line: Arc<Line>,
    local: LocalAddrs,
    counters: Arc<Counters>,
}

/// Opens a mesh on sockets of its own, to be run by [`ManualMesh::turn`].
pub fn open_manual(config: ValidMeshConfig, bind: BindConfig) -> Result<ManualMesh, OpenError> {
    ManualMesh::open(bind, |port| node(config, port))
}

impl ManualMesh {
    pub(super) fn open(
        bind: BindConfig,
        make: impl FnOnce(NodePort) -> Result<Box<dyn Drive>, OpenError>,
    ) -> Result<Self, OpenError> {
        let bound = Bound::bind(bind)?;
        let failed = |error: std::io::Error| OpenError {
            message: format!("The UDP sockets could not be watched ({error}); too many files may be open."),
        };
        let waiter = Waiter::new().map_err(failed)?;
        let bell = waiter.bell();
        let (local, counters, line) =
            (bound.local_addrs(), Arc::<Counters>::default(), Arc::<Line>::default());
        let (port, node_port) = bridge::open(waker(bell.clone(), Arc::clone(&line)));
        let node = make(node_port)?;
        let sockets = bound.watch(&bell, ID, Arc::clone(&counters)).map_err(failed)?;
        let mut driver = Driver::new(waiter);
        driver.add(Endpoint::new(ID, node, sockets, Arc::clone(&line)));
        Ok(Self { port, driver, bell, line, local, counters })
    }

    /// Runs one iteration: waits until something is to be done, at most for `timeout`, and does it.
    pub fn turn(&mut self, timeout: Duration) {
        self.driver.turn(Some(timeout));
    }

    /// Whether the node still runs; it does not after it said goodbye, or failed.
    pub fn is_open(&self) -> bool {
        !self.driver.is_empty()
    }

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
        self.line.condition(Setting { link, seed }, &self.bell);
    }
}

#[cfg(test)]
mod tests;
