//! The builder rejects incomplete and insecure arguments, and starts the refresh.

use portcullis_metadata::AccessToken;
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer};

use super::*;

const RESOURCE: &str = "https://mcp.example.com/mcp";
const ISSUER: &str = "https://auth.example.com";

fn code(builder: VerifierBuilder) -> &'static str {
    builder.build().unwrap_err().code()
}

/// Waits until the background refresh has had every opportunity to fetch.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// C10: the keys are fetched before the first token arrives and refreshed later; the refresh stops
/// when the verifier is dropped.
#[tokio::test(start_paused = true)]
async fn the_refresh_starts_by_itself_and_stops_on_drop() {
    let issuer = TestIssuer::new(ISSUER);
    let fetch = ScriptedFetch::new();
    fetch.publish(&issuer);
    let clock = Arc::new(ManualClock::new());
    let builder = Verifier::builder(RESOURCE)
        .issuer(ISSUER)
        .fetch(Arc::new(fetch.clone()))
        .clock(clock);
    let verifier = builder.build().unwrap();
    settle().await;
    let fetched = fetch.urls().len();
    assert!(fetched > 0, "nothing was fetched");

    let token = AccessToken::new(issuer.token().sign());
    assert_eq!(
        verifier.verify(&token).await.unwrap().principal().subject(),
        Some("alice")
    );
    assert_eq!(fetch.urls().len(), fetched);

    tokio::time::sleep(Duration::from_secs(15 * 60)).await;
    let refreshed = fetch.urls().len();
    assert!(refreshed > fetched, "the keys were not refreshed");

    drop(verifier);
    tokio::time::sleep(Duration::from_secs(60 * 60)).await;
    assert_eq!(fetch.urls().len(), refreshed, "the refresh did not stop");
    assert_eq!(
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks(),
        0
    );
}

/// Without a valid resource and at least one valid issuer there is no verifier.
#[tokio::test]
async fn incomplete_or_insecure_arguments_do_not_build() {
    let builder = || Verifier::builder(RESOURCE);
    assert_eq!(code(builder()), "settings.no_issuer");
    assert_eq!(
        code(builder().issuer("auth.example.com")),
        "issuer.not_a_url"
    );
    assert_eq!(
        code(builder().issuer("http://auth.example.com")),
        "issuer.insecure_scheme"
    );
    assert_eq!(
        code(builder().issuer(ISSUER).issuer(ISSUER)),
        "settings.duplicate_issuer"
    );
    assert_eq!(
        code(Verifier::builder("").issuer(ISSUER)),
        "resource.not_a_url"
    );
    assert_eq!(
        code(Verifier::builder("http://mcp.example.com/").issuer(ISSUER)),
        "settings.insecure_resource"
    );
    let mut settings = IssuerSettings::new(Issuer::parse(ISSUER).unwrap());
    settings.leeway = Duration::from_secs(3600);
    assert_eq!(
        code(builder().issuer_settings(settings)),
        "settings.leeway_too_long"
    );
    assert!(
        Verifier::builder("http://localhost:3000/")
            .issuer("http://127.0.0.1:4000")
            .build()
            .is_ok()
    );
}

/// The messages name the method to correct.
#[test]
fn errors_name_the_fix() {
    let message = |builder: VerifierBuilder| builder.build().unwrap_err().to_string();
    let builder = || Verifier::builder(RESOURCE);
    assert!(message(builder()).contains("call issuer("));
    assert!(
        message(builder().issuer(ISSUER)).contains("runtime(handle)"),
        "outside a runtime"
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let insecure = builder()
        .issuer("http://auth.example.com")
        .runtime(runtime.handle().clone());
    assert!(message(insecure).starts_with("issuer(\"http://auth.example.com\"): "));
    assert!(
        builder()
            .issuer(ISSUER)
            .runtime(runtime.handle().clone())
            .build()
            .is_ok()
    );
}

/// Settings of an issuer and limits reach the verifier, and verifiers can share an issuer.
#[tokio::test]
async fn settings_reach_the_verifier() {
    let issuer = TestIssuer::new(ISSUER);
    let fetch = ScriptedFetch::new();
    fetch.publish(&issuer);
    let mut settings = IssuerSettings::new(issuer.issuer().clone());
    settings.require_at_jwt = true;
    let token = issuer.token().typ("at+jwt").sign();
    let first = Verifier::builder(RESOURCE)
        .issuer_settings(settings)
        .max_token_bytes(token.len())
        .cache_entries(0)
        .fetch(Arc::new(fetch))
        .clock(Arc::new(ManualClock::new()))
        .build()
        .unwrap();
    let code = async |token: String| {
        first
            .verify(&AccessToken::new(token))
            .await
            .err()
            .map(|error| error.code())
    };
    assert_eq!(code(token.clone()).await, None);
    assert_eq!(first.cached_tokens(), 0);
    assert_eq!(
        code(issuer.token().typ("JWT").sign()).await,
        Some("token.type_not_allowed")
    );
    assert_eq!(code(format!("{token}x")).await, Some("token.too_large"));
    let shared = Arc::clone(&first.issuers()[0]);
    let second = Verifier::builder("https://api.example.com/")
        .trusted_issuer(shared)
        .build()
        .unwrap();
    assert!(Arc::ptr_eq(&first.issuers()[0], &second.issuers()[0]));
}
