use std::{fmt, str::FromStr};

/// A signature algorithm of JSON Web Signatures (RFC 7518 section 3.1, RFC 8037, RFC 9864).
///
/// The set is closed: `none` and HMAC are not values of this type, so no code path can use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256. Most authorization servers use it by default.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// ECDSA on P-521 with SHA-512.
    Es512,
    /// EdDSA on Ed25519. Ed448 is not supported.
    EdDsa,
}

impl Algorithm {
    /// Every algorithm, in the order of the variants.
    pub const ALL: [Self; 10] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::Es512,
        Self::EdDsa,
    ];

    /// Returns the registered name, which is the value of the `alg` member.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Es512 => "ES512",
            Self::EdDsa => "EdDSA",
        }
    }
}

/// A string is not the name of a supported [`Algorithm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the signature algorithm is not supported")]
#[non_exhaustive]
pub struct UnsupportedAlgorithm;

/// Parses a registered name. Names are case-sensitive. `Ed25519` (RFC 9864) is an alias of
/// [`Algorithm::EdDsa`].
impl FromStr for Algorithm {
    type Err = UnsupportedAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnsupportedAlgorithm> {
        if name == "Ed25519" {
            return Ok(Self::EdDsa);
        }
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.as_str() == name)
            .ok_or(UnsupportedAlgorithm)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of [`Algorithm`]s. The default contains only RS256.
///
/// ```
/// use portcullis_jose::{Algorithm, AlgorithmSet};
///
/// let allowed = AlgorithmSet::default().with(Algorithm::Es256);
/// assert!(allowed.contains(Algorithm::Rs256) && !allowed.contains(Algorithm::EdDsa));
///
/// // `none` and HMAC are not algorithms, so no set can contain them.
/// assert!("none".parse::<Algorithm>().is_err() && "HS256".parse::<Algorithm>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AlgorithmSet(u16);

impl AlgorithmSet {
    /// The empty set. No signature verifies with it.
    pub const EMPTY: Self = Self(0);

    /// Returns this set with one more algorithm.
    #[must_use]
    pub const fn with(self, algorithm: Algorithm) -> Self {
        Self(self.0 | Self::bit(algorithm))
    }

    /// Returns whether the set contains the algorithm.
    pub const fn contains(self, algorithm: Algorithm) -> bool {
        self.0 & Self::bit(algorithm) != 0
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the algorithms in the order of [`Algorithm::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Algorithm> {
        Algorithm::ALL
            .into_iter()
            .filter(move |algorithm| self.contains(*algorithm))
    }

    const fn bit(algorithm: Algorithm) -> u16 {
        1 << algorithm as u16
    }
}

impl Default for AlgorithmSet {
    fn default() -> Self {
        Self::EMPTY.with(Algorithm::Rs256)
    }
}

impl FromIterator<Algorithm> for AlgorithmSet {
    fn from_iter<I: IntoIterator<Item = Algorithm>>(algorithms: I) -> Self {
        algorithms.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Debug for AlgorithmSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.as_str().parse::<Algorithm>().unwrap(), algorithm);
        }
    }

    /// C2: the RFC 9864 name is an alias.
    #[test]
    fn ed25519_is_eddsa() {
        assert_eq!("Ed25519".parse::<Algorithm>().unwrap(), Algorithm::EdDsa);
    }

    /// C2: `none` in any letter case, HMAC, similar names and encryption algorithms are rejected.
    #[test]
    fn other_names_are_rejected() {
        let names = [
            "", "HS256", "HS384", "HS512", "ES256K", "Ed448", "RSA-OAEP", "dir", "rs256", "RS256 ",
            "eddsa", "ed25519", "SHA256",
        ];
        for name in names
            .into_iter()
            .map(String::from)
            .chain(letter_cases("none"))
        {
            assert!(name.parse::<Algorithm>().is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_set_contains_the_added_algorithms() {
        assert_eq!(
            AlgorithmSet::default().iter().collect::<Vec<_>>(),
            [Algorithm::Rs256]
        );
        assert!(AlgorithmSet::EMPTY.is_empty());
        let set: AlgorithmSet = [Algorithm::EdDsa, Algorithm::Es256, Algorithm::EdDsa]
            .into_iter()
            .collect();
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            [Algorithm::Es256, Algorithm::EdDsa]
        );
        assert!(!set.contains(Algorithm::Rs256));
    }

    fn letter_cases(word: &str) -> impl Iterator<Item = String> {
        (0..1_u32 << word.len()).map(move |mask| {
            let flip = |(index, c): (usize, char)| {
                if mask >> index & 1 == 1 {
                    c.to_ascii_uppercase()
                } else {
                    c
                }
            };
            word.chars().enumerate().map(flip).collect()
        })
    }
}
