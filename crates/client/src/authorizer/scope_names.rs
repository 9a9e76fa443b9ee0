//! Scope names in two forms: Microsoft Entra ID accepts only `api://ID/NAME` in requests and writes `NAME` into tokens.
//!
//! A resource that requires `NAME` of tokens names it so in its challenge (RFC 6750 section 3), and lists the long form in
//! `scopes_supported` (RFC 9728 section 2), which is for requests.

use portcullis_metadata::Scopes;

/// Returns the scopes in the form of requests. A name that is not listed is replaced by the listed URI that ends with it,
/// if there is exactly one.
pub(crate) fn for_request(scopes: &Scopes, listed: &[String]) -> Scopes {
    let long_form = |name: &str| {
        let mut long = listed.iter().filter(|listed| is_long_form(listed, name));
        long.next().filter(|_| long.next().is_none())
    };
    let names = scopes.iter().map(|name| {
        let long = if listed.iter().any(|listed| listed == name) { None } else { long_form(name) };
        long.map_or(name, String::as_str)
    });
    Scopes::from_names(names).unwrap_or_else(|_| scopes.clone())
}

/// Whether each wanted scope was granted, in either form.
pub(crate) fn covers(granted: &Scopes, wanted: &Scopes) -> bool {
    wanted.iter().all(|name| granted.contains(name) || granted.iter().any(|granted| is_long_form(granted, name)))
}

fn is_long_form(long: &str, name: &str) -> bool {
    let Some(prefix) = long.strip_suffix(name).and_then(|rest| rest.strip_suffix('/')) else { return false };
    prefix.split_once("://").is_some_and(|(_, application)| !application.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "api://00001111-aaaa-2222-bbbb-3333cccc4444/tools";

    fn requested(scopes: &str, listed: &[&str]) -> String {
        let listed: Vec<_> = listed.iter().map(|name| (*name).to_owned()).collect();
        for_request(&Scopes::parse(scopes).unwrap(), &listed).to_string()
    }

    /// I1: a challenge names what the token has; a request names what the resource lists.
    #[test]
    fn the_listed_form_is_requested() {
        assert_eq!(requested("tools", &[LONG]), LONG);
        assert_eq!(requested("offline_access tools", &["other", LONG]), format!("{LONG} offline_access"));
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

    #[test]
    fn a_grant_covers_both_forms() {
        let covers = |granted: &str, wanted: &str| {
            super::covers(&Scopes::parse(granted).unwrap(), &Scopes::parse(wanted).unwrap())
        };
        assert!(covers(LONG, "tools") && covers(LONG, LONG) && covers("a b", "b"));
        assert!(!covers("tools", LONG) && !covers(LONG, "ools") && !covers(LONG, "tools admin"));
    }
}
