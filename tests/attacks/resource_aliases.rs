//! Other spellings of a protected resource's URI that a server could accept.

use portcullis_scenarios::{Deployment, HttpResponse, Request, call_message, modern_call_message};
use serde_json::json;

const RULES: &str = r#"
required_scopes = ["mcp:tools"]

[[resource.rule]]
method = "resources/*"
name = "file:///secret/*"
scopes = ["mcp:admin"]

[[resource.rule]]
method = "subscriptions/listen"
name = "file:///secret/*"
scopes = ["mcp:admin"]
"#;

fn read(uri: &str) -> String {
    call_message(7, "resources/read", &json!({ "uri": uri }))
}

/// A deployment with [`RULES`], and a session without the scope for the protected resource.
struct Attack {
    deployment: Deployment,
    token: String,
    session: String,
    /// The responses to denied requests, and their reasons.
    denied: Vec<(HttpResponse, &'static str)>,
    /// The requests that reached the upstream before.
    forwarded: usize,
}

impl Attack {
    async fn start() -> Self {
        let deployment = Deployment::builder().resource(RULES).start().await;
        let token = deployment.good_token();
        let session = deployment.open_session(&token).await;
        let forwarded = deployment.upstream.count();
        Self {
            deployment,
            token,
            session,
            denied: Vec::new(),
            forwarded,
        }
    }

    /// Sends a message in the session.
    async fn post(&self, message: String) -> HttpResponse {
        let request = Request::post(Deployment::ENDPOINT, message)
            .bearer(&self.token)
            .session(&self.session);
        self.deployment.send(request).await
    }

    /// Asserts that a response is the JSON-RPC error for an ambiguous URI.
    fn assert_ambiguous(&mut self, response: HttpResponse, id: u64, code: &'static str) {
        response.assert_rpc_error(400, -32602);
        assert_eq!(response.json()["id"], id, "{response:?}");
        self.denied.push((response, code));
    }

    /// Asserts that no request has reached the upstream, and that the log has the reasons.
    async fn finish(self) {
        assert_eq!(
            self.deployment.upstream.count(),
            self.forwarded,
            "a request reached the upstream"
        );
        self.deployment
            .portcullis
            .assert_all_denied(&self.denied)
            .await;
    }
}

/// F12: a rule for a URI applies to each spelling that servers treat as the same resource.
#[tokio::test]
async fn of_a_protected_resource() {
    let mut attack = Attack::start().await;
    for alias in [
        "file:///secret/x",
        "FILE:///Secret/x",
        "file://localhost/secret/x",
        "file:/secret/x",
        "file:secret/x",
        "file:///%73ecret/x",
        "file:///sec%09ret/x",
        "%20file:///secret/x",
        "file:////secret/x",
        "file:///secret//x",
        "file:///%2573ecret/x",
        "file://host/secret/x",
    ] {
        let response = attack.post(read(alias)).await;
        assert_eq!(response.status, 403, "{alias}: {response:?}");
        assert_eq!(
            response.challenge("error"),
            Some("insufficient_scope"),
            "{alias}: {response:?}"
        );
        attack.denied.push((response, "scope.insufficient"));
    }
    attack.finish().await;
}

/// F12: a rule does not apply to other resources.
#[tokio::test]
async fn of_other_resources() {
    let attack = Attack::start().await;
    for uri in [
        "file:///public/x",
        "file:///secrets",
        "file:///C:/x",
        "note:a b",
        "https://host/?file:///secret",
        "https://host/?file=../secret",
        "%",
    ] {
        assert_eq!(attack.post(read(uri)).await.status, 200, "{uri}");
    }
}

/// F12: an allowed URI is forwarded unchanged.
#[tokio::test]
async fn with_the_scope() {
    let deployment = Deployment::builder().resource(RULES).start().await;
    let admin = deployment
        .test_issuer
        .token()
        .scope("mcp:tools mcp:admin")
        .sign();
    let session = deployment.open_session(&admin).await;
    let message = read("file://localhost//%73ecret/x");
    let request = Request::post(Deployment::ENDPOINT, message.clone())
        .bearer(&admin)
        .session(&session);
    let response = deployment.send(request).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(deployment.upstream.last().body, message);
}

/// F12: a URI that URL parsers modify is rejected with the request's id, in every member.
#[tokio::test]
async fn with_characters_that_parsers_remove() {
    let mut attack = Attack::start().await;
    for uri in [
        " file:///secret/x",
        "file:///secret/x ",
        "file:///sec\tret/x",
        "\nfile:///x",
        "file:///a\\..\\secret\\x",
        "\u{a0}note:x",
    ] {
        let response = attack.post(read(uri)).await;
        attack.assert_ambiguous(response, 7, "message.uri_characters");

        let params = json!({ "notifications": { "resourceSubscriptions": ["note:a", uri] } });
        let listen = Request::post(
            Deployment::ENDPOINT,
            modern_call_message(8, "subscriptions/listen", &params),
        )
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "subscriptions/listen")
        .bearer(&attack.token);
        let response = attack.deployment.send(listen).await;
        attack.assert_ambiguous(response, 8, "message.uri_characters");
    }
    attack.finish().await;
}

/// F12: a URI with dot segments is rejected, because servers resolve them differently.
#[tokio::test]
async fn with_dot_segments() {
    let mut attack = Attack::start().await;
    for uri in [
        "note://public/../secret",
        "note://public/%2e%2e/secret",
        "../secret/x",
        "my_app:../secret/x",
        "file:///public/../secret/x",
        "file:///public/%252E%252E/secret/x",
        "file:///public/..%2fsecret%2Fx",
        "file:///public/..%5Csecret/x",
        "file:///public//..//../secret/x",
        "file:///public/C:/../../secret/x",
        "file:///public/C|/%2e%2e/%2E./secret/x",
        "file:///public/C%3A/.%09./..%2fsecret/x",
        "file:///C:/../secret/x",
        "https://host/public/C:/../../secret/x",
        "file:///public/x?/../../../secret/x",
        "file:///public/x#/../../../secret/x",
    ] {
        let response = attack.post(read(uri)).await;
        attack.assert_ambiguous(response, 7, "message.uri_dot_segments");
    }
    attack.finish().await;
}

/// F12: a rule for a scheme that RFC 3986 does not allow applies to repeated slashes, too.
#[tokio::test]
async fn of_an_invalid_scheme() {
    let rule = "[[resource.rule]]\nmethod = \"resources/*\"\nname = \"my_app://host/secret/*\"\nscopes = [\"mcp:admin\"]";
    let deployment = Deployment::builder()
        .resource(format!("required_scopes = [\"mcp:tools\"]\n{rule}"))
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    for uri in [
        "my_app://host/secret/x",
        "my_app://host//secret/x",
        "my_app://host//secret//%78",
    ] {
        let request = Request::post(Deployment::ENDPOINT, read(uri))
            .bearer(&token)
            .session(&session);
        let response = deployment.send(request).await;
        assert_eq!(response.status, 403, "{uri}: {response:?}");
    }
}

/// F12: a rule for a URI applies to it with a port, a final dot of the host, parameters of
/// segments, and the other form of an internationalized host, in every combination.
#[tokio::test]
async fn with_parts_that_do_not_select() {
    let rule = |name: &str| {
        format!(
            "[[resource.rule]]\nmethod = \"resources/*\"\nname = \"{name}\"\nscopes = [\"mcp:admin\"]"
        )
    };
    let names = [
        "note://vault/*",
        "https://host:8443/secret/*",
        "note://b\u{fc}cher/*",
        "https://xn--ksten-gra.example/*",
    ];
    let rules = names.map(rule).join("\n");
    let deployment = Deployment::builder()
        .resource(format!("required_scopes = [\"mcp:tools\"]\n{rules}"))
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let before = deployment.upstream.count();
    let read = |uri: &str| {
        Request::post(Deployment::ENDPOINT, read(uri))
            .bearer(&token)
            .session(&session)
    };
    let mut denied = Vec::new();
    for alias in [
        "note://vault:80/x",
        "note://vault%3A80/x",
        "note://vault:99999/x",
        "note://vault./x",
        "note://u@VAULT%2e:80/x",
        "note://vault/;v/x",
        "https://host.:8443/secret/x",
        "https://host:8443/secret;v=1/x",
        "https://HOST.:8443/%73ecret%3Bv=1/x",
        "note://xn--bcher-kva/x",
        "note://B%C3%9CCHER.:80/x",
        "https://k\u{e4}sten.example/x",
        "https://K%C3%84STEN.example.:8443/x;v",
    ] {
        let response = deployment.send(read(alias)).await;
        assert_eq!(response.status, 403, "{alias}: {response:?}");
        denied.push((response, "scope.insufficient"));
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
    for other in [
        "note://vaults:80/x",
        "https://host./secrets;v/x",
        "note://b\u{fc}che/x",
        "note://public/a;v=1/b",
    ] {
        assert_eq!(deployment.send(read(other)).await.status, 200, "{other}");
    }
    deployment.portcullis.assert_all_denied(&denied).await;
}

/// F12: a URI with too many spellings is rejected.
#[tokio::test]
async fn with_nested_escapes() {
    let mut attack = Attack::start().await;
    let response = attack
        .post(read(&format!("file:///%{}2e", "25".repeat(150))))
        .await;
    attack.assert_ambiguous(response, 7, "message.uri_spellings");
    attack.finish().await;
}

/// F12: names of tools can have any form, and without rules for names every URI is forwarded.
#[tokio::test]
async fn only_uris_are_restricted() {
    let attack = Attack::start().await;
    let tool = call_message(
        1,
        "tools/call",
        &json!({ "name": " a\\\t", "arguments": {} }),
    );
    assert_eq!(attack.post(tool).await.status, 200);

    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let request = Request::post(Deployment::ENDPOINT, read(" file:///a\\b"))
        .bearer(&token)
        .session(&session);
    let response = deployment.send(request).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.json()["id"], 7);
}
