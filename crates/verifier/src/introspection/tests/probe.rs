//! Probes of the endpoint.

use http::StatusCode;
use portcullis_discovery::FetchResponse;

use super::*;

const REJECTED: IssuerHealth = IssuerHealth::Failed { reason: "introspection.client_rejected" };
const WORKS: IssuerHealth = IssuerHealth::Introspected { reason: None };

fn rejects(bench: &Bench, status: u16, body: &str) {
    bench.fake.serve(endpoint(bench), status, body.to_owned());
}

fn inactive(bench: &Bench) {
    says(bench, &json!({ "active": false }));
}

/// D6: at startup the endpoint is probed with a new random token. An inactive response is a success.
#[tokio::test(start_paused = true)]
async fn the_endpoint_is_probed_at_startup() {
    let configured = |settings: &mut IntrospectionSettings| {
        settings.endpoint = Some("https://issuer.example/introspect".parse().unwrap());
    };
    let mut tokens = Vec::new();
    for bench in [bench(), bench_with(configured), both()] {
        inactive(&bench);
        bench.issuer.spawn_refresh();
        settle().await;
        assert!(bench.issuer.health().is_usable());
        let (form, _) = last_call(&bench);
        let token = fields(&form)[0].1.to_owned();
        assert!(token.starts_with("portcullis-probe-") && token.len() > 50, "{token}");
        tokens.push(token);
        bench.pass(9 * 60 - 1).await;
        assert_eq!(calls(&bench), 1);
        bench.pass(1).await;
        assert_eq!(calls(&bench), 2);
    }
    tokens.dedup();
    assert_eq!(tokens.len(), 3);
}

/// D6: an endpoint that rejects this client makes the issuer unusable, and the log names the fix. Probes are repeated
/// with increasing delays.
#[tokio::test(start_paused = true)]
async fn a_rejected_client_makes_the_issuer_unusable() {
    for (status, body) in [
        (401, ""),
        (401, r#"{"error":"invalid_client"}"#),
        (400, r#"{"error":"invalid_client"}"#),
        (400, r#"{"error":"unauthorized_client"}"#),
        (403, r#"{"error":"invalid_request","error_description":"Client not allowed."}"#),
    ] {
        for bench in [bench(), both()] {
            rejects(&bench, status, body);
            let (log, _guard) = Logged::here();
            bench.issuer.spawn_refresh();
            settle().await;
            assert_eq!(bench.issuer.health(), REJECTED, "{status} {body}");
            let told = log.lines().into_iter().find(|line| line.contains("the probe of")).unwrap();
            assert!(told.starts_with("WARN ") && told.contains("introspection.client_rejected"), "{told}");
            assert!(told.contains("`client_secret`") && !told.contains("hush") && !told.contains("probe-"), "{told}");

            bench.pass(1).await;
            assert_eq!((calls(&bench), bench.issuer.health()), (2, REJECTED));
            inactive(&bench);
            bench.pass(2).await;
            assert_eq!(calls(&bench), 3);
            assert!(bench.issuer.health().is_usable());
        }
    }
}

/// D6: after other failures the issuer remains usable and is probed again.
#[tokio::test(start_paused = true)]
async fn other_failures_do_not_reject_the_client() {
    for (status, body) in
        [(400, r#"{"error":"invalid_request"}"#), (429, ""), (500, ""), (503, r#"{"error":"invalid_client"}"#)]
    {
        let bench = bench();
        rejects(&bench, status, body);
        bench.issuer.spawn_refresh();
        settle().await;
        let failed = IssuerHealth::Introspected { reason: Some("introspection.status") };
        assert_eq!(bench.issuer.health(), failed, "{status} {body}");
        inactive(&bench);
        bench.pass(1).await;
        assert_eq!(bench.issuer.health(), WORKS);
    }
    let bench = bench();
    rejects(&bench, 401, "");
    bench.issuer.spawn_refresh();
    settle().await;
    bench.fake.fail(endpoint(&bench));
    bench.pass(1).await;
    assert_eq!(bench.issuer.health(), REJECTED, "an endpoint that is away does not accept our client");
}

/// D6: a rejected call causes a probe, at most once per second. Only the probe makes the issuer unusable, so a token
/// cannot.
#[tokio::test(start_paused = true)]
async fn a_rejected_call_causes_a_probe() {
    let bench = bench();
    inactive(&bench);
    bench.issuer.spawn_refresh();
    settle().await;
    bench.fake.answer(endpoint(&bench), |request| {
        let is_test = request.body.windows(6).any(|window| window == b"probe-");
        let status = if is_test { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
        Ok(FetchResponse { status, headers: Default::default(), body: r#"{"active":false}"#.into() })
    });
    for token in ["a", "b", "c"] {
        assert_eq!(bench.refusal(token).await, Some("issuer.unavailable"));
    }
    bench.pass(1).await;
    assert_eq!(calls(&bench), 1 + 3 + 1);
    assert_eq!(bench.issuer.health(), WORKS);

    rejects(&bench, 401, "");
    assert_eq!(bench.refusal("d").await, Some("issuer.unavailable"));
    bench.pass(1).await;
    assert_eq!(bench.issuer.health(), REJECTED);
    says(&bench, &active());
    assert_eq!(bench.refusal("e").await, None);
    assert_eq!(bench.issuer.health(), WORKS, "a call that is answered shows it, too");
}

/// D6: an endpoint that reports a random token as active is logged.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_accepts_everything_is_reported() {
    let bench = bench();
    let (log, _guard) = Logged::here();
    bench.issuer.spawn_refresh();
    settle().await;
    assert!(log.lines().iter().any(|line| line.starts_with("WARN ") && line.contains("random token as active")));
}
