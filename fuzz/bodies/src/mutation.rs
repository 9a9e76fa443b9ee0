//! Small damage to an input, the same in every run.

/// Bytes that parsers of text have rules about.
const TELLING: &[u8] = b"\0\t\n\r \"\\,;:=./%{}[]-0\x7f\x80\xff";

/// The longest piece that is copied or cut.
const MAX_PIECE: usize = 64;

/// A source of damaged copies of inputs.
pub struct Mutator(Xorshift);

impl Mutator {
    /// The same seed gives the same damage.
    pub fn new(seed: u64) -> Self {
        Self(Xorshift(seed | 1))
    }

    /// A copy of `input` with one to three changes; pieces of `other` may be in it.
    pub fn mutated(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.0.below(3) {
            self.change(&mut bytes, other);
        }
        bytes
    }

    /// Any number below `bound`, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound)
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let at = self.0.below(bytes.len() + 1);
        match self.0.below(7) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, self.telling()),
            2 => drop(bytes.drain(at..end_of_piece(at, self.0.below(MAX_PIECE), bytes.len()))),
            3 => {
                let piece = bytes[at..end_of_piece(at, self.0.below(MAX_PIECE), bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => {
                let from = self.0.below(other.len() + 1);
                let piece = &other[from..end_of_piece(from, self.0.below(MAX_PIECE), other.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            5 => {
                bytes.truncate(at);
                bytes.extend_from_slice(&other[self.0.below(other.len() + 1)..]);
            }
            _ => {
                let changed = if self.0.below(2) == 0 { None } else { Some(self.telling()) };
                let bit = 1 << self.0.below(8);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = changed.unwrap_or(*byte ^ bit);
                }
            }
        }
    }

    fn telling(&mut self) -> u8 {
        TELLING[self.0.below(TELLING.len())]
    }
}

fn end_of_piece(start: usize, len: usize, end: usize) -> usize {
    (start + len + 1).min(end)
}

/// Marsaglia's generator. Its state is never zero.
struct Xorshift(u64);

impl Xorshift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        // The remainder of 64 bits is smaller than any usize here.
        (self.next() >> 11) as usize % bound
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn some(seed: u64, count: usize) -> Vec<Vec<u8>> {
        let mut mutator = Mutator::new(seed);
        (0..count).map(|_| mutator.mutated(b"Bearer realm=\"a\"", b"{\"jsonrpc\":\"2.0\"}")).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_damage() {
        assert_eq!(some(7, 50), some(7, 50));
        assert_ne!(some(7, 50), some(8, 50));
    }

    #[test]
    fn damage_is_of_many_kinds() {
        let damaged: BTreeSet<_> = some(7, 500).into_iter().collect();
        assert!(damaged.len() > 300, "{}", damaged.len());
        let lengths: BTreeSet<_> = damaged.iter().map(Vec::len).collect();
        assert!(lengths.first().is_some_and(|shortest| *shortest < 16));
        assert!(lengths.last().is_some_and(|longest| *longest > 20));
    }

    #[test]
    fn empty_inputs_can_be_damaged() {
        let mut mutator = Mutator::new(7);
        assert!((0..200).map(|_| mutator.mutated(b"", b"")).any(|bytes| !bytes.is_empty()));
    }
}
