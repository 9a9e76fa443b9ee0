//! [`LogHash`]: the name of a session in logs.

use std::fmt;

/// A session's name in logs: 16 hexadecimal digits. See
/// [`Session::log_hash`](crate::Session::log_hash).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogHash(pub(super) u64);

impl LogHash {
    /// Returns the hash with this text: 16 lowercase hexadecimal digits. Returns `None` for any
    /// other text.
    pub fn parse(text: &str) -> Option<Self> {
        let is_well_formed = text.len() == 16
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let hash = is_well_formed.then(|| u64::from_str_radix(text, 16).ok())?;
        hash.map(Self)
    }
}

impl fmt::Display for LogHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for LogHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E3: the text of a log hash is parsed as that hash, and no other text is.
    #[test]
    fn log_hashes_are_parsed() {
        for hash in [0, 1, 0xfedc_ba98_7654_3210, u64::MAX].map(LogHash) {
            assert_eq!(LogHash::parse(&hash.to_string()), Some(hash));
        }
        for text in [
            "",
            "0",
            "0123456789abcde",
            "0123456789abcdef0",
            "0123456789ABCDEF",
            "+123456789abcdef",
            "0123456789abcdeg",
        ] {
            assert_eq!(LogHash::parse(text), None, "{text}");
        }
    }
}
