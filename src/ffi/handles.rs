//! The three handle types of the C ABI, as the header shows them.
//!
//! Fed by: nothing. Yields: plain values that name an object of the handle table.
//! Never: points at memory; a handle is a number, and any number may be handed in.

/// Names one peer's place in a room: who is there, on which path, who coordinates. Zero names nothing.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct retick_mesh {
    /// Opaque; 0 is null.
    pub id: u64,
}

/// Names the timeline of one game. Zero names nothing.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct retick_session {
    /// Opaque; 0 is null.
    pub id: u64,
}

/// Names a simulated network. Zero names nothing.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct retick_simnet {
    /// Opaque; 0 is null.
    pub id: u64,
}
