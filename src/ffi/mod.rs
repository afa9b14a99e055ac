//! The C ABI: convert, call, convert. The only place with `unsafe` code.
//!
//! Fed by: C callers, who may hand in any number as a handle and anything in `struct_size`. Yields: result codes, and a
//! sentence for every failure. Never: lets a panic out, prints, keeps a pointer of the caller (registered regions, the
//! log, predict and allocator functions aside), or hands out memory that the caller must free.
//!
//! The header is generated from `library`, `handles`, `*_types`, `mesh`, `session` and `simnet`, in the order of their
//! sources (bindings/gen); the rest is how it works: `guard` around every export, `handle` for the table, `*_handle` for
//! what a handle holds, `drive` for the callback form.
#![allow(unsafe_code, reason = "this is the edge to C")]
#![allow(non_camel_case_types, reason = "types are named as in the header")]
#![allow(
    rustdoc::broken_intra_doc_links,
    clippy::missing_safety_doc,
    clippy::doc_markdown,
    clippy::too_many_arguments,
    reason = "docs are for the reader of the header, whose contract is stated once at its top"
)]
#![allow(
    clippy::redundant_closure_for_method_calls,
    clippy::unnecessary_wraps,
    clippy::needless_pass_by_value,
    clippy::wildcard_imports,
    reason = "every export's body has one shape; constants of the header are many"
)]

mod alloc;
mod convert;
mod drive;
pub mod event_types;
mod events;
mod guard;
mod handle;
pub mod handles;
pub mod library;
mod log;
pub mod mesh;
mod mesh_handle;
pub mod mesh_types;
mod ptr;
pub mod session;
mod session_handle;
pub mod session_types;
pub mod simnet;
mod simnet_handle;

/// See `retick_struct_size`.
fn struct_sizes(which: u32) -> u32 {
    let size = match which {
        library::RETICK_STRUCT_MESH_CONFIG => size_of::<mesh_types::retick_mesh_config>(),
        library::RETICK_STRUCT_LINK => size_of::<mesh_types::retick_link>(),
        library::RETICK_STRUCT_PEER_STATS => size_of::<mesh_types::retick_peer_stats>(),
        library::RETICK_STRUCT_EVENT => size_of::<event_types::retick_event>(),
        library::RETICK_STRUCT_SESSION_CONFIG => size_of::<session_types::retick_session_config>(),
        library::RETICK_STRUCT_START_INFO => size_of::<session_types::retick_start_info>(),
        library::RETICK_STRUCT_STEP => size_of::<session_types::retick_step>(),
        library::RETICK_STRUCT_CALLBACKS => size_of::<session_types::retick_callbacks>(),
        library::RETICK_STRUCT_STATS => size_of::<session_types::retick_stats>(),
        library::RETICK_STRUCT_SAMPLE => size_of::<session_types::retick_sample>(),
        _ => 0,
    };
    size as u32
}
