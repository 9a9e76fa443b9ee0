use portcullis_metadata::Scopes;

/// The most scopes that a list of a server may have.
pub(crate) const MAX_SCOPES: usize = 1_000;

/// Returns the scopes of a server, or `None` if there are more than [`MAX_SCOPES`]: comparing two
/// such lists, which a server chooses, could take minutes.
pub(crate) fn within_limit(scopes: Scopes) -> Option<Scopes> {
    Some(scopes).filter(|scopes| scopes.iter().nth(MAX_SCOPES).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_scopes_are_not_used() {
        let scopes = |count: usize| {
            let names: Vec<String> = (0..count).map(|number| format!("s{number}")).collect();
            Scopes::from_names(names.iter().map(String::as_str)).unwrap()
        };
        assert_eq!(within_limit(scopes(MAX_SCOPES)), Some(scopes(MAX_SCOPES)));
        assert_eq!(within_limit(scopes(MAX_SCOPES + 1)), None);
        assert_eq!(within_limit(Scopes::empty()), Some(Scopes::empty()));
    }
}
