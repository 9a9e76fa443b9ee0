//! Tests of redirect URIs and of their matching rule.

use proptest::prelude::*;

use super::*;

fn match_requested(registered: &str, requested: &str) -> bool {
    RedirectUri::parse(registered)
        .unwrap()
        .match_requested(requested)
        .is_some()
}

/// Only https URLs and loopback URLs are accepted.
#[test]
fn only_https_and_loopback_are_accepted() {
    for valid in [
        "https://client.example/callback",
        "https://client.example:8443/callback?a=b",
        "http://127.0.0.1:4321/callback",
        "http://127.0.0.1/callback",
        "http://[::1]:4321/",
        "http://localhost:4321/callback",
    ] {
        assert_eq!(
            RedirectUri::parse(valid).map(|uri| uri.as_str().to_owned()),
            Ok(valid.to_owned())
        );
    }
    for (invalid, error) in [
        ("", RedirectUriError::NotAUrl),
        ("/callback", RedirectUriError::NotAUrl),
        (
            "https://client.example/call back",
            RedirectUriError::NotAUrl,
        ),
        (
            "https://client.example/\r\nSet-Cookie:a=b",
            RedirectUriError::NotAUrl,
        ),
        (
            "http://127.0.0.1\\@client.example/",
            RedirectUriError::NotAUrl,
        ),
        (
            "http://client.example/callback",
            RedirectUriError::NeitherHttpsNorLoopback,
        ),
        (
            "http://127.0.0.1.client.example/",
            RedirectUriError::NeitherHttpsNorLoopback,
        ),
        (
            "javascript:alert(1)",
            RedirectUriError::NeitherHttpsNorLoopback,
        ),
        (
            "com.example.app:/callback",
            RedirectUriError::NeitherHttpsNorLoopback,
        ),
        (
            "data:text/html,hello",
            RedirectUriError::NeitherHttpsNorLoopback,
        ),
        ("https://client.example/#part", RedirectUriError::Fragment),
        ("https://client.example/#", RedirectUriError::Fragment),
        (
            "https://a:b@client.example/",
            RedirectUriError::UserInformation,
        ),
        (
            "http://client.example@127.0.0.1/",
            RedirectUriError::UserInformation,
        ),
        (
            "https://@client.example/",
            RedirectUriError::UserInformation,
        ),
        ("https:client.example/callback", RedirectUriError::NotAUrl),
        ("https:///client.example/", RedirectUriError::NotAUrl),
    ] {
        assert_eq!(RedirectUri::parse(invalid), Err(error), "{invalid}");
    }
    let with_length = |length| {
        let uri = "https://client.example/";
        RedirectUri::parse(&format!("{uri}{}", "a".repeat(length - uri.len())))
    };
    assert!(with_length(2048).is_ok());
    assert!(with_length(2049).is_err());
}

#[test]
fn any_scheme_can_be_registered_unless_it_is_dangerous() {
    for (registered, is_native) in [
        ("cursor://anysphere.cursor-mcp/oauth/callback", true),
        ("vscode://vendor.extension/callback", true),
        ("com.example.app:/callback", true),
        ("com.example.app:/callback?next=https://a@b", true),
        ("cursor://localhost/callback", true),
        ("http://127.0.0.1/callback", true),
        ("http://client.example/callback", false),
        ("https://client.example/callback", false),
        ("https://localhost/callback", false),
    ] {
        let uri = RedirectUri::parse_registered(registered).unwrap();
        assert_eq!((uri.as_str(), uri.is_native()), (registered, is_native));
    }
    for (invalid, error) in [
        ("javascript:alert(1)", RedirectUriError::ForbiddenScheme),
        (
            "JavaScript://x/%0aalert(1)",
            RedirectUriError::ForbiddenScheme,
        ),
        ("data:text/html,x", RedirectUriError::ForbiddenScheme),
        ("vbscript:x", RedirectUriError::ForbiddenScheme),
        ("file:///etc/passwd", RedirectUriError::ForbiddenScheme),
        (
            "blob:https://client.example/1",
            RedirectUriError::ForbiddenScheme,
        ),
        ("about:blank", RedirectUriError::ForbiddenScheme),
        (" javascript:alert(1)", RedirectUriError::NotAUrl),
        ("java\tscript:alert(1)", RedirectUriError::NotAUrl),
        ("/callback", RedirectUriError::NotAUrl),
        ("cursor://app/callback#", RedirectUriError::Fragment),
        ("com.example.app:/callback#x", RedirectUriError::Fragment),
        (
            "cursor://user@app/callback",
            RedirectUriError::UserInformation,
        ),
        ("cursor://@app/callback", RedirectUriError::UserInformation),
    ] {
        let parsed = RedirectUri::parse_registered(invalid);
        assert_eq!(parsed, Err(error), "{invalid}");
    }
}

#[test]
fn a_host_of_a_private_use_scheme_is_not_a_loopback_host() {
    for uri in ["cursor://localhost/callback", "app://127.0.0.1:1/callback"] {
        let registered = RedirectUri::parse_registered(uri).unwrap();
        assert!(!registered.is_loopback(), "{uri}");
        assert!(registered.match_requested(uri).is_some(), "{uri}");
        let other = uri.replace("/callback", ":2/callback");
        assert!(registered.match_requested(&other).is_none(), "{other}");
    }
}

/// The strings must be identical, except for the port of a loopback host.
#[test]
fn only_the_loopback_port_may_differ() {
    assert!(match_requested(
        "https://client.example/callback",
        "https://client.example/callback"
    ));
    assert!(match_requested(
        "http://127.0.0.1/callback",
        "http://127.0.0.1:4321/callback"
    ));
    assert!(match_requested(
        "http://127.0.0.1:1/callback",
        "http://127.0.0.1:4321/callback"
    ));
    assert!(match_requested(
        "http://[::1]:1/callback",
        "http://[::1]:4321/callback"
    ));
    assert!(match_requested(
        "http://localhost:1/callback",
        "http://localhost:4321/callback"
    ));

    for (registered, requested) in [
        (
            "https://client.example/callback",
            "https://client.example/callback/",
        ),
        (
            "https://client.example/callback",
            "https://client.example/callback?a=b",
        ),
        (
            "https://client.example/callback",
            "https://client.example:8443/callback",
        ),
        (
            "https://client.example/callback",
            "https://client.example:443/callback",
        ),
        (
            "https://client.example/callback",
            "https://CLIENT.example/callback",
        ),
        (
            "https://client.example/callback",
            "https://client.example/other/../callback",
        ),
        (
            "https://127.0.0.1:1/callback",
            "https://127.0.0.1:2/callback",
        ),
        ("http://127.0.0.1:1/callback", "http://localhost:1/callback"),
        ("http://127.0.0.1:1/callback", "http://127.0.0.2:1/callback"),
        ("http://127.0.0.1:1/callback", "http://127.1:1/callback"),
        (
            "http://127.0.0.1:1/callback",
            "http://127.0.0.1:1/callback2",
        ),
        (
            "http://127.0.0.1:1/callback",
            "http://127.0.0.1:1/x/../callback",
        ),
        (
            "http://127.0.0.1:1/callback",
            "http://127.0.0.1:1:2/callback",
        ),
        (
            "http://127.0.0.1:1/callback",
            "http://127.0.0.1:1@client.example/callback",
        ),
        (
            "http://127.0.0.1:1/callback",
            "http://127.0.0.1.client.example/callback",
        ),
        (
            "http://localhost:1/callback",
            "http://localhost.localhost:1/callback",
        ),
    ] {
        assert!(
            !match_requested(registered, requested),
            "{registered} {requested}"
        );
    }
}

#[test]
fn parameters_are_appended_to_the_query() {
    let with = |uri: &str| {
        RedirectUri::parse(uri)
            .unwrap()
            .with_params([("code", "a b"), ("iss", "http://x")])
    };
    let query = "code=a+b&iss=http%3A%2F%2Fx";
    assert_eq!(
        with("https://c.example/cb"),
        format!("https://c.example/cb?{query}")
    );
    assert_eq!(
        with("https://c.example/cb?"),
        format!("https://c.example/cb?{query}")
    );
    assert_eq!(
        with("https://c.example/cb?a=b"),
        format!("https://c.example/cb?a=b&{query}")
    );
}

proptest! {
    #[test]
    fn appended_parameters_keep_the_query(state in ".*", path in "[a-z/?=&%]{0,20}") {
        let uri = RedirectUri::parse(&format!("http://127.0.0.1:1/{path}")).unwrap();
        let before: Vec<_> = uri.0.url.query_pairs().into_owned().collect();
        let url = Url::parse(&uri.with_params([("state", &*state)])).unwrap();
        let mut after: Vec<_> = url.query_pairs().into_owned().collect();
        prop_assert_eq!(after.pop(), Some(("state".to_owned(), state)));
        prop_assert_eq!(after, before);
        prop_assert_eq!(url.authority(), "127.0.0.1:1");
    }

    /// A registered URI of any form matches only itself, or a loopback URL.
    #[test]
    fn another_port_is_accepted_for_loopback_only(registered in "[a-z.]{1,6}:/{0,3}[a-z.:0-9@/?]{0,12}", requested in "[a-z.]{1,6}:/{0,3}[a-z.:0-9@/?]{0,12}") {
        if let Ok(registered) = RedirectUri::parse_registered(&registered)
            && let Some(matched) = registered.match_requested(&requested)
        {
            prop_assert_eq!(matched.as_str(), &*requested);
            prop_assert!(matched == registered || matched.is_loopback());
        }
    }

    #[test]
    fn random_strings_do_not_panic(registered in "http://(127.0.0.1|localhost|\\[::1\\])[:0-9a-z/?@]{0,12}", requested in ".*") {
        if let Ok(registered) = RedirectUri::parse(&registered) {
            let _ = registered.match_requested(&requested);
        }
    }
}
