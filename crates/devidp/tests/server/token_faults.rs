//! Forged ID tokens, as a client must reject them.

use std::num::NonZeroU32;

use http::{Method, StatusCode};
use portcullis_devidp::{Fault, FaultError, FaultKind, FaultPoint, Provider, TokenFault};
use portcullis_jose::{Algorithm, AlgorithmSet, CompactJws, KeySet};
use portcullis_metadata::JwkSet;
use serde_json::{Value, json};

use crate::{sign_in::*, support::*};

fn once(kind: FaultKind) -> Fault {
    Fault {
        at: FaultPoint::IdToken,
        kind,
        times: NonZeroU32::new(1),
    }
}

/// Returns the header and the claims of a token without verification.
fn parts(token: &str) -> (Value, Value) {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    let part = |index| {
        let part = token.split('.').nth(index).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    (part(0), part(1))
}

async fn is_signed(server: &Server, token: &str) -> bool {
    let jwks = JwkSet::parse(server.get("/jwks").await.body.as_bytes()).unwrap();
    let algorithms = AlgorithmSet::from_iter([Algorithm::Rs256]);
    let (keys, _) = KeySet::from_jwks(&jwks, algorithms).unwrap();
    let compact = CompactJws::parse(token, 16 * 1024);
    compact.is_ok_and(|compact| keys.verify(&compact).is_ok())
}

/// Each fault of the claims changes one claim of one token, which is signed as always.
#[tokio::test]
async fn claims_can_be_forged() {
    let server = app_server(|_| {}).await;
    let request = [("scope", "openid"), ("nonce", "n")];
    for (fault, claim, forged) in [
        (
            FaultKind::Token(TokenFault::WrongAudience),
            "aud",
            json!("another-client"),
        ),
        (
            FaultKind::Token(TokenFault::WrongAuthorizedParty),
            "azp",
            json!("another-client"),
        ),
        (
            FaultKind::Token(TokenFault::WrongNonce),
            "nonce",
            json!("another-nonce"),
        ),
        (FaultKind::Token(TokenFault::NoNonce), "nonce", Value::Null),
        (
            FaultKind::Token(TokenFault::WrongSubject),
            "sub",
            json!("another-user"),
        ),
        (
            FaultKind::WrongIssuer,
            "iss",
            json!("https://wrong-issuer.example"),
        ),
    ] {
        server.control.inject(once(fault)).unwrap();
        let token = sign_in(&server, &request).await.text("id_token");
        assert!(is_signed(&server, &token).await, "{fault:?}");
        assert_eq!(parts(&token).1[claim], forged, "{fault:?}");
        let honest = sign_in(&server, &request).await.text("id_token");
        assert_ne!(parts(&honest).1[claim], forged, "{fault:?}");
    }

    let expired = FaultKind::Token(TokenFault::Expired);
    server.control.inject(once(expired)).unwrap();
    let token = sign_in(&server, &request).await.text("id_token");
    let (_, claims) = parts(&token);
    let auth_time = claims["auth_time"].as_u64().unwrap();
    assert_eq!(claims["exp"], auth_time - 3600);

    let none = FaultKind::Token(TokenFault::NoToken);
    server.control.inject(once(none)).unwrap();
    let response = sign_in(&server, &request).await;
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(response.json().get("id_token"), None);
}

/// No published key verifies a token with a forged signature.
#[tokio::test]
async fn signatures_can_be_forged() {
    let server = app_server(|_| {}).await;
    for (fault, algorithm, has_known_key) in [
        (TokenFault::AlgNone, "none", false),
        (TokenFault::UnknownKey, "RS256", false),
        (TokenFault::WrongSignature, "RS256", true),
    ] {
        server
            .control
            .inject(once(FaultKind::Token(fault)))
            .unwrap();
        let token = sign_in(&server, &[("scope", "openid")])
            .await
            .text("id_token");
        assert!(!is_signed(&server, &token).await, "{fault:?}");
        let (header, claims) = parts(&token);
        assert_eq!(header["alg"], algorithm);
        let jwks = server.get("/jwks").await.json();
        let known = jwks["keys"].as_array().unwrap();
        let is_known = known.iter().any(|key| key["kid"] == header["kid"]);
        assert_eq!(is_known, has_known_key, "{fault:?}");
        assert_eq!(claims["sub"], "alice");
        assert_eq!(token.ends_with('.'), fault == TokenFault::AlgNone);
    }
}

/// K1: a user with too many groups has a reference in place of them.
#[tokio::test]
async fn entra_can_leave_groups_out() {
    let server = app_server(|settings| {
        let mut alice = portcullis_devidp::UserSettings::new("alice");
        alice.claims.insert("groups".to_owned(), json!(["staff"]));
        settings.users = vec![alice];
        settings.provider = Some(Provider::Entra);
        settings.faults = vec![once(FaultKind::Token(TokenFault::GroupsOverage))];
    })
    .await;
    let response = sign_in(&server, &[("scope", "openid profile")]).await;
    let claims = id_token(&server, &response).await;
    assert_eq!(claims.get("groups"), None);
    assert_eq!(claims["_claim_names"], json!({ "groups": "src1" }));
    let object = claims["oid"].as_str().unwrap();
    let endpoint = format!("https://graph.microsoft.com/v1.0/users/{object}/getMemberObjects");
    assert_eq!(claims["_claim_sources"]["src1"]["endpoint"], endpoint);
}

/// Faults of tokens and faults of responses have their own points.
#[tokio::test]
async fn faults_are_only_valid_at_their_point() {
    let server = app_server(|settings| settings.admin = true).await;
    let control = &server.control;
    let token = FaultKind::Token(TokenFault::Expired);
    for (at, kind, error) in [
        (FaultPoint::IdToken, token, None),
        (FaultPoint::LogoutToken, token, None),
        (FaultPoint::LogoutToken, FaultKind::WrongIssuer, None),
        (FaultPoint::Token, token, Some(FaultError::Point)),
        (
            FaultPoint::IdToken,
            FaultKind::Drop,
            Some(FaultError::Point),
        ),
    ] {
        let fault = Fault {
            at,
            kind,
            times: None,
        };
        assert_eq!(control.inject(fault).err(), error, "{at:?} {kind:?}");
    }
    control.clear_faults();

    let inject = async |body: &str| {
        let response = server
            .send(Method::POST, "/admin/faults", &[JSON], body)
            .await;
        response.status
    };
    let names = [
        "wrong_audience",
        "wrong_azp",
        "wrong_nonce",
        "no_nonce",
        "wrong_subject",
        "expired",
        "alg_none",
        "unknown_key",
        "wrong_signature",
        "groups_overage",
        "no_token",
        "wrong_issuer",
    ];
    for name in names {
        let body = format!(r#"{{"at":"id_token","kind":"{name}","times":1}}"#);
        assert_eq!(inject(&body).await, StatusCode::NO_CONTENT, "{name}");
    }
    for bad in [
        r#"{"at":"id_token","kind":"wrong"}"#,
        r#"{"at":"id_token","kind":"expired","status":500}"#,
        r#"{"at":"token","kind":"expired"}"#,
    ] {
        assert_eq!(inject(bad).await, StatusCode::BAD_REQUEST, "{bad}");
    }
    assert_eq!(control.pending_faults(), names.len());
}
