//! [`ScopeImplications`]: broad scopes that include narrower ones.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_metadata::{Scopes, ScopesError};

/// Which scopes imply others: for example, `mcp:admin` implies `mcp:tools`.
///
/// A token with a broad scope is treated as if the implied scopes were granted too. Implication is
/// transitive, and scopes that imply each other are equivalent. The closure is computed once, so
/// that a check allocates nothing.
///
/// ```
/// use portcullis_guard::{metadata::Scopes, authorize::ScopeImplications};
///
/// let implications = ScopeImplications::new([("mcp:admin", Scopes::parse("mcp:tools mcp:resources")?)])?;
/// assert!(implications.covers(&Scopes::parse("mcp:admin")?, &Scopes::parse("mcp:tools")?));
/// assert!(!implications.covers(&Scopes::parse("mcp:tools")?, &Scopes::parse("mcp:admin")?));
/// # Ok::<(), portcullis_guard::metadata::ScopesError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeImplications {
    /// For each implied scope, all scopes that imply it.
    broader: BTreeMap<Box<str>, Scopes>,
    /// All scopes that imply another or are implied.
    names: Scopes,
}

impl ScopeImplications {
    /// Creates the relation from pairs of a broad scope and the scopes that it implies. The scopes
    /// of repeated pairs are combined.
    ///
    /// # Errors
    /// Fails if a broad scope is not a scope name (RFC 6749 section 3.3).
    pub fn new<'a>(
        pairs: impl IntoIterator<Item = (&'a str, Scopes)>,
    ) -> Result<Self, ScopesError> {
        let mut implied: BTreeMap<String, Scopes> = BTreeMap::new();
        let mut names = Scopes::empty();
        for (broad, narrow) in pairs {
            names = names.union(&Scopes::from_names([broad])?).union(&narrow);
            let all = implied.entry(broad.to_owned()).or_default();
            *all = all.union(&narrow);
        }
        let mut broader: BTreeMap<Box<str>, Scopes> = BTreeMap::new();
        for broad in implied.keys() {
            let itself = Scopes::from_names([broad.as_str()])?;
            for narrow in reached_from(broad, &implied) {
                let all = broader.entry(narrow.into()).or_default();
                *all = all.union(&itself);
            }
        }
        Ok(Self { broader, names })
    }

    /// Returns whether the granted scopes and those that they imply contain all needed scopes.
    pub fn covers(&self, granted: &Scopes, needed: &Scopes) -> bool {
        let is_implied = |name| {
            self.broader
                .get(name)
                .is_some_and(|broader| broader.iter().any(|broad| granted.contains(broad)))
        };
        granted.covers(needed)
            || needed
                .iter()
                .all(|name| granted.contains(name) || is_implied(name))
    }

    /// Returns all scopes that imply another or are implied.
    pub(crate) fn names(&self) -> &Scopes {
        &self.names
    }
}

/// Returns all scopes that a scope implies, including itself only if it is part of a cycle.
fn reached_from<'a>(broad: &str, implied: &'a BTreeMap<String, Scopes>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next = Vec::from_iter(implied.get(broad));
    while let Some(scopes) = next.pop() {
        for name in scopes
            .iter()
            .filter(|name| reached.insert(*name))
            .collect::<Vec<_>>()
        {
            next.extend(implied.get(name));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn implications(pairs: &[(&str, &str)]) -> ScopeImplications {
        ScopeImplications::new(
            pairs
                .iter()
                .map(|(broad, narrow)| (*broad, Scopes::parse(narrow).unwrap())),
        )
        .unwrap()
    }

    fn covers(implications: &ScopeImplications, granted: &str, needed: &str) -> bool {
        implications.covers(
            &Scopes::parse(granted).unwrap(),
            &Scopes::parse(needed).unwrap(),
        )
    }

    /// B7: implication is transitive and not symmetric.
    #[test]
    fn broad_scopes_imply_narrow_ones() {
        let implications = implications(&[
            ("admin", "write users"),
            ("write", "read"),
            ("admin", "audit"),
        ]);
        for (granted, needed) in [
            ("admin", "admin"),
            ("admin", "audit read users write"),
            ("write", "read"),
            ("other write", "other read"),
            ("", ""),
            ("admin", ""),
        ] {
            assert!(covers(&implications, granted, needed), "{granted} {needed}");
        }
        for (granted, needed) in [
            ("read", "write"),
            ("write", "admin"),
            ("write", "users"),
            ("", "read"),
            ("admin", "read other"),
        ] {
            assert!(
                !covers(&implications, granted, needed),
                "{granted} {needed}"
            );
        }
        assert_eq!(
            implications.names(),
            &Scopes::parse("admin audit read users write").unwrap()
        );
    }

    /// B7: scopes that imply each other are equivalent, and a cycle terminates.
    #[test]
    fn cycles_terminate() {
        let implications = implications(&[("a", "b"), ("b", "c"), ("c", "a"), ("d", "d")]);
        for granted in ["a", "b", "c"] {
            assert!(covers(&implications, granted, "a b c"), "{granted}");
            assert!(!covers(&implications, granted, "d"), "{granted}");
        }
        assert!(covers(&implications, "d", "d"));
        assert!(!covers(&implications, "d", "a"));
    }

    #[test]
    fn without_implications_scopes_are_compared_by_name() {
        let none = ScopeImplications::default();
        assert!(covers(&none, "a b", "a"));
        assert!(!covers(&none, "a", "b"));
        assert!(ScopeImplications::new([("a b", Scopes::empty())]).is_err());
    }
}
