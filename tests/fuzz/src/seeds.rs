//! What fuzzing begins with: the golden vectors of `docs/protocol.md`, in the shapes that a target reads.
//!
//! Fed by: the protocol's text. Yields: inputs. Never: judges one; `tests/golden_protocol.rs` does.

use crate::Target;

const TEXT: &str = include_str!("../../../docs/protocol.md");

/// The first inputs of a target.
pub fn of(target: &Target) -> Vec<Vec<u8>> {
    let vectors = vectors();
    let shaped = |&(cut, front): &(usize, &[u8])| {
        let bodies = vectors
            .iter()
            .filter_map(move |bytes| bytes.get(cut..))
            .filter(|body| body.len() <= target.max_len);
        bodies.map(|body| [front, body].concat()).collect::<Vec<_>>()
    };
    target.shapes.iter().flat_map(shaped).collect()
}

/// Every vector of the text: lines `name = hex`, continued on the lines below; what follows a `#` is for people.
fn vectors() -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    for block in TEXT.split("```vectors\n").skip(1) {
        for line in block.split("```").next().unwrap_or_default().lines() {
            let line = line.split('#').next().unwrap_or_default();
            let digits = line.split_once(" = ").map(|(_, digits)| {
                found.push(Vec::new());
                digits
            });
            let digits: Vec<u8> =
                digits.unwrap_or(line).chars().filter_map(|digit| Some(digit.to_digit(16)? as u8)).collect();
            if let Some(bytes) = found.last_mut() {
                bytes.extend(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vector_of_the_text_is_found() {
        let vectors = vectors();
        assert!(vectors.len() > 50, "{}", vectors.len());
        assert!(vectors.contains(&vec![0x80, 3, 2, 1, 4, 3]), "header-loss-free");
        assert!(vectors.iter().all(|bytes| !bytes.is_empty()));
    }

    #[test]
    fn every_target_begins_with_something() {
        for target in crate::TARGETS {
            assert!(!of(target).is_empty(), "{}", target.name);
        }
    }
}
