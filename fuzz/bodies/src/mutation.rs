//! [`Mutator`]: changed copies of inputs, the same in every run.

/// Bytes with a meaning in one of the parsed formats.
const SPECIAL_BYTES: &[u8] = b"\0\t\n\r \"\\,;:=./%{}[]-0\x7f\x80\xff";

/// The maximum length of a part that is copied or removed.
const MAX_PART: usize = 64;

/// Creates changed copies of inputs.
pub struct Mutator(Xorshift);

impl Mutator {
    /// Creates a mutator. The same seed gives the same changes.
    pub fn new(seed: u64) -> Self {
        Self(Xorshift(seed | 1))
    }

    /// Returns a copy of `input` with one to three changes, which may contain parts of `other`.
    pub fn mutated(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.0.below(3) {
            self.change(&mut bytes, other);
        }
        bytes
    }

    /// Returns a number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound)
    }

    /// Makes one random change.
    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let at = self.0.below(bytes.len() + 1);
        match self.0.below(7) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, self.special_byte()),
            2 => drop(bytes.drain(at..end_of_part(at, self.0.below(MAX_PART), bytes.len()))),
            3 => {
                let part = bytes[at..end_of_part(at, self.0.below(MAX_PART), bytes.len())].to_vec();
                bytes.splice(at..at, part);
            }
            4 => {
                let from = self.0.below(other.len() + 1);
                let part = &other[from..end_of_part(from, self.0.below(MAX_PART), other.len())];
                bytes.splice(at..at, part.iter().copied());
            }
            5 => {
                bytes.truncate(at);
                bytes.extend_from_slice(&other[self.0.below(other.len() + 1)..]);
            }
            _ => {
                let changed = if self.0.below(2) == 0 {
                    None
                } else {
                    Some(self.special_byte())
                };
                let bit = 1 << self.0.below(8);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = changed.unwrap_or(*byte ^ bit);
                }
            }
        }
    }

    fn special_byte(&mut self) -> u8 {
        SPECIAL_BYTES[self.0.below(SPECIAL_BYTES.len())]
    }
}

fn end_of_part(start: usize, len: usize, end: usize) -> usize {
    (start + len + 1).min(end)
}

/// Marsaglia's xorshift generator. Its state is never zero.
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

    fn mutations(seed: u64, count: usize) -> Vec<Vec<u8>> {
        let mut mutator = Mutator::new(seed);
        (0..count)
            .map(|_| mutator.mutated(b"Bearer realm=\"a\"", b"{\"jsonrpc\":\"2.0\"}"))
            .collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_changes() {
        assert_eq!(mutations(7, 50), mutations(7, 50));
        assert_ne!(mutations(7, 50), mutations(8, 50));
    }

    #[test]
    fn changes_differ() {
        let mutated: BTreeSet<_> = mutations(7, 500).into_iter().collect();
        assert!(mutated.len() > 300, "{}", mutated.len());
        let lengths: BTreeSet<_> = mutated.iter().map(Vec::len).collect();
        assert!(lengths.first().is_some_and(|shortest| *shortest < 16));
        assert!(lengths.last().is_some_and(|longest| *longest > 20));
    }

    #[test]
    fn empty_inputs_can_be_changed() {
        let mut mutator = Mutator::new(7);
        assert!(
            (0..200)
                .map(|_| mutator.mutated(b"", b""))
                .any(|bytes| !bytes.is_empty())
        );
    }
}
