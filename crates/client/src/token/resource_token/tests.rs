//! The URLs, the scopes, the lifetime and the refresh of a token.

use super::*;

/// Parses this response to a token request.
fn token(response: &str) -> Result<ResourceToken, ClientError> {
    let context = TokenRequestContext {
        start: &StartUrl::parse("https://mcp.example.com/mcp").unwrap(),
        issuer: &Issuer::parse("https://auth.example.com").unwrap(),
        resource: &ResourceUri::parse("https://mcp.example.com/mcp").unwrap(),
        is_unbound: false,
        client_id: None,
        asked: &Scopes::parse("a b").unwrap(),
        binding: None,
    };
    ResourceToken::new(
        TokenResponse::parse(response.as_bytes()).unwrap(),
        context,
        UnixTime::from_secs(1000),
    )
}

/// I6: a scope is also granted in the form `api://ID/NAME`. If the server does not confirm valid
/// scopes, none is granted.
#[test]
fn a_grant_covers_both_forms() {
    const LONG: &str = "api://00001111-aaaa-2222-bbbb-3333cccc4444/tools";
    for (granted, wanted, missing) in [
        (LONG, "tools", ""),
        (LONG, LONG, ""),
        ("a b", "b", ""),
        ("", "", ""),
        ("tools", LONG, LONG),
        (LONG, "ools", "ools"),
        (LONG, "tools admin", "admin"),
        ("ä", "a b", "a b"),
    ] {
        let response =
            format!(r#"{{"access_token":"hush","token_type":"bearer","scope":"{granted}"}}"#);
        let found = token(&response)
            .unwrap()
            .missing_scopes(&Scopes::parse(wanted).unwrap());
        assert_eq!(found.as_str(), missing, "{granted}: {wanted}");
    }
}

/// I9, H4: the `Authorization` header is only for the start URL and the resource.
#[test]
fn the_header_is_for_the_resource_only() {
    let token = token(r#"{"access_token":"hush","token_type":"bearer"}"#).unwrap();
    let sent = |url: &str| token.authorization_for(&Url::parse(url).unwrap());
    assert_eq!(sent("https://mcp.example.com/mcp").unwrap(), "Bearer hush");
    assert_eq!(
        sent("https://mcp.example.com:443/mcp/#a").unwrap(),
        "Bearer hush"
    );

    for url in [
        "https://mcp.example.com/other",
        "https://mcp.example.com/mcp/other",
        "https://mcp.example.com/mcp?a=b",
        "https://mcp.example.com:444/mcp",
        "http://mcp.example.com/mcp",
        "https://evil.example/mcp",
        "https://mcp.example.com.evil.example/mcp",
        "https://a@mcp.example.com/mcp",
        "data:text/plain,x",
    ] {
        assert!(sent(url).is_none(), "{url}");
    }
}

/// H4: a token is only for the URL that it was obtained for and for its resource.
#[test]
fn a_token_is_for_its_start_url_and_its_resource() {
    let obtained = |resource: &str, start: Option<&str>| {
        let mut parts = token(r#"{"access_token":"hush","token_type":"bearer"}"#)
            .unwrap()
            .parts()
            .clone();
        parts.start = start.map(|start| StartUrl::parse(start).unwrap());
        parts.resource = ResourceUri::parse(resource).unwrap();
        ResourceToken::from_parts(parts)
    };
    let root = "https://mcp.example.com/";
    let path = "https://mcp.example.com/a/mcp";
    let is_for = |token: &ResourceToken, url: &str| token.is_for(&StartUrl::parse(url).unwrap());

    let below_root = obtained(root, Some(path));
    assert!(is_for(&below_root, path));
    assert!(is_for(&below_root, "https://mcp.example.com"));
    for other in [
        "https://mcp.example.com/a/mcp/",
        "https://mcp.example.com/evil/mcp",
        "https://mcp.example.com/a/mcp?b",
    ] {
        assert!(!is_for(&below_root, other), "{other}");
    }

    assert!(!is_for(&obtained(root, Some(root)), path));
    assert!(!is_for(
        &obtained(path, Some(path)),
        "https://mcp.example.com:444/a/mcp"
    ));

    // The start URL is unknown.
    assert!(is_for(&obtained(root, None), root));
    assert!(!is_for(&obtained(root, None), path));
    assert!(is_for(
        &obtained(path, None),
        "https://mcp.example.com/a/mcp/"
    ));
    assert!(!is_for(
        &obtained(path, None),
        "https://mcp.example.com/a/mcp/b"
    ));
}

/// I4: a token of another type than Bearer is rejected.
#[test]
fn only_bearer_tokens_are_accepted() {
    for token_type in ["DPoP", "N_A", "mac"] {
        let response = format!(r#"{{"access_token":"hush","token_type":"{token_type}"}}"#);
        assert_eq!(token(&response).unwrap_err().code(), "client.token_type");
    }
}

/// I4: every member of the response is read.
#[test]
fn every_member_of_the_response_is_read() {
    let full =
        token(r#"{"access_token":"hush","token_type":"Bearer","expires_in":300,"refresh_token":"quiet","scope":"a"}"#)
            .unwrap();
    assert_eq!(full.expires_at(), Some(UnixTime::from_secs(1300)));
    assert_eq!(full.refresh_token().unwrap().secret(), "quiet");
    assert_eq!(full.scopes().unwrap().to_string(), "a");
    let bare = token(r#"{"access_token":"hush","token_type":"Bearer"}"#).unwrap();
    assert_eq!(bare.expires_at(), None);
    assert_eq!(bare.scopes().unwrap().to_string(), "a b");
}

/// I5: a token is refreshed a minute before it expires, or when a fifth of its lifetime is left;
/// members that a refresh response lacks are unchanged.
#[test]
fn a_token_is_refreshed_before_it_expires() {
    let secs = UnixTime::from_secs;
    let due = |lifetime: u64| {
        let token = token(&format!(
            r#"{{"access_token":"a","token_type":"Bearer","expires_in":{lifetime}}}"#
        ));
        let token = token.unwrap();
        (1000..=1000 + lifetime)
            .find(|now| token.is_due(secs(*now)))
            .unwrap()
            - 1000
    };
    assert_eq!(due(3600), 3540);
    assert_eq!(due(300), 240);
    assert_eq!(due(50), 40);
    assert_eq!(due(0), 0);

    let endless =
        token(r#"{"access_token":"a","token_type":"Bearer","refresh_token":"r"}"#).unwrap();
    assert!(!endless.is_due(secs(u64::MAX)));
    assert!(!endless.is_expired(secs(u64::MAX)));

    let response = |text: &str| TokenResponse::parse(text.as_bytes()).unwrap();
    let next = endless
        .refreshed(
            response(r#"{"access_token":"b","token_type":"Bearer"}"#),
            None,
            secs(2000),
        )
        .unwrap();
    assert_eq!(next.access_token().secret(), "b");
    assert_eq!(next.refresh_token().unwrap().secret(), "r");
    assert_eq!(next.scopes(), endless.scopes());
    assert_eq!(next.obtained_at(), secs(2000));

    let rotated = r#"{"access_token":"c","token_type":"Bearer","refresh_token":"s","scope":"a","expires_in":1}"#;
    let next = endless
        .refreshed(response(rotated), None, secs(2000))
        .unwrap();
    assert_eq!(next.refresh_token().unwrap().secret(), "s");
    assert_eq!(next.scopes().unwrap().to_string(), "a");
    assert_eq!(next.expires_at(), Some(secs(2001)));
}

/// J3: Debug shows neither token.
#[test]
fn debug_is_redacted() {
    let token =
        token(r#"{"access_token":"hush","token_type":"Bearer","refresh_token":"quiet"}"#).unwrap();
    let shown = format!(
        "{token:?} {:?}",
        token.authorization_for(&Url::parse("https://mcp.example.com/mcp").unwrap())
    );
    assert!(!shown.contains("hush"), "{shown}");
    assert!(!shown.contains("quiet"), "{shown}");
    assert!(shown.starts_with("ResourceToken { issuer: "), "{shown}");
}
