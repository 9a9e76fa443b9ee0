//! Comparison in constant time.

use std::hint::black_box;

/// Returns whether two byte strings are equal. The time depends only on their lengths.
pub(crate) fn equal(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    // `black_box` keeps the compiler from ending the loop at the first difference.
    let difference = left
        .iter()
        .zip(right)
        .fold(0, |bits, (l, r)| black_box(bits | (l ^ r)));
    black_box(difference) == 0
}
