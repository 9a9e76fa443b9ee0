//! Scope names in two forms: Microsoft Entra ID accepts only `api://ID/NAME` in requests and writes `NAME` into tokens.

use portcullis_metadata::Scopes;

/// Whether each wanted scope was granted, in either form.
pub(crate) fn covers(granted: &Scopes, wanted: &Scopes) -> bool {
    wanted
        .iter()
        .all(|name| granted.contains(name) || granted.iter().any(|granted| Scopes::is_long_form(granted, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "api://00001111-aaaa-2222-bbbb-3333cccc4444/tools";

    #[test]
    fn a_grant_covers_both_forms() {
        let covers = |granted: &str, wanted: &str| {
            super::covers(&Scopes::parse(granted).unwrap(), &Scopes::parse(wanted).unwrap())
        };
        assert!(covers(LONG, "tools") && covers(LONG, LONG) && covers("a b", "b"));
        assert!(!covers("tools", LONG) && !covers(LONG, "ools") && !covers(LONG, "tools admin"));
    }
}
