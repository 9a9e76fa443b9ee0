//! Credentials that two parsers could interpret differently.

use portcullis_scenarios::{Deployment, Http2, INITIALIZE, Request};

/// B2: several `Authorization` headers are rejected, even if one of them is valid.
#[tokio::test]
async fn several_headers() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let other = deployment.token().subject("mallory").sign();
    let bearer = |token: &str| format!("Bearer {token}");
    let mut denied = Vec::new();
    for values in [
        [bearer(&good), bearer(&good)],
        [bearer(&good), bearer(&other)],
        [bearer(&other), bearer(&good)],
        [bearer(&good), "Basic dTpw".to_owned()],
        ["Basic dTpw".to_owned(), bearer(&good)],
        [bearer(&good), String::new()],
    ] {
        let request = Request::post(Deployment::ENDPOINT, INITIALIZE);
        let request = values.iter().fold(request, |request, value| {
            request.header("Authorization", value)
        });
        let response = deployment.send(request).await;
        assert_eq!(
            response.assert_unauthorized(),
            Some("invalid_request"),
            "{response:?}"
        );
        denied.push((response, "bearer.repeated"));
    }
    let mut http2 = Http2::connect(deployment.portcullis.address()).await;
    let request = Http2::post(Deployment::ENDPOINT)
        .header("authorization", bearer(&good))
        .header("authorization", bearer(&good));
    let response = http2.send(request, INITIALIZE).await.unwrap();
    assert_eq!(
        response.assert_unauthorized(),
        Some("invalid_request"),
        "{response:?}"
    );
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
    deployment.portcullis.assert_all_denied(&denied).await;
}

/// B2: a Bearer that is not one well-formed token is `invalid_request`.
#[tokio::test]
async fn malformed_bearers() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let mut denied = Vec::new();
    for value in [
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Bearer {good} {good}"),
        format!("Bearer {good},"),
        format!("Bearer {good}, Bearer {good}"),
        format!("Bearer \"{good}\""),
        format!("Bearer token={good}"),
        format!("Bearer:{good}"),
        format!("Bearer\t{good}"),
        format!("Bearer {good}; x=y"),
        format!("Bearer {good}\u{e9}"),
        format!("Bearer {}", good.replace('.', "%2E")),
    ] {
        let response = deployment
            .send_as_new_client(
                Request::post(Deployment::ENDPOINT, INITIALIZE).header("Authorization", &value),
            )
            .await;
        assert_eq!(
            response.assert_unauthorized(),
            Some("invalid_request"),
            "{value}: {response:?}"
        );
        assert!(!response.text().contains(&good));
        denied.push((response, "bearer.malformed"));
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
    deployment.portcullis.assert_all_denied(&denied).await;
}

/// B2: without credentials, or with another scheme, the challenge has no `error`.
#[tokio::test]
async fn no_bearer() {
    let deployment = Deployment::start().await;
    let response = deployment
        .send(Request::post(Deployment::ENDPOINT, INITIALIZE))
        .await;
    assert_eq!(response.assert_unauthorized(), None, "{response:?}");
    deployment
        .portcullis
        .assert_denied(&response, "bearer.missing")
        .await;

    let good = deployment.good_token();
    for value in [
        "Basic dTpw",
        "Digest x",
        "",
        "DPoP abc",
        &good,
        &format!("Bearerx {good}"),
        &format!("X-Bearer {good}"),
    ] {
        let response = deployment
            .send(Request::post(Deployment::ENDPOINT, INITIALIZE).header("Authorization", value))
            .await;
        assert_eq!(
            response.assert_unauthorized(),
            None,
            "{value}: {response:?}"
        );
        deployment
            .portcullis
            .assert_denied(&response, "bearer.other_scheme")
            .await;
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );

    let response = deployment
        .send(
            Request::post(Deployment::ENDPOINT, INITIALIZE)
                .header("Authorization", format!("bEARER   {good}")),
        )
        .await;
    assert_eq!(
        response.status, 200,
        "the scheme is case-insensitive: {response:?}"
    );
}

/// C9: a token in the body, in a cookie, or in another header is ignored.
#[tokio::test]
async fn tokens_in_other_places() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let form = Request::new("POST", Deployment::ENDPOINT)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body(format!("access_token={good}"));
    let post = || Request::post(Deployment::ENDPOINT, INITIALIZE);
    let mut denied = Vec::new();
    for request in [
        form,
        post().header("Cookie", format!("access_token={good}")),
        post().header("Proxy-Authorization", format!("Bearer {good}")),
        post().header("X-Authorization", format!("Bearer {good}")),
        post().header("X-Forwarded-Authorization", format!("Bearer {good}")),
        post().header("Authorization_", format!("Bearer {good}")),
        post().header("DPoP", &good),
    ] {
        let response = deployment.send(request).await;
        assert_eq!(response.assert_unauthorized(), None, "{response:?}");
        denied.push((response, "bearer.missing"));
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
    deployment.portcullis.assert_all_denied(&denied).await;
}
