//! Bytes ↔ messages; the only place that sees raw bytes. Normative text and golden vectors: `docs/protocol.md`.
//!
//! Fed by: datagrams and sections. Yields: values whose fields make sense together, or a `ParseError`.
//! Never: panics on any bytes, allocates by a length that was not checked, or keeps state.

/// Why bytes were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// Too short for what they claim to hold.
    Truncated,
    /// A field has a value that makes no sense.
    Malformed,
}

pub mod agreement;
pub mod bulk;
pub mod control;
pub mod ext_ack;
pub mod handshake;
pub mod header;
pub mod inputs;
pub mod link;
pub mod message;
pub mod section;
pub mod timing;
