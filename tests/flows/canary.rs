//! Logs at level trace contain the required lines, and neither they nor the audit trail contain a
//! token, code, secret or query in any encoding.

use std::{fs, net::SocketAddr, sync::Arc};

use http::Response;
use parking_lot::Mutex;
use portcullis_metadata::authorization::PkceVerifier;
use portcullis_scenarios::{
    AuthorizationServer, Deployment, INITIALIZE, Portcullis, RecordedRequest, Request,
    ResponseBody, Scratch, Upstream, call_message, modern_request,
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
                .logged_line(&["INFO", "request", id, &status.to_string()])
                .await;
            assert_eq!(line.contains("deny.code"), code.is_some(), "{line}");
            assert!(
                line.contains(code.unwrap_or("latency.us")),
                "{code:?}: {line}"
            );
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

    let basic = introspecting
        .last()
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

/// J2: a complete sign-in and call of the client. The server's tokens and codes are canaries.
#[tokio::test]
async fn client() {
    let server = Upstream::scripted(|request| Some(well_behaved_server(request))).await;
    let endpoint = format!("{}/mcp?key=canary-of-the-query", server.origin());
    for format in ["json", "human"] {
        let arguments = [
            "call",
            "--auto-consent",
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

/// J2: the development authorization server, from registration to a token that is used, rejected
/// and revoked.
#[tokio::test]
async fn development_server() {
    let arguments = [
        "demo",
        "--listen",
        "127.0.0.1:0",
        "--idp-listen",
        "127.0.0.1:0",
        "--auto-consent",
    ];
    let demo = Portcullis::start(&arguments).await;
    let line = demo
        .logged("authorization server is listening", |line| {
            line["issuer"].is_string()
        })
        .await;
    let idp: SocketAddr = line["issuer"]
        .as_str()
        .unwrap()
        .trim_start_matches("http://")
        .parse()
        .unwrap();
    let redirect = "http%3A%2F%2F127.0.0.1%3A4321%2Fcallback";
    let resource = encoded_resource(&demo.address());

    let metadata = r#"{"redirect_uris":["http://127.0.0.1:4321/callback"],"token_endpoint_auth_method":"client_secret_post"}"#;
    let registered = Request::post("/register", metadata).send(idp).await.json();
    let text = |value: &Value, name: &str| {
        value[name]
            .as_str()
            .unwrap_or_else(|| panic!("{name}: {value}"))
            .to_owned()
    };
    let client = text(&registered, "client_id");
    let secret = text(&registered, "client_secret");
    let verifier = PkceVerifier::generate().unwrap();
    let target = format!(
        "/authorize?response_type=code&client_id={client}&redirect_uri={redirect}&code_challenge={}\
         &code_challenge_method=S256&resource={resource}&scope=mcp%3Atools&state=canary-of-the-state",
        verifier.challenge().as_str()
    );
    let granted = Request::new("GET", &target).send(idp).await;
    let location = granted
        .header("location")
        .unwrap_or_else(|| panic!("{granted:?}"));
    let code = location
        .split(['?', '&'])
        .find_map(|pair| pair.strip_prefix("code="))
        .unwrap()
        .to_owned();
    let form = async |path: &str, body: String| {
        let request =
            Request::new("POST", path).header("Content-Type", "application/x-www-form-urlencoded");
        request.body(body).send(idp).await
    };
    let client_form = format!("client_id={client}&client_secret={secret}");
    let exchange = format!(
        "grant_type=authorization_code&code={code}&redirect_uri={redirect}&code_verifier={}&{client_form}",
        verifier.secret()
    );
    let issued = form("/token", exchange.clone()).await;
    assert_eq!(issued.status, 200, "{issued:?}");

    let token = text(&issued.json(), "access_token");
    let endpoint = async |token: &str| {
        Request::post("/mcp", INITIALIZE)
            .bearer(token)
            .send(demo.address())
            .await
    };
    let opened = endpoint(&token).await;
    assert_eq!(opened.status, 200, "{opened:?}");

    let session = opened.header("mcp-session-id").unwrap().to_owned();
    // Invalid values of each secret.
    assert_eq!(
        form("/token", exchange.clone()).await.status,
        400,
        "a code is used once"
    );
    let wrong = exchange.replace(&secret, "canary-of-a-wrong-secret");
    assert!(form("/token", wrong).await.status >= 400);
    assert_eq!(endpoint("canary-of-a-wrong-token").await.status, 401);
    assert_eq!(
        form("/revoke", format!("token={token}&{client_form}"))
            .await
            .status,
        200
    );

    for texts in [
        &["issued a code", &*client][..],
        &["issued an access token", &client],
        &["session opened"],
    ] {
        demo.logged_line(texts).await;
    }
    let mut canaries = Canaries::from_iter([
        ("the code", &*code),
        ("the client's secret", &secret),
        ("the verifier", verifier.secret()),
        ("the access token", &token),
        ("the session", &session),
        ("the state", "canary-of-the-state"),
        ("a wrong secret", "canary-of-a-wrong-secret"),
        ("a wrong token", "canary-of-a-wrong-token"),
    ]);
    if let Some(refresh) = issued.json()["refresh_token"].as_str() {
        canaries.add("the refresh token", refresh);
    }
    let finished = demo.stop().await;
    assert!(finished.stderr.lines().count() > 10, "{}", finished.stderr);
    canaries.assert_absent("the log", &finished.stderr);
    canaries.assert_absent("standard output", &finished.stdout);
}

/// Returns the demo's resource, percent-encoded.
fn encoded_resource(address: &SocketAddr) -> String {
    format!("http://{address}/mcp")
        .replace(':', "%3A")
        .replace('/', "%2F")
}
