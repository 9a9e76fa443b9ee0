//! Token introspection (RFC 7662): active, rejected and cached tokens, and failures of the issuer.

use std::{collections::HashMap, sync::Arc};

use http::Response;
use parking_lot::Mutex;
use portcullis_scenarios::{
    Deployment, DeploymentBuilder, Portcullis, RecordedRequest, Request, ResponseBody, Scratch,
    Upstream,
};
use serde_json::{Value, json};
use url::form_urlencoded;

const JSON: (&str, &str) = ("content-type", "application/json");
const SECRET: &str = "a secret: 100% hush";
const TOKEN: &str = "opaque-canary-token";

/// An introspection endpoint with a configurable response.
struct IntrospectionEndpoint {
    server: Upstream,
    response: Arc<Mutex<(u16, Value)>>,
    secret: Scratch,
}

impl IntrospectionEndpoint {
    async fn start() -> Self {
        let response = Arc::new(Mutex::new((200, active())));
        let script = Arc::clone(&response);
        let server =
            Upstream::scripted(move |request| Some(issuer_response(request, &script.lock()))).await;
        Self {
            server,
            response,
            secret: Scratch::file("secret", &format!("{SECRET}\n")),
        }
    }

    fn set_response(&self, status: u16, response: Value) {
        *self.response.lock() = (status, response);
    }

    /// Returns the forms of the introspection requests, without probes.
    fn calls(&self) -> Vec<HashMap<String, String>> {
        let calls = self
            .server
            .recorded()
            .into_iter()
            .filter(|request| request.target == "/introspect");
        let forms =
            calls.map(|request| form_urlencoded::parse(&request.body).into_owned().collect());
        forms.filter(|form| !is_probe(form)).collect()
    }

    /// Returns the `[[issuer]]` settings for this endpoint.
    fn settings(&self, validate: &str) -> String {
        format!(
            "validate = \"{validate}\"\nclient_id = \"portcullis\"\nclient_secret = {{ file = \"{}\" }}",
            self.secret.as_str()
        )
    }

    /// Returns a deployment that accepts its tokens in addition to those of an issuer with keys.
    /// The endpoint is discovered.
    fn deployment(&self, more: &str) -> DeploymentBuilder {
        let name = self.server.origin();
        let settings = self.settings("introspection");
        Deployment::builder().tables(format!(
            "[[issuer]]\nissuer = \"{name}\"\n{settings}\n{more}"
        ))
    }
}

/// Responds as an issuer, with this response to introspection.
fn issuer_response(
    request: &RecordedRequest,
    (status, response): &(u16, Value),
) -> Response<ResponseBody> {
    let origin = format!("http://{}", request.header("host").unwrap());
    match request.target.as_str() {
        "/introspect" => {
            let elsewhere = format!("{origin}/elsewhere");
            Upstream::response(
                *status,
                &[JSON, ("location", &elsewhere)],
                response.to_string(),
            )
        }
        "/.well-known/oauth-authorization-server" => {
            let metadata = json!({ "issuer": origin, "introspection_endpoint": format!("{origin}/introspect") });
            Upstream::response(200, &[JSON], metadata.to_string())
        }
        _ => Upstream::response(404, &[], ""),
    }
}

/// Returns whether a request is a probe of the endpoint with a random token.
fn is_probe(form: &HashMap<String, String>) -> bool {
    form["token"].starts_with("portcullis-probe-")
}

/// The response for a valid token.
fn active() -> Value {
    json!({
        "active": true,
        "aud": Deployment::RESOURCE,
        "client_id": "editor",
        "sub": "alice",
        "scope": "mcp:tools",
        "token_type": "Bearer",
    })
}

fn with(member: &str, value: Value) -> Value {
    let mut response = active();
    response[member] = value;
    response
}

/// Asserts that the log contains neither the tokens nor the secret, in any of the encodings in
/// which they were sent.
fn assert_not_logged(portcullis: &Portcullis) {
    let log = portcullis.log();
    for canary in [TOKEN, SECRET, "100%25", "YSBzZWNyZXQ", "a+secret", "hush"] {
        assert!(!log.contains(canary), "{canary} is in the log:\n{log}");
    }
}

/// C1, D1: an opaque token that its issuer reports as active is accepted. The request is a POST
/// with a form.
#[tokio::test]
async fn an_active_token() {
    let endpoint = IntrospectionEndpoint::start().await;
    let deployment = endpoint.deployment("").start().await;
    deployment.assert_accepted("opaque", TOKEN).await;
    let upstream = deployment.upstream.last();
    assert_eq!(upstream.header("x-portcullis-subject"), Some("alice"));
    assert_eq!(upstream.header("x-portcullis-client"), Some("editor"));
    assert_eq!(
        upstream.header("x-portcullis-issuer"),
        Some(endpoint.server.origin().as_str())
    );
    deployment
        .assert_accepted("the issuer with keys", &deployment.good_token())
        .await;

    let sent = json!({ "token": TOKEN, "client_id": "portcullis", "client_secret": SECRET });
    assert_eq!(json!(endpoint.calls()), json!([sent]));
    let call = endpoint.server.last();
    assert_eq!(call.method, "POST");
    assert_eq!(
        call.header("content-type"),
        Some("application/x-www-form-urlencoded")
    );
    assert_eq!(call.header("authorization"), None);
    assert_not_logged(&deployment.portcullis);
}

/// D1: with `client_secret_basic` the secret is form-encoded in the header, and not in the form.
#[tokio::test]
async fn basic_authentication() {
    let endpoint = IntrospectionEndpoint::start().await;
    let deployment = endpoint
        .deployment("introspection_auth = \"basic\"")
        .start()
        .await;
    deployment.assert_accepted("opaque", TOKEN).await;
    assert_eq!(
        json!(endpoint.calls()),
        json!([{ "token": TOKEN, "client_id": "portcullis" }])
    );
    let pair = base64::Engine::encode(
        &base64::engine::general_purpose::STANDARD,
        "portcullis:a+secret%3A+100%25+hush",
    );
    assert_eq!(
        endpoint.server.last().header("authorization"),
        Some(format!("Basic {pair}").as_str())
    );
    assert_not_logged(&deployment.portcullis);
    assert!(!deployment.portcullis.log().contains(&pair));
}

/// D3, B1: an inactive token, or one that is not an access token for this resource: 401 with the
/// challenge and `invalid_token`.
#[tokio::test]
async fn rejected_tokens() {
    let endpoint = IntrospectionEndpoint::start().await;
    let deployment = endpoint.deployment("").start().await;
    let cases = [
        ("inactive", json!({ "active": false }), "token.inactive"),
        (
            "inactive with further members",
            with("active", json!(false)),
            "token.inactive",
        ),
        (
            "no audience",
            with("aud", Value::Null),
            "token.audience_missing",
        ),
        (
            "another audience",
            with("aud", json!(["api", "http://127.0.0.1:3000/"])),
            "token.audience_mismatch",
        ),
        (
            "expired",
            with("exp", json!(1_700_000_000)),
            "token.expired",
        ),
        (
            "another issuer",
            with("iss", json!("https://issuer.example")),
            "token.issuer_mismatch",
        ),
        (
            "an ID token",
            with("token_type", json!("ID")),
            "token.not_an_access_token",
        ),
        (
            "a refresh token",
            with("token_type", json!("Refresh")),
            "token.not_an_access_token",
        ),
        (
            "bound to its sender",
            with("cnf", json!({ "jkt": "x" })),
            "token.sender_constrained",
        ),
    ];
    let count = cases.len();
    for (number, (case, response, code)) in cases.into_iter().enumerate() {
        endpoint.set_response(200, response);
        deployment
            .assert_rejected([(case, format!("{TOKEN}-{number}"), code)])
            .await;
    }
    assert_eq!(endpoint.calls().len(), count);
    assert_not_logged(&deployment.portcullis);
}

/// D3, B2, D5: after an invalid response of the issuer, the client gets 401 without `error` and
/// with `Retry-After`. Only the log has the details, and redirects are not followed. After a valid
/// response, the same token is accepted.
#[tokio::test]
async fn invalid_responses_of_the_issuer() {
    let endpoint = IntrospectionEndpoint::start().await;
    let deployment = endpoint.deployment("").start().await;
    let large = with("padding", json!("x".repeat(64 * 1024)));
    let cases = [
        (503, json!({})),
        (500, active()),
        (401, json!({ "error": "invalid_client" })),
        (302, active()),
        (307, active()),
        (200, json!([active()])),
        (200, json!("active")),
        (200, with("active", json!("true"))),
        (200, with("active", Value::Null)),
        (200, large),
    ];
    for (status, response) in cases {
        endpoint.set_response(status, response);
        let response = deployment.try_token(TOKEN).await;
        assert_eq!(
            response.assert_unauthorized(),
            None,
            "{status}: {response:?}"
        );
        assert_eq!(
            response.header("retry-after"),
            Some("5"),
            "{status}: {response:?}"
        );
        deployment
            .portcullis
            .assert_denied(&response, "issuer.unavailable")
            .await;
    }
    for code in [
        "introspection.status",
        "introspection.document",
        "fetch.too_large",
    ] {
        deployment
            .portcullis
            .logged(code, |line| line["introspection.failure"] == code)
            .await;
    }
    assert!(
        endpoint
            .server
            .recorded()
            .iter()
            .all(|request| request.target != "/elsewhere"),
        "a redirect was followed"
    );
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
    assert_not_logged(&deployment.portcullis);

    endpoint.set_response(200, active());
    deployment.assert_accepted("the same token", TOKEN).await;
}

/// D2, B2: if the metadata has no endpoint, or one without TLS, the token is neither accepted nor
/// reported as invalid, and readiness has the reason.
#[tokio::test]
async fn an_endpoint_that_is_not_found() {
    let bare = Upstream::scripted(|request| {
        let origin = format!("http://{}", request.header("host").unwrap());
        Some(Upstream::response(
            200,
            &[JSON],
            json!({ "issuer": origin }).to_string(),
        ))
    })
    .await;
    let wrong = Upstream::scripted(|request| {
        let origin = format!("http://{}", request.header("host").unwrap());
        let metadata =
            json!({ "issuer": origin, "introspection_endpoint": "http://as.example/introspect" });
        Some(Upstream::response(200, &[JSON], metadata.to_string()))
    })
    .await;
    for (issuer, reason) in [
        (&bare, "issuer.no_introspection_endpoint"),
        (&wrong, "discovery.insecure_endpoint"),
    ] {
        let name = issuer.origin();
        let table = format!(
            "[[issuer]]\nissuer = \"{name}\"\nvalidate = \"introspection\"\nclient_id = \"portcullis\""
        );
        let deployment = Deployment::builder()
            .tables(table)
            .resource(format!("issuers = [\"{name}\"]"))
            .start()
            .await;
        let response = deployment.try_token(TOKEN).await;
        assert_eq!(response.assert_unauthorized(), None, "{response:?}");
        assert!(response.header("retry-after").is_some(), "{response:?}");
        deployment
            .portcullis
            .assert_denied(&response, "issuer.unavailable")
            .await;
        let ready = deployment.send(Request::new("GET", "/readyz")).await;
        assert_eq!(ready.status, 503, "{ready:?}");
        assert_eq!(
            ready.json()["resources"][0]["issuers"][0]["reason"],
            reason,
            "{ready:?}"
        );
        deployment
            .portcullis
            .logged(reason, |line| line["issuer.failure"] == reason)
            .await;
        assert!(
            issuer
                .recorded()
                .iter()
                .all(|request| request.method == "GET"),
            "a token was sent to the issuer"
        );
    }
}

/// D4: many requests with one token cause one introspection. The response is not used for another
/// token.
#[tokio::test]
async fn a_cached_token() {
    let endpoint = IntrospectionEndpoint::start().await;
    let deployment = endpoint.deployment("").start().await;
    for _ in 0..20 {
        deployment.assert_accepted("again", TOKEN).await;
    }
    assert_eq!(endpoint.calls().len(), 1);
    endpoint.set_response(200, json!({ "active": false }));
    deployment.assert_accepted("cached", TOKEN).await;
    deployment
        .assert_rejected([("another one", format!("{TOKEN}-2"), "token.inactive")])
        .await;
    assert_eq!(endpoint.calls().len(), 2);
}

/// C1, D4: with `jwt+introspection` the signature is verified first and then the token is
/// introspected. Without caching, a revoked token is rejected at the next request.
#[tokio::test]
async fn signature_and_introspection() {
    let endpoint = IntrospectionEndpoint::start().await;
    let deployment = Deployment::builder()
        .issuer(format!(
            "{}\nintrospection_endpoint = \"{}/introspect\"\nintrospection_cache = \"0s\"",
            endpoint.settings("jwt+introspection"),
            endpoint.server.origin()
        ))
        .start()
        .await;
    deployment
        .assert_rejected([
            (
                "a bad signature",
                portcullis_testkit::flip_signature(&deployment.good_token()),
                "token.signature",
            ),
            (
                "expired",
                deployment.token().expires_in(-60).sign(),
                "token.expired",
            ),
            ("opaque", TOKEN.to_owned(), "token.malformed"),
        ])
        .await;
    assert!(endpoint.calls().is_empty());

    let token = deployment.good_token();
    deployment.assert_accepted("active", &token).await;
    deployment.assert_accepted("still active", &token).await;
    assert_eq!(endpoint.calls().len(), 2);

    endpoint.set_response(200, json!({ "active": false }));
    deployment
        .assert_rejected([("revoked", token.clone(), "token.inactive")])
        .await;
    endpoint.set_response(503, json!({}));
    let response = deployment.try_token(&token).await;
    assert_eq!(response.assert_unauthorized(), None, "{response:?}");
    assert!(!deployment.portcullis.log().contains(&token));
    assert_not_logged(&deployment.portcullis);
}

/// D2, J6: invalid settings are rejected at startup, in one line that names them without a secret.
#[tokio::test]
async fn invalid_settings_are_rejected() {
    const ON: &str = "validate = \"introspection\"\nclient_id = \"portcullis\"";
    let check = async |issuer: &str, environment: &[(&str, &str)]| {
        let text = format!(
            "base_url = \"https://mcp.example.com\"\n[[issuer]]\nissuer = \"https://auth.example.com\"\n{issuer}\n\
             [[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\"\n"
        );
        let file = Scratch::file("check.toml", &text);
        Portcullis::run_with(&["check", "--config", file.as_str()], environment).await
    };
    let from_environment = format!("{ON}\nclient_secret = {{ env = \"INTROSPECTION_SECRET\" }}");
    let good = check(&from_environment, &[("INTROSPECTION_SECRET", SECRET)]).await;
    assert_eq!(good.code, Some(0), "{good:?}");
    assert!(good.stdout.contains("INTROSPECTION_SECRET"), "{good:?}");
    assert!(!format!("{good:?}").contains("hush"), "{good:?}");

    for (issuer, named) in [
        (from_environment.as_str(), "INTROSPECTION_SECRET is not set"),
        (
            &format!("{ON}\nclient_secret = {{ file = \"/nowhere/secret\" }}"),
            "/nowhere/secret",
        ),
        (
            &format!("{ON}\nclient_secret = \"{SECRET}\""),
            "a secret is not written into the configuration",
        ),
        (
            &format!("{ON}\nintrospection_endpoint = \"http://auth.example.com/introspect\""),
            "introspection_endpoint",
        ),
        ("validate = \"introspection\"", "client_id"),
    ] {
        let rejected = check(issuer, &[]).await;
        assert_eq!(rejected.code, Some(1), "{rejected:?}");
        let line = rejected.stderr.trim_end();
        assert!(line.contains(named), "{rejected:?}");
        assert!(!line.contains('\n'), "{rejected:?}");
        assert!(!line.contains("hush"), "{rejected:?}");
    }
}
