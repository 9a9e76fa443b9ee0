//! The axum example: the challenge, the metadata, a public path, and scopes by method.

use portcullis_discovery::{FetchRequest, UrlPolicy};

mod support;

#[allow(dead_code, reason = "its main is not called here")]
#[path = "../axum.rs"]
mod example;

/// B1, B9: the REST API responds with a challenge, with 403, or with the caller's name.
#[tokio::test]
async fn a_rest_api_behind_the_guard() {
    let (listener, base) = support::listener().await;
    let resource = format!("{base}/");
    let issuer = support::issuer(&resource).await;
    support::serve(
        listener,
        example::app(&resource, issuer.issuer().as_str()).unwrap(),
    );
    let url = || format!("{base}/reports").parse().unwrap();
    let get = || FetchRequest::get(url(), UrlPolicy::Operator);

    let denied = support::send(get(), None).await;
    assert_eq!(denied.status, 401);
    let challenge = denied.headers["www-authenticate"].to_str().unwrap();
    let metadata_url = format!("{base}/.well-known/oauth-protected-resource");
    assert!(
        challenge.contains(&format!("resource_metadata=\"{metadata_url}\"")),
        "{challenge}"
    );

    let metadata = support::send(
        FetchRequest::get(metadata_url.parse().unwrap(), UrlPolicy::Operator),
        None,
    )
    .await;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.body).unwrap();
    assert_eq!(metadata["resource"], resource.as_str());
    assert_eq!(
        metadata["scopes_supported"],
        serde_json::json!(["reports:read"])
    );

    let healthz = FetchRequest::get(
        format!("{base}/healthz").parse().unwrap(),
        UrlPolicy::Operator,
    );
    assert_eq!(support::send(healthz, None).await.status, 200);

    let reader = issuer.token().scope("reports:read").sign();
    let allowed = support::send(get(), Some(&reader)).await;
    assert_eq!(allowed.status.as_u16(), 200);
    assert_eq!(allowed.body[..], b"alice"[..]);

    let post = FetchRequest::post_json(url(), "{}", UrlPolicy::Operator);
    assert_eq!(support::send(post.clone(), Some(&reader)).await.status, 403);
    let writer = issuer.token().scope("reports:read reports:write").sign();
    assert_eq!(support::send(post, Some(&writer)).await.status, 200);
}

/// The example stays short: its `app` has at most 15 lines.
#[test]
fn the_example_is_short() {
    support::assert_short(include_str!("../axum.rs"));
}
