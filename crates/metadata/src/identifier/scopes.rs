//! [`Scopes`]: a set of scope names.

use std::{fmt, sync::Arc};

/// Sets with fewer names than this are sorted on the stack.
const STACK_CAPACITY: usize = 16;

/// A sorted set of OAuth scope names (RFC 6749 section 3.3). Cloning is cheap.
///
/// The names are stored in one string, separated by single spaces: sets are small, and read far more often than
/// created.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Scopes(Option<Arc<str>>);

/// Why a string is not a valid scope list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopesError {
    /// A name is empty or has a character outside `%x21 / %x23-5B / %x5D-7E`.
    #[error("a scope name must be printable ASCII without spaces, quotes or backslashes")]
    InvalidName,
}

impl ScopesError {
    /// Returns a stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidName => "scope.invalid_name",
        }
    }
}

impl Scopes {
    /// Returns the empty set.
    pub const fn empty() -> Self {
        Self(None)
    }

    /// Parses names separated by spaces. Extra spaces are ignored.
    ///
    /// # Errors
    /// Fails if a name has a character that RFC 6749 section 3.3 does not allow.
    pub fn parse(text: &str) -> Result<Self, ScopesError> {
        // Splitting bytes is faster than splitting characters.
        let mut next = 0;
        let names = text.as_bytes().split(|byte| *byte == b' ').map(|name| {
            let start = next;
            next += name.len() + 1;
            &text[start..start + name.len()]
        });
        Self::from_names(names.filter(|name| !name.is_empty()))
    }

    /// Creates the set from individual names.
    ///
    /// # Errors
    /// Fails if a name is empty or has a character that RFC 6749 section 3.3 does not allow.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, ScopesError> {
        let mut names =
            names.into_iter().map(|name| if is_scope_name(name) { Ok(name) } else { Err(ScopesError::InvalidName) });
        let mut on_stack = [""; STACK_CAPACITY];
        for (count, slot) in on_stack.iter_mut().enumerate() {
            let Some(name) = names.next().transpose()? else {
                return Ok(Self::from_valid_names(&mut on_stack[..count]));
            };
            *slot = name;
        }
        let mut on_heap = on_stack.to_vec();
        for name in names {
            on_heap.push(name?);
        }
        Ok(Self::from_valid_names(&mut on_heap))
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the names in sorted order, separated by single spaces, as in the `scope` parameter.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// Returns the names in sorted order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|names| names.split(' '))
    }

    /// Returns whether `name` is in the set. Scope names are case-sensitive.
    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|granted| granted == name)
    }

    /// Returns whether this set contains every name in `required`. Does not allocate.
    pub fn covers(&self, required: &Self) -> bool {
        let Some(required) = &required.0 else { return true };
        // Splitting the empty string gives one empty piece, which equals no name.
        let granted = self.as_str();
        // Both sets are sorted, so one pass over `granted` is enough.
        let mut granted = granted.as_bytes().split(|byte| *byte == b' ');
        required.as_bytes().split(|byte| *byte == b' ').all(|name| granted.any(|granted| granted == name))
    }

    /// Returns the names that are in either set.
    pub fn union(&self, other: &Self) -> Self {
        Self::from_valid_names(&mut self.iter().chain(other.iter()).collect::<Vec<_>>())
    }

    /// Returns the names that are in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        Self::from_valid_names(&mut self.iter().filter(|name| other.contains(name)).collect::<Vec<_>>())
    }

    /// Sorts and deduplicates names that are known to be valid.
    fn from_valid_names(names: &mut [&str]) -> Self {
        names.sort_unstable();
        let mut text = String::with_capacity(names.iter().map(|name| name.len() + 1).sum());
        let mut last = "";
        for name in names {
            if *name == last {
                continue;
            }
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(name);
            last = name;
        }
        if text.is_empty() { Self(None) } else { Self(Some(text.into())) }
    }
}

fn is_scope_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| matches!(b, 0x21 | 0x23..=0x5B | 0x5D..=0x7E))
}

/// Writes the names separated by single spaces, as in the `scope` parameter.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scopes(text: &str) -> Scopes {
        Scopes::parse(text).unwrap()
    }

    #[test]
    fn names_are_sorted_and_deduplicated() {
        assert_eq!(scopes("b  a b ").to_string(), "a b");
        assert_eq!(scopes(""), Scopes::empty());
        assert!(scopes("   ").is_empty());
    }

    /// B9: every required name must be granted, in the same letter case.
    #[test]
    fn every_required_name_must_be_granted() {
        assert!(scopes("a b c").covers(&scopes("c a")));
        assert!(scopes("a").covers(&Scopes::empty()));
        assert!(!scopes("a b").covers(&scopes("a d")));
        assert!(!scopes("a").covers(&scopes("A")));
        assert!(!scopes("mcp:tools").covers(&scopes("mcp")));
        assert!(!Scopes::empty().covers(&scopes("a")));
    }

    /// B9: sets of any size and in any order behave the same.
    #[test]
    fn large_sets_behave_like_small_ones() {
        for count in [1, 15, 16, 17, 18, 300] {
            let names: Vec<String> = (0..count).map(|number| format!("s{}", number * 37 % 301)).collect();
            let twice = Scopes::from_names(names.iter().chain(&names).map(String::as_str)).unwrap();
            assert_eq!(twice.iter().count(), count);
            assert!(names.iter().all(|name| twice.contains(name)));
            assert!(twice.covers(&Scopes::from_names(names.iter().rev().map(String::as_str)).unwrap()));
            assert!(!twice.covers(&Scopes::from_names(names.iter().map(String::as_str).chain(["t"])).unwrap()));
            let halved = Scopes::from_names(names[..count / 2].iter().map(String::as_str)).unwrap();
            assert!(twice.covers(&halved) && !halved.covers(&twice));
        }
        let bad = (0..20).map(|number| if number == 18 { "a b" } else { "a" });
        assert_eq!(Scopes::from_names(bad), Err(ScopesError::InvalidName));
    }

    #[test]
    fn union_and_intersection() {
        assert_eq!(scopes("a b").union(&scopes("b c")), scopes("a b c"));
        assert_eq!(scopes("a b").intersection(&scopes("b c")), scopes("b"));
        assert_eq!(scopes("a").intersection(&scopes("b")), Scopes::empty());
    }

    /// B4: characters that could end a quoted parameter are not allowed in names.
    #[test]
    fn malformed_names_are_rejected() {
        for name in ["", "a b", "a\"", "a\\", "a\n", "a\t", "ä", "\u{7f}", "\0"] {
            assert_eq!(Scopes::from_names([name]), Err(ScopesError::InvalidName), "{name:?}");
        }
        assert!(Scopes::parse("a\tb").is_err());
    }

    proptest! {
        #[test]
        fn display_round_trips(text in "[!#-\\[\\]-~ ]{0,30}") {
            let parsed = scopes(&text);
            prop_assert_eq!(scopes(&parsed.to_string()), parsed);
        }
    }
}
