//! JSON that nests without end, to use up a stack or a core.

use portcullis_scenarios::{Request, Site};

fn nested(depth: usize, open: &str, close: &str) -> String {
    let inner = format!("{}1{}", open.repeat(depth), close.repeat(depth));
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"x":{inner}}}}}"#)
}

/// F4: depth is bounded, in arrays and objects, and a hundred thousand levels are refused as quickly as a hundred.
#[tokio::test]
async fn in_the_body() {
    let site = Site::start().await;
    let token = site.good_token();
    let session = site.open_session(&token).await;
    let send =
        async |body: String| site.send(Request::post(Site::ENDPOINT, body).bearer(&token).session(&session)).await;
    // Two levels are the message's own.
    assert_eq!(send(nested(62, "[", "]")).await.status, 200, "64 levels are allowed");
    let before = site.upstream.count();
    let mut denied = Vec::new();
    for (depth, open, close) in
        [(63, "[", "]"), (63, "{\"a\":", "}"), (100, "[", "]"), (100_000, "[", "]"), (100_000, "{\"a\":", "}")]
    {
        let answer = send(nested(depth, open, close)).await;
        answer.assert_rpc_error(400, -32600);
        denied.push((answer, "message.too_deep"));
    }
    let answer = send("[".repeat(1 << 20)).await;
    assert_eq!(answer.status, 400, "{answer:?}");
    let answer = send("{\"a\":".repeat(1 << 18)).await;
    assert_eq!(answer.status, 400, "{answer:?}");
    assert_eq!(site.upstream.count(), before, "a request reached the upstream");
    site.portcullis.assert_all_denied(&denied).await;
}

/// C9: a token that nests is judged or refused, and ends nothing.
#[tokio::test]
async fn in_the_token() {
    let site = Site::start().await;
    for depth in [200, 4000] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let header = format!(r#"{{"alg":"RS256","kid":"rs256-0","x":{deep}}}"#);
        site.assert_accepted("unknown header members are ignored", &site.token().raw_header(header).sign()).await;
        let payload = format!(r#"{{"iss":"https://issuer.example","x":{deep}}}"#);
        let answer = site.try_token(&site.token().raw_payload(payload).sign()).await;
        assert_eq!(answer.assert_unauthorized(), Some("invalid_token"), "payload, {depth}: {answer:?}");
    }
    site.assert_accepted("still alive", &site.good_token()).await;
}
