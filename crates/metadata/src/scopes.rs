use std::{fmt, sync::Arc};

/// So many names are sorted on the stack.
const FEW: usize = 16;

/// A set of OAuth scope names (RFC 6749 section 3.3), sorted and without repetition. Cheap to clone.
///
/// The names stand in one text, separated by single spaces: a set is small, and read far more often than it is made.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Scopes(Option<Arc<str>>);

/// Why a text is no scope list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopesError {
    /// A name is empty or has a character outside `%x21 / %x23-5B / %x5D-7E`.
    #[error("a scope name is printable ASCII without space, quote and backslash")]
    InvalidName,
}

impl ScopesError {
    /// A stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidName => "scope.invalid_name",
        }
    }
}

impl Scopes {
    /// The empty set.
    pub const fn empty() -> Self {
        Self(None)
    }

    /// Parses names separated by spaces; extra spaces are ignored.
    ///
    /// # Errors
    /// When a name has a character that RFC 6749 section 3.3 does not allow.
    pub fn parse(text: &str) -> Result<Self, ScopesError> {
        // As bytes, which are split faster than characters.
        let mut next = 0;
        let names = text.as_bytes().split(|byte| *byte == b' ').map(|name| {
            let start = next;
            next += name.len() + 1;
            &text[start..start + name.len()]
        });
        Self::from_names(names.filter(|name| !name.is_empty()))
    }

    /// Builds the set from single names.
    ///
    /// # Errors
    /// When a name is empty or has a character that RFC 6749 section 3.3 does not allow.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, ScopesError> {
        let mut names =
            names.into_iter().map(|name| if is_scope_name(name) { Ok(name) } else { Err(ScopesError::InvalidName) });
        let mut few = [""; FEW];
        for (count, slot) in few.iter_mut().enumerate() {
            let Some(name) = names.next().transpose()? else { return Ok(Self::of(&mut few[..count])) };
            *slot = name;
        }
        let mut many = few.to_vec();
        for name in names {
            many.push(name?);
        }
        Ok(Self::of(&mut many))
    }

    /// Whether the set has no name.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The names, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|names| names.split(' '))
    }

    /// Whether `name` is in the set. Scope names are case-sensitive.
    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|held| held == name)
    }

    /// Whether every name of `needed` is in this set. Allocates nothing.
    pub fn covers(&self, needed: &Self) -> bool {
        let Some(needed) = &needed.0 else { return true };
        // Without names there is one piece, which is no name.
        let held = self.0.as_deref().unwrap_or_default();
        // Both are sorted: what was passed over once is needed no more.
        let mut held = held.as_bytes().split(|byte| *byte == b' ');
        needed.as_bytes().split(|byte| *byte == b' ').all(|name| held.any(|held| held == name))
    }

    /// The names in either set.
    pub fn union(&self, other: &Self) -> Self {
        Self::of(&mut self.iter().chain(other.iter()).collect::<Vec<_>>())
    }

    /// The names in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        Self::of(&mut self.iter().filter(|name| other.contains(name)).collect::<Vec<_>>())
    }

    /// The set of some sound names.
    fn of(names: &mut [&str]) -> Self {
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

/// The names, separated by single spaces: the form of the `scope` parameter.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or_default())
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
    fn names_are_sorted_and_single() {
        assert_eq!(scopes("b  a b ").to_string(), "a b");
        assert_eq!(scopes(""), Scopes::empty());
        assert!(scopes("   ").is_empty());
    }

    /// B9: a need is met only by every name, in its letter case.
    #[test]
    fn covering_takes_every_name() {
        assert!(scopes("a b c").covers(&scopes("c a")));
        assert!(scopes("a").covers(&Scopes::empty()));
        assert!(!scopes("a b").covers(&scopes("a d")));
        assert!(!scopes("a").covers(&scopes("A")));
        assert!(!scopes("mcp:tools").covers(&scopes("mcp")));
        assert!(!Scopes::empty().covers(&scopes("a")));
    }

    /// B9: however many names there are, in whatever order.
    #[test]
    fn large_sets_are_sets() {
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
    fn sets_join_and_meet() {
        assert_eq!(scopes("a b").union(&scopes("b c")), scopes("a b c"));
        assert_eq!(scopes("a b").intersection(&scopes("b c")), scopes("b"));
        assert_eq!(scopes("a").intersection(&scopes("b")), Scopes::empty());
    }

    /// B4: a name that could end a quoted parameter is none.
    #[test]
    fn malformed_names_are_refused() {
        for name in ["", "a b", "a\"", "a\\", "a\n", "a\t", "ä", "\u{7f}", "\0"] {
            assert_eq!(Scopes::from_names([name]), Err(ScopesError::InvalidName), "{name:?}");
        }
        assert!(Scopes::parse("a\tb").is_err());
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(text in "[!#-\\[\\]-~ ]{0,30}") {
            let parsed = scopes(&text);
            prop_assert_eq!(scopes(&parsed.to_string()), parsed);
        }
    }
}
