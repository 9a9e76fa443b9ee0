//! One token for each class of attack on tokens. The variants of a class are tested where it is
//! rejected: in `jose` (signatures, headers, keys), `metadata` (claims) and `verifier` (issuer,
//! type, audience, times).

use std::collections::BTreeSet;

use portcullis_jose::{Algorithm, JoseError};
use portcullis_metadata::{ClaimsError, SystemClock};
use portcullis_scenarios::{Deployment, Scratch, Upstream};
use portcullis_testkit::{TestIssuer, flip_signature};
use portcullis_verifier::VerifyError;
use serde_json::json;

/// A second issuer, with two keys.
const OTHER: &str = "https://other.example";

/// A class of attacks, a token of it, and the reason code.
type Row = (&'static str, String, &'static str);

/// The reason codes of introspection, of tokens that the broker revoked, and of tokens that cannot
/// be verified now.
const OF_OTHER_SCENARIOS: [&str; 6] = [
    "token.inactive",
    "token.revoked",
    "token.issuer_mismatch",
    "issuer.unavailable",
    "issuer.introspection_busy",
    "verifier.busy",
];

/// C1, C2, C3, C4, C5, C6, C7, C9, C13: the running server rejects each class of hostile tokens
/// with 401 and logs why.
#[tokio::test]
async fn each_class_is_rejected() {
    let other = TestIssuer::new(OTHER)
        .with_resource(Deployment::RESOURCE)
        .with_clock(SystemClock::new());
    let first = other.key();
    other.rotate();
    let keys = Scratch::file("other.json", &TestIssuer::jwks_of(&[&first, &other.key()]));
    let table = format!(
        "[[issuer]]\nissuer = \"{OTHER}\"\njwks_file = \"{}\"",
        keys.as_str()
    );
    let deployment = Deployment::builder().tables(table).start().await;
    deployment
        .assert_accepted("the first issuer", &deployment.good_token())
        .await;
    deployment
        .assert_accepted(
            "the second issuer",
            &other.token().scope("mcp:tools").sign(),
        )
        .await;

    let key_server = Upstream::start().await;
    let mut rows = signatures(&deployment, &other, &key_server);
    rows.extend(headers(&deployment));
    rows.extend(claims(&deployment));
    let mut codes: BTreeSet<&str> = rows.iter().map(|(_, _, code)| *code).collect();
    deployment.assert_rejected(rows).await;
    assert_eq!(
        key_server.count(),
        0,
        "a key was fetched from a URL in the token"
    );

    codes.extend(each_setting_of_the_issuer().await);
    codes.extend(OF_OTHER_SCENARIOS);
    let all = [
        JoseError::REASON_CODES,
        ClaimsError::REASON_CODES,
        VerifyError::REASON_CODES,
    ]
    .concat();
    assert_eq!(
        codes,
        all.iter().map(|(code, _)| *code).collect(),
        "each code has a row"
    );
}

/// Tokens whose signature is not that of a published key.
fn signatures(deployment: &Deployment, other: &TestIssuer, key_server: &Upstream) -> Vec<Row> {
    let token = || deployment.token();
    let good = token().sign();
    let attacker = TestIssuer::new("https://attacker.example").key();
    let url = format!("{}/jwks", key_server.origin());
    let confused = token().hmac_with_public_key();
    assert!(confused.len() >= 5, "PEM, DER, JWK, modulus and its text");
    let mut rows: Vec<Row> = confused
        .into_iter()
        .map(|token| {
            (
                "an HMAC with the public key",
                token,
                "token.algorithm_unsupported",
            )
        })
        .collect();
    rows.extend([
        (
            "no algorithm, with a signature",
            token().alg("none").sign(),
            "token.algorithm_unsupported",
        ),
        (
            "no algorithm, unsigned",
            token().unsigned("none"),
            "token.malformed",
        ),
        (
            "another algorithm",
            token().alg("RS512").sign(),
            "token.algorithm_not_allowed",
        ),
        (
            "a key that is not published",
            token()
                .signed_by(deployment.test_issuer.key_for(Algorithm::Es256))
                .sign(),
            "token.algorithm_not_allowed",
        ),
        ("a changed bit", flip_signature(&good), "token.signature"),
        (
            "a key in the header",
            token().self_signed(&attacker),
            "token.signature",
        ),
        (
            "the URL of a key in the header",
            token()
                .signed_by(attacker)
                .header("jku", url.as_str())
                .header("x5u", url.as_str())
                .sign(),
            "token.signature",
        ),
        (
            "the key of another issuer",
            token().signed_by(other.key()).kid("rs256-0").sign(),
            "token.signature",
        ),
        (
            "an unknown key, named as a path",
            token().kid("../other.json").sign(),
            "token.key_unknown",
        ),
        (
            "two keys and no identifier",
            other.token().without_header("kid").sign(),
            "token.key_ambiguous",
        ),
    ]);
    rows
}

/// Tokens in another form, or with another header.
fn headers(deployment: &Deployment) -> Vec<Row> {
    let token = || deployment.token();
    let good = token().sign();
    let twice = r#"{"alg":"RS256","kid":"rs256-0","alg":"RS256"}"#;
    vec![
        (
            "too long",
            format!("{good}{}", "A".repeat(16 << 10)),
            "token.too_large",
        ),
        ("four segments", format!("{good}.AAAA"), "token.malformed"),
        (
            "encrypted",
            "eyJhbGciOiJkaXIifQ.AAAA.AAAA.AAAA.AAAA".to_owned(),
            "token.encrypted",
        ),
        (
            "no algorithm in the header",
            token().without_header("alg").sign(),
            "token.header_malformed",
        ),
        (
            "a member twice",
            token().raw_header(twice).sign(),
            "token.header_duplicate",
        ),
        (
            "a critical extension",
            token().header("crit", json!(["exp"])).sign(),
            "token.header_extension",
        ),
        (
            "the type of a logout token",
            token().typ("logout+jwt").sign(),
            "token.type_not_allowed",
        ),
    ]
}

/// Tokens with the right signature and other claims.
fn claims(deployment: &Deployment) -> Vec<Row> {
    let token = || deployment.token();
    let twice = r#"{"iss":"https://issuer.example","iss":"https://issuer.example"}"#;
    let not_utf8 = [
        br#"{"iss":"https://issuer.example","sub":""#,
        &b"\xff"[..],
        br#""}"#,
    ]
    .concat();
    let rows = [
        (
            "a claim twice",
            token().raw_payload(twice),
            "claims.not_an_object",
        ),
        (
            "not UTF-8",
            token().raw_payload(not_utf8),
            "claims.not_an_object",
        ),
        (
            "an issuer that is an array",
            token().claim("iss", json!(["https://issuer.example"])),
            "claims.type",
        ),
        ("a negative date", token().claim("exp", -1), "claims.date"),
        ("a malformed scope", token().scope("a\"b"), "claims.scope"),
        ("no issuer", token().without("iss"), "token.issuer_missing"),
        (
            "an issuer with a slash",
            token().issuer("https://issuer.example/"),
            "token.issuer_unknown",
        ),
        (
            "an ID token",
            token().claim("at_hash", "x"),
            "token.not_an_access_token",
        ),
        (
            "bound to a key",
            token().claim("cnf", json!({ "jkt": "x" })),
            "token.sender_constrained",
        ),
        (
            "no audience",
            token().without("aud"),
            "token.audience_missing",
        ),
        (
            "another resource",
            token().audience("http://127.0.0.1:3000/mcp2"),
            "token.audience_mismatch",
        ),
        (
            "the address behind the URL",
            token().audience(address(deployment)),
            "token.audience_mismatch",
        ),
        ("no expiry", token().without("exp"), "token.expiry_missing"),
        ("expired", token().expires_in(-11), "token.expired"),
        (
            "not valid yet",
            token().not_before_in(30),
            "token.not_yet_valid",
        ),
        (
            "issued in the future",
            token().issued_in(30),
            "token.issued_in_future",
        ),
    ];
    rows.map(|(class, token, code)| (class, token.sign(), code))
        .into()
}

/// Returns the URL at which the server listens, which is not that of the resource.
fn address(deployment: &Deployment) -> String {
    format!("http://{}/mcp", deployment.portcullis.address())
}

/// Rejects tokens that only a setting of the issuer forbids, and accepts those that one allows.
/// Returns the codes.
async fn each_setting_of_the_issuer() -> Vec<&'static str> {
    let settings = "leeway = \"0s\"\nmax_lifetime = \"10m\"\nrequire_at_jwt = true\nalgorithms = [\"RS256\", \"RS512\"]\n\
                    audiences = [\"https://mcp.example.com/mcp\"]";
    let deployment = Deployment::builder().issuer(settings).start().await;
    let token = || deployment.token().typ("at+jwt");
    deployment
        .assert_accepted("five minutes", &token().sign())
        .await;
    deployment
        .assert_accepted(
            "a listed audience",
            &token().audience("https://mcp.example.com/mcp/").sign(),
        )
        .await;
    let rows = [
        ("just past", token().expires_in(-1), "token.expired"),
        (
            "too long",
            token().expires_in(601),
            "token.lifetime_too_long",
        ),
        (
            "of unknown lifetime",
            token().without("iat"),
            "token.issued_at_missing",
        ),
        (
            "not typed as access token",
            token().typ("JWT"),
            "token.type_not_allowed",
        ),
        (
            "an algorithm that the key is not published for",
            token().alg("RS512"),
            "token.key_unknown",
        ),
        (
            "a part of an audience",
            token().audience("https://mcp.example.com/"),
            "token.audience_mismatch",
        ),
    ];
    let codes = rows.iter().map(|(_, _, code)| *code).collect();
    deployment
        .assert_rejected(rows.map(|(class, token, code)| (class, token.sign(), code)))
        .await;
    codes
}

/// C7: within the leeway, a token is accepted.
#[tokio::test]
async fn clocks_that_differ_a_little() {
    let deployment = Deployment::start().await;
    deployment
        .assert_accepted("just past", &deployment.token().expires_in(-5).sign())
        .await;
    deployment
        .assert_accepted(
            "just ahead",
            &deployment.token().not_before_in(5).issued_in(5).sign(),
        )
        .await;
}
