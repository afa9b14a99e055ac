//! The link section: what two ends of one link settle between themselves, about the path and how much may be on it, not about the game.
//!
//! Fed by: the sections of a packet. Yields: a [`Link`], or a `ParseError`.
//! Never: judges what it says; that is the channel's work.

use super::ParseError;

/// Value of the flags: how far the other end may send.
const WINDOW: u8 = 0;
/// Value of the flags: the sender wants to know whether we are where its packet went.
const PATH_CHALLENGE: u8 = 1;
/// Value of the flags: the answer to such a question.
const PATH_RESPONSE: u8 = 2;
/// Bytes of a challenge: nobody guesses them.
pub const TOKEN_SIZE: usize = 8;
/// Bytes of the section with a challenge or a response, type byte included.
pub const PATH_SECTION: usize = 1 + TOKEN_SIZE;
/// Bytes of the section with a window.
pub const WINDOW_SECTION: usize = 1 + 4;

/// What a link section says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// What the reliable messages may cost that the receiver of this has sent in all, modulo 2^32; only more than said before
    /// means anything.
    Window(u32),
    /// Random bytes to send back at once.
    PathChallenge([u8; TOKEN_SIZE]),
    /// The bytes of a challenge that came.
    PathResponse([u8; TOKEN_SIZE]),
}

impl Link {
    /// Reads the body behind the type byte; yields the rest.
    pub(super) fn parse(flags: u8, bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let new = match flags {
            WINDOW => {
                let (limit, rest) = bytes.split_first_chunk().ok_or(ParseError::Truncated)?;
                return Ok((Self::Window(u32::from_le_bytes(*limit)), rest));
            }
            PATH_CHALLENGE => Self::PathChallenge,
            PATH_RESPONSE => Self::PathResponse,
            _ => return Err(ParseError::Malformed),
        };
        let (token, rest) = bytes.split_first_chunk().ok_or(ParseError::Truncated)?;
        Ok((new(*token), rest))
    }

    /// Appends the section.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let (flags, body) = match self {
            Self::Window(limit) => (WINDOW, &limit.to_le_bytes()[..]),
            Self::PathChallenge(token) => (PATH_CHALLENGE, &token[..]),
            Self::PathResponse(token) => (PATH_RESPONSE, &token[..]),
        };
        out.push(super::section::LINK | flags << 4);
        out.extend_from_slice(body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn any_bytes_parse_to_what_emits_them_or_are_refused(
            flags in 0u8..16,
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..20),
        ) {
            match Link::parse(flags, &bytes) {
                Ok((link, rest)) => {
                    let mut again = Vec::new();
                    link.emit(&mut again);
                    let size = if flags == WINDOW { WINDOW_SECTION } else { PATH_SECTION };
                    proptest::prop_assert_eq!(again.len(), size);
                    proptest::prop_assert_eq!(again[0], super::super::section::LINK | flags << 4);
                    again.extend_from_slice(rest);
                    proptest::prop_assert_eq!(&again[1..], &bytes[..]);
                }
                Err(error) => {
                    let is_known = flags < 3;
                    proptest::prop_assert_eq!(error == ParseError::Truncated, is_known);
                }
            }
        }
    }
}
