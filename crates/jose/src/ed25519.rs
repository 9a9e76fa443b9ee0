//! Which Ed25519 public keys are accepted: not those for which anyone can sign (RFC 8032 section
//! 5.1.3).

/// The prime of the field, 2^255 - 19, in little-endian order.
const PRIME: [u8; 32] = {
    let mut prime = [0xff; 32];
    (prime[0], prime[31]) = (0xed, 0x7f);
    prime
};

/// The y coordinates of the eight points of order 1, 2, 4 and 8. Anyone can sign for a key that is
/// one of these points. Two points that differ only in the sign of x share a y coordinate.
const SMALL_ORDER: [[u8; 32]; 5] = [
    [0; 32],
    {
        let mut one = [0; 32];
        one[0] = 1;
        one
    },
    {
        let mut minus_one = PRIME;
        minus_one[0] = 0xec;
        minus_one
    },
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67,
        0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac,
        0x03, 0x7a,
    ],
];

/// Returns whether the encoding is canonical and its point does not have a small order.
///
/// Does not check that the key is a point of the curve: no signature verifies with a key that is
/// not.
pub(crate) fn is_acceptable(key: &[u8; 32]) -> bool {
    let mut y = *key;
    y[31] &= 0x7f;
    y.iter().rev().lt(PRIME.iter().rev()) && !SMALL_ORDER.contains(&y)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C2: the points of small order are rejected with either sign of x, and so are encodings of y
    /// that are not canonical.
    #[test]
    fn unacceptable_keys() {
        let sign = |mut key: [u8; 32]| {
            key[31] |= 0x80;
            key
        };
        for key in SMALL_ORDER.into_iter().chain([PRIME, [0xff; 32]]) {
            assert!(!is_acceptable(&key), "{key:02x?}");
            assert!(!is_acceptable(&sign(key)), "{key:02x?}");
        }
        let mut base_point = [0x66; 32];
        base_point[0] = 0x58;
        for key in [base_point, [7; 32]] {
            assert!(is_acceptable(&key), "{key:02x?}");
            assert!(is_acceptable(&sign(key)), "{key:02x?}");
        }
    }
}
