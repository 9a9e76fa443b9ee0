//! What is told of tokens, and what is not.

use super::*;

/// J2: neither a refusal nor the debug text of anything that the verifier hands out repeats the token.
#[tokio::test(start_paused = true)]
async fn nothing_repeats_the_token() {
    let bench = ready().await;
    let canary = "canary-in-the-token";
    let good = bench.forge.token().subject(canary).claim("secret", canary).sign();
    let bad = bench.forge.token().subject(canary).audience(canary).kid(canary).issuer(canary);
    let verified = bench.verify(&good).await.unwrap();
    let mut texts = vec![format!("{verified:?} {:?}", bench.verifier)];
    let in_name_of_issuer = bad.clone().issuer(bench.forge.issuer().as_str());
    for token in [bad.sign(), in_name_of_issuer.sign(), bench.forge.token().audience(canary).sign(), canary.to_owned()]
    {
        let error = bench.verifier.verify(&AccessToken::new(token)).await.unwrap_err();
        texts.push(format!("{error} {error:?}"));
    }
    for text in texts {
        assert!(!text.contains("canary") && !text.contains(&good), "{text}");
    }
}

/// A verifier shows what it is set to.
#[tokio::test]
async fn a_verifier_shows_its_settings() {
    let shown = format!("{:?}", Bench::new().verifier);
    assert!(shown.starts_with("Verifier { settings: ") && shown.contains(TestIssuer::RESOURCE), "{shown}");
}

/// J2: whom a token speaks for is shown by issuer, scopes and expiry, not by name.
#[tokio::test(start_paused = true)]
async fn a_principal_shows_no_person() {
    let verified = ready().await;
    let verified = verified.verify(&verified.forge.token().scope("mcp:tools").sign()).await.unwrap();
    let shown = format!("{:?}", verified.principal());
    assert!(shown.starts_with("Principal { issuer: ") && shown.contains("mcp:tools"), "{shown}");
    assert!(shown.contains("expires: ") && !shown.contains("alice"), "{shown}");
}

/// J1: the log tells why a token is refused, and whose it is.
#[tokio::test(start_paused = true)]
async fn the_log_tells_why_a_token_is_refused() {
    let bench = ready().await;
    let (log, _guard) = Logged::here();
    assert_eq!(bench.refusal(&bench.forge.token().expires_in(-60).sign()).await, Some("token.expired"));
    let line = log.lines().pop().unwrap();
    assert!(line.starts_with("DEBUG ") && line.contains("token.issuer=https://issuer.example"), "{line}");
    assert!(line.contains("deny.code=\"token.expired\""), "{line}");
}
