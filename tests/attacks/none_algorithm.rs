//! Tokens with the algorithm `none` (RFC 8725 section 3.2).

use portcullis_scenarios::Deployment;
use portcullis_testkit::hmac_token;

/// C2: `none` is rejected in every spelling, with and without a signature.
#[tokio::test]
async fn none_in_every_spelling() {
    let deployment = Deployment::start().await;
    let token = deployment.token();
    for spelling in ["none", "None", "NONE", "nOnE", "none ", "\u{0}none"] {
        let unsigned = token.unsigned(spelling);
        let signed = token.clone().alg(spelling).sign();
        deployment
            .assert_rejected([
                (format!("{spelling:?} unsigned"), unsigned.clone(), "token.malformed"),
                (format!("{spelling:?} with a signature"), signed, "token.algorithm_unsupported"),
                (format!("{spelling:?} with junk"), format!("{unsigned}AAAA"), "token.algorithm_unsupported"),
            ])
            .await;
    }
    let payload = br#"{"iss":"https://issuer.example","sub":"mallory"}"#;
    deployment
        .assert_rejected([(
            "an empty HMAC key",
            hmac_token(b"", br#"{"alg":"HS256"}"#, payload),
            "token.algorithm_unsupported",
        )])
        .await;
}

/// C2: the header must have an algorithm, which is a string.
#[tokio::test]
async fn no_algorithm_at_all() {
    let deployment = Deployment::start().await;
    let token = deployment.token();
    for (case, header) in [
        ("missing", r#"{"kid":"rs256-0"}"#),
        ("null", r#"{"alg":null,"kid":"rs256-0"}"#),
        ("array", r#"{"alg":["RS256"],"kid":"rs256-0"}"#),
        ("number", r#"{"alg":256,"kid":"rs256-0"}"#),
        ("not an object", r#""RS256""#),
        ("an array of headers", r#"[{"alg":"RS256","kid":"rs256-0"}]"#),
        ("empty", ""),
    ] {
        deployment.assert_rejected([(case, token.clone().raw_header(header).sign(), "token.header_malformed")]).await;
    }
}

/// C2: a token must have exactly three segments of strict base64url.
#[tokio::test]
async fn not_the_compact_form() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let parts: Vec<&str> = good.split('.').collect();
    let [header, payload, signature] = parts[..] else { panic!("three parts") };
    deployment
        .assert_rejected([
            ("two parts", format!("{header}.{payload}"), "token.malformed"),
            ("four parts", format!("{good}.AAAA"), "token.malformed"),
            ("one part", "abc".to_owned(), "token.malformed"),
            ("only dots", "..".to_owned(), "token.malformed"),
            ("padding", format!("{good}="), "token.signature"),
            ("the other alphabet", format!("{header}.{payload}.+/{signature}"), "token.signature"),
            ("five parts: encrypted", format!("{header}.AAAA.AAAA.AAAA.AAAA"), "token.encrypted"),
        ])
        .await;
}
