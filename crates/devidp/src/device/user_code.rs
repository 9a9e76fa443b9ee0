use std::fmt;

use portcullis_authorization_server::{RandomError, random_bytes};

/// The letters of user codes: no vowels, so no words appear (RFC 8628 section 6.1).
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
const LENGTH: usize = 8;

/// A code that the user types or compares (RFC 8628 section 6.1): eight letters, 34 random bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserCode(Box<str>);

impl UserCode {
    pub(crate) fn generate() -> Result<Self, RandomError> {
        let mut code = String::with_capacity(LENGTH);
        while code.len() < LENGTH {
            let byte = random_bytes::<1>()?;
            // Bytes above the largest multiple of 20 are skipped, so every letter is equally
            // likely.
            if byte[0] < 240 {
                code.extend(
                    LETTERS
                        .get(usize::from(byte[0]) % LETTERS.len())
                        .map(|letter| char::from(*letter)),
                );
            }
        }
        Ok(Self(code.into()))
    }

    /// Parses a code as the user types it: letter case, hyphens and spaces do not matter.
    pub(crate) fn parse(typed: &str) -> Option<Self> {
        if typed.len() > 64 {
            return None;
        }
        let letters = typed
            .chars()
            .filter(|character| !matches!(character, '-' | ' ' | '\t'));
        let code: String = letters.map(|letter| letter.to_ascii_uppercase()).collect();
        let is_valid = code.len() == LENGTH && code.bytes().all(|letter| LETTERS.contains(&letter));
        is_valid.then(|| Self(code.into()))
    }

    /// Returns the key of the code's entry.
    pub(crate) fn as_key(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = self.0.split_at(LENGTH / 2);
        write!(f, "{first}-{second}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_codes_are_normalized() {
        let code = UserCode::generate().unwrap();
        let shown = code.to_string();
        assert_eq!(shown.len(), 9);
        assert_eq!(shown.chars().nth(4), Some('-'));
        for typed in [
            shown.clone(),
            shown.to_lowercase(),
            shown.replace('-', " "),
            format!(" {shown} "),
        ] {
            assert_eq!(UserCode::parse(&typed), Some(code.clone()), "{typed}");
        }
    }

    #[test]
    fn other_texts_are_not_codes() {
        for typed in [
            "",
            "BCDF",
            "BCDF-GHJA",
            "BCDF-GHJ1",
            "BCDFéHJK",
            "BCDF-GHJKL",
            &"-".repeat(65),
        ] {
            assert_eq!(UserCode::parse(typed), None, "{typed}");
        }
    }
}
