//! Introspected tokens of other uses, and tokens whose subject and client are empty.

use std::sync::Arc;

use parking_lot::Mutex;
use portcullis_scenarios::{Deployment, Upstream, modern_request};
use serde_json::{Value, json};

/// C4, D2: introspection reports refresh tokens and ID tokens as active. Such a response rejects an
/// opaque token and a signed one. E7, K2: an empty subject or client is none.
#[tokio::test]
async fn introspected_tokens_of_another_use() {
    let response = Arc::new(Mutex::new(Value::Null));
    let current = Arc::clone(&response);
    let server = Upstream::scripted(move |request| {
        let is_probe = String::from_utf8_lossy(&request.body).contains("portcullis-probe-");
        let body = if is_probe {
            json!({ "active": false })
        } else {
            current.lock().clone()
        };
        Some(Upstream::response(
            200,
            &[("content-type", "application/json")],
            body.to_string(),
        ))
    })
    .await;
    for validate in ["introspection", "jwt+introspection"] {
        let is_signed = validate == "jwt+introspection";
        let settings = format!(
            "validate = \"{validate}\"\nclient_id = \"portcullis\"\nintrospection_endpoint = \"{}/introspect\"\n\
             introspection_cache = \"0s\"",
            server.origin()
        );
        let builder = if is_signed {
            Deployment::builder().issuer(settings)
        } else {
            Deployment::builder().tables(format!(
                "[[issuer]]\nissuer = \"{}\"\n{settings}",
                server.origin()
            ))
        };
        let deployment = builder.start().await;
        let token = if is_signed {
            deployment.good_token()
        } else {
            "opaque-token".to_owned()
        };
        let send = async |members: Value| {
            *response.lock() = introspected(&members);
            let request =
                modern_request(Deployment::ENDPOINT, "tools/list", &json!({})).bearer(&token);
            deployment.send(request).await
        };
        for token_use in ["access", "access_token"] {
            assert_eq!(
                send(json!({ "token_use": token_use })).await.status,
                200,
                "{validate} {token_use}"
            );
        }
        let before = deployment.upstream.count();
        for members in [
            json!({ "token_use": "refresh_token" }),
            json!({ "token_use": "refresh" }),
            json!({ "token_use": "id_token" }),
            json!({ "token_use": "" }),
            json!({ "token_type": "refresh_token" }),
            json!({ "typ": "Refresh" }),
            json!({ "at_hash": "x" }),
        ] {
            let rejected = send(members.clone()).await;
            assert_eq!(rejected.status, 401, "{validate} {members}: {rejected:?}");
            deployment
                .portcullis
                .assert_denied(&rejected, "token.not_an_access_token")
                .await;
        }
        for wrong in [json!(["refresh"]), json!(1), Value::Null] {
            let rejected = send(json!({ "token_use": wrong })).await;
            assert_eq!(rejected.status, 401, "{validate} {wrong}: {rejected:?}");
        }
        assert_eq!(
            deployment.upstream.count(),
            before,
            "a request reached the upstream"
        );

        assert_eq!(
            send(json!({ "sub": "", "client_id": "" })).await.status,
            200
        );
        let forwarded = deployment.upstream.last();
        let subject = is_signed.then_some("alice");
        assert_eq!(
            forwarded.header("x-portcullis-subject"),
            subject,
            "{forwarded:?}"
        );
    }
}

/// E7: an empty subject or client of a signed token is none: it owns no sessions.
#[tokio::test]
async fn an_empty_subject_or_client_is_none() {
    let deployment = Deployment::builder()
        .issuer("subjectless = \"client\"")
        .start()
        .await;
    let token = |client: &str| deployment.token().subject("").client_id(client).sign();
    let response = deployment.try_token(&token("")).await;
    assert_eq!(response.status, 403, "{response:?}");
    deployment
        .portcullis
        .assert_denied(&response, "session.no_owner")
        .await;
    assert_eq!(deployment.upstream.count(), 0);
    assert_eq!(
        deployment.try_token(&token("editor")).await.status,
        200,
        "its client owns the session"
    );
    assert_eq!(
        deployment.upstream.last().header("x-portcullis-subject"),
        None
    );
}

/// Returns the response to the introspection of an access token, with other members.
fn introspected(members: &Value) -> Value {
    let mut response = json!({ "active": true, "aud": Deployment::RESOURCE, "sub": "alice", "client_id": "editor", "scope": "mcp:tools" });
    response
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    response
}
