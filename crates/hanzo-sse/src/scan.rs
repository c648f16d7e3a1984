//! The one search the parser does: where does this line end?

const WORD: usize = size_of::<u64>();
const BLOCK: usize = 4 * WORD;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
/// One past the carriage return in every byte: LF (10) and CR (13) are the only two bytes we want below it, and
/// text has next to nothing else there, so one comparison finds both and the rare other control byte is sorted out
/// afterwards.
const PAST_CR: u64 = 0x0E0E_0E0E_0E0E_0E0E;

/// The position of the first CR or LF.
#[inline]
pub(crate) fn line_end(bytes: &[u8]) -> Option<usize> {
    let (blocks, tail) = bytes.as_chunks::<BLOCK>();
    for (index, block) in blocks.iter().enumerate() {
        // A block is tested as a whole first: the compiler turns this into vector instructions.
        let words = block.as_chunks::<WORD>().0;
        let suspects = words.iter().fold(0, |found, word| found | low_bytes(*word));
        if suspects != 0
            && let Some(at) = line_end_in_block(words)
        {
            return Some(index * BLOCK + at);
        }
    }
    let (words, rest) = tail.as_chunks::<WORD>();
    let before_words = blocks.len() * BLOCK;
    if let Some(at) = line_end_in_block(words) {
        return Some(before_words + at);
    }
    let before_rest = before_words + words.len() * WORD;
    rest.iter().position(|byte| is_line_end(*byte)).map(|at| before_rest + at)
}

#[inline]
fn line_end_in_block(words: &[[u8; WORD]]) -> Option<usize> {
    for (index, word) in words.iter().enumerate() {
        let mut suspects = low_bytes(*word);
        while suspects != 0 {
            let at = suspects.trailing_zeros() as usize / 8;
            if is_line_end(word[at]) {
                return Some(index * WORD + at);
            }
            suspects &= suspects - 1;
        }
    }
    None
}

/// The high bit of every byte below [`PAST_CR`]. A borrow may also mark a byte above such a one, hence "suspects";
/// none is missed, because a borrow only lowers a difference that is negative already.
#[inline]
fn low_bytes(word: [u8; WORD]) -> u64 {
    let word = u64::from_le_bytes(word);
    word.wrapping_sub(PAST_CR) & !word & HIGH_BITS
}

#[inline]
const fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(bytes: &[u8]) -> Option<usize> {
        bytes.iter().position(|byte| is_line_end(*byte))
    }

    #[test]
    fn agrees_with_a_plain_search_at_every_length_and_position() {
        for filler in [b'x', 0, 9, 11, 12, 14, 15, 0x7F, 0x80, 0x8A, 0x8D, 0xFF] {
            for length in 0..3 * BLOCK {
                let mut bytes = vec![filler; length];
                assert_eq!(line_end(&bytes), None, "{filler} × {length}");
                for at in 0..length {
                    for end in [b'\n', b'\r'] {
                        bytes[at] = end;
                        assert_eq!(line_end(&bytes), naive(&bytes), "{filler} × {length}, {end} at {at}");
                        bytes[at] = filler;
                    }
                }
            }
        }
    }

    #[test]
    fn agrees_with_a_plain_search_on_every_pair_of_neighbours() {
        for first in 0..=u8::MAX {
            for second in 0..=u8::MAX {
                let bytes = [first, second, b'x', b'x', b'x', b'x', b'x', b'x', b'x'];
                assert_eq!(line_end(&bytes), naive(&bytes), "{first} then {second}");
            }
        }
    }
}
