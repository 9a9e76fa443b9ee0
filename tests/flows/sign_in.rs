//! `portcullis login` at authorization servers that differ from the profile.

use portcullis_scenarios::{Peer, PeerAnswer, PeerRequest, Portcullis, Scratch};
use serde_json::json;

/// An authorization server like that of the MCP Python SDK: it lists post and basic, and reads `client_id` from the body.
fn body_only(request: &PeerRequest) -> Option<PeerAnswer> {
    if request.is_for_server_metadata() {
        let mut metadata = request.server_metadata();
        metadata["token_endpoint_auth_methods_supported"] = json!(["client_secret_basic", "client_secret_post"]);
        return Some(request.json(metadata));
    }
    match request.path.as_str() {
        "/register" => {
            let message = request.message();
            Some(request.json(json!({
                "client_id": "me", "client_secret": "the-secret", "redirect_uris": message["redirect_uris"],
                "token_endpoint_auth_method": message["token_endpoint_auth_method"],
            })))
        }
        "/token" if request.form().get("client_id").is_none_or(|client_id| client_id != "me") => {
            let mut answer =
                request.json(json!({ "error": "invalid_client", "error_description": "Missing client_id" }));
            *answer.status_mut() = http::StatusCode::UNAUTHORIZED;
            Some(answer)
        }
        _ => None,
    }
}

/// I4: `client_id` is always in the body, post is preferred to basic, and `--token-auth-method` chooses.
#[tokio::test]
async fn a_server_that_reads_the_client_from_the_body() {
    for (options, is_basic) in [(&[][..], false), (&["--token-auth-method", "client_secret_basic"][..], true)] {
        let (peer, store) = (Peer::start(body_only).await, Scratch::path_for("store"));
        let url = peer.url("/mcp");
        let arguments = ["login", &url, "--auto-consent", "--store", store.as_str()];
        let login = Portcullis::run(&[&arguments[..], options].concat()).await;
        assert_eq!(login.code, Some(0), "{login:?}");
        let sent = &peer.requests("/token")[0];
        assert_eq!(sent.authorization.is_some(), is_basic);
        assert_eq!(sent.form().contains_key("client_secret"), !is_basic);
        assert_eq!(peer.requests("/token").len(), 1);
    }
    let peer = Peer::start(body_only).await;
    let doctor = Portcullis::run(&["doctor", &peer.url("/mcp"), "--json"]).await;
    assert!(doctor.stdout.contains("requires `client_id` in the body"), "{doctor:?}");
    let wrong = ["login", &peer.url("/mcp"), "--client-id", "me", "--token-auth-method", "client_secret_post"];
    let refused = Portcullis::run(&wrong).await;
    assert!(refused.code == Some(1) && refused.stderr.contains("needs --client-secret-file"), "{refused:?}");
}
