use std::str::FromStr;

/// A pattern for methods and names, in which `*` stands for any number of any characters: `tools/*`, `admin_*`.
///
/// ASCII letter case does not count, because a rule that matches only ever demands *more* scopes. The pattern itself knows
/// one spelling of a name; [`Rule`](crate::Rule)s compare each spelling of a URI with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameGlob {
    pattern: Box<str>,
    /// Where the first star stands; none stands in a pattern that is a name.
    star: Option<usize>,
}

/// Why a text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameGlobError {
    /// It is empty, which nothing matches.
    #[error("a pattern for methods or names is not empty; leave it out to match all")]
    Empty,
}

impl NameGlobError {
    /// The stable code.
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
    /// When it is empty.
    pub fn parse(pattern: &str) -> Result<Self, NameGlobError> {
        if pattern.is_empty() {
            return Err(NameGlobError::Empty);
        }
        Ok(Self { pattern: pattern.into(), star: pattern.find('*') })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Whether the whole name matches. Its cost is at most the product of both lengths.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.pattern.as_bytes(), name.as_bytes());
        let Some(star) = self.star else { return is_same(pattern, name) };
        let (head, pattern) = pattern.split_at(star);
        name.split_at_checked(star).is_some_and(|(start, rest)| is_same(head, start) && fits(pattern, rest))
    }
}

/// Nearly always the letter case is the same, too.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one == other || one.eq_ignore_ascii_case(other)
}

/// Whether a pattern from its first star on fits the rest of a name.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    if pattern == b"*" {
        return true;
    }
    let (mut p, mut n) = (0, 0);
    // Behind the last star: where the pattern goes on, and up to where the star has swallowed the name.
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                star = Some((p, n));
            }
            Some(wanted) if wanted.eq_ignore_ascii_case(&name[n]) => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((after, swallowed)) = star else { return false };
                p = after;
                n = swallowed + 1;
                star = Some((after, n));
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

impl FromStr for NameGlob {
    type Err = NameGlobError;

    fn from_str(pattern: &str) -> Result<Self, NameGlobError> {
        Self::parse(pattern)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pattern_is_shown_as_it_was_written_and_is_not_empty() {
        assert_eq!(NameGlob::parse("tools/*").unwrap().as_str(), "tools/*");
        assert_eq!(NameGlob::parse("").unwrap_err().code(), "settings.empty_pattern");
    }

    /// B9: patterns match whole names, in any letter case.
    #[test]
    fn patterns_match_whole_names() {
        for (pattern, matching, other) in [
            ("add", &["add", "ADD"][..], &["", "ad", "adds", "xadd"][..]),
            ("*", &["", "x", "tools/call"], &[]),
            ("admin_*", &["admin_", "admin_drop", "Admin_x"], &["admin", "xadmin_y"]),
            ("*_write", &["_write", "a_write_write"], &["a_write_", "write"]),
            ("a*b*c", &["abc", "a-b-b-c", "abbcc"], &["acb", "ab", "abcd"]),
            ("file:///*/secret*", &["file:///a/b/secrets"], &["file:///secret"]),
            ("**", &["", "x"], &[]),
        ] {
            let glob = NameGlob::parse(pattern).unwrap();
            assert!(matching.iter().all(|name| glob.matches(name)), "{pattern}");
            assert!(!other.iter().any(|name| glob.matches(name)), "{pattern}");
        }
        assert_eq!(NameGlob::parse(""), Err(NameGlobError::Empty));
    }

    /// What a pattern means, in the fewest words.
    fn fits_plainly(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), None) => fits_plainly(rest, name),
            (Some((b'*', rest)), Some((_, shorter))) => fits_plainly(rest, name) || fits_plainly(pattern, shorter),
            (Some((wanted, rest)), Some((byte, shorter))) => {
                wanted.eq_ignore_ascii_case(byte) && fits_plainly(rest, shorter)
            }
            _ => false,
        }
    }

    proptest! {
        /// B9: whatever a pattern begins with, it matches as it would if it were gone through byte by byte.
        #[test]
        fn patterns_match_as_they_read(pattern in "[aAb\u{e9}*]{1,6}", name in "[aAb\u{e9}*]{0,8}") {
            let glob = NameGlob::parse(&pattern).unwrap();
            prop_assert_eq!(glob.matches(&name), fits_plainly(pattern.as_bytes(), name.as_bytes()));
        }
    }
}
