use std::str::FromStr;

use portcullis_mcp::Envelope;
use portcullis_metadata::syntax::Wildcard;

/// A pattern for methods and names, such as `tools/*` or `admin_*`. `*` matches any number of any
/// characters, including `/`.
///
/// ASCII letter case is ignored: a rule that matches can only add requirements. A pattern is
/// compared with one spelling of a name; a [`MessageRule`](crate::MessageRule) compares it with
/// every spelling of a URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameGlob {
    pattern: Box<str>,
    wildcard: Wildcard,
}

/// The reason why a string is not a [`NameGlob`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameGlobError {
    /// The string is empty. Nothing would match it.
    #[error("a pattern for methods or names must not be empty; omit it to match all")]
    Empty,
    /// The string is longer than [`Envelope::MAX_NAME_BYTES`], the maximum of methods and names.
    #[error(
        "a pattern for methods or names must not be longer than {} bytes",
        Envelope::MAX_NAME_BYTES
    )]
    TooLong,
}

impl NameGlobError {
    /// Returns the stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Empty => "settings.empty_pattern",
            Self::TooLong => "settings.long_pattern",
        }
    }
}

impl NameGlob {
    /// Parses a pattern.
    ///
    /// # Errors
    /// Fails if the pattern is empty or longer than [`Envelope::MAX_NAME_BYTES`].
    pub fn parse(pattern: &str) -> Result<Self, NameGlobError> {
        match pattern.len() {
            0 => Err(NameGlobError::Empty),
            1..=Envelope::MAX_NAME_BYTES => Ok(Self {
                pattern: pattern.into(),
                wildcard: Wildcard::new(pattern),
            }),
            _ => Err(NameGlobError::TooLong),
        }
    }

    /// Returns the pattern as written.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Returns whether the whole name matches. The time is linear in its length.
    pub fn matches(&self, name: &str) -> bool {
        self.wildcard.matches(name)
    }
}

impl FromStr for NameGlob {
    type Err = NameGlobError;

    fn from_str(pattern: &str) -> Result<Self, NameGlobError> {
        Self::parse(pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_kept_as_written_and_has_a_length() {
        assert_eq!(NameGlob::parse("tools/*").unwrap().as_str(), "tools/*");
        assert_eq!(
            NameGlob::parse("").unwrap_err().code(),
            "settings.empty_pattern"
        );
        assert!(NameGlob::parse(&"a".repeat(Envelope::MAX_NAME_BYTES)).is_ok());
        let long = NameGlob::parse(&"a".repeat(Envelope::MAX_NAME_BYTES + 1)).unwrap_err();
        assert_eq!(long.code(), "settings.long_pattern");
    }

    /// B9: patterns match whole names, in any letter case, and a star also matches slashes.
    #[test]
    fn patterns_match_whole_names() {
        for (pattern, matching, other) in [
            ("*", &["", "x", "tools/call"][..], &[][..]),
            (
                "tools/*",
                &["tools/call", "tools/a/b", "TOOLS/"],
                &["tools", "xtools/call"],
            ),
            (
                "admin_*",
                &["admin_", "admin_drop", "Admin_x"],
                &["admin", "xadmin_y"],
            ),
            (
                "file:///*/secret*",
                &["file:///a/secret", "file:///a/b/secrets"],
                &["file:///secret"],
            ),
        ] {
            let glob = NameGlob::parse(pattern).unwrap();
            assert!(matching.iter().all(|name| glob.matches(name)), "{pattern}");
            assert!(!other.iter().any(|name| glob.matches(name)), "{pattern}");
        }
    }
}
