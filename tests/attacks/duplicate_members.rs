//! Duplicate members, of which two parsers could use different ones (RFC 7519 section 4, RFC 8725 section 2.4).

use portcullis_scenarios::{Deployment, INITIALIZE, Request};

/// C2: a repeated header member is rejected, even with escapes.
#[tokio::test]
async fn in_the_header() {
    let deployment = Deployment::start().await;
    let token = deployment.token();
    for (case, header) in [
        ("alg", r#"{"alg":"RS256","alg":"none","kid":"rs256-0"}"#),
        ("alg, the valid one last", r#"{"alg":"none","kid":"rs256-0","alg":"RS256"}"#),
        ("the same alg", r#"{"alg":"RS256","kid":"rs256-0","alg":"RS256"}"#),
        ("an escaped alg", r#"{"alg":"RS256","kid":"rs256-0","\u0061lg":"none"}"#),
        ("kid", r#"{"alg":"RS256","kid":"rs256-0","kid":"other"}"#),
        ("typ", r#"{"alg":"RS256","kid":"rs256-0","typ":"JWT","typ":"at+jwt"}"#),
        ("an unknown member", r#"{"alg":"RS256","kid":"rs256-0","x":1,"x":2}"#),
    ] {
        deployment.assert_rejected([(case, token.clone().raw_header(header).sign(), "token.header_duplicate")]).await;
    }
}

/// C5, C6, C7: a repeated claim that the verifier reads is rejected.
#[tokio::test]
async fn in_the_claims() {
    let deployment = Deployment::start().await;
    let token = deployment.token();
    let claims = |more: &str| {
        let aud = Deployment::RESOURCE;
        format!(
            r#"{{"iss":"https://issuer.example","aud":"{aud}","sub":"alice","exp":4102444800,"scope":"mcp:tools"{more}}}"#
        )
    };
    deployment.assert_accepted("each claim once", &token.clone().raw_payload(claims("")).sign()).await;

    for more in [
        r#","iss":"https://issuer.example""#,
        r#","iss":"https://attacker.example""#,
        r#","\u0069ss":"https://attacker.example""#,
        r#","aud":"https://elsewhere.example""#,
        r#","sub":"mallory""#,
        r#","exp":4102444801"#,
        r#","scope":"mcp:admin""#,
        r#","cnf":null,"cnf":{"jkt":"x"}"#,
    ] {
        let token = token.clone().raw_payload(claims(more)).sign();
        deployment.assert_rejected([(more, token, "claims.not_an_object")]).await;
    }
}

/// F4, F5: duplicate members of a message are rejected, and so are members that differ only in letter case.
#[tokio::test]
async fn in_the_message() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let before = deployment.upstream.count();
    for (body, code) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}"#, "message.duplicate_member"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}"#, "message.duplicate_member"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","\u006dethod":"x"}"#, "message.duplicate_member"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            "message.duplicate_member",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"params":{"name":"b"}}"#,
            "message.duplicate_member",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"tools/call"}"#, "message.look_alike_member"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","NAME":"b"}}"#,
            "message.look_alike_member",
        ),
    ] {
        let response =
            deployment.send(Request::post(Deployment::ENDPOINT, body).bearer(&token).session(&session)).await;
        response.assert_rpc_error(400, -32600);
        deployment.portcullis.assert_denied(&response, code).await;
    }
    assert_eq!(deployment.upstream.count(), before, "a request reached the upstream");

    let twice = Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&token).session(&session).session(&session);
    let response = deployment.send(twice).await;
    response.assert_no_session();
    deployment.portcullis.assert_denied(&response, "session.repeated").await;
}
