//! Exports of the simnet group: whole matches in virtual time, in one process.
//!
//! Fed by: the game's thread. Yields: virtual time passing for every mesh that is attached.
//! Never: starts a thread or reads a clock.

use super::guard::{Failure, call};
use super::handle::{self, with_simnet};
use super::handles::retick_simnet;
use super::library::{RETICK_OK, retick_result};
use super::mesh_types::{RETICK_ALL_PEERS, retick_link};
use super::{convert, log, ptr};
use std::time::Duration;

/// Most microseconds of one advance: an hour.
const MAX_ADVANCE_US: u64 = 3_600_000_000;

/// A simulated network: meshes with io_mode RETICK_IO_SIMNET attach to it and run in its virtual time, on the caller's
/// thread. The same seed and the same calls give the same match. Its time starts at 0.
///
/// \param seed any number.
/// \param out_net the new network.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT.
///
/// Thread: any.
/// Lifetime: until retick_simnet_destroy or retick_shutdown.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_simnet_create(seed: u64, out_net: *mut retick_simnet) -> retick_result {
    call("retick_simnet_create", || {
        ptr::check("out_net", out_net)?;
        let id = handle::create_simnet(seed)?;
        // SAFETY: not null, and the header demands a writable `retick_simnet` there.
        unsafe { out_net.write_unaligned(retick_simnet { id }) };
        Ok(RETICK_OK)
    })
}

/// Fills a link with "perfect": no delay, no loss.
///
/// \param link what to fill.
/// \param struct_size sizeof(retick_link).
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT.
///
/// Thread: any, at any time.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_link_init(link: *mut retick_link, struct_size: u32) -> retick_result {
    // SAFETY: the header demands `struct_size` writable bytes at a non-null `link`.
    call("retick_link_init", || unsafe { ptr::init_struct::<retick_link>("link", link, struct_size) })
}

/// Sets what a directed link does to datagrams from now on. Until then links are perfect.
///
/// \param net the network.
/// \param from, to nodes in the order in which their meshes were created on this network, from 0; RETICK_ALL_PEERS = every one.
/// \param link filled by retick_link_init first. Copied.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one network.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_simnet_set_link(
    net: retick_simnet,
    from: u32,
    to: u32,
    link: *const retick_link,
) -> retick_result {
    call("retick_simnet_set_link", || {
        // SAFETY: the header demands `struct_size` readable bytes at a non-null `link`.
        let link = convert::link(&unsafe { ptr::read_struct::<retick_link>("link", link) }?)?;
        with_simnet(net, |net| net.set_link(from, to, link))
    })
}

/// Stops or resumes a node: a paused one sends and hears nothing, as if its process hung.
///
/// \param net the network.
/// \param index the node, in the order of creation, from 0.
/// \param paused 1 or 0.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one network.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_simnet_set_paused(net: retick_simnet, index: u32, paused: u32) -> retick_result {
    call("retick_simnet_set_paused", || {
        if paused > 1 {
            return Err(Failure::argument(format!("paused is {paused}; use 0 or 1")));
        }
        if index == RETICK_ALL_PEERS {
            return Err(Failure::argument("index is RETICK_ALL_PEERS; nodes are paused one by one"));
        }
        with_simnet(net, |net| net.set_paused(index, paused == 1))
    })
}

/// Lets virtual time pass: runs the network half of every mesh on this network. Sessions are driven by the game as ever.
///
/// \param net the network.
/// \param microseconds how long, 0 to 3600000000.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one network.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_simnet_advance(net: retick_simnet, microseconds: u64) -> retick_result {
    let result = call("retick_simnet_advance", || {
        if microseconds > MAX_ADVANCE_US {
            return Err(Failure::argument(format!(
                "microseconds is {microseconds}; use 0 to {MAX_ADVANCE_US}"
            )));
        }
        with_simnet(net, |net| net.advance(Duration::from_micros(microseconds)))
    });
    log::deliver();
    result
}

/// Virtual time.
///
/// \param net the network.
/// \param out_us microseconds since the network was created.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one network.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_simnet_time_us(net: retick_simnet, out_us: *mut u64) -> retick_result {
    call("retick_simnet_time_us", || {
        ptr::check("out_us", out_us)?;
        with_simnet(net, |net| {
            // SAFETY: not null, and the header demands a writable `uint64_t` there.
            unsafe { out_us.write_unaligned(net.now_us()) };
            Ok(RETICK_OK)
        })
    })
}

/// Removes a network. Meshes that are attached to it stay, but nothing reaches them any more.
///
/// \param net the network; null is ok.
/// \returns RETICK_OK; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one network.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_simnet_destroy(net: retick_simnet) -> retick_result {
    let result = call("retick_simnet_destroy", || handle::destroy_simnet(net));
    log::deliver();
    result
}
