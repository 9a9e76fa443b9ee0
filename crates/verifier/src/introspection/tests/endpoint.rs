//! Discovery of the introspection endpoint.

use portcullis_metadata::{Issuer, SystemClock};
use portcullis_testkit::ScriptedFetch;

use super::*;
use crate::TrustedIssuer;

/// Returns the issuer's metadata with this endpoint or without one.
fn metadata_with(bench: &Bench, endpoint: Option<&str>) -> String {
    let mut metadata: Value = serde_json::from_str(&bench.test_issuer.metadata_json()).unwrap();
    metadata.as_object_mut().unwrap().remove("introspection_endpoint");
    if let Some(endpoint) = endpoint {
        metadata["introspection_endpoint"] = json!(endpoint);
    }
    metadata.to_string()
}

fn publishes(bench: &Bench, endpoint: Option<&str>) {
    bench.fake.serve(bench.test_issuer.metadata_url(), 200, metadata_with(bench, endpoint));
}

/// D2: the endpoint is discovered once, and no keys are fetched.
#[tokio::test(start_paused = true)]
async fn the_endpoint_is_discovered() {
    let bench = bench();
    assert_eq!(bench.issuer.health(), IssuerHealth::Pending);
    bench.issuer.spawn_refresh();
    settle().await;
    assert_eq!(bench.issuer.health(), IssuerHealth::Introspected { reason: None });
    for token in ["a", "b"] {
        assert_eq!(bench.refusal(token).await, None);
    }
    let asked = [endpoint(&bench), endpoint(&bench), endpoint(&bench)];
    assert_eq!(bench.fake.urls()[1..], asked);
    assert_eq!(bench.fake.urls()[0], bench.test_issuer.metadata_url());
}

/// D2: without a background refresh, the first token causes the discovery.
#[tokio::test(start_paused = true)]
async fn the_first_token_discovers_the_endpoint() {
    let bench = bench();
    let tokens = (0..20).map(|at| {
        let verifier = Arc::clone(&bench.verifier);
        async move { verifier.verify(&AccessToken::new(format!("token-{at}"))).await.is_ok() }
    });
    assert!(all(tokens).await.into_iter().all(|accepted| accepted));
    assert_eq!(bench.fake.hits(bench.test_issuer.metadata_url()), 1);
}

/// D2: keys and endpoint share one discovery.
#[tokio::test(start_paused = true)]
async fn one_discovery_for_keys_and_endpoint() {
    let bench = both();
    bench.issuer.refresh_now().await.unwrap();
    assert_eq!(bench.fake.urls(), [bench.test_issuer.metadata_url(), bench.test_issuer.endpoint("jwks")]);
    assert_eq!(bench.issuer.health(), IssuerHealth::Usable { keys: 1, age: Duration::ZERO });
    assert_eq!(bench.refusal(&bench.test_issuer.token().sign()).await, None);

    let bench = both();
    bench.fake.fail(bench.test_issuer.metadata_url());
    assert!(bench.issuer.refresh_now().await.is_err());
    assert_eq!(bench.fake.urls().len(), 1);
}

/// D2: with a configured endpoint, no metadata is fetched.
#[tokio::test(start_paused = true)]
async fn a_configured_endpoint_is_not_discovered() {
    for configured in
        ["https://elsewhere.example/introspect?tenant=1", "http://127.0.0.1:9/introspect", "http://[::1]/i"]
    {
        let bench = bench_with(|settings| settings.endpoint = Some(Url::parse(configured).unwrap()));
        assert_eq!(bench.issuer.health(), IssuerHealth::Introspected { reason: None });
        bench.issuer.spawn_refresh();
        bench.issuer.refresh_now().await.unwrap();
        bench.fake.serve(configured, 200, active().to_string());
        assert_eq!(bench.refusal(OPAQUE).await, None);
        let asked = bench.fake.urls();
        assert!(asked.len() <= 2 && asked.iter().all(|url| url.as_str() == configured), "{asked:?}");
    }
}

/// D2: a configured endpoint that is neither `https` nor loopback is rejected, and so are other unusable settings.
#[tokio::test]
async fn unusable_settings_are_rejected() {
    let refusal = |change: &dyn Fn(&mut IntrospectionSettings)| {
        let mut introspection = client();
        change(&mut introspection);
        let mut refusals = [Validation::Introspection, Validation::JwtAndIntrospection].map(|validation| {
            let mut settings = IssuerSettings::new(Issuer::parse(ISSUER).unwrap());
            settings.validation = validation(introspection.clone());
            let (fetch, clock) = (Arc::new(ScriptedFetch::new()), Arc::new(SystemClock::new()));
            let error = TrustedIssuer::new(settings, fetch, clock, Handle::current()).unwrap_err();
            assert!(error.to_string().contains(ISSUER) && !error.to_string().contains("hush"), "{error}");
            error.code()
        });
        refusals.sort_unstable();
        assert_eq!(refusals[0], refusals[1]);
        refusals[0]
    };
    for endpoint in [
        "http://issuer.example/introspect",
        "http://127.0.0.1.example/introspect",
        "ftp://127.0.0.1/introspect",
        "https://user:hush@issuer.example/introspect",
    ] {
        let endpoint = Url::parse(endpoint).unwrap();
        let code = refusal(&move |settings| settings.endpoint = Some(endpoint.clone()));
        assert_eq!(code, "settings.introspection_endpoint");
    }
    let code = refusal(&|settings| {
        settings.authentication = Some(IntrospectionAuthentication::Basic);
        settings.client_secret = None;
    });
    assert_eq!(code, "settings.introspection_secret");
    assert_eq!(refusal(&|settings| settings.client_id.clear()), "settings.introspection_client");
    for most in [0, 1025] {
        assert_eq!(refusal(&|settings| settings.max_in_flight = most), "settings.introspection_in_flight");
    }
    let code = refusal(&|settings| settings.cache_lifetime = Duration::from_millis(30_001));
    assert_eq!(code, "settings.introspection_remembered_too_long");
}

/// D2: an invalid discovered endpoint makes the issuer unusable. Nothing is sent to it.
#[tokio::test(start_paused = true)]
async fn an_invalid_discovered_endpoint_is_not_used() {
    for (published, reason) in [
        (None, "issuer.no_introspection_endpoint"),
        (Some("http://issuer.example/introspect"), "discovery.insecure_endpoint"),
        (Some("https://user:pass@issuer.example/introspect"), "issuer.introspection_endpoint"),
    ] {
        for bench in [bench(), both()] {
            publishes(&bench, published);
            let token = bench.test_issuer.token().sign();
            assert_eq!(bench.refusal(&token).await, Some("issuer.unavailable"), "{published:?}");
            assert_eq!(bench.issuer.health(), IssuerHealth::Failed { reason }, "{published:?}");
            assert_eq!(calls(&bench), 0);

            bench.fake.publish(&bench.test_issuer);
            bench.pass(30).await;
            assert_eq!(bench.refusal(&token).await, None, "{published:?}");
            assert!(bench.issuer.health().is_usable());
        }
    }
}

/// D2: metadata of another issuer is not used.
#[tokio::test(start_paused = true)]
async fn foreign_metadata_is_not_used() {
    let bench = bench();
    let foreign =
        metadata_with(&bench, Some("https://evil.example/introspect")).replace(ISSUER, "https://evil.example");
    bench.fake.serve(bench.test_issuer.metadata_url(), 200, foreign);
    assert_eq!(bench.refusal(OPAQUE).await, Some("issuer.unavailable"));
    assert!(!bench.issuer.health().is_usable());
    assert_eq!(bench.fake.urls(), [bench.test_issuer.metadata_url()]);
}

/// D2: a known endpoint remains in use while metadata is unavailable, and is removed when the metadata has none.
#[tokio::test(start_paused = true)]
async fn a_known_endpoint_survives_an_outage() {
    let bench = bench();
    bench.issuer.refresh_now().await.unwrap();
    bench.fake.fail(bench.test_issuer.metadata_url());
    bench.pass(2 * 60 * 60).await;
    assert!(bench.issuer.refresh_now().await.is_err());
    says(&bench, &active_without("exp"));
    assert_eq!(bench.refusal(OPAQUE).await, None);
    assert!(bench.issuer.health().is_usable());

    publishes(&bench, None);
    assert!(bench.issuer.refresh_now().await.is_err());
    assert_eq!(bench.refusal("another").await, Some("issuer.unavailable"));
}

/// D2: after a failed call, which is logged, the next refresh discovers the endpoint again.
#[tokio::test(start_paused = true)]
async fn a_moved_endpoint_is_found() {
    let bench = bench();
    bench.issuer.refresh_now().await.unwrap();
    bench.fake.serve(endpoint(&bench), 404, "");
    let (log, _guard) = Logged::here();
    assert_eq!(bench.refusal(OPAQUE).await, Some("issuer.unavailable"));
    assert_eq!(bench.issuer.health(), IssuerHealth::Introspected { reason: Some("introspection.status") });
    let told = log.lines().remove(0);
    assert!(told.starts_with("WARN ") && told.contains("token.issuer=https://issuer.example"), "{told}");
    assert!(told.contains("introspection.failure=\"introspection.status\""), "{told}");

    publishes(&bench, Some("https://issuer.example/moved"));
    bench.fake.serve("https://issuer.example/moved", 200, active().to_string());
    bench.issuer.refresh_now().await.unwrap();
    assert_eq!(bench.refusal(OPAQUE).await, None);
    assert_eq!(bench.issuer.health(), IssuerHealth::Introspected { reason: None });
}
