//! Introspection requests: form, client authentication and redaction.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Method;
use portcullis_metadata::Issuer;

use super::*;

/// Publishes metadata with these authentication methods, or without any.
fn lists(fixture: &Fixture, methods: Option<Value>) {
    let mut metadata: Value = serde_json::from_str(&fixture.test_issuer.metadata_json()).unwrap();
    let members = metadata.as_object_mut().unwrap();
    members.remove("introspection_endpoint_auth_methods_supported");
    if let Some(methods) = methods {
        members.insert(
            "introspection_endpoint_auth_methods_supported".to_owned(),
            methods,
        );
    }
    fixture.fake.serve(
        fixture.test_issuer.metadata_url(),
        200,
        metadata.to_string(),
    );
}

/// D1: the request is a form with the token, the client and the secret.
#[tokio::test(start_paused = true)]
async fn the_form_has_token_client_and_secret() {
    let fixture = fixture();
    let token = "a token & more+%";
    assert_eq!(fixture.rejection(token).await, None);
    let request = fixture.fake.requests(endpoint(&fixture)).pop().unwrap();
    assert_eq!(request.method, Method::POST);
    assert_eq!(request.max_body, 65_536);
    assert_eq!(request.timeout, Duration::from_secs(5));
    assert_eq!(
        request.headers[header::CONTENT_TYPE],
        "application/x-www-form-urlencoded"
    );
    assert_eq!(request.headers[header::ACCEPT], "application/json");
    assert!(request.url.query().is_none());
    let (form, authorization) = last_call(&fixture);
    assert_eq!(
        fields(&form),
        [
            ("token", token),
            ("client_id", "portcullis"),
            ("client_secret", "hush")
        ]
    );
    assert_eq!(authorization, None);
}

/// D1: a client without a secret sends only its identifier.
#[tokio::test(start_paused = true)]
async fn without_a_secret_none_is_sent() {
    for methods in [
        None,
        Some(json!(["client_secret_basic"])),
        Some(json!(["none"])),
    ] {
        let fixture = fixture_with(|settings| settings.client_secret = None);
        lists(&fixture, methods);
        assert_eq!(fixture.rejection(OPAQUE).await, None);
        let (form, authorization) = last_call(&fixture);
        assert_eq!(
            fields(&form),
            [("token", OPAQUE), ("client_id", "portcullis")]
        );
        assert_eq!(authorization, None);
    }
}

/// D1: with `Basic`, identifier and secret are form-encoded. The form has the identifier but not
/// the secret.
#[tokio::test(start_paused = true)]
async fn basic_is_form_encoded() {
    let fixture = fixture_with(|settings| {
        settings.client_id = "http://127.0.0.1:3000/mcp".to_owned();
        settings.client_secret = Some(Secret::new("p:a s+s%é"));
        settings.authentication = Some(IntrospectionAuthentication::Basic);
    });
    assert_eq!(fixture.rejection(OPAQUE).await, None);
    let (form, authorization) = last_call(&fixture);
    assert_eq!(
        fields(&form),
        [
            ("token", OPAQUE),
            ("client_id", "http://127.0.0.1:3000/mcp")
        ]
    );
    let authorization = authorization.unwrap();
    let pair = STANDARD
        .decode(authorization.strip_prefix("Basic ").unwrap())
        .unwrap();
    assert_eq!(
        String::from_utf8(pair).unwrap(),
        "http%3A%2F%2F127.0.0.1%3A3000%2Fmcp:p%3Aa+s%2Bs%25%C3%A9"
    );
}

/// D1: `Basic` is selected if the metadata lists it without `Post`. A configured method is always
/// used.
#[tokio::test(start_paused = true)]
async fn the_method_is_chosen_by_the_metadata() {
    use IntrospectionAuthentication::{Basic, Post};
    for (methods, set, basic) in [
        (Some(json!(["client_secret_basic"])), None, true),
        (
            Some(json!(["private_key_jwt", "client_secret_basic"])),
            None,
            true,
        ),
        (
            Some(json!([
                "private_key_jwt",
                "client_secret_basic",
                "client_secret_post"
            ])),
            None,
            false,
        ),
        (Some(json!(["client_secret_post"])), None, false),
        (Some(json!(["private_key_jwt"])), None, false),
        (None, None, false),
        (Some(json!(["client_secret_basic"])), Some(Post), false),
        (Some(json!(["client_secret_post"])), Some(Basic), true),
        (None, Some(Basic), true),
    ] {
        let fixture = fixture_with(|settings| settings.authentication = set);
        lists(&fixture, methods.clone());
        assert_eq!(fixture.rejection(OPAQUE).await, None);
        let (form, authorization) = last_call(&fixture);
        assert_eq!(authorization.is_some(), basic, "{methods:?} {set:?}");
        assert_eq!(
            form.iter().any(|(name, _)| name == "client_secret"),
            !basic,
            "{methods:?} {set:?}"
        );
        assert!(form.iter().any(|(name, _)| name == "client_id"));
    }
}

/// D1: the metadata applies to the endpoint that it names, and not to a configured one. The methods
/// of the token endpoint have no effect.
#[test]
fn the_metadata_applies_to_its_own_endpoint() {
    use IntrospectionAuthentication::{Basic, Post};
    let mut metadata = AuthorizationServerMetadata::new(Issuer::parse(ISSUER).unwrap());
    metadata.token_endpoint_auth_methods_supported = Some(vec!["client_secret_basic".to_owned()]);
    assert_eq!(client().method(Some(&metadata)), Post);
    metadata.introspection_endpoint_auth_methods_supported =
        Some(vec!["client_secret_basic".to_owned()]);
    assert_eq!(client().method(Some(&metadata)), Basic);
    let mut configured = client();
    configured.endpoint = Some(Url::parse("https://issuer.example/introspect").unwrap());
    assert_eq!(configured.method(Some(&metadata)), Post);
}

/// D5: `Debug` of the settings does not print the secret.
#[test]
fn debug_prints_no_secret() {
    assert!(!format!("{:?}", client()).contains("hush"));
}
