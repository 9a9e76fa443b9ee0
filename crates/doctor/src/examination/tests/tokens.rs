//! A token is checked against the rules of the chain, and by a guard.

use super::*;

/// Returns the problems of the token's steps, and the status of the guard's response.
async fn broken(fixture: &Fixture, token: String) -> Vec<String> {
    let report = fixture.examine_with(Some(&AccessToken::new(token))).await;
    let steps = &report.steps[report.steps.len() - 2..];
    let problems = steps
        .iter()
        .flat_map(|step| &step.findings)
        .filter(|finding| finding.verdict == Verdict::Problem);
    let mut reported: Vec<_> = problems.map(|finding| finding.rule.id.to_owned()).collect();
    reported.push(
        steps[1]
            .response
            .as_ref()
            .map(|response| response.status.to_string())
            .unwrap_or_default(),
    );
    reported
}

#[tokio::test]
async fn a_token_is_checked_against_every_rule() {
    let fixture = Fixture::new();
    let good = || {
        fixture
            .test_issuer
            .token()
            .audience(RESOURCE)
            .scope("mcp:tools")
    };
    assert_eq!(broken(&fixture, good().sign()).await, ["200 OK"]);
    assert_eq!(
        broken(&fixture, good().scope("other").sign()).await,
        ["token.scopes", "403 Forbidden"]
    );

    let many = good()
        .audience("https://other.example/")
        .expires_in(-600)
        .claim("at_hash", "x")
        .sign();
    assert_eq!(
        broken(&fixture, many).await,
        [
            "token.kind",
            "token.audience",
            "token.times",
            "401 Unauthorized"
        ]
    );
    let other = good().issuer("https://other.example").sign();
    assert_eq!(
        broken(&fixture, other).await,
        ["token.issuer", "401 Unauthorized"]
    );
    assert_eq!(
        broken(&fixture, portcullis_testkit::flip_signature(&good().sign())).await,
        ["token.signature", "401 Unauthorized"]
    );
    assert_eq!(
        broken(&fixture, good().without("exp").sign()).await,
        ["token.times", "401 Unauthorized"]
    );
    assert_eq!(
        broken(&fixture, "opaque".to_owned()).await,
        ["token.answer", "401 Unauthorized"]
    );
    assert_eq!(
        broken(&fixture, "a\nb".to_owned()).await,
        ["token.answer", ""]
    );
}

/// A JWT that is cut off, encrypted or too long is not called opaque, whether or not it can be
/// verified.
#[tokio::test]
async fn a_malformed_token_has_its_own_error() {
    let fixture = Fixture::new();
    let signed = fixture.test_issuer.token().audience(RESOURCE).sign();
    let cut_off = signed.rsplit_once('.').unwrap().0.to_owned();
    let too_long = fixture
        .test_issuer
        .token()
        .claim("filler", "x".repeat(20_000))
        .sign();
    for jwks_uri in [
        json!(fixture.test_issuer.endpoint("jwks").as_str()),
        Value::Null,
    ] {
        fixture.issuer(json!({ "jwks_uri": jwks_uri }));
        for (token, error, fix) in [
            (
                cut_off.clone(),
                "the token is not a compact JSON Web Signature",
                "copy the token again",
            ),
            (
                format!("{signed}.a.b"),
                "the token is encrypted",
                "not to encrypt",
            ),
            (
                too_long.clone(),
                "the token is longer than 16384 bytes",
                "issue shorter tokens",
            ),
        ] {
            let report = fixture.examine_with(Some(&AccessToken::new(token))).await;
            let finding = report
                .findings()
                .find(|finding| finding.rule.id == "token.form")
                .unwrap();
            assert_eq!(finding.text, error);
            assert!(finding.fix.as_ref().unwrap().contains(fix), "{finding:?}");
            assert!(
                !report
                    .findings()
                    .any(|finding| finding.rule.id == "token.opaque"),
                "{error}"
            );
        }
    }
}

/// Without published keys, as at servers with opaque tokens, a guard can verify nothing.
#[tokio::test]
async fn a_token_of_a_server_without_keys() {
    let fixture = Fixture::new();
    fixture.issuer(json!({"jwks_uri": null}));
    let signed = fixture.test_issuer.token().audience(RESOURCE).sign();
    for (token, fix) in [
        ("opaque", "let the authorization server issue JWTs"),
        (&signed, "publish the signing keys"),
    ] {
        assert_eq!(
            broken(&fixture, token.to_owned()).await,
            ["token.answer", ""]
        );
        let report = fixture.examine_with(Some(&AccessToken::new(token))).await;
        let problem = report
            .first_problem()
            .and_then(|problem| problem.fix.as_ref())
            .unwrap();
        assert!(problem.contains(fix), "{problem}");
    }
}

/// An issuer whose keys cannot be used does not prevent the check with the keys of another one.
#[tokio::test]
async fn a_token_beside_an_issuer_with_unusable_keys() {
    let fixture = Fixture::new();
    let other = TestIssuer::new("https://other.example");
    fixture.fetch.publish(&other);
    fixture
        .fetch
        .serve(other.endpoint("jwks"), 200, r#"{"keys":[]}"#);
    let document =
        json!({"resource": RESOURCE, "authorization_servers": ["https://other.example", ISSUER]});
    fixture.fetch.serve(NAMED, 200, document.to_string());
    let token = fixture
        .test_issuer
        .token()
        .audience(RESOURCE)
        .scope("mcp:tools")
        .sign();
    assert_eq!(broken(&fixture, token).await, ["200 OK"]);
}

#[tokio::test]
async fn a_report_never_shows_the_token() {
    let fixture = Fixture::new();
    let token = fixture.test_issuer.token().audience(RESOURCE).sign();
    let report = fixture
        .examine_with(Some(&AccessToken::new(token.as_str())))
        .await;
    let json = serde_json::to_string(&report).unwrap();
    assert!(
        token.split('.').all(|segment| !json.contains(segment)),
        "{json}"
    );
    assert!(json.contains("aud: https://mcp.example.com/mcp"), "{json}");
    let asked = fixture
        .fetch
        .urls()
        .into_iter()
        .flat_map(|url| fixture.fetch.requests(url));
    // Only the made-up client at the token endpoint authenticates.
    let credentials =
        asked.filter_map(|request| request.headers.get(header::AUTHORIZATION).cloned());
    assert!(
        credentials
            .collect::<Vec<_>>()
            .iter()
            .all(|value| value.as_bytes().starts_with(b"Basic "))
    );
}
