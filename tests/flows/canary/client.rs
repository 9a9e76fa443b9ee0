//! The client's secrets, codes and tokens in its own output.

use http::Response;
use portcullis_scenarios::{Portcullis, RecordedRequest, ResponseBody, Scratch, Upstream};
use portcullis_testkit::Canaries;
use serde_json::{Value, json};

use super::JSON;

/// J2: a complete sign-in and call of the client. The server's tokens and codes are canaries.
#[tokio::test]
async fn client() {
    let server = Upstream::scripted(|request| Some(well_behaved_server(request))).await;
    let endpoint = format!("{}/mcp?key=canary-of-the-query", server.origin());
    let store = Scratch::path_for("store");
    for format in ["json", "human"] {
        let arguments = [
            "call",
            "--auto-consent",
            "--store",
            store.as_str(),
            "--log-format",
            format,
            &endpoint,
            "tools/list",
        ];
        let finished = Portcullis::run_with(&arguments, &[("PORTCULLIS_LOG", "trace")]).await;
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let mut canaries = Canaries::from_iter([
            ("the code", "canary-of-the-code"),
            ("the access token", "canary-of-the-access-token"),
            ("the refresh token", "canary-of-the-refresh-token"),
            ("the client's secret", "canary-of-the-client-secret"),
            ("the session", "canary-of-the-session"),
            ("the query", "canary-of-the-query"),
        ]);
        let mut seen = Vec::new();
        for request in server.recorded() {
            let form = format!(
                "{}&{}",
                request.target,
                String::from_utf8_lossy(&request.body)
            );
            for name in ["state", "code_verifier", "code_challenge"] {
                if let Some(secret) = form
                    .split(['?', '&'])
                    .find_map(|pair| pair.strip_prefix(&format!("{name}=")))
                {
                    canaries.add(name, secret);
                    seen.push(name);
                }
            }
        }
        assert!(
            ["state", "code_verifier"]
                .iter()
                .all(|name| seen.contains(name)),
            "{seen:?}"
        );
        let authorized = server.last();
        assert_eq!(
            authorized.header("authorization"),
            Some("Bearer canary-of-the-access-token")
        );
        assert!(
            finished.stderr.contains("/token"),
            "the requests are in the log: {finished:?}"
        );
        canaries.assert_absent(
            "what the client writes",
            &format!("{}\n{}", finished.stderr, finished.stdout),
        );
    }
}

/// A protected server and its authorization server in one.
fn well_behaved_server(request: &RecordedRequest) -> Response<ResponseBody> {
    let origin = format!("http://{}", request.header("host").unwrap());
    let path = request.target.split('?').next().unwrap();
    let json = |body: Value| Upstream::response(200, &[JSON], body.to_string());
    match path {
        "/.well-known/prm" => json(json!({
            "resource": format!("{origin}/mcp?key=canary-of-the-query"),
            "authorization_servers": [origin],
        })),
        "/.well-known/oauth-authorization-server" => json(json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "registration_endpoint": format!("{origin}/register"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        })),
        "/register" => {
            let mut client: Value = serde_json::from_slice(&request.body).unwrap();
            client["client_id"] = "a-client".into();
            client["client_secret"] = "canary-of-the-client-secret".into();
            client["client_secret_expires_at"] = 0.into();
            client["token_endpoint_auth_method"] = "client_secret_post".into();
            Upstream::response(201, &[JSON], client.to_string())
        }
        "/authorize" => {
            let state = request
                .target
                .split(['?', '&'])
                .find_map(|pair| pair.strip_prefix("state="))
                .unwrap();
            let back = format!("http://127.0.0.1/callback?code=canary-of-the-code&state={state}");
            Upstream::response(302, &[("location", &back)], "")
        }
        "/token" => json(json!({
            "access_token": "canary-of-the-access-token",
            "refresh_token": "canary-of-the-refresh-token",
            "token_type": "Bearer",
            "expires_in": 300,
        })),
        "/mcp" if request.header("authorization").is_none() => {
            let challenge = format!("Bearer resource_metadata=\"{origin}/.well-known/prm\"");
            Upstream::response(401, &[("www-authenticate", &challenge)], "")
        }
        "/mcp" => {
            let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let result =
                json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "tools": [] });
            let response = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            let session = ("mcp-session-id", "canary-of-the-session");
            let status = if message.get("id").is_some() {
                200
            } else {
                202
            };
            Upstream::response(status, &[JSON, session], response.to_string())
        }
        _ => Upstream::response(404, &[], ""),
    }
}
