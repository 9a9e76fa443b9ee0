//! Probes find an endpoint that rejects this client or accepts every token.

use http::StatusCode;
use portcullis_discovery::FetchResponse;

use super::*;

const REJECTED: IssuerHealth = IssuerHealth::Failed {
    reason: "introspection.client_rejected",
};
const WORKS: IssuerHealth = IssuerHealth::Introspected { reason: None };

fn rejects(fixture: &Fixture, status: u16, body: &str) {
    fixture
        .fake
        .serve(endpoint(fixture), status, body.to_owned());
}

fn inactive(fixture: &Fixture) {
    set_response(fixture, &json!({ "active": false }));
}

/// D6: at startup the endpoint is probed with a new random token. An inactive response is a
/// success.
#[tokio::test(start_paused = true)]
async fn the_endpoint_is_probed_at_startup() {
    let configured = |settings: &mut IntrospectionSettings| {
        settings.endpoint = Some("https://issuer.example/introspect".parse().unwrap());
    };
    let mut tokens = Vec::new();
    for fixture in [fixture(), fixture_with(configured), both()] {
        inactive(&fixture);
        fixture.issuer.spawn_refresh();
        settle().await;
        assert!(fixture.issuer.health().is_usable());
        let (form, _) = last_call(&fixture);
        let token = fields(&form)[0].1.to_owned();
        assert!(token.starts_with("portcullis-probe-"), "{token}");
        assert!(token.len() > 50, "{token}");
        tokens.push(token);
        fixture.pass(9 * 60 - 1).await;
        assert_eq!(calls(&fixture), 1);
        fixture.pass(1).await;
        assert_eq!(calls(&fixture), 2);
    }
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 3);
}

/// D6: an endpoint that rejects this client makes the issuer unusable, and the log names the fix.
/// Probes are repeated with increasing delays.
#[tokio::test(start_paused = true)]
async fn a_rejected_client_makes_the_issuer_unusable() {
    for (status, body) in [
        (401, ""),
        (401, r#"{"error":"invalid_client"}"#),
        (400, r#"{"error":"invalid_client"}"#),
        (400, r#"{"error":"unauthorized_client"}"#),
        (
            403,
            r#"{"error":"invalid_request","error_description":"Client not allowed."}"#,
        ),
    ] {
        for fixture in [fixture(), both()] {
            rejects(&fixture, status, body);
            let (log, _guard) = Logged::here();
            fixture.issuer.spawn_refresh();
            settle().await;
            assert_eq!(fixture.issuer.health(), REJECTED, "{status} {body}");
            let line = log
                .lines()
                .into_iter()
                .find(|line| line.contains("the probe of"))
                .unwrap();
            assert!(line.starts_with("WARN "), "{line}");
            assert!(line.contains("introspection.client_rejected"), "{line}");
            assert!(line.contains("`client_secret`"), "{line}");
            assert!(!line.contains("hush"), "{line}");
            assert!(!line.contains("probe-"), "{line}");

            fixture.pass(1).await;
            assert_eq!(calls(&fixture), 2);
            assert_eq!(fixture.issuer.health(), REJECTED);
            inactive(&fixture);
            fixture.pass(2).await;
            assert_eq!(calls(&fixture), 3);
            assert!(fixture.issuer.health().is_usable());
        }
    }
}

/// D6: after other failures the issuer remains usable and is probed again.
#[tokio::test(start_paused = true)]
async fn other_failures_do_not_reject_the_client() {
    for (status, body) in [
        (400, r#"{"error":"invalid_request"}"#),
        (429, ""),
        (500, ""),
        (503, r#"{"error":"invalid_client"}"#),
    ] {
        let fixture = fixture();
        rejects(&fixture, status, body);
        fixture.issuer.spawn_refresh();
        settle().await;
        let failed = IssuerHealth::Introspected {
            reason: Some("introspection.status"),
        };
        assert_eq!(fixture.issuer.health(), failed, "{status} {body}");
        inactive(&fixture);
        fixture.pass(1).await;
        assert_eq!(fixture.issuer.health(), WORKS);
    }
    let fixture = fixture();
    rejects(&fixture, 401, "");
    fixture.issuer.spawn_refresh();
    settle().await;
    fixture.fake.fail(endpoint(&fixture));
    fixture.pass(1).await;
    assert_eq!(
        fixture.issuer.health(),
        REJECTED,
        "an unavailable endpoint does not accept the client"
    );
}

/// D6: a rejected call causes a probe, at most once per second. Only the probe makes the issuer
/// unusable, so a token cannot.
#[tokio::test(start_paused = true)]
async fn a_rejected_call_causes_a_probe() {
    let fixture = fixture();
    inactive(&fixture);
    fixture.issuer.spawn_refresh();
    settle().await;
    fixture.fake.respond(endpoint(&fixture), |request| {
        let is_test = request.body.windows(6).any(|window| window == b"probe-");
        let status = if is_test {
            StatusCode::OK
        } else {
            StatusCode::UNAUTHORIZED
        };
        Ok(FetchResponse {
            status,
            headers: Default::default(),
            body: r#"{"active":false}"#.into(),
            sent: Default::default(),
        })
    });
    for token in ["a", "b", "c"] {
        assert_eq!(fixture.rejection(token).await, Some("issuer.unavailable"));
    }
    fixture.pass(1).await;
    assert_eq!(calls(&fixture), 1 + 3 + 1);
    assert_eq!(fixture.issuer.health(), WORKS);

    rejects(&fixture, 401, "");
    assert_eq!(fixture.rejection("d").await, Some("issuer.unavailable"));
    fixture.pass(1).await;
    assert_eq!(fixture.issuer.health(), REJECTED);

    set_response(&fixture, &active());
    assert_eq!(fixture.rejection("e").await, None);
    assert_eq!(
        fixture.issuer.health(),
        WORKS,
        "a successful call is sufficient"
    );
}

/// D6: an endpoint that reports a random token as active is logged.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_accepts_everything_is_reported() {
    let fixture = fixture();
    let (log, _guard) = Logged::here();
    fixture.issuer.spawn_refresh();
    settle().await;
    assert!(
        log.lines()
            .iter()
            .any(|line| line.starts_with("WARN ") && line.contains("random token as active"))
    );
}
