//! The operating system's entropy, for keys.
//!
//! Fed by: the operating system. Yields: secret bytes. Never: falls back to anything weaker.

use super::OpenError;
use crate::base::Entropy;

/// The operating system's source of secret bytes.
#[derive(Debug)]
pub struct OsEntropy(());

impl OsEntropy {
    /// Opens it, with one trial draw, so that a machine without entropy is told when the mesh is opened.
    pub fn open() -> Result<Self, OpenError> {
        getrandom::fill(&mut [0; 8]).map_err(|error| OpenError {
            message: format!("The operating system gave no random bytes ({error}); no key can be made."),
        })?;
        Ok(Self(()))
    }
}

impl Entropy for OsEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        getrandom::fill(bytes)
            .expect("the trial draw in `open` worked, and a source that works goes on working");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ() {
        let mut entropy = OsEntropy::open().expect("the test machine has entropy");
        let mut draws = [[0; 32]; 2];
        for draw in &mut draws {
            entropy.fill(draw);
        }
        assert_ne!(draws[0], draws[1]);
    }
}
