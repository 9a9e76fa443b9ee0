//! Proof Key for Code Exchange (RFC 7636).

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::secret::{Secret, constant_time};

/// A PKCE code verifier (RFC 7636 section 4.1).
///
/// A verifier is used once, so it does not implement `Clone`. It is never printed, and is wiped
/// from memory on drop.
pub struct PkceVerifier(Secret);

/// A PKCE code challenge with the method S256 (RFC 7636 section 4.2). The method `plain` is not
/// supported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PkceChallenge {
    text: String,
    digest: [u8; 32],
}

/// Why a code verifier or challenge could not be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PkceError {
    /// The operating system's random number generator failed.
    #[error("the operating system gave no random bytes")]
    NoRandomness,
    /// A `code_challenge` is not 32 bytes in unpadded base64url.
    #[error("a code challenge must be 43 characters of base64url")]
    MalformedChallenge,
}

impl PkceError {
    /// Returns a stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoRandomness => "pkce.no_randomness",
            Self::MalformedChallenge => "pkce.malformed_challenge",
        }
    }
}

impl PkceVerifier {
    /// Generates a verifier from 32 random bytes. It has 43 characters.
    ///
    /// # Errors
    /// Fails if the operating system gives no random bytes.
    pub fn generate() -> Result<Self, PkceError> {
        let mut random = Zeroizing::new([0; 32]);
        getrandom::fill(random.as_mut_slice()).map_err(|_| PkceError::NoRandomness)?;
        Ok(Self(Secret::new(URL_SAFE_NO_PAD.encode(random.as_slice()))))
    }

    /// Returns the `code_verifier` for the token request. Keep it out of logs, errors and URLs.
    pub fn secret(&self) -> &str {
        self.0.secret()
    }

    /// Returns the challenge for this verifier.
    pub fn challenge(&self) -> PkceChallenge {
        PkceChallenge::from_verifier(self.secret())
    }
}

impl fmt::Debug for PkceVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PkceVerifier([redacted])")
    }
}

impl PkceChallenge {
    /// The `code_challenge_method` of all challenges.
    pub const METHOD: &str = "S256";

    /// Parses a `code_challenge` from an authorization request.
    ///
    /// # Errors
    /// Fails if the string is not 32 bytes in unpadded base64url.
    pub fn parse(text: &str) -> Result<Self, PkceError> {
        let mut digest = [0; 32];
        match URL_SAFE_NO_PAD.decode_slice(text, &mut digest) {
            Ok(32) => Ok(Self {
                text: text.to_owned(),
                digest,
            }),
            _ => Err(PkceError::MalformedChallenge),
        }
    }

    /// Returns the `code_challenge` for the authorization request.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether `verifier` is well formed (43 to 128 unreserved characters) and matches this
    /// challenge. The digests are compared in constant time.
    pub fn matches(&self, verifier: &str) -> bool {
        is_well_formed(verifier)
            && constant_time::equal(&self.digest, &Self::from_verifier(verifier).digest)
    }

    fn from_verifier(verifier: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(verifier.as_bytes()).into();
        Self {
            text: URL_SAFE_NO_PAD.encode(digest),
            digest,
        }
    }
}

fn is_well_formed(verifier: &str) -> bool {
    (43..=128).contains(&verifier.len())
        && verifier
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    // The example in RFC 7636 appendix B.
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    // The last character has bits beyond the 32 bytes.
    const NON_CANONICAL_CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cN";

    /// I1: the example in RFC 7636 appendix B matches.
    #[test]
    fn the_rfc_example_matches() {
        let challenge = PkceChallenge::parse(CHALLENGE).unwrap();
        assert!(challenge.matches(VERIFIER));
        assert_eq!(PkceChallenge::from_verifier(VERIFIER), challenge);
    }

    /// I1: a generated verifier matches only its own challenge.
    #[test]
    fn a_verifier_matches_only_its_own_challenge() {
        let one = PkceVerifier::generate().unwrap();
        let other = PkceVerifier::generate().unwrap();
        assert_eq!(one.secret().len(), 43);
        assert!(one.challenge().matches(one.secret()));
        assert!(!one.challenge().matches(other.secret()));
        assert_eq!(
            PkceChallenge::parse(one.challenge().as_str()).unwrap(),
            one.challenge()
        );
    }

    #[test]
    fn malformed_verifiers_never_match() {
        for verifier in [
            "",
            "short",
            &"a".repeat(42),
            &"a".repeat(129),
            &"ä".repeat(43),
            &" ".repeat(43),
        ] {
            assert!(
                !PkceChallenge::from_verifier(verifier).matches(verifier),
                "{verifier:?}"
            );
        }
        assert!(PkceChallenge::from_verifier(&"a".repeat(128)).matches(&"a".repeat(128)));
    }

    #[test]
    fn malformed_challenges_are_rejected() {
        for text in [
            "",
            "abc",
            &format!("{CHALLENGE}="),
            &format!("{CHALLENGE}AAAA"),
            &"+".repeat(43),
            NON_CANONICAL_CHALLENGE,
        ] {
            assert_eq!(
                PkceChallenge::parse(text),
                Err(PkceError::MalformedChallenge),
                "{text:?}"
            );
        }
    }

    /// J3: `Debug` does not print the verifier.
    #[test]
    fn the_verifier_is_redacted() {
        assert_eq!(
            format!("{:?}", PkceVerifier::generate().unwrap()),
            "PkceVerifier([redacted])"
        );
    }
}
