//! DPoP binds tokens to a key (RFC 9449); invalid and repeated proofs are rejected.

use std::time::Duration;

use http::{Method, StatusCode};
use portcullis_devidp::ClientSettings;
use portcullis_jose::{DpopKey, DpopProof};
use portcullis_metadata::{Clock, Secret, authorization::PkceVerifier};
use serde_json::json;

use crate::support::*;

/// Returns a changed proof for the token endpoint.
fn proof(
    server: &Server,
    key: &DpopKey,
    change: impl for<'a> FnOnce(&mut DpopProof<'a>),
) -> String {
    let id = PkceVerifier::generate().unwrap();
    let url = format!("{}/token", server.issuer);
    let issued_at = server.clock.now();
    let mut proof = DpopProof {
        id: id.secret(),
        method: "POST",
        url: &url,
        issued_at,
        nonce: None,
        access_token: None,
    };
    change(&mut proof);
    key.proof(&proof).unwrap()
}

async fn send(server: &Server, proof: &str, parameters: &[(&str, &str)]) -> Response {
    server
        .send(
            Method::POST,
            "/token",
            &[FORM, ("dpop", proof)],
            &encoded(parameters),
        )
        .await
}

/// K1: a token is bound to the key of the proof, and the token type and introspection report it.
#[tokio::test]
async fn a_proof_binds_the_token_to_its_key() {
    let server = Server::start(|settings| {
        settings.auto_consent = true;
        let resource = ClientSettings::with_secret("resource", Secret::new("hush"));
        settings.clients = vec![ClientSettings {
            may_introspect: true,
            ..resource
        }];
    })
    .await;
    let client = server.register().await;
    let verifier = verifier();
    let key = DpopKey::generate().unwrap();
    let code = server.code(&client, &verifier).await;
    let response = send(
        &server,
        &proof(&server, &key, |_| ()),
        &token_request(&client, &code, &verifier),
    )
    .await;
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(&*response.text("token_type"), "DPoP");
    assert!(response.header("dpop-nonce").is_none());

    let token = response.text("access_token");
    let claims = claims(&token);
    assert_eq!(claims["cnf"], json!({ "jkt": key.thumbprint() }));
    assert_eq!(claims["typ"], "DPoP");

    let form = encoded(&[
        ("token", &token),
        ("client_id", "resource"),
        ("client_secret", "hush"),
    ]);
    let introspection = server
        .send(Method::POST, "/introspect", &[FORM], &form)
        .await
        .json();
    assert_eq!(introspection["token_type"], "DPoP");
    assert_eq!(introspection["cnf"]["jkt"], json!(key.thumbprint()));

    let metadata = server
        .get("/.well-known/oauth-authorization-server")
        .await
        .json();
    assert!(
        metadata["dpop_signing_alg_values_supported"]
            .as_array()
            .unwrap()
            .contains(&json!("ES256"))
    );
}

/// K1: a proof for another request, a proof from another time, and a used proof are rejected.
#[tokio::test]
async fn invalid_proofs_are_rejected() {
    let server = Server::with_auto_consent().await;
    let client = server.register().await;
    let verifier = verifier();
    let key = DpopKey::generate().unwrap();
    let code = server.code(&client, &verifier).await;
    let parameters = token_request(&client, &code, &verifier);
    let now = server.clock.now();
    let assert_rejected = async |proof: &str| {
        let response = send(&server, proof, &parameters).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{proof}");
        assert_eq!(&*response.error(), "invalid_dpop_proof", "{proof}");
    };
    assert_rejected(&proof(&server, &key, |proof| proof.method = "GET")).await;
    assert_rejected(&proof(&server, &key, |proof| {
        proof.url = "http://127.0.0.1:1/token"
    }))
    .await;
    assert_rejected(&proof(&server, &key, |proof| proof.url = "/token")).await;
    assert_rejected(&proof(&server, &key, |proof| {
        proof.issued_at = now.saturating_sub(Duration::from_secs(61))
    }))
    .await;
    assert_rejected(&proof(&server, &key, |proof| {
        proof.issued_at = now.saturating_add(Duration::from_secs(61))
    }))
    .await;
    assert_rejected("rubbish").await;

    let twice = [
        FORM,
        ("dpop", &*proof(&server, &key, |_| ())),
        ("dpop", "x"),
    ];
    let response = server
        .send(Method::POST, "/token", &twice, &encoded(&parameters))
        .await;
    assert_eq!(response.error(), "invalid_dpop_proof");

    let good = proof(&server, &key, |proof| {
        proof.issued_at = now.saturating_add(Duration::from_secs(60))
    });
    let wrong = changed(&parameters, "client_id", "unknown");
    assert_eq!(send(&server, &good, &wrong).await.error(), "invalid_client");
    assert_rejected(&good).await;

    server.clock.advance(Duration::from_secs(59));
    assert_rejected(&good).await;
    let url = format!("{}/token?a=b#c", server.issuer);
    let fresh = proof(&server, &key, |_| ());
    assert_eq!(
        send(&server, &fresh, &parameters).await.status,
        StatusCode::OK,
        "none of these touched the code"
    );

    let queried = key.proof(&DpopProof {
        id: "other",
        method: "POST",
        url: &url,
        issued_at: server.clock.now(),
        nonce: None,
        access_token: None,
    });
    let response = send(&server, &queried.unwrap(), &parameters).await;
    assert_eq!(
        response.error(),
        "invalid_grant",
        "query and fragment are not compared"
    );
}

/// K1: a used proof is remembered until it expires, even if it is as old as allowed.
#[tokio::test]
async fn a_used_proof_is_remembered_until_it_expires() {
    let server = Server::with_auto_consent().await;
    let client = server.register().await;
    let key = DpopKey::generate().unwrap();
    let ahead = server.clock.now().saturating_add(Duration::from_secs(60));
    let early = proof(&server, &key, |proof| proof.issued_at = ahead);
    let parameters = [
        ("grant_type", "refresh_token"),
        ("client_id", &*client),
        ("refresh_token", "x"),
    ];
    assert_eq!(
        send(&server, &early, &parameters).await.error(),
        "unauthorized_client"
    );
    server.clock.advance(Duration::from_secs(120));
    let response = send(&server, &early, &parameters).await;
    assert!(
        response.text("error_description").contains("used before"),
        "{}",
        response.body
    );
    server.clock.advance(Duration::from_secs(1));
    let response = send(&server, &early, &parameters).await;
    assert!(
        response
            .text("error_description")
            .contains("at most a minute"),
        "{}",
        response.body
    );
}

/// K1: if nonces are required, the response to a proof without the current nonce contains it.
#[tokio::test]
async fn a_nonce_is_required() {
    let server = Server::start(|settings| {
        settings.auto_consent = true;
        settings.dpop_nonces = true;
    })
    .await;
    let client = server.register().await;
    let verifier = verifier();
    let key = DpopKey::generate().unwrap();
    let code = server.code(&client, &verifier).await;
    let parameters = token_request(&client, &code, &verifier);
    let mut nonce = String::new();
    for wrong in [None, Some("wrong")] {
        let response = send(
            &server,
            &proof(&server, &key, |proof| proof.nonce = wrong),
            &parameters,
        )
        .await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST);
        assert_eq!(&*response.error(), "use_dpop_nonce");
        assert!(
            response
                .header("access-control-expose-headers")
                .unwrap()
                .contains("dpop-nonce")
        );
        nonce = response.header("dpop-nonce").unwrap().to_owned();
    }
    let with_nonce = |server: &Server| {
        let url = format!("{}/token", server.issuer);
        let id = PkceVerifier::generate().unwrap();
        let issued_at = server.clock.now();
        let id = id.secret();
        let nonce = Some(&*nonce);
        key.proof(&DpopProof {
            id,
            method: "POST",
            url: &url,
            issued_at,
            nonce,
            access_token: None,
        })
        .unwrap()
    };
    server.clock.advance(Duration::from_secs(30));
    let response = send(&server, &with_nonce(&server), &parameters).await;
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(response.header("dpop-nonce"), Some(&*nonce));

    // The nonce is replaced every five minutes and accepted for another five minutes.
    let parameters = [
        ("grant_type", "refresh_token"),
        ("client_id", &*client),
        ("refresh_token", "x"),
    ];
    server.clock.advance(Duration::from_secs(270));
    let response = send(&server, &with_nonce(&server), &parameters).await;
    assert_eq!(response.error(), "unauthorized_client");
    assert_ne!(response.header("dpop-nonce"), Some(&*nonce));

    server.clock.advance(Duration::from_secs(300));
    assert_eq!(
        send(&server, &with_nonce(&server), &parameters)
            .await
            .error(),
        "use_dpop_nonce"
    );
}

/// K1: a code can be bound to a key, and a public client's refresh token is bound to it.
#[tokio::test]
async fn codes_and_refresh_tokens_are_bound() {
    let server = Server::with_auto_consent().await;
    let (client, _) = server.refreshable().await;
    let verifier = verifier();
    let key = DpopKey::generate().unwrap();
    let other = DpopKey::generate().unwrap();
    let parameters = changed(
        &authorization_request(&client, verifier.challenge()),
        "scope",
        "mcp:tools offline_access",
    );
    let parameters = [&parameters[..], &[("dpop_jkt", key.thumbprint())]].concat();
    for wrong in [None, Some(&other)] {
        let code = server
            .authorize(&parameters)
            .await
            .redirect_parameter("code")
            .unwrap();
        let parameters = token_request(&client, &code, &verifier);
        let response = match wrong {
            None => server.token(&parameters).await,
            Some(other) => send(&server, &proof(&server, other, |_| ()), &parameters).await,
        };
        assert_eq!(response.error(), "invalid_grant");
    }
    let code = server
        .authorize(&parameters)
        .await
        .redirect_parameter("code")
        .unwrap();
    let parameters = token_request(&client, &code, &verifier);
    let token = send(&server, &proof(&server, &key, |_| ()), &parameters)
        .await
        .text("refresh_token");

    let refresh = [
        ("grant_type", "refresh_token"),
        ("client_id", &*client),
        ("refresh_token", &*token),
    ];
    assert_eq!(server.token(&refresh).await.error(), "invalid_grant");
    assert_eq!(
        send(&server, &proof(&server, &other, |_| ()), &refresh)
            .await
            .error(),
        "invalid_grant"
    );
    let response = send(&server, &proof(&server, &key, |_| ()), &refresh).await;
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(&*response.text("token_type"), "DPoP");
    assert_eq!(
        claims(&response.text("access_token"))["cnf"]["jkt"],
        key.thumbprint()
    );

    let malformed = server
        .authorize(&changed(&parameters, "dpop_jkt", "short"))
        .await;
    assert_eq!(
        malformed.redirect_parameter("error").as_deref(),
        Some("invalid_request")
    );
}
