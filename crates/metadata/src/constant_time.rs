use std::hint::black_box;

/// Whether two byte strings are equal, in a time that depends on their lengths alone.
pub(crate) fn equal(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    // `black_box` keeps the compiler from leaving the loop at the first difference.
    let difference = left.iter().zip(right).fold(0, |seen, (l, r)| black_box(seen | (l ^ r)));
    black_box(difference) == 0
}
