use std::collections::{BTreeMap, BTreeSet};

use portcullis_metadata::{Scopes, ScopesError};

/// Which scopes a broader scope stands for, such as `mcp:admin` for `mcp:tools`.
///
/// A token's scopes count as if those that they imply were granted, too, directly or through others; scopes that imply
/// each other count as the same. It is worked out once, so that judging a request allocates nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeImplications {
    /// By the name of an implied scope: all scopes that imply it.
    broader: BTreeMap<Box<str>, Scopes>,
    /// Every scope that is named here.
    names: Scopes,
}

impl ScopeImplications {
    /// From pairs of a broader scope and what it implies. One that comes twice implies all of both.
    ///
    /// # Errors
    /// When a broader scope is no scope name (RFC 6749 section 3.3).
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, Scopes)>) -> Result<Self, ScopesError> {
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

    /// Whether the granted scopes, and those that they imply, contain all needed ones. Allocates nothing.
    pub fn covers(&self, granted: &Scopes, needed: &Scopes) -> bool {
        let is_implied =
            |name| self.broader.get(name).is_some_and(|broader| broader.iter().any(|broad| granted.contains(broad)));
        granted.covers(needed) || needed.iter().all(|name| granted.contains(name) || is_implied(name))
    }

    /// Every scope that implies another, or is implied.
    pub(crate) fn names(&self) -> &Scopes {
        &self.names
    }
}

/// All scopes that one implies, itself not counted unless others lead back to it.
fn reached_from<'a>(broad: &str, implied: &'a BTreeMap<String, Scopes>) -> BTreeSet<&'a str> {
    let (mut reached, mut next) = (BTreeSet::new(), Vec::from_iter(implied.get(broad)));
    while let Some(scopes) = next.pop() {
        for name in scopes.iter().filter(|name| reached.insert(*name)).collect::<Vec<_>>() {
            next.extend(implied.get(name));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn implications(pairs: &[(&str, &str)]) -> ScopeImplications {
        ScopeImplications::new(pairs.iter().map(|(broad, narrow)| (*broad, Scopes::parse(narrow).unwrap()))).unwrap()
    }

    fn covers(implications: &ScopeImplications, granted: &str, needed: &str) -> bool {
        implications.covers(&Scopes::parse(granted).unwrap(), &Scopes::parse(needed).unwrap())
    }

    /// B7: what a scope implies is granted with it, also through others, and never the other way round.
    #[test]
    fn broader_scopes_stand_for_narrower_ones() {
        let implications = implications(&[("admin", "write users"), ("write", "read"), ("admin", "audit")]);
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
        for (granted, needed) in
            [("read", "write"), ("write", "admin"), ("write", "users"), ("", "read"), ("admin", "read other")]
        {
            assert!(!covers(&implications, granted, needed), "{granted} {needed}");
        }
        assert_eq!(implications.names(), &Scopes::parse("admin audit read users write").unwrap());
    }

    /// B7: scopes that imply each other are the same; a cycle ends.
    #[test]
    fn cycles_do_no_harm() {
        let implications = implications(&[("a", "b"), ("b", "c"), ("c", "a"), ("d", "d")]);
        for granted in ["a", "b", "c"] {
            assert!(covers(&implications, granted, "a b c"), "{granted}");
            assert!(!covers(&implications, granted, "d"), "{granted}");
        }
        assert!(covers(&implications, "d", "d") && !covers(&implications, "d", "a"));
    }

    #[test]
    fn without_any_every_scope_stands_for_itself() {
        let none = ScopeImplications::default();
        assert!(covers(&none, "a b", "a") && !covers(&none, "a", "b"));
        assert!(ScopeImplications::new([("a b", Scopes::empty())]).is_err());
    }
}
