//! The input stream in a packet: the newest frames of the sender's slots, and the fills that a third peer asked for.
//!
//! Fed by: the input log (emit) and section bodies (parse). Yields: inputs by slot and frame, delta-coded:
//! one bit a frame says "as the frame before", only changed inputs carry bytes.
//! Never: trusts a count; every read is bounded by the body.

use super::ParseError;
use crate::base::Frame;
use crate::base::limits::{MAX_FRAMES_PER_SECTION, MAX_INPUT};

/// Section flag (of 4): the sender's game thread does not call in.
pub const FLAG_ASLEEP: u8 = 1;
/// Section flag: inputs carry their length; without it all have the session's `input_max`.
pub const FLAG_LENGTHS: u8 = 2;
/// Flag of every section of a match: its parity within the room, so that late ones of the match before are dropped.
pub const FLAG_PARITY: u8 = 8;

/// The head of an INPUTS section; the block of inputs follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputsHead {
    /// Low 16 bits of the end of the sender's stream: all its inputs before it are final (`complete_through` + 1).
    pub end_low: u16,
    /// End of the receiver's stream that the sender holds, relative to the sender's own end.
    pub ack_ahead: i32,
}

impl InputsHead {
    /// Appends the head.
    pub fn emit(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.end_low.to_le_bytes());
        emit_varint(out, zigzag(self.ack_ahead));
    }

    /// Splits a body into head and block.
    pub fn parse(body: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&[e0, e1], rest) = body.split_first_chunk::<2>().ok_or(ParseError::Truncated)?;
        let (ack, rest) = parse_varint(rest)?;
        Ok((Self { end_low: u16::from_le_bytes([e0, e1]), ack_ahead: unzigzag(ack) }, rest))
    }
}

/// The head of a FILL section: inputs of a slot that is not the sender's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillHead {
    /// Whose.
    pub slot: u8,
    /// First frame of the block.
    pub first: Frame,
}

impl FillHead {
    /// Appends the head.
    pub fn emit(self, out: &mut Vec<u8>) {
        out.push(self.slot);
        out.extend_from_slice(&self.first.0.to_le_bytes());
    }

    /// Splits a body into head and block.
    pub fn parse(body: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&[slot, f0, f1, f2, f3], rest) = body.split_first_chunk::<5>().ok_or(ParseError::Truncated)?;
        Ok((Self { slot, first: Frame(i32::from_le_bytes([f0, f1, f2, f3])) }, rest))
    }
}

/// Whether every input is `input_max` bytes long, so that lengths can be left out.
pub fn uniform<'a>(mut inputs: impl Iterator<Item = &'a [u8]>, input_max: usize) -> bool {
    inputs.all(|input| input.len() == input_max)
}

/// Appends a block: count, then for every slot a bit per frame ("changed") and the changed inputs.
///
/// `get(k, i)` is the input of the `k`-th slot in the `i`-th frame; `lengths` must be set unless all are `input_max` long.
pub fn emit_block<'a>(
    out: &mut Vec<u8>,
    slots: usize,
    count: usize,
    input_max: usize,
    lengths: bool,
    get: impl Fn(usize, usize) -> &'a [u8],
) {
    debug_assert!(count <= MAX_FRAMES_PER_SECTION as usize);
    out.push(count as u8);
    for slot in 0..slots {
        let bits_at = out.len();
        out.resize(bits_at + count.div_ceil(8), 0);
        let mut previous = before_first(lengths, input_max);
        for frame in 0..count {
            let input = get(slot, frame);
            if input != previous {
                out[bits_at + frame / 8] |= 1 << (frame % 8);
                if lengths {
                    out.push(input.len() as u8);
                }
                out.extend_from_slice(input);
                previous = input;
            }
        }
    }
}

/// What the first frame of a block is compared with.
const fn before_first(lengths: bool, input_max: usize) -> &'static [u8] {
    const ZEROS: [u8; MAX_INPUT] = [0; MAX_INPUT];
    ZEROS.split_at(if lengths || input_max > MAX_INPUT { 0 } else { input_max }).0
}

/// How many frames a block holds, without decoding it.
pub fn block_count(block: &[u8]) -> Result<usize, ParseError> {
    let &count = block.first().ok_or(ParseError::Truncated)?;
    if i32::from(count) > MAX_FRAMES_PER_SECTION {
        return Err(ParseError::Malformed);
    }
    Ok(usize::from(count))
}

/// Reads a block of `slots` slots; `put(k, i, input)` is called slot by slot, frames ascending, without the first `skip`
/// frames. Bytes left over are malformed.
pub fn parse_block(
    block: &[u8],
    slots: usize,
    input_max: usize,
    lengths: bool,
    skip: usize,
    mut put: impl FnMut(usize, usize, &[u8]),
) -> Result<(), ParseError> {
    let count = block_count(block)?;
    let mut rest = &block[1..];
    for slot in 0..slots {
        let (bits, mut values) = rest.split_at_checked(count.div_ceil(8)).ok_or(ParseError::Truncated)?;
        let mut input = before_first(lengths, input_max);
        for frame in 0..count {
            if bits[frame / 8] >> (frame % 8) & 1 == 1 {
                let len = if lengths {
                    let (&len, after) = values.split_first().ok_or(ParseError::Truncated)?;
                    values = after;
                    usize::from(len)
                } else {
                    input_max
                };
                if len > input_max {
                    return Err(ParseError::Malformed);
                }
                let (bytes, after) = values.split_at_checked(len).ok_or(ParseError::Truncated)?;
                input = bytes;
                values = after;
            }
            if frame >= skip {
                put(slot, frame, input);
            }
        }
        rest = values;
    }
    if rest.is_empty() { Ok(()) } else { Err(ParseError::Malformed) }
}

const fn zigzag(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

const fn unzigzag(value: u32) -> i32 {
    (value >> 1) as i32 ^ -((value & 1) as i32)
}

fn emit_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn parse_varint(bytes: &[u8]) -> Result<(u32, &[u8]), ParseError> {
    let mut value = 0u32;
    for (i, &byte) in bytes.iter().enumerate().take(5) {
        let part = u32::from(byte & 0x7F);
        if i == 4 && part > 0x0F {
            return Err(ParseError::Malformed);
        }
        value |= part << (7 * i);
        if byte & 0x80 == 0 {
            return Ok((value, &bytes[i + 1..]));
        }
    }
    Err(if bytes.len() < 5 { ParseError::Truncated } else { ParseError::Malformed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn input(len: usize) -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(0u8..3, len)
    }

    fn parsed(
        block: &[u8],
        slots: usize,
        input_max: usize,
        lengths: bool,
    ) -> Result<Vec<Vec<Vec<u8>>>, ParseError> {
        let mut inputs = vec![Vec::new(); slots];
        parse_block(block, slots, input_max, lengths, 0, |k, _, input| inputs[k].push(input.to_vec()))?;
        Ok(inputs)
    }

    /// What is read of the block that these inputs make.
    fn again_parsed(
        inputs: &[Vec<Vec<u8>>],
        count: usize,
        input_max: usize,
        lengths: bool,
    ) -> Result<Vec<Vec<Vec<u8>>>, ParseError> {
        let mut out = Vec::new();
        emit_block(&mut out, inputs.len(), count, input_max, lengths, |k, i| &inputs[k][i]);
        parsed(&out, inputs.len(), input_max, lengths)
    }

    #[test]
    fn an_unchanged_input_costs_one_bit() {
        let held = [1, 2, 3, 4];
        let mut out = Vec::new();
        emit_block(&mut out, 1, 8, 4, false, |_, _| &held);
        assert_eq!(out, [8, 0b0000_0001, 1, 2, 3, 4]);
    }

    #[test]
    fn the_head_of_a_calm_stream_is_three_bytes() {
        let head = InputsHead { end_low: 0xFFFE, ack_ahead: -5 };
        let mut out = Vec::new();
        head.emit(&mut out);
        assert_eq!(out, [0xFE, 0xFF, 9]);
        assert_eq!(InputsHead::parse(&out), Ok((head, &[][..])));
    }

    proptest! {
        #[test]
        fn blocks_come_back_as_they_went(
            lengths: bool,
            inputs in proptest::collection::vec(input(3), 0..40),
            slots in 1usize..4,
            skip in 0usize..40,
        ) {
            let count = inputs.len() / slots;
            let mut out = Vec::new();
            emit_block(&mut out, slots, count, 3, lengths, |s, f| &inputs[s * count + f]);
            let mut back = Vec::new();
            parse_block(&out, slots, 3, lengths, 0, |_, _, input| back.push(input.to_vec())).expect("own bytes");
            prop_assert_eq!(&back[..], &inputs[..slots * count]);
            let skip = skip.min(count);
            let mut tail = Vec::new();
            parse_block(&out, slots, 3, lengths, skip, |s, f, input| tail.push((s * count + f, input.to_vec()))).expect("own bytes");
            prop_assert_eq!(tail.len(), slots * (count - skip));
            for (at, input) in tail {
                prop_assert_eq!(&input, &inputs[at]);
            }
            for cut in 0..out.len() {
                let parsed = parse_block(&out[..cut], slots, 3, lengths, 0, |_, _, _| {});
                prop_assert!(parsed.is_err());
            }
        }

        #[test]
        fn any_bytes_are_parsed_or_refused(bytes: Vec<u8>, slots in 0usize..17, input_max in 1usize..65, lengths: bool) {
            let mut again = Vec::new();
            if let Ok((head, block)) = InputsHead::parse(&bytes) {
                head.emit(&mut again);
                // A longer form of the same number is read, never written.
                prop_assert!(again.len() + block.len() <= bytes.len());
                prop_assert_eq!(InputsHead::parse(&again), Ok((head, &[][..])));
                again.clear();
            }
            if let Ok((head, block)) = FillHead::parse(&bytes) {
                head.emit(&mut again);
                again.extend_from_slice(block);
                prop_assert_eq!(&again, &bytes);
            }
            if let Ok(inputs) = parsed(&bytes, slots, input_max, lengths) {
                let count = usize::from(bytes[0]);
                prop_assert_eq!(again_parsed(&inputs, count, input_max, lengths), Ok(inputs));
            }
        }

        #[test]
        fn likely_blocks_parse_to_what_emits_them_or_are_refused(
            count in 0u8..=9,
            bytes in proptest::collection::vec(0u8..4, 0..30),
            slots in 0usize..4,
            lengths: bool,
        ) {
            let block = [&[count][..], &bytes].concat();
            if let Ok(inputs) = parsed(&block, slots, 2, lengths) {
                prop_assert!(inputs.iter().all(|slot| slot.len() == usize::from(count)));
                prop_assert_eq!(again_parsed(&inputs, usize::from(count), 2, lengths), Ok(inputs));
            }
        }

        #[test]
        fn heads_come_back_as_they_went(end_low: u16, ack_ahead: i32, slot: u8, first: i32) {
            let mut out = Vec::new();
            InputsHead { end_low, ack_ahead }.emit(&mut out);
            prop_assert_eq!(InputsHead::parse(&out), Ok((InputsHead { end_low, ack_ahead }, &[][..])));
            out.clear();
            let fill = FillHead { slot, first: Frame(first) };
            fill.emit(&mut out);
            prop_assert_eq!(FillHead::parse(&out), Ok((fill, &[][..])));
        }
    }
}
