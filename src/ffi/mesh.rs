//! Exports of the mesh group: who is there, on which path, who coordinates.
//!
//! Fed by: the game's thread. Yields: commands to the network half, its news as events.
//! Never: blocks or waits for the network half.

use super::event_types::retick_event;
use super::guard::{Failure, call};
use super::handle::{self, with_mesh};
use super::handles::retick_mesh;
use super::library::{RETICK_NONE, RETICK_OK, retick_result};
use super::mesh_types::{retick_link, retick_mesh_config, retick_peer_stats};
use super::{convert, log, ptr};
use std::ffi::{c_char, c_void};

/// Fills a mesh configuration with the defaults.
///
/// \param config what to fill.
/// \param struct_size sizeof(retick_mesh_config).
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT.
///
/// Thread: any, at any time.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_mesh_config_init(
    config: *mut retick_mesh_config,
    struct_size: u32,
) -> retick_result {
    call("retick_mesh_config_init", || {
        // SAFETY: the header demands `struct_size` writable bytes at a non-null `config`.
        unsafe { ptr::init_struct::<retick_mesh_config>("config", config, struct_size) }
    })
}

/// Makes a peer that is in no room yet; opens its sockets.
///
/// \param config filled by retick_mesh_config_init first. Copied, texts included.
/// \param out_mesh the new mesh.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE (simnet); RETICK_ERR_BUSY;
///   RETICK_ERR_SYSTEM when the address cannot be bound.
///
/// Thread: any. From then on one thread at a time.
/// Lifetime: until retick_mesh_destroy or retick_shutdown.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_mesh_create(
    config: *const retick_mesh_config,
    out_mesh: *mut retick_mesh,
) -> retick_result {
    call("retick_mesh_create", || {
        ptr::check("out_mesh", out_mesh)?;
        // SAFETY: the header demands `struct_size` readable bytes at a non-null `config`, and what its pointers promise.
        let setup =
            unsafe { convert::mesh_setup(&ptr::read_struct::<retick_mesh_config>("config", config)?) }?;
        let id = handle::create_mesh(setup)?;
        // SAFETY: not null, and the header demands a writable `retick_mesh` there.
        unsafe { out_mesh.write_unaligned(retick_mesh { id }) };
        Ok(RETICK_OK)
    })
}

/// Opens a new room and makes this peer its first member. RETICK_EVENT_JOINED follows.
///
/// \param mesh the mesh.
/// \returns RETICK_OK; RETICK_ERR_INVALID_STATE when it is in a room, joining one, or has left one; RETICK_ERR_INVALID_HANDLE;
///   RETICK_ERR_BUSY; RETICK_ERR_WOULD_BLOCK.
///
/// Thread: any; one thread at a time for one mesh.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_mesh_host(mesh: retick_mesh) -> retick_result {
    call("retick_mesh_host", || with_mesh(mesh, |m| m.host()))
}

/// The room that this peer is in: a secret. Whoever has it and the address of a member can join.
///
/// \param mesh the mesh.
/// \param out_room RETICK_ROOM_SIZE bytes.
/// \returns RETICK_OK; RETICK_ERR_INVALID_STATE before the event RETICK_EVENT_JOINED; RETICK_ERR_INVALID_ARGUMENT;
///   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one mesh.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_mesh_room(mesh: retick_mesh, out_room: *mut u8) -> retick_result {
    call("retick_mesh_room", || {
        ptr::check("out_room", out_room)?;
        with_mesh(mesh, |m| {
            let room = m.room()?;
            // SAFETY: not null, and the header demands 32 writable bytes there.
            unsafe { out_room.cast::<[u8; 32]>().write_unaligned(room) };
            Ok(RETICK_OK)
        })
    })
}

/// Joins the room of a member that listens at an address. RETICK_EVENT_JOINED or RETICK_EVENT_REFUSED follows.
///
/// \param mesh the mesh.
/// \param address "203.0.113.5:7000", "[2001:db8::1]:7000", or "sim:0" for the first node of a simulated network. Copied.
/// \param room RETICK_ROOM_SIZE bytes. Copied.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_STATE when it is in a room, joining one, or has left one;
///   RETICK_ERR_UNSUPPORTED in custom mode; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_WOULD_BLOCK.
///
/// Thread: any; one thread at a time for one mesh.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_mesh_join(
    mesh: retick_mesh,
    address: *const c_char,
    room: *const u8,
) -> retick_result {
    call("retick_mesh_join", || {
        // SAFETY: the header demands a NUL-terminated text at a non-null `address`, and 32 bytes at `room`.
        let (address, room) = unsafe { (ptr::text("address", address)?, ptr::room("room", room)?) };
        with_mesh(mesh, |m| m.join(address, room))
    })
}

/// Joins the room of a member over the game's own transport (RETICK_IO_CUSTOM).
///
/// \param mesh the mesh.
/// \param address that member's address as the game's transport knows it. Copied.
/// \param address_size 1 to 64.
/// \param room RETICK_ROOM_SIZE bytes. Copied.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_STATE when it is in a room, joining one, or has left one;
///   RETICK_ERR_UNSUPPORTED in another mode; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_WOULD_BLOCK.
///
/// Thread: any; one thread at a time for one mesh.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_mesh_join_custom(
    mesh: retick_mesh,
    address: *const u8,
    address_size: u32,
    room: *const u8,
) -> retick_result {
    call("retick_mesh_join_custom", || {
        // SAFETY: the header demands `address_size` readable bytes at `address`, and 32 at `room`.
        let (address, room) =
            unsafe { (ptr::custom_address("address", address, address_size)?, ptr::room("room", room)?) };
        with_mesh(mesh, |m| m.join_custom(address, room))
    })
}

/// The address that this mesh is bound to, with its real port, such as "0.0.0.0:51234".
///
/// \param mesh the mesh.
/// \param buffer where to write the text, UTF-8 and NUL-terminated; may be NULL when capacity is 0.
/// \param capacity bytes at buffer.
/// \param out_len bytes of the whole text without NUL; may be NULL.
/// \returns RETICK_OK; RETICK_ERR_BUFFER_TOO_SMALL (the text was cut); RETICK_ERR_INVALID_ARGUMENT;
///   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one mesh.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_mesh_local_address(
    mesh: retick_mesh,
    buffer: *mut c_char,
    capacity: u32,
    out_len: *mut u32,
) -> retick_result {
    call("retick_mesh_local_address", || {
        with_mesh(mesh, |m| {
            // SAFETY: the header demands `capacity` writable bytes at `buffer`, and a `uint32_t` at a non-null `out_len`.
            unsafe { ptr::copy_text(m.local_address(), buffer, capacity, out_len) }
        })
    })
}

/// Says that this peer is ready to start, and how many slots it plays. Create its session first.
///
/// \param mesh the mesh.
/// \param local_slots 1 to 16.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_STATE outside of a room;
///   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_WOULD_BLOCK.
///
/// Thread: any; one thread at a time for one mesh.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_mesh_set_ready(mesh: retick_mesh, local_slots: u32) -> retick_result {
    call("retick_mesh_set_ready", || {
        if !(1..=16).contains(&local_slots) {
            return Err(Failure::argument(format!("local_slots is {local_slots}; use 1 to 16")));
        }
        with_mesh(mesh, |m| m.set_ready(local_slots as u8))
    })
}

/// Starts the match as soon as every member is ready. RETICK_EVENT_STARTING and the session's RETICK_EVENT_STARTED follow.
/// Only the coordinator (the member with the lowest index) can; call it once all are in.
///
/// \param mesh the mesh.
/// \param countdown_ms milliseconds from the moment all are ready to frame 0, 0 to 60000.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_STATE outside of a room or on another member than
///   the coordinator; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_WOULD_BLOCK.
///
/// Thread: any; one thread at a time for one mesh.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_mesh_start(mesh: retick_mesh, countdown_ms: u32) -> retick_result {
    call("retick_mesh_start", || {
        if countdown_ms > 60_000 {
            return Err(Failure::argument(format!("countdown_ms is {countdown_ms}; use 0 to 60000")));
        }
        with_mesh(mesh, |m| m.start(countdown_ms))
    })
}

/// Says goodbye to the room, for good: the handle stays to read what is left, and another mesh is needed to enter a room.
///
/// \param mesh the mesh.
/// \returns RETICK_OK (also outside of a room); RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_WOULD_BLOCK.
///
/// Thread: any; one thread at a time for one mesh.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_mesh_leave(mesh: retick_mesh) -> retick_result {
    call("retick_mesh_leave", || with_mesh(mesh, |m| m.leave()))
}

/// Takes the news of the network half in and delivers log lines; in custom mode also runs the network half. Never blocks.
/// Call it once a frame, then read retick_mesh_next_event until RETICK_NONE.
///
/// \param mesh the mesh.
/// \returns RETICK_OK; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one mesh.
/// Lifetime: pointers of earlier events and outgoing datagrams of this mesh end here.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_mesh_poll(mesh: retick_mesh) -> retick_result {
    let result = call("retick_mesh_poll", || with_mesh(mesh, |m| m.poll()));
    log::deliver();
    result
}

/// The next event that the last poll brought. Events that are not read wait; while 1024 wait, poll takes in no more.
///
/// \param mesh the mesh.
/// \param out_event where to write it; set its struct_size first.
/// \returns RETICK_OK; RETICK_NONE when there is none; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE;
///   RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one mesh.
/// Lifetime: text and data live until the next retick_mesh_poll of this mesh.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_mesh_next_event(
    mesh: retick_mesh,
    out_event: *mut retick_event,
) -> retick_result {
    call("retick_mesh_next_event", || {
        // SAFETY: the header demands `struct_size` writable bytes at a non-null `out_event`.
        let size = unsafe { ptr::out_struct_size("out_event", out_event) }?;
        with_mesh(mesh, |m| {
            let Some(event) = m.next_event() else { return Ok(RETICK_NONE) };
            // SAFETY: `size` bytes as just read.
            unsafe { ptr::write_struct(out_event, size, event) };
            Ok(RETICK_OK)
        })
    })
}

/// Sends a message to one peer or all others. It arrives there as RETICK_EVENT_MESSAGE.
///
/// \param mesh the mesh.
/// \param peer 0 to 15, or RETICK_ALL_PEERS.
/// \param stream 0 to 7; reliable messages are ordered within a stream, and no stream waits for another.
/// \param delivery RETICK_RELIABLE, RETICK_UNRELIABLE or RETICK_UNRELIABLE_NEWEST.
/// \param data the message. Copied.
/// \param size 1 to RETICK_MAX_MESSAGE bytes.
/// \returns RETICK_OK; RETICK_ERR_WOULD_BLOCK when a queue is full, or about 1 MB of reliable messages waits for that peer (for
///   any, if to all) because it takes them too slowly: nothing was queued, try again after a poll; RETICK_ERR_TOO_LARGE;
///   RETICK_ERR_INVALID_STATE outside of a room; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one mesh.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_mesh_send(
    mesh: retick_mesh,
    peer: u32,
    stream: u32,
    delivery: u32,
    data: *const c_void,
    size: u32,
) -> retick_result {
    call("retick_mesh_send", || {
        let to = convert::peer_or_all(peer)?;
        let stream = convert::stream(stream)?;
        let delivery = convert::delivery(delivery)?;
        convert::message_size(size)?;
        // SAFETY: the header demands `size` readable bytes at `data`.
        let data = unsafe { ptr::bytes("data", data.cast(), size) }?;
        with_mesh(mesh, |m| m.send(to, stream, delivery, data))
    })
}

/// What was measured on the link to one peer; refreshed every 100 ms.
///
/// \param mesh the mesh.
/// \param peer 0 to 15.
/// \param out_stats where to write it; set its struct_size first.
/// \returns RETICK_OK; RETICK_NONE when there is no link to that peer (all 0); RETICK_ERR_INVALID_ARGUMENT;
///   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one mesh.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_mesh_peer_stats(
    mesh: retick_mesh,
    peer: u32,
    out_stats: *mut retick_peer_stats,
) -> retick_result {
    call("retick_mesh_peer_stats", || {
        let peer = convert::peer(peer)?;
        // SAFETY: the header demands `struct_size` writable bytes at a non-null `out_stats`.
        let size = unsafe { ptr::out_struct_size("out_stats", out_stats) }?;
        with_mesh(mesh, |m| {
            let stats = m.peer_stats(peer);
            // SAFETY: `size` bytes as just read.
            unsafe { ptr::write_struct(out_stats, size, stats) };
            Ok(if stats.connected == 1 { RETICK_OK } else { RETICK_NONE })
        })
    })
}

/// For tests and demonstrations: everything that this mesh sends passes a bad link first.
///
/// \param mesh the mesh.
/// \param link filled by retick_link_init first; NULL takes the conditioner off. Copied.
/// \param seed any number; decides which datagrams are hit.
/// \returns RETICK_OK; RETICK_ERR_UNSUPPORTED in custom mode (use your transport) and on a simulated network
///   (retick_simnet_set_link); RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one mesh.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_mesh_set_conditioner(
    mesh: retick_mesh,
    link: *const retick_link,
    seed: u64,
) -> retick_result {
    call("retick_mesh_set_conditioner", || {
        let link = if link.is_null() {
            None
        } else {
            // SAFETY: the header demands `struct_size` readable bytes at a non-null `link`.
            Some(convert::link(&unsafe { ptr::read_struct::<retick_link>("link", link) }?)?)
        };
        with_mesh(mesh, |m| m.set_conditioner(link, seed))
    })
}

/// RETICK_IO_CUSTOM: a datagram came over the game's transport. Taken in by the next retick_mesh_poll.
///
/// \param mesh the mesh.
/// \param address the sender, as its own local_address says. Copied.
/// \param address_size 1 to 64.
/// \param data the datagram. Copied.
/// \param size 1 to 1200 bytes; larger ones are refused.
/// \returns RETICK_OK; RETICK_ERR_WOULD_BLOCK when too many wait for a poll (drop it, as a network would);
///   RETICK_ERR_UNSUPPORTED in another mode; RETICK_ERR_TOO_LARGE; RETICK_ERR_INVALID_ARGUMENT;
///   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one mesh.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_mesh_receive(
    mesh: retick_mesh,
    address: *const u8,
    address_size: u32,
    data: *const c_void,
    size: u32,
) -> retick_result {
    call("retick_mesh_receive", || {
        // SAFETY: the header demands `address_size` readable bytes at `address`, and `size` at `data`.
        let (address, data) = unsafe {
            (ptr::custom_address("address", address, address_size)?, ptr::bytes("data", data.cast(), size)?)
        };
        convert::datagram_size(size)?;
        with_mesh(mesh, |m| m.receive(address, data))
    })
}

/// RETICK_IO_CUSTOM: the next datagram that the game must carry. Read until RETICK_NONE after retick_mesh_poll, and after
/// retick_session_begin_frame or retick_session_advance, which put new inputs on the way.
///
/// \param mesh the mesh.
/// \param out_address where it goes: another peer's local_address.
/// \param out_address_size bytes of it.
/// \param out_data the datagram.
/// \param out_size bytes of it.
/// \returns RETICK_OK; RETICK_NONE when there is none; RETICK_ERR_UNSUPPORTED in another mode;
///   RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one mesh.
/// Lifetime: address and data live until the next call of this function or retick_mesh_poll for this mesh.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_mesh_next_outgoing(
    mesh: retick_mesh,
    out_address: *mut *const u8,
    out_address_size: *mut u32,
    out_data: *mut *const u8,
    out_size: *mut u32,
) -> retick_result {
    call("retick_mesh_next_outgoing", || {
        ptr::check("out_address", out_address)?;
        ptr::check("out_address_size", out_address_size)?;
        ptr::check("out_data", out_data)?;
        ptr::check("out_size", out_size)?;
        with_mesh(mesh, |m| {
            let Some((address, data)) = m.next_outgoing()? else { return Ok(RETICK_NONE) };
            // SAFETY: none is null, and the header demands writable values of these types there.
            unsafe {
                out_address.write_unaligned(address.as_ptr());
                out_address_size.write_unaligned(address.len() as u32);
                out_data.write_unaligned(data.as_ptr());
                out_size.write_unaligned(data.len() as u32);
            }
            Ok(RETICK_OK)
        })
    })
}

/// RETICK_IO_MANUAL: one turn of the network half: receives, fires timers, sends.
///
/// \param mesh the mesh.
/// \param timeout_us how long to wait for a datagram or timer at most, 0 to 1000000; 0 never waits.
/// \returns RETICK_OK; RETICK_ERR_UNSUPPORTED in another mode; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_SYSTEM;
///   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one mesh.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_io_turn(mesh: retick_mesh, timeout_us: u32) -> retick_result {
    let result = call("retick_io_turn", || {
        if timeout_us > 1_000_000 {
            return Err(Failure::argument(format!("timeout_us is {timeout_us}; use 0 to 1000000")));
        }
        with_mesh(mesh, |m| m.io_turn(timeout_us))
    });
    log::deliver();
    result
}

/// Mesh time now: the clock that all members share. As good as the last poll's news of it.
///
/// \param mesh the mesh.
/// \param out_us microseconds.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one mesh.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_mesh_time_us(mesh: retick_mesh, out_us: *mut u64) -> retick_result {
    call("retick_mesh_time_us", || {
        ptr::check("out_us", out_us)?;
        with_mesh(mesh, |m| {
            // SAFETY: not null, and the header demands a writable `uint64_t` there.
            unsafe { out_us.write_unaligned(m.time_us()) };
            Ok(RETICK_OK)
        })
    })
}

/// Says goodbye to the room and closes the sockets. A session on this mesh stays, but hears of nobody any more.
///
/// \param mesh the mesh; null is ok.
/// \returns RETICK_OK; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one mesh.
/// Lifetime: pointers of its events and datagrams end here.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_mesh_destroy(mesh: retick_mesh) -> retick_result {
    let result = call("retick_mesh_destroy", || handle::destroy_mesh(mesh));
    log::deliver();
    result
}
