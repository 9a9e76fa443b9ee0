//! The type and the claims.

use super::*;

/// C4: the header's type is checked with the issuer's settings.
#[tokio::test(start_paused = true)]
async fn the_type_is_checked() {
    let fixture = ready().await;
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().typ("JWT").sign())
            .await,
        None
    );
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().without_header("typ").sign())
            .await,
        None
    );
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().typ("logout+jwt").sign())
            .await,
        Some("token.type_not_allowed")
    );
    let fixture = Fixture::with(|settings| settings.require_at_jwt = true);
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().typ("JWT").sign())
            .await,
        Some("token.type_not_allowed")
    );
    assert_eq!(
        fixture
            .rejection(&fixture.test_issuer.token().typ("application/AT+JWT").sign())
            .await,
        None
    );
}

/// C4, C6, C13: claims are validated, with one code for each rule.
#[tokio::test(start_paused = true)]
async fn claims_are_validated() {
    let fixture = ready().await;
    let token = || fixture.test_issuer.token();
    for (token, code) in [
        (token().claim("at_hash", "x"), "token.not_an_access_token"),
        (token().claim("typ", "Refresh"), "token.not_an_access_token"),
        (
            token().claim("cnf", json!({ "jkt": "x" })),
            "token.sender_constrained",
        ),
        (token().without("aud"), "token.audience_missing"),
        (
            token().audience("https://mcp.example.com"),
            "token.audience_mismatch",
        ),
        (token().without("exp"), "token.expiry_missing"),
        (token().expires_in(-10), "token.expired"),
        (token().not_before_in(11), "token.not_yet_valid"),
        (token().issued_in(11), "token.issued_in_future"),
        (token().claim("exp", 1e300), "claims.date"),
        (token().claim("exp", -1), "claims.date"),
    ] {
        assert_eq!(fixture.rejection(&token.sign()).await, Some(code));
    }
}

/// C2: a duplicate claim is rejected even in a signed token.
#[tokio::test(start_paused = true)]
async fn duplicate_claims_are_rejected() {
    let fixture = ready().await;
    let exp = ManualClock::START.as_secs() + 300;
    let payload = |more: &str| {
        format!(
            r#"{{"iss":"https://issuer.example","aud":"{}","exp":{exp}{more}}}"#,
            TestIssuer::RESOURCE
        )
    };
    let code = async |more| {
        fixture
            .rejection(
                &fixture
                    .test_issuer
                    .token()
                    .raw_payload(payload(more))
                    .sign(),
            )
            .await
    };
    assert_eq!(code("").await, None);
    for more in [
        r#","iss":"https://issuer.example""#,
        r#","iss":"https://attacker.example""#,
        r#","\u0069ss":"https://attacker.example""#,
        r#","aud":"x""#,
        r#","exp":1"#,
        r#","x":1,"x":2"#,
        r#","\u0061ud":"x""#,
        r#","sub":"alice","sub":"mallory""#,
        r#","scope":"a","scope":"b""#,
        r#","cnf":null,"cnf":{"jkt":"x"}"#,
    ] {
        assert_eq!(code(more).await, Some("claims.not_an_object"), "{more}");
    }
}
