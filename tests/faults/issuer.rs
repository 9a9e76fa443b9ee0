//! Issuers that are unavailable, return, and change their keys.

use std::time::Instant;

use portcullis_scenarios::{AuthorizationServer, Deployment, Portcullis, Request};

/// A deployment whose only issuer publishes its keys over a socket.
async fn deployment_with(issuer: &AuthorizationServer) -> Deployment {
    let name = issuer.test_issuer().issuer().as_str();
    let table = format!("[[issuer]]\nissuer = \"{name}\"\njwks = {{ cooldown = \"1s\" }}");
    Deployment::builder()
        .tables(table)
        .resource(format!("issuers = [\"{name}\"]"))
        .start()
        .await
}

async fn keys_changed(portcullis: &Portcullis) {
    portcullis
        .logged("issuer keys changed", |line| {
            line["message"] == "issuer keys changed"
        })
        .await;
}

/// B2, C10: the server starts without the issuer and reports it. The issuer's tokens get 401
/// without `error` and with `Retry-After`, and are accepted once the issuer is available.
#[tokio::test]
async fn an_issuer_that_starts_later() {
    let mut issuer = AuthorizationServer::closed(Deployment::RESOURCE);
    let deployment = deployment_with(&issuer).await;
    let name = issuer.test_issuer().issuer().as_str().to_owned();
    let healthy = deployment.send(Request::new("GET", "/healthz")).await;
    assert_eq!(healthy.status, 200, "{healthy:?}");
    assert_eq!(healthy.text().as_str(), "ok\n", "{healthy:?}");

    let ready = deployment.send(Request::new("GET", "/readyz")).await;
    assert_eq!(ready.status, 503, "{ready:?}");
    assert_eq!(ready.json()["ready"], false);
    assert!(ready.text().contains(&name), "{ready:?}");

    let token = issuer.test_issuer().token().sign();
    let response = deployment.try_token(&token).await;
    assert_eq!(response.assert_unauthorized(), None, "{response:?}");
    assert!(
        response
            .header("retry-after")
            .is_some_and(|value| value.parse::<u32>().is_ok_and(|seconds| seconds > 0)),
        "{response:?}"
    );
    deployment
        .portcullis
        .assert_denied(&response, "issuer.unavailable")
        .await;

    let forged = issuer
        .test_issuer()
        .token()
        .issuer("https://elsewhere.example")
        .sign();
    deployment
        .assert_rejected([("another issuer", forged, "token.issuer_unknown")])
        .await;
    assert_eq!(
        deployment
            .send(Request::new("GET", Deployment::METADATA_PATH))
            .await
            .status,
        200,
        "clients can sign in"
    );
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );

    issuer.open();
    keys_changed(&deployment.portcullis).await;
    let ready = deployment.send(Request::new("GET", "/readyz")).await;
    assert_eq!(ready.status, 200, "{ready:?}");
    assert_eq!(ready.json()["ready"], serde_json::json!(true), "{ready:?}");
    deployment.assert_accepted("the same token", &token).await;
}

/// C10, C11: a rotated key is fetched once, for its first token. Tokens of the old key are rejected
/// from then on, including cached ones.
#[tokio::test]
async fn rotated_keys() {
    let issuer = AuthorizationServer::start(Deployment::RESOURCE);
    let deployment = deployment_with(&issuer).await;
    keys_changed(&deployment.portcullis).await;
    assert_eq!(issuer.key_requests(), 1);

    let old = issuer.test_issuer().token().sign();
    deployment.assert_accepted("the old key", &old).await;

    issuer.test_issuer().rotate();
    deployment.assert_accepted("cached", &old).await;
    deployment
        .assert_accepted("the new key", &issuer.test_issuer().token().sign())
        .await;
    assert_eq!(issuer.key_requests(), 2);
    deployment
        .assert_rejected([("the old key", old, "token.key_unknown")])
        .await;

    // Unknown keys cause at most one fetch per cooldown of 1 s.
    let unknown = (0..20).map(|number| {
        (
            number.to_string(),
            issuer
                .test_issuer()
                .token()
                .kid(&format!("k{number}"))
                .sign(),
            "token.key_unknown",
        )
    });
    let before = issuer.key_requests();
    let started = Instant::now();
    deployment.assert_rejected(unknown).await;

    let fetched = issuer.key_requests() - before;
    let most = started.elapsed().as_secs() + 1;
    assert!(
        fetched as u64 <= most,
        "{fetched} fetches for 20 tokens with unknown keys"
    );
}

/// C10: keys are fetched from the URL in the issuer's metadata or from a configured URL.
#[tokio::test]
async fn a_configured_jwks_uri() {
    let issuer = AuthorizationServer::start(Deployment::RESOURCE);
    let name = issuer.test_issuer().issuer();
    let keys = issuer.test_issuer().endpoint("jwks");
    let table = format!("[[issuer]]\nissuer = \"{name}\"\njwks_uri = \"{keys}\"");
    let deployment = Deployment::builder()
        .tables(table)
        .resource(format!("issuers = [\"{name}\"]"))
        .start()
        .await;
    keys_changed(&deployment.portcullis).await;
    deployment
        .assert_accepted("its token", &issuer.test_issuer().token().sign())
        .await;
}
