//! Key sets and metadata: lifetimes, limits, moved keys and invalid documents.

use portcullis_discovery::{FetchError, FetchResponse, UrlPolicyError};
use portcullis_metadata::Secret;
use portcullis_testkit::{ManualClock, ScriptedFetch};
use serde_json::json;
use url::Url;

use super::*;
use crate::{IntrospectionSettings, KeySource, Validation, testing::ISSUER};

/// C10: the `max-age` of the response decides how long its keys are fresh.
#[tokio::test(start_paused = true)]
async fn max_age_of_the_response_is_used() {
    let fixture = Fixture::new();
    let body = fixture.test_issuer.jwks_json();
    fixture
        .fake
        .respond(fixture.test_issuer.endpoint("jwks"), move |_| {
            let headers = [(
                http::header::CACHE_CONTROL,
                http::HeaderValue::from_static("public, max-age=3600"),
            )];
            let body = body.clone().into();
            Ok(FetchResponse {
                status: http::StatusCode::OK,
                headers: headers.into_iter().collect(),
                body,
                sent: Default::default(),
            })
        });
    fixture.issuer.refresh_now().await.unwrap();
    fixture.clock.advance(Duration::from_secs(HOUR));
    assert!(matches!(
        fixture.issuer.health(),
        IssuerHealth::Usable { .. }
    ));
    fixture.clock.advance(Duration::from_secs(1));
    assert!(matches!(
        fixture.issuer.health(),
        IssuerHealth::Stale { .. }
    ));
}

/// C10: an empty key set replaces the current keys.
#[tokio::test(start_paused = true)]
async fn an_empty_set_is_installed() {
    let fixture = Fixture::new();
    let token = fixture.test_issuer.token().sign();
    fixture.verify(&token).await.unwrap();
    fixture
        .fake
        .serve(fixture.test_issuer.endpoint("jwks"), 200, r#"{"keys":[]}"#);
    fixture.issuer.refresh_now().await.unwrap();
    assert_eq!(
        fixture.issuer.health(),
        IssuerHealth::Failed {
            reason: "issuer.no_usable_key"
        }
    );
    fixture.pass(30).await;
    assert_eq!(fixture.rejection(&token).await, Some("token.key_unknown"));
}

/// C10: invalid documents, errors and redirects are failures with a code, and the current keys
/// remain in use.
#[tokio::test(start_paused = true)]
async fn an_invalid_response_removes_nothing() {
    let fixture = Fixture::new();
    fixture.issuer.refresh_now().await.unwrap();
    for (status, body, code) in [
        (200, "", "document.not_json"),
        (200, "<html>", "document.not_json"),
        (200, "[]", "document.not_an_object"),
        (200, "{}", "document.member_missing"),
        (200, r#"{"keys":{}}"#, "document.member_type"),
        (404, r#"{"keys":[]}"#, "issuer.keys_status"),
        (302, "", "issuer.keys_status"),
        (500, "", "issuer.keys_status"),
        (204, "", "issuer.keys_status"),
    ] {
        fixture
            .fake
            .serve(fixture.test_issuer.endpoint("jwks"), status, body);
        assert_eq!(
            fixture.issuer.refresh_now().await.unwrap_err().code(),
            code,
            "{status} {body}"
        );
        assert_eq!(
            fixture.rejection(&fixture.test_issuer.token().sign()).await,
            None,
            "{status} {body}"
        );
    }
    fixture.fake.time_out(fixture.test_issuer.endpoint("jwks"));
    assert_eq!(
        fixture.issuer.refresh_now().await.unwrap_err().code(),
        "fetch.timeout"
    );
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        None
    );
}

/// C10: a set of more than 100 keys or 256 KiB is rejected, and the current keys remain in use.
#[tokio::test(start_paused = true)]
async fn large_sets_are_rejected() {
    let fixture = Fixture::new();
    fixture.issuer.refresh_now().await.unwrap();
    let set = |count: usize, other: &str| {
        let others = vec![other; count - 1].join(",");
        format!(
            r#"{{"keys":[{},{others}]}}"#,
            fixture.test_issuer.key().public_jwk()
        )
    };
    for (body, code) in [
        (set(101, r#"{"kty":"EC"}"#), "keys.too_many"),
        (set(101, "7"), "keys.too_many"),
        (set(10_000, r#"{"kty":"EC"}"#), "keys.too_many"),
        (
            set(
                2,
                &json!({ "kty": "EC", "x5t": "x".repeat(256 * 1024) }).to_string(),
            ),
            "fetch.too_large",
        ),
    ] {
        fixture
            .fake
            .serve(fixture.test_issuer.endpoint("jwks"), 200, body);
        assert_eq!(fixture.issuer.refresh_now().await.unwrap_err().code(), code);
        assert_eq!(
            fixture.rejection(&fixture.test_issuer.token().sign()).await,
            None
        );
    }
    fixture.fake.serve(
        fixture.test_issuer.endpoint("jwks"),
        200,
        set(100, r#"{"kty":"EC"}"#),
    );
    fixture.issuer.refresh_now().await.unwrap();
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        None
    );
}

/// C10: metadata is fetched once, and again after a failure, because the key URL may have changed.
#[tokio::test(start_paused = true)]
async fn keys_that_moved_are_found_again() {
    let fixture = Fixture::new();
    fixture.issuer.refresh_now().await.unwrap();
    fixture.issuer.refresh_now().await.unwrap();
    assert_eq!(fixture.fake.hits(fixture.test_issuer.metadata_url()), 1);
    assert_eq!(fixture.hits(), 2);

    let moved = fixture
        .test_issuer
        .metadata_json()
        .replace("/jwks", "/keys");
    fixture
        .fake
        .serve(fixture.test_issuer.metadata_url(), 200, moved);
    fixture
        .fake
        .serve(fixture.test_issuer.endpoint("jwks"), 410, "");
    fixture.fake.serve(
        fixture.test_issuer.endpoint("keys"),
        200,
        fixture.test_issuer.jwks_json(),
    );
    assert_eq!(
        fixture.issuer.refresh_now().await.unwrap_err().code(),
        "issuer.keys_status"
    );

    fixture.issuer.refresh_now().await.unwrap();
    assert_eq!(fixture.fake.hits(fixture.test_issuer.endpoint("keys")), 1);

    fixture.clock.advance(Duration::from_secs(HOUR));
    fixture.issuer.refresh_now().await.unwrap();
    assert_eq!(fixture.fake.hits(fixture.test_issuer.metadata_url()), 3);
}

/// C10: metadata is used for an hour.
#[tokio::test(start_paused = true)]
async fn metadata_is_used_for_an_hour() {
    let fixture = Fixture::new();
    for (seconds, fetches) in [(0, 1), (HOUR - 1, 1), (1, 2)] {
        fixture.clock.advance(Duration::from_secs(seconds));
        fixture.issuer.refresh_now().await.unwrap();
        assert_eq!(
            fixture.fake.hits(fixture.test_issuer.metadata_url()),
            fetches
        );
    }
}

/// C10, G9: metadata of another issuer, without `jwks_uri` or with an insecure endpoint gives no
/// keys.
#[tokio::test(start_paused = true)]
async fn unusable_metadata_gives_no_keys() {
    let fixture = Fixture::new();
    let with = |name: &str, value: serde_json::Value| {
        let mut metadata: serde_json::Value =
            serde_json::from_str(&fixture.test_issuer.metadata_json()).unwrap();
        metadata[name] = value;
        fixture.fake.serve(
            fixture.test_issuer.metadata_url(),
            200,
            metadata.to_string(),
        );
    };
    with("issuer", json!("https://issuer.example/"));
    assert_eq!(
        fixture.issuer.refresh_now().await.unwrap_err().code(),
        "discovery.issuer_mismatch"
    );

    with("jwks_uri", json!(null));
    assert_eq!(
        fixture.issuer.refresh_now().await.unwrap_err().code(),
        "issuer.no_jwks_uri"
    );
    for member in [
        "jwks_uri",
        "token_endpoint",
        "device_authorization_endpoint",
    ] {
        with(member, json!("http://issuer.example/endpoint"));
        assert_eq!(
            fixture.issuer.refresh_now().await.unwrap_err().code(),
            "discovery.insecure_endpoint",
            "{member}"
        );
    }
    assert_eq!(fixture.hits(), 0);
}

/// C10: with a configured key URL no metadata is fetched, and with fixed keys nothing is fetched.
#[tokio::test(start_paused = true)]
async fn keys_can_be_configured() {
    let address = |fixture: &Fixture| fixture.test_issuer.endpoint("certs");
    let fixture = Fixture::with(|settings| {
        settings.keys = KeySource::Uri(Url::parse("https://issuer.example/certs").unwrap())
    });
    fixture
        .fake
        .serve(address(&fixture), 200, fixture.test_issuer.jwks_json());
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        None
    );
    assert_eq!(fixture.fake.urls(), [address(&fixture)]);

    let jwks = JwkSet::parse(fixture.test_issuer.jwks_json().as_bytes()).unwrap();
    let fixture = Fixture::with(|settings| settings.keys = KeySource::Fixed(jwks));
    fixture.issuer.spawn_refresh();
    fixture.issuer.refresh_now().await.unwrap();
    fixture.pass(365 * 24 * HOUR).await;
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        None
    );
    assert_eq!(
        fixture.rejection(&unknown_kids(&fixture, 1)[0]).await,
        Some("token.key_unknown")
    );
    assert!(fixture.issuer.health().is_usable());
    assert!(fixture.fake.urls().is_empty());
}

/// C10, D6: without anything to fetch or probe, no task runs.
#[tokio::test(start_paused = true)]
async fn nothing_to_fetch_means_no_refresh() {
    let elsewhere = IntrospectionSettings {
        endpoint: Some(Url::parse("https://elsewhere.example/introspect").unwrap()),
        client_secret: Some(Secret::new("hush")),
        ..IntrospectionSettings::new("portcullis")
    };
    let jwks = JwkSet::parse(Fixture::new().test_issuer.jwks_json().as_bytes()).unwrap();
    let mut alive = Vec::new();
    let fixed = Fixture::with(|settings| settings.keys = KeySource::Fixed(jwks));
    let introspecting =
        Fixture::with(|settings| settings.validation = Validation::Introspection(elsewhere));
    for (fixture, tasks) in [(fixed, 0), (introspecting, 1), (Fixture::new(), 2)] {
        fixture.issuer.spawn_refresh();
        assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
        alive.push(fixture);
    }
}

/// C1, C7: the limits of leeway and cooldown are valid values.
#[test]
fn the_limits_of_the_settings_are_valid() {
    let mut settings = IssuerSettings::new(Issuer::parse(ISSUER).unwrap());
    settings.leeway = Duration::from_secs(60);
    settings.cooldown = Duration::from_secs(1);
    assert!(settings.check().is_ok());
}

/// C1: unusable settings are rejected with a code and a fix.
#[tokio::test]
async fn unusable_settings_are_rejected() {
    let rejection = |change: fn(&mut IssuerSettings)| {
        let mut settings = IssuerSettings::new(Issuer::parse(ISSUER).unwrap());
        change(&mut settings);
        let clock = Arc::new(ManualClock::new());
        let error = TrustedIssuer::new(
            settings,
            Arc::new(ScriptedFetch::new()),
            clock,
            Handle::current(),
        )
        .unwrap_err();
        assert!(error.to_string().contains(ISSUER), "{error}");
        error.code()
    };
    assert_eq!(
        rejection(|s| s.algorithms = portcullis_jose::AlgorithmSet::EMPTY),
        "settings.no_algorithm"
    );
    assert_eq!(
        rejection(|s| s.leeway = Duration::from_millis(60_001)),
        "settings.leeway_too_long"
    );
    assert_eq!(
        rejection(|s| s.cooldown = Duration::from_millis(999)),
        "settings.cooldown_too_short"
    );
    assert_eq!(
        rejection(|s| s.keys = KeySource::Fixed(JwkSet::default())),
        "settings.no_usable_key"
    );

    for uri in [
        "http://issuer.example/jwks",
        "ftp://issuer.example/jwks",
        "https://u:p@issuer.example/jwks",
    ] {
        let mut settings = IssuerSettings::new(Issuer::parse(ISSUER).unwrap());
        settings.keys = KeySource::Uri(Url::parse(uri).unwrap());
        assert_eq!(
            settings.check().unwrap_err().code(),
            "settings.jwks_uri",
            "{uri}"
        );
    }
}

/// J2: errors of keys name the URL once, without its query, in their text and in the log.
#[tokio::test(start_paused = true)]
async fn errors_of_keys_name_the_url() {
    let url = "https://keys.example/set?key=canary";
    let fixture = Fixture::with(|issuer| {
        issuer.keys = KeySource::Uri(url.parse().unwrap());
    });
    let many = format!(r#"{{"keys":[{}]}}"#, vec!["{}"; 101].join(","));
    for (status, body) in [(500, ""), (200, "<html>"), (200, &*many)] {
        fixture.fake.serve(url, status, body.to_owned());
        assert_names_the_url(&fixture).await;
    }
    fixture.fake.time_out(url);
    assert_names_the_url(&fixture).await;
}

async fn assert_names_the_url(fixture: &Fixture) {
    let (log, _guard) = Logged::here();
    let error = fixture.issuer.refresh_now().await.unwrap_err();
    let line = log.lines().remove(0);
    for text in [error.to_string(), line] {
        assert_eq!(
            text.matches("https://keys.example/set").count(),
            1,
            "{text}"
        );
        assert!(!text.contains("canary"), "{text}");
    }
}

/// J2: a `jwks_uri` of metadata that is not permitted is named without its user information.
#[tokio::test(start_paused = true)]
async fn a_forbidden_url_of_keys_is_named() {
    let fixture = Fixture::new();
    let mut metadata: serde_json::Value =
        serde_json::from_str(&fixture.test_issuer.metadata_json()).unwrap();
    metadata["jwks_uri"] = json!("https://alice:canary@keys.example/set");
    let source = fixture.test_issuer.metadata_url();
    fixture.fake.serve(source, 200, metadata.to_string());
    let refused = FetchError::UrlPolicy(UrlPolicyError::UserInformation);
    let forbidden = "https://alice:canary@keys.example/set";
    fixture
        .fake
        .respond(forbidden, move |_| Err(refused.clone()));
    let error = fixture.issuer.refresh_now().await.unwrap_err();
    assert_eq!(error.code(), "issuer.jwks_uri");
    let text = error.to_string();
    assert!(
        text.contains("metadata, https://keys.example/set, is"),
        "{text}"
    );
}
