//! Public keys used as HMAC secrets, and other attempts to change the algorithm of a verification (RFC 8725 section
//! 2.1).

use portcullis_jose::Algorithm;
use portcullis_scenarios::Deployment;
use portcullis_testkit::{flip_payload, flip_signature};

/// C2: no form of the public key works as an HMAC secret.
#[tokio::test]
async fn hmac_keyed_by_the_public_key() {
    let deployment = Deployment::start().await;
    let tokens = deployment.token().hmac_with_public_key();
    assert!(tokens.len() >= 5, "PEM, DER, JWK, modulus and its text");
    deployment
        .assert_rejected(
            tokens
                .into_iter()
                .enumerate()
                .map(|(form, token)| (format!("form {form}"), token, "token.algorithm_unsupported")),
        )
        .await;
}

/// C2: an algorithm is accepted only if it is known, configured, and published for the key.
#[tokio::test]
async fn algorithms_that_are_not_allowed() {
    let deployment = Deployment::start().await;
    let token = deployment.token();
    let unsupported = ["HS256", "HS384", "HS512", "ES256K", "RS1", "rs256", "RS256 ", "", "RSA-OAEP"];
    deployment
        .assert_rejected(
            unsupported
                .map(|alg| (format!("alg {alg:?}"), token.clone().alg(alg).sign(), "token.algorithm_unsupported")),
        )
        .await;
    let not_allowed = ["RS384", "RS512", "PS256", "ES256", "EdDSA"];
    deployment
        .assert_rejected(
            not_allowed.map(|alg| (format!("alg {alg}"), token.clone().alg(alg).sign(), "token.algorithm_not_allowed")),
        )
        .await;
    let unpublished = deployment.test_issuer.key_for(Algorithm::Es256);
    deployment
        .assert_rejected([(
            "a key that is not published",
            token.signed_by(unpublished).sign(),
            "token.algorithm_not_allowed",
        )])
        .await;
}

/// C2: the pair of key and algorithm must be published, even if both algorithms are allowed.
#[tokio::test]
async fn another_allowed_algorithm_under_the_same_key() {
    let deployment =
        Deployment::builder().issuer("algorithms = [\"RS256\", \"RS512\", \"PS256\", \"ES256\"]").start().await;
    let token = deployment.token();
    let unpublished = deployment.test_issuer.key_for(Algorithm::Es256);
    deployment.assert_accepted("the published pair", &token.sign()).await;
    deployment
        .assert_rejected([
            ("RS512 under an RS256 key", token.clone().alg("RS512").sign(), "token.key_unknown"),
            ("PS256 under an RS256 key", token.clone().alg("PS256").sign(), "token.key_unknown"),
            ("ES256 under an RS256 kid", token.clone().alg("ES256").sign(), "token.key_unknown"),
            ("a key that is not published", token.clone().signed_by(unpublished).sign(), "token.key_unknown"),
        ])
        .await;
}

/// C2: one changed bit in the signature or in the signed part invalidates a token.
#[tokio::test]
async fn changed_after_signing() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let (rest, signature) = token.rsplit_once('.').unwrap();
    let other = deployment.token().subject("mallory").sign();
    let (other_rest, other_signature) = other.rsplit_once('.').unwrap();
    let (header, other_payload) = other_rest.split_once('.').unwrap();
    deployment
        .assert_rejected([
            ("signature", flip_signature(&token), "token.signature"),
            ("payload", format!("{header}.{other_payload}.{signature}"), "token.signature"),
            ("payload that is not JSON", flip_payload(&token), "claims.not_an_object"),
            ("another token's signature", format!("{rest}.{other_signature}"), "token.signature"),
            ("no signature", format!("{rest}."), "token.malformed"),
            ("half a signature", format!("{rest}.{}", &signature[..signature.len() / 2]), "token.signature"),
        ])
        .await;
}
