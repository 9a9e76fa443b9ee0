//! Tokens and claims in logs, errors and `Debug`.

use super::*;

/// The text contains neither a part of the compact token nor its claims, which have the text
/// `canary`.
fn assert_hides(token: &str, text: &str) {
    assert!(!text.contains("canary"), "{text}");
    for part in token.split('.') {
        assert!(!text.contains(part), "{part}: {text}");
    }
}

/// J2: neither errors nor `Debug` contain the token.
#[tokio::test(start_paused = true)]
async fn errors_and_debug_contain_no_token() {
    let fixture = ready().await;
    let canary = "canary-in-the-token";
    let good = fixture
        .test_issuer
        .token()
        .subject(canary)
        .claim("secret", canary)
        .sign();
    let bad = fixture
        .test_issuer
        .token()
        .subject(canary)
        .audience(canary)
        .kid(canary)
        .issuer(canary);
    let verified = fixture.verify(&good).await.unwrap();
    assert_hides(&good, &format!("{verified:?} {:?}", fixture.verifier));
    let in_name_of_issuer = bad.clone().issuer(fixture.test_issuer.issuer().as_str());
    for token in [
        bad.sign(),
        in_name_of_issuer.sign(),
        fixture.test_issuer.token().audience(canary).sign(),
        canary.to_owned(),
    ] {
        let error = fixture
            .verifier
            .verify(&AccessToken::new(&*token))
            .await
            .unwrap_err();
        assert_hides(&token, &format!("{error} {error:?}"));
    }
}

/// `Debug` prints the settings of a verifier.
#[tokio::test]
async fn debug_prints_the_settings() {
    let shown = format!("{:?}", Fixture::new().verifier);
    assert!(shown.starts_with("Verifier { settings: "), "{shown}");
    assert!(shown.contains(TestIssuer::RESOURCE), "{shown}");
}

/// J2: `Debug` of a principal prints issuer, scopes and expiration time, but not the subject.
#[tokio::test(start_paused = true)]
async fn debug_prints_no_subject() {
    let fixture = ready().await;
    let verified = fixture
        .verify(
            &fixture
                .test_issuer
                .token()
                .subject("canary")
                .scope("mcp:tools")
                .sign(),
        )
        .await
        .unwrap();
    let shown = format!("{:?}", verified.principal());
    assert!(shown.starts_with("Principal { issuer: "), "{shown}");
    assert!(shown.contains("mcp:tools"), "{shown}");
    assert!(shown.contains("expires: "), "{shown}");
    assert!(!shown.contains("canary"), "{shown}");
}

/// J1, J2: the log has the issuer and the reason of a rejected token, but neither the token nor its
/// subject.
#[tokio::test(start_paused = true)]
async fn the_log_has_the_reason_of_a_rejection() {
    let fixture = ready().await;
    let expired = fixture
        .test_issuer
        .token()
        .subject("canary")
        .expires_in(-60)
        .sign();
    // Registers the event, so that no other thread registers it, as disabled, while the log is
    // attached.
    assert_eq!(fixture.rejection(&expired).await, Some("token.expired"));
    let (log, _guard) = Logged::here();
    assert_eq!(fixture.rejection(&expired).await, Some("token.expired"));
    let lines = log.lines();
    assert_hides(&expired, &lines.join("\n"));
    let line = lines.last().unwrap();
    assert!(line.starts_with("DEBUG "), "{line}");
    assert!(
        line.contains("token.issuer=https://issuer.example"),
        "{line}"
    );
    assert!(line.contains("deny.code=\"token.expired\""), "{line}");
}
