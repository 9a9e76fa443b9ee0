//! Tokens in the query, which logs and caches store (RFC 6750 section 2.3, RFC 9700 section 4.3.2).

use portcullis_scenarios::{Deployment, INITIALIZE, Request};

/// Spellings of the name, of which the last two are read as the name only by lenient upstreams.
const SPELLINGS: &[&str] = &[
    "access_token",
    "Access_Token",
    "access%5Ftoken",
    "%61ccess_token",
    "%61%63cess%5ftoken",
    "+access_token",
    "%20access_token",
];

/// F9: a token in the query is never used. Without a valid bearer token, the response is 401 with
/// `invalid_request`.
#[tokio::test]
async fn without_a_valid_bearer() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let expired = deployment.token().expires_in(-60).sign();
    let mut denied = Vec::new();
    for name in SPELLINGS {
        for query in [
            format!("{name}={good}"),
            format!("a=1&{name}={good}"),
            format!("a=1;{name}={good}"),
            (*name).to_owned(),
        ] {
            let target = format!("{}?{query}", Deployment::ENDPOINT);
            let post = || Request::post(&target, INITIALIZE);
            for request in [
                post(),
                post().bearer(&expired),
                post().header("Authorization", "Basic dTpw"),
            ] {
                let response = deployment.send_as_new_client(request).await;
                assert_eq!(
                    response.assert_unauthorized(),
                    Some("invalid_request"),
                    "{target}: {response:?}"
                );
                assert!(!format!("{response:?}").contains(&good));
                denied.push((response, "bearer.in_query"));
            }
        }
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
    deployment.portcullis.assert_all_denied(&denied).await;
    let finished = deployment.portcullis.stop().await;
    assert!(!finished.stderr.contains(&good), "the token is in the log");
}

/// F9: with a valid bearer token, the response is 400, and nothing is forwarded.
#[tokio::test]
async fn beside_a_valid_bearer() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let mut denied = Vec::new();
    for name in SPELLINGS {
        let target = format!("{}?{name}={good}", Deployment::ENDPOINT);
        let response = deployment
            .send(Request::post(&target, INITIALIZE).bearer(&good))
            .await;
        assert_eq!(response.status, 400, "{target}: {response:?}");
        assert_eq!(response.count("www-authenticate"), 0, "{response:?}");
        denied.push((response, "bearer.in_query"));
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
    deployment.portcullis.assert_all_denied(&denied).await;
    let finished = deployment.portcullis.stop().await;
    assert!(!finished.stderr.contains(&good), "the token is in the log");
}

/// F9: parameters with other names are forwarded unchanged.
#[tokio::test]
async fn forwarded_queries() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    for query in ["a=1&b=%20", "my_access_token=1", "access_token_hint=1"] {
        let target = format!("{}?{query}", Deployment::ENDPOINT);
        let response = deployment
            .send(Request::post(&target, INITIALIZE).bearer(&good))
            .await;
        assert_eq!(response.status, 200, "{query}: {response:?}");
        assert_eq!(
            deployment.upstream.last().target,
            format!("/backend?{query}"),
            "{query}"
        );
    }
}
