use std::{fmt, sync::Arc};

/// Sets with fewer names than this are sorted on the stack.
const STACK_CAPACITY: usize = 16;

/// A sorted set of OAuth scope names (RFC 6749 section 3.3). Cloning is cheap.
///
/// The names are stored in one string, separated by single spaces: sets are small, and read far
/// more often than created.
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
        let mut names = names.into_iter().map(|name| {
            if is_scope_name(name) {
                Ok(name)
            } else {
                Err(ScopesError::InvalidName)
            }
        });
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

    /// Returns whether a string is a valid scope name (RFC 6749 section 3.3).
    pub fn is_name(name: &str) -> bool {
        is_scope_name(name)
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
        let Some(required) = &required.0 else {
            return true;
        };
        // Splitting the empty string gives one empty piece, which equals no name.
        let granted = self.as_str();
        // Both sets are sorted, so one pass over `granted` is enough.
        let mut granted = granted.as_bytes().split(|byte| *byte == b' ');
        required
            .as_bytes()
            .split(|byte| *byte == b' ')
            .all(|name| granted.any(|granted| granted == name))
    }

    /// Returns the scopes as they are requested. Microsoft Entra ID accepts only `api://ID/NAME` in
    /// requests and writes `NAME` into tokens: a name that `listed` does not have, but that is the
    /// end of exactly one URI there, is replaced by this URI. Entries of `listed` that are not
    /// scope names are ignored.
    ///
    /// `listed` is `scopes_supported` of a protected resource (RFC 9728 section 2), which is for
    /// requests.
    pub fn in_listed_form(&self, listed: &[String]) -> Self {
        let long_form = |name: &str| {
            let mut long = listed
                .iter()
                .filter(|listed| is_scope_name(listed) && Self::is_long_form(listed, name));
            long.next().filter(|_| long.next().is_none())
        };
        let names = self.iter().map(|name| {
            let long = if listed.iter().any(|listed| listed == name) {
                None
            } else {
                long_form(name)
            };
            long.map_or(name, String::as_str)
        });
        Self::from_valid_names(&mut names.collect::<Vec<_>>())
    }

    /// Returns whether `long` is the form `api://ID/NAME` of the scope `name`, with any scheme.
    pub fn is_long_form(long: &str, name: &str) -> bool {
        let Some(prefix) = long
            .strip_suffix(name)
            .and_then(|rest| rest.strip_suffix('/'))
        else {
            return false;
        };
        prefix
            .split_once("://")
            .is_some_and(|(_, application)| !application.is_empty())
    }

    /// Returns the names that are in either set.
    pub fn union(&self, other: &Self) -> Self {
        Self::from_valid_names(&mut self.iter().chain(other.iter()).collect::<Vec<_>>())
    }

    /// Returns the names that are in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        self.filter(|name| other.contains(name))
    }

    /// Returns the names that are in this set and not in the other.
    pub fn difference(&self, other: &Self) -> Self {
        self.filter(|name| !other.contains(name))
    }

    /// Returns the names for which `keep` is true.
    #[must_use]
    pub fn filter(&self, keep: impl Fn(&str) -> bool) -> Self {
        Self::from_valid_names(&mut self.iter().filter(|name| keep(name)).collect::<Vec<_>>())
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
        if text.is_empty() {
            Self(None)
        } else {
            Self(Some(text.into()))
        }
    }
}

fn is_scope_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| matches!(b, 0x21 | 0x23..=0x5B | 0x5D..=0x7E))
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

    /// I1, B3: a token has the short form, and a request needs the form that the resource lists.
    #[test]
    fn the_listed_form_is_requested() {
        const LONG: &str = "api://00001111-aaaa-2222-bbbb-3333cccc4444/tools";
        let requested = |names: &str, listed: &[&str]| {
            let listed: Vec<_> = listed.iter().map(|name| (*name).to_owned()).collect();
            scopes(names).in_listed_form(&listed).to_string()
        };
        assert_eq!(requested("tools", &[LONG]), LONG);
        assert_eq!(
            requested("offline_access tools", &["other", LONG]),
            format!("{LONG} offline_access")
        );
        assert_eq!(
            requested("read tools", &["api://\"/read", "api://\"/tools", LONG]),
            format!("{LONG} read")
        );

        for (listed, why) in [
            (&["tools", LONG][..], "it is listed as it is"),
            (&[LONG, "api://2/tools"], "two applications have it"),
            (
                &["api://1/my-tools", "my/tools", "://tools", "api:///tools"],
                "it is not the name of one of an application",
            ),
            (&[], "nothing is listed"),
        ] {
            assert_eq!(requested("tools", listed), "tools", "{why}");
        }
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
            let names: Vec<String> = (0..count)
                .map(|number| format!("s{}", number * 37 % 301))
                .collect();
            let twice = Scopes::from_names(names.iter().chain(&names).map(String::as_str)).unwrap();
            assert_eq!(twice.iter().count(), count);
            assert!(names.iter().all(|name| twice.contains(name)));
            assert!(
                twice.covers(&Scopes::from_names(names.iter().rev().map(String::as_str)).unwrap())
            );
            assert!(!twice.covers(
                &Scopes::from_names(names.iter().map(String::as_str).chain(["t"])).unwrap()
            ));
            let halved = Scopes::from_names(names[..count / 2].iter().map(String::as_str)).unwrap();
            assert!(twice.covers(&halved));
            assert!(!halved.covers(&twice));
        }
        let bad = (0..20).map(|number| if number == 18 { "a b" } else { "a" });
        assert_eq!(Scopes::from_names(bad), Err(ScopesError::InvalidName));
    }

    #[test]
    fn union_intersection_and_difference() {
        assert_eq!(scopes("a b").union(&scopes("b c")), scopes("a b c"));
        assert_eq!(scopes("a b").intersection(&scopes("b c")), scopes("b"));
        assert_eq!(scopes("a").intersection(&scopes("b")), Scopes::empty());
        assert_eq!(scopes("a b").difference(&scopes("b c")), scopes("a"));
        assert_eq!(scopes("a").difference(&scopes("a")), Scopes::empty());
        assert_eq!(
            scopes("a bc d").filter(|name| name.len() == 1),
            scopes("a d")
        );
    }

    /// B4: characters that could end a quoted parameter are not allowed in names.
    #[test]
    fn malformed_names_are_rejected() {
        for name in ["", "a b", "a\"", "a\\", "a\n", "a\t", "ä", "\u{7f}", "\0"] {
            assert_eq!(
                Scopes::from_names([name]),
                Err(ScopesError::InvalidName),
                "{name:?}"
            );
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
