//! One slot's input for one frame: at most 64 opaque bytes.
//!
//! Bytes past the length are always zero, so that equality is equality of content.
//! Never: interprets a byte.

use crate::base::limits::MAX_INPUT;
use std::fmt;

/// Opaque bytes of one slot for one frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Input {
    len: u8,
    bytes: [u8; MAX_INPUT],
}

impl Input {
    /// No bytes: also the input of a slot that has left.
    pub const EMPTY: Self = Self { len: 0, bytes: [0; MAX_INPUT] };

    /// A copy of `bytes`, or nothing when they are more than [`MAX_INPUT`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut input = Self::EMPTY;
        input.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        input.len = bytes.len() as u8;
        Some(input)
    }

    /// `len` zero bytes.
    pub fn zeros(len: usize) -> Self {
        Self { len: len.min(MAX_INPUT) as u8, bytes: [0; MAX_INPUT] }
    }

    /// Its content.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// How many bytes it has.
    #[expect(clippy::len_without_is_empty, reason = "an input of no bytes is an input like any other")]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }
}

impl Default for Input {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Input({:02x?})", self.as_slice())
    }
}
