//! The introspection endpoint is configured or discovered, and survives outages.

use portcullis_metadata::{Issuer, SystemClock};
use portcullis_testkit::ScriptedFetch;

use super::*;
use crate::TrustedIssuer;

/// Returns the issuer's metadata with this endpoint or without one.
fn metadata_with(fixture: &Fixture, endpoint: Option<&str>) -> String {
    let mut metadata: Value = serde_json::from_str(&fixture.test_issuer.metadata_json()).unwrap();
    metadata
        .as_object_mut()
        .unwrap()
        .remove("introspection_endpoint");
    if let Some(endpoint) = endpoint {
        metadata["introspection_endpoint"] = json!(endpoint);
    }
    metadata.to_string()
}

fn publishes(fixture: &Fixture, endpoint: Option<&str>) {
    fixture.fake.serve(
        fixture.test_issuer.metadata_url(),
        200,
        metadata_with(fixture, endpoint),
    );
}

/// D2: the endpoint is discovered once, and no keys are fetched.
#[tokio::test(start_paused = true)]
async fn the_endpoint_is_discovered() {
    let fixture = fixture();
    assert_eq!(fixture.issuer.health(), IssuerHealth::Pending);
    fixture.issuer.spawn_refresh();
    settle().await;
    assert_eq!(
        fixture.issuer.health(),
        IssuerHealth::Introspected { reason: None }
    );
    for token in ["a", "b"] {
        assert_eq!(fixture.rejection(token).await, None);
    }
    let expected = [endpoint(&fixture), endpoint(&fixture), endpoint(&fixture)];
    assert_eq!(fixture.fake.urls()[1..], expected);
    assert_eq!(fixture.fake.urls()[0], fixture.test_issuer.metadata_url());
}

/// D2: without a background refresh, the first token causes the discovery.
#[tokio::test(start_paused = true)]
async fn the_first_token_discovers_the_endpoint() {
    let fixture = fixture();
    let tokens = (0..20).map(|at| {
        let verifier = Arc::clone(&fixture.verifier);
        async move {
            verifier
                .verify(&AccessToken::new(format!("token-{at}")))
                .await
                .is_ok()
        }
    });
    assert!(all(tokens).await.into_iter().all(|accepted| accepted));
    assert_eq!(fixture.fake.hits(fixture.test_issuer.metadata_url()), 1);
}

/// D2: keys and endpoint share one discovery.
#[tokio::test(start_paused = true)]
async fn one_discovery_for_keys_and_endpoint() {
    let fixture = both();
    fixture.issuer.refresh_now().await.unwrap();
    assert_eq!(
        fixture.fake.urls(),
        [
            fixture.test_issuer.metadata_url(),
            fixture.test_issuer.endpoint("jwks")
        ]
    );
    assert_eq!(
        fixture.issuer.health(),
        IssuerHealth::Usable {
            keys: 1,
            age: Duration::ZERO
        }
    );
    assert_eq!(
        fixture.rejection(&fixture.test_issuer.token().sign()).await,
        None
    );

    let fixture = both();
    fixture.fake.fail(fixture.test_issuer.metadata_url());
    assert!(fixture.issuer.refresh_now().await.is_err());
    assert_eq!(fixture.fake.urls().len(), 1);
}

/// D2: with a configured endpoint, no metadata is fetched.
#[tokio::test(start_paused = true)]
async fn a_configured_endpoint_is_not_discovered() {
    for configured in [
        "https://elsewhere.example/introspect?tenant=1",
        "http://127.0.0.1:9/introspect",
        "http://[::1]/i",
    ] {
        let fixture =
            fixture_with(|settings| settings.endpoint = Some(Url::parse(configured).unwrap()));
        assert_eq!(
            fixture.issuer.health(),
            IssuerHealth::Introspected { reason: None }
        );
        fixture.issuer.spawn_refresh();
        fixture.issuer.refresh_now().await.unwrap();
        fixture.fake.serve(configured, 200, active().to_string());
        assert_eq!(fixture.rejection(OPAQUE).await, None);
        let urls = fixture.fake.urls();
        assert!(urls.len() <= 2, "{urls:?}");
        assert!(
            urls.iter().all(|url| url.as_str() == configured),
            "{urls:?}"
        );
    }
}

/// D2: a configured endpoint that is neither `https` nor loopback is rejected, and so are other
/// unusable settings.
#[tokio::test]
async fn unusable_settings_are_rejected() {
    let rejection = |change: &dyn Fn(&mut IntrospectionSettings)| {
        let mut introspection = client();
        change(&mut introspection);
        let mut rejections =
            [Validation::Introspection, Validation::JwtAndIntrospection].map(|validation| {
                let mut settings = IssuerSettings::new(Issuer::parse(ISSUER).unwrap());
                settings.validation = validation(introspection.clone());
                let fetch = Arc::new(ScriptedFetch::new());
                let clock = Arc::new(SystemClock::new());
                let error =
                    TrustedIssuer::new(settings, fetch, clock, Handle::current()).unwrap_err();
                assert!(error.to_string().contains(ISSUER), "{error}");
                assert!(!error.to_string().contains("hush"), "{error}");
                error.code()
            });
        rejections.sort_unstable();
        assert_eq!(rejections[0], rejections[1]);
        rejections[0]
    };
    for endpoint in [
        "http://issuer.example/introspect",
        "http://127.0.0.1.example/introspect",
        "ftp://127.0.0.1/introspect",
        "https://user:hush@issuer.example/introspect",
    ] {
        let endpoint = Url::parse(endpoint).unwrap();
        let code = rejection(&move |settings| settings.endpoint = Some(endpoint.clone()));
        assert_eq!(code, "settings.introspection_endpoint");
    }
    let code = rejection(&|settings| {
        settings.authentication = Some(IntrospectionAuthentication::Basic);
        settings.client_secret = None;
    });
    assert_eq!(code, "settings.introspection_secret");
    assert_eq!(
        rejection(&|settings| settings.client_id.clear()),
        "settings.introspection_client"
    );

    for most in [0, 1025] {
        assert_eq!(
            rejection(&|settings| settings.max_in_flight = most),
            "settings.introspection_in_flight"
        );
    }
    let code = rejection(&|settings| settings.cache_lifetime = Duration::from_millis(30_001));
    assert_eq!(code, "settings.introspection_remembered_too_long");
}

/// D2: an invalid discovered endpoint makes the issuer unusable. Nothing is sent to it.
#[tokio::test(start_paused = true)]
async fn an_invalid_discovered_endpoint_is_not_used() {
    for (published, reason) in [
        (None, "issuer.no_introspection_endpoint"),
        (
            Some("http://issuer.example/introspect"),
            "discovery.insecure_endpoint",
        ),
        (
            Some("https://user:pass@issuer.example/introspect"),
            "issuer.introspection_endpoint",
        ),
    ] {
        for fixture in [fixture(), both()] {
            publishes(&fixture, published);
            let token = fixture.test_issuer.token().sign();
            assert_eq!(
                fixture.rejection(&token).await,
                Some("issuer.unavailable"),
                "{published:?}"
            );
            assert_eq!(
                fixture.issuer.health(),
                IssuerHealth::Failed { reason },
                "{published:?}"
            );
            assert_eq!(calls(&fixture), 0);

            fixture.fake.publish(&fixture.test_issuer);
            fixture.pass(30).await;
            assert_eq!(fixture.rejection(&token).await, None, "{published:?}");
            assert!(fixture.issuer.health().is_usable());
        }
    }
}

/// D2: metadata of another issuer is not used.
#[tokio::test(start_paused = true)]
async fn foreign_metadata_is_not_used() {
    let fixture = fixture();
    let foreign = metadata_with(&fixture, Some("https://evil.example/introspect"))
        .replace(ISSUER, "https://evil.example");
    fixture
        .fake
        .serve(fixture.test_issuer.metadata_url(), 200, foreign);
    assert_eq!(fixture.rejection(OPAQUE).await, Some("issuer.unavailable"));
    assert!(!fixture.issuer.health().is_usable());
    assert_eq!(fixture.fake.urls(), [fixture.test_issuer.metadata_url()]);
}

/// D2: a known endpoint remains in use while metadata is unavailable, and is removed when the
/// metadata has none.
#[tokio::test(start_paused = true)]
async fn a_known_endpoint_survives_an_outage() {
    let fixture = fixture();
    fixture.issuer.refresh_now().await.unwrap();
    fixture.fake.fail(fixture.test_issuer.metadata_url());
    fixture.pass(2 * 60 * 60).await;
    assert!(fixture.issuer.refresh_now().await.is_err());
    set_response(&fixture, &active_without("exp"));
    assert_eq!(fixture.rejection(OPAQUE).await, None);
    assert!(fixture.issuer.health().is_usable());

    publishes(&fixture, None);
    assert!(fixture.issuer.refresh_now().await.is_err());
    assert_eq!(
        fixture.rejection("another").await,
        Some("issuer.unavailable")
    );
}

/// D2: after a failed call, which is logged, the next refresh discovers the endpoint again.
#[tokio::test(start_paused = true)]
async fn a_moved_endpoint_is_found() {
    let fixture = fixture();
    fixture.issuer.refresh_now().await.unwrap();
    fixture.fake.serve(endpoint(&fixture), 404, "");
    let (log, _guard) = Logged::here();
    assert_eq!(fixture.rejection(OPAQUE).await, Some("issuer.unavailable"));
    assert_eq!(
        fixture.issuer.health(),
        IssuerHealth::Introspected {
            reason: Some("introspection.status")
        }
    );

    let line = log.lines().remove(0);
    assert!(line.starts_with("WARN "), "{line}");
    assert!(
        line.contains("token.issuer=https://issuer.example"),
        "{line}"
    );
    assert!(
        line.contains("introspection.failure=\"introspection.status\""),
        "{line}"
    );

    publishes(&fixture, Some("https://issuer.example/moved"));
    fixture
        .fake
        .serve("https://issuer.example/moved", 200, active().to_string());
    fixture.issuer.refresh_now().await.unwrap();
    assert_eq!(fixture.rejection(OPAQUE).await, None);
    assert_eq!(
        fixture.issuer.health(),
        IssuerHealth::Introspected { reason: None }
    );
}

/// J2: the log names the URL of a failed call once, without its query.
#[tokio::test(start_paused = true)]
async fn failures_of_calls_name_the_url() {
    let url = "https://elsewhere.example/introspect?tenant=canary";
    let fixture = fixture_with(|settings| settings.endpoint = Some(url.parse().unwrap()));
    let lines = async || {
        let (log, _guard) = Logged::here();
        assert_eq!(fixture.rejection(OPAQUE).await, Some("issuer.unavailable"));
        log.lines()
    };
    // Registers the event, so that no other thread registers it, as disabled.
    fixture.fake.time_out(url);
    lines().await;
    let mut logged = lines().await;
    for (status, body) in [(500, ""), (401, ""), (200, "<html>")] {
        fixture.fake.serve(url, status, body);
        logged.extend(lines().await);
    }
    let _gate = fixture.fake.hang(url);
    let mut hanging = lines().await;
    settle().await;
    logged.append(&mut hanging);
    logged.retain(|line| line.contains("cannot introspect"));
    assert!(logged.len() >= 4, "{logged:?}");
    for line in logged {
        let named = line.matches("https://elsewhere.example/introspect").count();
        assert_eq!(named, 1, "{line}");
        assert!(!line.contains("canary"), "{line}");
    }
}

/// J2: an endpoint of metadata that is not permitted is named without its user information.
#[tokio::test(start_paused = true)]
async fn a_forbidden_endpoint_is_named() {
    let fixture = fixture();
    publishes(&fixture, Some("https://alice:canary@issuer.example/call"));
    let error = fixture.issuer.refresh_now().await.unwrap_err();
    assert_eq!(error.code(), "issuer.introspection_endpoint");
    let text = error.to_string();
    assert!(
        text.contains("metadata, https://issuer.example/call, is"),
        "{text}"
    );
}
