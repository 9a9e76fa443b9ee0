use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::{Secret, constant_time};

/// The secret half of a PKCE pair (RFC 7636 section 4.1): used once, so not `Clone`; never printed, wiped
/// from memory when dropped.
pub struct PkceVerifier(Secret);

/// The public half of a PKCE pair, made with S256 (RFC 7636 section 4.2). The method `plain` is not
/// supported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PkceChallenge {
    text: String,
    digest: [u8; 32],
}

/// Why there is no PKCE pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PkceError {
    /// The operating system gave no random bytes.
    #[error("the system's random number generator does not answer")]
    NoRandomness,
    /// A `code_challenge` is not the base64url form, without padding, of 32 bytes.
    #[error("a code challenge is 43 characters of base64url")]
    MalformedChallenge,
}

impl PkceError {
    /// A stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoRandomness => "pkce.no_randomness",
            Self::MalformedChallenge => "pkce.malformed_challenge",
        }
    }
}

impl PkceVerifier {
    /// Makes a verifier of 32 random bytes, 43 characters long.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn generate() -> Result<Self, PkceError> {
        let mut random = Zeroizing::new([0; 32]);
        getrandom::fill(random.as_mut_slice()).map_err(|_| PkceError::NoRandomness)?;
        Ok(Self(Secret::new(URL_SAFE_NO_PAD.encode(random.as_slice()))))
    }

    /// The `code_verifier` of the token request. Keep it out of logs, errors and URLs.
    pub fn secret(&self) -> &str {
        self.0.secret()
    }

    /// The challenge that belongs to this verifier.
    pub fn challenge(&self) -> PkceChallenge {
        PkceChallenge::of(self.secret())
    }
}

impl fmt::Debug for PkceVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PkceVerifier([redacted])")
    }
}

impl PkceChallenge {
    /// The `code_challenge_method` of every challenge.
    pub const METHOD: &str = "S256";

    /// Reads a `code_challenge` that a client sent.
    ///
    /// # Errors
    /// When it is not the base64url form, without padding, of 32 bytes.
    pub fn parse(text: &str) -> Result<Self, PkceError> {
        let mut digest = [0; 32];
        match URL_SAFE_NO_PAD.decode_slice(text, &mut digest) {
            Ok(32) => Ok(Self { text: text.to_owned(), digest }),
            _ => Err(PkceError::MalformedChallenge),
        }
    }

    /// The `code_challenge` of the authorization request.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether `verifier` is well formed (43 to 128 unreserved characters) and belongs to this challenge.
    /// The digests are compared in constant time.
    pub fn matches(&self, verifier: &str) -> bool {
        is_verifier(verifier) && constant_time::equal(&self.digest, &Self::of(verifier).digest)
    }

    fn of(verifier: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(verifier.as_bytes()).into();
        Self { text: URL_SAFE_NO_PAD.encode(digest), digest }
    }
}

fn is_verifier(text: &str) -> bool {
    (43..=128).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 7636 appendix B.
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    /// I1: S256 as in RFC 7636 appendix B.
    #[test]
    fn the_published_pair_matches() {
        let challenge = PkceChallenge::parse(CHALLENGE).unwrap();
        assert!(challenge.matches(VERIFIER));
        assert_eq!(PkceChallenge::of(VERIFIER), challenge);
    }

    /// I1: a generated verifier fits its challenge and no other.
    #[test]
    fn generated_pairs_match_themselves_alone() {
        let (one, other) = (PkceVerifier::generate().unwrap(), PkceVerifier::generate().unwrap());
        assert_eq!(one.secret().len(), 43);
        assert!(one.challenge().matches(one.secret()));
        assert!(!one.challenge().matches(other.secret()));
        assert_eq!(PkceChallenge::parse(one.challenge().as_str()).unwrap(), one.challenge());
    }

    #[test]
    fn malformed_verifiers_never_match() {
        for verifier in ["", "short", &"a".repeat(42), &"a".repeat(129), &"ä".repeat(43), &" ".repeat(43)] {
            assert!(!PkceChallenge::of(verifier).matches(verifier), "{verifier:?}");
        }
        assert!(PkceChallenge::of(&"a".repeat(128)).matches(&"a".repeat(128)));
    }

    #[test]
    fn malformed_challenges_are_refused() {
        for text in ["", "abc", &format!("{CHALLENGE}="), &format!("{CHALLENGE}AAAA"), &"+".repeat(43), VERIFIER_PADDED]
        {
            assert_eq!(PkceChallenge::parse(text), Err(PkceError::MalformedChallenge), "{text:?}");
        }
    }

    // 43 characters whose last one carries bits that 32 bytes do not have.
    const VERIFIER_PADDED: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cN";

    /// J3: Debug never shows it.
    #[test]
    fn the_verifier_is_redacted() {
        assert_eq!(format!("{:?}", PkceVerifier::generate().unwrap()), "PkceVerifier([redacted])");
    }
}
