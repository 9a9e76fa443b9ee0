//! Logs at level trace contain the required lines, and neither they nor the audit trail contain a
//! token, code, secret or query in any encoding.

mod client;
mod development_server;

use std::{fs, sync::Arc};

use http::Response;
use parking_lot::Mutex;
use portcullis_scenarios::{
    AuthorizationServer, Deployment, INITIALIZE, RecordedRequest, Request, ResponseBody, Scratch,
    Upstream, call_message, modern_request,
};
use portcullis_testkit::Canaries;
use serde_json::{Value, json};

const JSON: (&str, &str) = ("content-type", "application/json");

/// J1, J2, E3: every rejection and every accepted request, in both log formats and in the audit
/// trail.
#[tokio::test]
async fn guard_and_endpoint() {
    for format in ["json", "human"] {
        let audit = Scratch::path_for("audit.jsonl");
        let tables = format!("[audit]\ntarget = {{ file = \"{}\" }}", audit.as_str());
        let deployment = Deployment::builder()
            .tables(tables)
            .log_format(format)
            .start()
            .await;
        let token = deployment.token().claim("jti", "canary-claim").sign();
        let unscoped = deployment.test_issuer.token().sign();
        let expired = deployment.token().expires_in(-60).sign();
        let unknown_key = deployment.token().kid("canary-kid-is-public").sign();
        let session = deployment.open_session(&token).await;
        let target = "/mcp?key=canary-query&code=canary-code";
        let decorated = |request: Request| {
            request
                .header("Cookie", "canary-cookie")
                .header("DPoP", "canary-proof")
                .header("X-Custom", "canary-header")
                .header("Mcp-Param-Secret", "canary-parameter")
        };
        let post = |body: &str| decorated(Request::post(target, body));
        let tool = call_message(
            2,
            "tools/call",
            &json!({ "name": "x", "arguments": { "password": "canary-argument" } }),
        );
        let modern = modern_request(target, "tools/list", &json!({ "cursor": "canary-cursor" }));
        let cases = [
            (post(&tool).bearer(&token).session(&session), 200, None),
            (decorated(modern).bearer(&token), 200, None),
            (
                decorated(Request::new("GET", target))
                    .bearer(&token)
                    .session(&session),
                200,
                None,
            ),
            (post(&tool), 401, Some("bearer.missing")),
            (
                post(&tool).header("Authorization", "Basic canary-basic"),
                401,
                Some("bearer.other_scheme"),
            ),
            (
                post(&tool).header("Authorization", "Bearer canary one two"),
                401,
                Some("bearer.malformed"),
            ),
            (
                post(&tool).bearer(&token).bearer(&token),
                401,
                Some("bearer.repeated"),
            ),
            (
                post(&tool).bearer("canary-bad-token"),
                401,
                Some("token.malformed"),
            ),
            (
                post(&tool).bearer(&format!("{token}AAAA")),
                401,
                Some("token.signature"),
            ),
            (post(&tool).bearer(&expired), 401, Some("token.expired")),
            (
                post(&tool).bearer(&unknown_key),
                401,
                Some("token.key_unknown"),
            ),
            (
                Request::post("/mcp?access_token=canary-token", tool.as_str()),
                401,
                Some("bearer.in_query"),
            ),
            (
                Request::post("/mcp?access_token=canary-token", &*tool).bearer(&token),
                400,
                Some("bearer.in_query"),
            ),
            (
                post(INITIALIZE).bearer(&unscoped),
                403,
                Some("scope.insufficient"),
            ),
            (
                post(&tool).bearer(&token).session("canary-session"),
                400,
                Some("session.unknown"),
            ),
            (
                post("canary-body").bearer(&token).session(&session),
                400,
                Some("message."),
            ),
            (
                post(&tool)
                    .bearer(&token)
                    .header("Origin", "http://canary-origin.example"),
                403,
                Some("origin."),
            ),
            (
                decorated(Request::post("/elsewhere?key=canary-query", "canary-body")),
                404,
                Some("path.unknown"),
            ),
            (
                Request::new(
                    "GET",
                    "/.well-known/oauth-protected-resource?key=canary-query",
                ),
                200,
                None,
            ),
            (
                decorated(Request::new("DELETE", target))
                    .bearer(&token)
                    .session(&session),
                200,
                None,
            ),
        ];
        for (position, (request, status, code)) in cases.into_iter().enumerate() {
            let response = deployment.send(request).await;
            assert_eq!(
                response.status, status,
                "{format}, case {position}, {code:?}: {response:?}"
            );
            let id = response.header("x-request-id").expect("an id");
            let line = deployment
                .portcullis
                .logged_line(&["INFO", "latency.us", id])
                .await;
            let logged_status = match format {
                "json" => format!("\"http.status\":{status},"),
                _ => format!(" http.status={status} "),
            };
            assert!(line.contains(&logged_status), "{line}");
            assert_eq!(line.contains("deny.code"), code.is_some(), "{line}");
            assert!(line.contains(code.unwrap_or_default()), "{code:?}: {line}");
        }
        let finished = deployment.portcullis.stop().await;
        let secrets = [
            ("a token", &*token),
            ("a token without scopes", &*unscoped),
            ("an expired token", &*expired),
            ("a token of an unknown key", &*unknown_key),
            ("a session identifier", &*session),
        ];
        let planted = [
            "query",
            "code",
            "cookie",
            "proof",
            "header",
            "parameter",
            "argument",
            "cursor",
            "basic",
        ];
        let planted: Vec<_> = planted
            .iter()
            .map(|what| (*what, format!("canary-{what}")))
            .collect();
        let planted = planted
            .iter()
            .map(|(what, canary)| (*what, canary.as_str()));
        let more = [
            "canary one two",
            "canary-bad-token",
            "canary-token",
            "canary-session",
            "canary-body",
            "canary-claim",
        ];
        let canaries = Canaries::from_iter(
            secrets
                .into_iter()
                .chain(planted)
                .chain(more.map(|canary| (canary, canary))),
        );
        let trail = fs::read_to_string(audit.path()).unwrap();
        assert!(trail.lines().count() > 20, "there is something to search");
        assert!(
            finished.stderr.lines().count() > 20,
            "there is something to search"
        );
        canaries.assert_absent(&format!("the {format} log"), &finished.stderr);
        canaries.assert_absent("the audit trail", &trail);
        assert!(finished.stdout.is_empty(), "{}", finished.stdout);
    }
}

/// J2: the search detects an intentional leak: a secret in the path is logged, because paths are
/// not redacted.
#[tokio::test]
async fn a_planted_leak_is_found() {
    use base64::{
        Engine as _,
        engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
    };
    let deployment = Deployment::start().await;
    // Short enough for an access line in all its forms.
    let token = deployment.good_token();
    let token = &token[token.len() - 60..];
    let hex: String = token.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = token.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let forms = [
        ("raw", token.to_owned()),
        ("hex", hex),
        ("percent", percent),
        ("base64", URL_SAFE_NO_PAD.encode(format!("Bearer {token}"))),
        ("base64", STANDARD_NO_PAD.encode(token)),
    ];
    for (_, leak) in &forms {
        let response = deployment
            .send(Request::new("GET", &format!("/planted/{leak}")))
            .await;
        assert_eq!(response.status, 404, "{response:?}");
    }
    let log = deployment.portcullis.stop().await.stderr;
    let leaks = Canaries::from_iter([("a token", token)]).leaks(&log);
    for (form, _) in &forms {
        assert!(
            leaks
                .iter()
                .any(|leak| leak.form == *form && leak.what == "a token"),
            "{form}: {leaks:?}"
        );
    }
}

/// J1, J2, D5: introspection and the fetch of keys are logged with their failures, but without this
/// server's secret and tokens.
#[tokio::test]
async fn issuers() {
    const SECRET: &str = "introspection-secret: 100% hush";
    let response = Arc::new(Mutex::new((
        200,
        json!({ "active": true, "aud": Deployment::RESOURCE, "sub": "alice", "scope": "mcp:tools" }),
    )));
    let script = Arc::clone(&response);
    let introspecting =
        Upstream::scripted(move |request| Some(introspection(request, &script.lock()))).await;
    let keys = AuthorizationServer::start(Deployment::RESOURCE);
    let secret = Scratch::file("secret", SECRET);
    let introspecting_name = introspecting.origin();
    let keys_name = keys.test_issuer().issuer().as_str().to_owned();
    let tables = format!(
        "[[issuer]]\nissuer = \"{introspecting_name}\"\nvalidate = \"introspection\"\nclient_id = \"portcullis\"\n\
         client_secret = {{ file = \"{}\" }}\nintrospection_auth = \"basic\"\nintrospection_cache = \"0s\"\n\
         [[issuer]]\nissuer = \"{keys_name}\"\njwks = {{ cooldown = \"1s\" }}",
        secret.as_str()
    );
    let deployment = Deployment::builder().tables(tables).start().await;
    deployment
        .portcullis
        .logged_line(&["issuer keys changed", &keys_name])
        .await;

    let opaque = "canary-opaque-token";
    deployment.assert_accepted("active", opaque).await;
    *response.lock() = (200, json!({ "active": false, "note": "canary-response" }));
    let inactive = deployment.try_token(opaque).await;
    deployment
        .portcullis
        .assert_denied(&inactive, "token.inactive")
        .await;

    *response.lock() = (500, json!("canary-response"));
    assert_eq!(deployment.try_token(opaque).await.status, 401);
    deployment
        .portcullis
        .logged_line(&["WARN", &introspecting_name])
        .await;

    let signed = keys.test_issuer().token().scope("mcp:tools").sign();
    deployment.assert_accepted("signed", &signed).await;
    let unknown = keys
        .test_issuer()
        .token()
        .kid("another-kid")
        .scope("mcp:tools")
        .sign();
    deployment
        .portcullis
        .assert_denied(&deployment.try_token(&unknown).await, "token.key_unknown")
        .await;

    let calls = introspecting.recorded();
    let basic = calls
        .iter()
        .rfind(|request| request.target == "/introspect")
        .expect("a call")
        .header("authorization")
        .expect("basic")
        .trim_start_matches("Basic ")
        .to_owned();
    let canaries = Canaries::from_iter([
        ("an opaque token", opaque),
        ("a token", &signed),
        ("a token of an unknown key", &unknown),
        ("the secret", SECRET),
        ("the header with the secret", &basic),
        ("the issuer's response", "canary-response"),
    ]);
    canaries.assert_absent("the log", &deployment.portcullis.stop().await.stderr);
}

/// Responds as an issuer with introspection.
fn introspection(
    request: &RecordedRequest,
    (status, response): &(u16, Value),
) -> Response<ResponseBody> {
    let origin = format!("http://{}", request.header("host").unwrap());
    match request.target.as_str() {
        "/introspect" => Upstream::response(*status, &[JSON], response.to_string()),
        "/.well-known/oauth-authorization-server" => {
            let metadata = json!({ "issuer": origin, "introspection_endpoint": format!("{origin}/introspect") });
            Upstream::response(200, &[JSON], metadata.to_string())
        }
        _ => Upstream::response(404, &[], ""),
    }
}
