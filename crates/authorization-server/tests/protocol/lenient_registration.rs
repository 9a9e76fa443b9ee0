//! Registrations that ask for more, or for something else, than the server offers.

use portcullis_authorization_server::{
    ErrorCode, ErrorResponse,
    client::{
        GrantType, NewClient, RedirectHost, RedirectHosts, RegistrationRules, parse_registration,
    },
};
use portcullis_jose::{Algorithm, SigningKey};
use proptest::prelude::*;
use serde_json::{Value, json};

const HOSTED: &str = "https://client.example/callback";
const LOOPBACK: &str = "http://127.0.0.1/callback";

/// Registers at a server that accepts `client.example`.
fn register(body: &Value) -> Result<NewClient, ErrorResponse> {
    let hosts = RedirectHosts::new([RedirectHost::parse("client.example").unwrap()]);
    let metadata = parse_registration(body.to_string().as_bytes())?;
    NewClient::from_metadata(metadata, RegistrationRules::Lenient(&hosts), None)
}

/// Registers with one redirect URI and further members.
fn with(redirect: &str, members: Value) -> Result<NewClient, ErrorResponse> {
    let mut body = json!({ "redirect_uris": [redirect] });
    body.as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    register(&body)
}

fn method(new: &NewClient) -> &str {
    let metadata = &new.information.metadata;
    metadata.token_endpoint_auth_method.as_deref().unwrap()
}

#[test]
fn one_usable_redirect_uri_is_enough() {
    let uris = json!([
        "cursor://app/callback",
        "http://attacker.example/callback",
        "https://attacker.example/callback",
        LOOPBACK,
        LOOPBACK,
    ]);
    let new = register(&json!({ "redirect_uris": uris })).unwrap();
    assert_eq!(new.client.redirect_uris.len(), 4, "repetitions are dropped");
    assert_eq!(new.information.metadata.redirect_uris.len(), 4);

    let unusable = json!(["cursor://app/callback", "https://attacker.example/callback"]);
    let error = register(&json!({ "redirect_uris": unusable })).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidRedirectUri);
    assert!(error.description.contains("operator"), "{error}");
}

#[test]
fn a_dangerous_redirect_uri_rejects_the_registration() {
    for uri in [
        "javascript:alert(1)",
        "JAVASCRIPT:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///x",
        "blob:https://client.example/x",
        "about:blank",
        "https://client.example/#fragment",
        "https://user@client.example/",
        "cursor://user:pass@app/",
        "not a URL",
        "",
    ] {
        let error = register(&json!({ "redirect_uris": [LOOPBACK, uri] })).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidRedirectUri, "{uri}");
    }
}

#[test]
fn redirect_uris_are_bounded() {
    let of = |count: usize, length: usize| {
        let uri = |n: usize| format!("{LOOPBACK}{n:0>0$}", length - LOOPBACK.len());
        let uris: Vec<_> = (0..count).map(uri).collect();
        register(&json!({ "redirect_uris": uris })).map_err(|error| error.code)
    };
    assert!(of(16, 2048).is_ok());
    assert_eq!(of(17, 30).unwrap_err(), ErrorCode::InvalidRedirectUri);
    assert_eq!(of(1, 2049).unwrap_err(), ErrorCode::InvalidRedirectUri);
    assert_eq!(of(0, 30).unwrap_err(), ErrorCode::InvalidRedirectUri);
}

#[test]
fn grant_types_are_reduced_and_refresh_is_implied() {
    let both = [GrantType::AuthorizationCode, GrantType::RefreshToken];
    for members in [
        json!({}),
        json!({ "grant_types": [], "response_types": [] }),
        json!({ "grant_types": ["authorization_code"] }),
        json!({ "grant_types": ["client_credentials", "implicit", "x", "authorization_code"],
            "response_types": ["token", "code"] }),
    ] {
        let new = with(LOOPBACK, members.clone()).unwrap();
        assert_eq!(new.client.grant_types, both, "{members}");
        let registered = &new.information.metadata;
        assert_eq!(registered.grant_types, both.map(GrantType::as_str));
        assert_eq!(registered.response_types, ["code"]);
    }
    for members in [
        json!({ "grant_types": ["client_credentials"] }),
        json!({ "grant_types": ["urn:ietf:params:oauth:grant-type:device_code"] }),
        json!({ "response_types": ["token"] }),
    ] {
        let error = with(LOOPBACK, members.clone()).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidClientMetadata, "{members}");
    }
}

#[test]
fn a_native_client_gets_no_secret() {
    for uri in [LOOPBACK, "http://localhost/callback", "http://[::1]:1/"] {
        for method in ["none", "client_secret_basic", "client_secret_post", "x"] {
            let body = json!({ "redirect_uris": [uri, "com.example.app:/callback"],
                "token_endpoint_auth_method": method });
            let new = register(&body).unwrap();
            assert!(new.client.credential.is_public(), "{uri} {method}");
            assert!(new.information.client_secret.is_none(), "{uri} {method}");
            assert_eq!(self::method(&new), "none");
        }
        let new = with(uri, json!({})).unwrap();
        assert!(new.client.credential.is_public() && method(&new) == "none");
    }
}

#[test]
fn a_hosted_client_gets_the_method_it_asks_for_if_it_is_supported() {
    for (requested, registered) in [
        (json!(null), "client_secret_basic"),
        (json!("client_secret_basic"), "client_secret_basic"),
        (json!("client_secret_post"), "client_secret_post"),
        (json!("none"), "none"),
        (json!("client_secret_jwt"), "none"),
        (json!("tls_client_auth"), "none"),
        // Its keys would be at the `jwks_uri`, which is not read.
        (json!("private_key_jwt"), "none"),
    ] {
        let members = json!({ "token_endpoint_auth_method": requested,
            "jwks_uri": "https://client.example/keys" });
        let new = with(HOSTED, members).unwrap();
        assert_eq!(method(&new), registered, "{requested}");
        let has_secret = registered.starts_with("client_secret");
        assert_eq!(new.information.client_secret.is_some(), has_secret);
        assert!(new.information.metadata.jwks_uri.is_none());
    }
    let key = SigningKey::generate(Algorithm::Es256, "key").unwrap();
    let members = json!({ "token_endpoint_auth_method": "private_key_jwt",
        "jwks": { "keys": [key.public_jwk()] } });
    assert_eq!(method(&with(HOSTED, members).unwrap()), "private_key_jwt");
    let members =
        json!({ "token_endpoint_auth_method": "private_key_jwt", "jwks": { "keys": [] } });
    let error = with(HOSTED, members).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidClientMetadata);
}

#[test]
fn members_that_are_not_read_are_not_returned() {
    let members = json!({ "scope": "root", "software_statement": "x.y.z", "software_id": "x",
        "jwks_uri": "https://client.example/keys", "logo_uri": "https://client.example/logo",
        "client_uri": "https://client.example/", "application_type": "web", "x": 1 });
    let new = with(LOOPBACK, members).unwrap();
    assert!(new.client.scopes.is_none());
    let response: Value = serde_json::from_slice(&new.information.to_json()).unwrap();
    let mut names: Vec<_> = response.as_object().unwrap().keys().collect();
    names.sort();
    let expected = [
        "client_id",
        "grant_types",
        "redirect_uris",
        "response_types",
        "token_endpoint_auth_method",
    ];
    assert_eq!(names, expected);
}

#[test]
fn names_are_shortened_and_have_no_deceptive_characters() {
    let long = "ä".repeat(100);
    for (name, expected) in [
        (" Weather\u{202e}Notes\r\n ", Some("WeatherNotes")),
        ("\u{2066}Claude\u{2069}\u{200b}", Some("Claude")),
        ("\u{202e} \u{0}", None),
        ("", None),
        (&long, Some(&*"ä".repeat(64))),
        (&format!("{} b", "a".repeat(63)), Some(&*"a".repeat(63))),
    ] {
        let new = with(LOOPBACK, json!({ "client_name": name })).unwrap();
        assert_eq!(new.client.name.as_deref(), expected, "{name:?}");
        let returned = new.information.metadata.client_name;
        assert_eq!(returned.as_deref(), expected, "{name:?}");
    }
}

proptest! {
    /// A client that is accepted has a redirect URI that the policy accepts, and a short name.
    #[test]
    fn accepted_clients_are_usable(
        uris in prop::collection::vec("(https|http|app|javascript):/{0,2}(client\\.example|localhost|x)[:@#/a-z0-9]{0,6}", 0..4),
        name in ".{0,80}",
    ) {
        let body = json!({ "redirect_uris": uris, "client_name": name });
        if let Ok(new) = register(&body) {
            let is_usable = |uri: &String| {
                uri.starts_with("http://localhost") || uri.starts_with("https://client.example")
            };
            prop_assert!(uris.iter().any(is_usable), "{:?}", uris);
            prop_assert!(uris.iter().all(|uri| !uri.starts_with("javascript:")));
            prop_assert!(new.client.name.is_none_or(|name| name.chars().count() <= 64));
        }
    }
}
