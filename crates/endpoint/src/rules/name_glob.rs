//! Patterns for methods and for the names of tools, prompts, resources and tasks.

use std::str::FromStr;

use portcullis_metadata::wildcard_matches;

/// A pattern for methods and names, such as `tools/*` or `admin_*`. `*` matches any number of any characters, including `/`.
///
/// ASCII letter case is ignored: a rule that matches can only add requirements. A pattern is compared with one
/// spelling of a name; a [`MessageRule`](crate::MessageRule) compares it with every spelling of a URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameGlob(Box<str>);

/// The reason why a string is not a [`NameGlob`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameGlobError {
    /// The string is empty. Nothing would match it.
    #[error("a pattern for methods or names must not be empty; omit it to match all")]
    Empty,
}

impl NameGlobError {
    /// Returns the stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Empty => "settings.empty_pattern",
        }
    }
}

impl NameGlob {
    /// Parses a pattern.
    ///
    /// # Errors
    /// Fails if the pattern is empty.
    pub fn parse(pattern: &str) -> Result<Self, NameGlobError> {
        if pattern.is_empty() { Err(NameGlobError::Empty) } else { Ok(Self(pattern.into())) }
    }

    /// Returns the pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the whole name matches. The time is at most the product of both lengths.
    pub fn matches(&self, name: &str) -> bool {
        wildcard_matches(&self.0, name)
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
    fn a_pattern_is_kept_as_written_and_is_not_empty() {
        assert_eq!(NameGlob::parse("tools/*").unwrap().as_str(), "tools/*");
        assert_eq!(NameGlob::parse("").unwrap_err().code(), "settings.empty_pattern");
    }

    /// B9: patterns match whole names, in any letter case, and a star also matches slashes.
    #[test]
    fn patterns_match_whole_names() {
        for (pattern, matching, other) in [
            ("*", &["", "x", "tools/call"][..], &[][..]),
            ("tools/*", &["tools/call", "tools/a/b", "TOOLS/"], &["tools", "xtools/call"]),
            ("admin_*", &["admin_", "admin_drop", "Admin_x"], &["admin", "xadmin_y"]),
            ("file:///*/secret*", &["file:///a/secret", "file:///a/b/secrets"], &["file:///secret"]),
        ] {
            let glob = NameGlob::parse(pattern).unwrap();
            assert!(matching.iter().all(|name| glob.matches(name)), "{pattern}");
            assert!(!other.iter().any(|name| glob.matches(name)), "{pattern}");
        }
    }
}
