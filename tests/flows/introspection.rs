//! Tokens that the issuer is asked about.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use http::Response;
use portcullis_scenarios::{Deployment, DeploymentBuilder, Portcullis, Recorded, Reply, Request, Scratch, Upstream};
use serde_json::{Value, json};

const JSON: (&str, &str) = ("content-type", "application/json");
const SECRET: &str = "a secret: 100% hush";
const TOKEN: &str = "opaque-canary-token";

/// An authorization server that is asked about tokens, and says what a scenario has it say.
struct Asked {
    server: Upstream,
    says: Arc<Mutex<(u16, Value)>>,
    secret: Scratch,
}

impl Asked {
    async fn start() -> Self {
        let says = Arc::new(Mutex::new((200, active())));
        let script = Arc::clone(&says);
        let server = Upstream::scripted(move |request| Some(answer(request, &script.lock().unwrap()))).await;
        Self { server, says, secret: Scratch::file("secret", &format!("{SECRET}\n")) }
    }

    fn says(&self, status: u16, answer: Value) {
        *self.says.lock().unwrap() = (status, answer);
    }

    /// The calls about tokens of clients, as forms.
    fn calls(&self) -> Vec<HashMap<String, String>> {
        let calls = self.server.recorded().into_iter().filter(|request| request.target == "/introspect");
        calls.map(|request| form(&request.body)).filter(|form| !is_test(form)).collect()
    }

    /// The lines of an issuer that is asked as this service's client.
    fn settings(&self, validate: &str) -> String {
        format!(
            "validate = \"{validate}\"\nclient_id = \"portcullis\"\nclient_secret = {{ file = \"{}\" }}",
            self.secret.as_str()
        )
    }

    /// A deployment that accepts its tokens, found by its metadata, beside those of the issuer with keys.
    fn deployment(&self, more: &str) -> DeploymentBuilder {
        let (name, settings) = (self.server.origin(), self.settings("introspection"));
        Deployment::builder().tables(format!("[[issuer]]\nissuer = \"{name}\"\n{settings}\n{more}"))
    }
}

fn answer(request: &Recorded, (status, says): &(u16, Value)) -> Response<Reply> {
    let origin = format!("http://{}", request.header("host").unwrap());
    match request.target.as_str() {
        "/introspect" => {
            let elsewhere = format!("{origin}/elsewhere");
            Upstream::answer(*status, &[JSON, ("location", &elsewhere)], says.to_string())
        }
        "/.well-known/oauth-authorization-server" => {
            let metadata = json!({ "issuer": origin, "introspection_endpoint": format!("{origin}/introspect") });
            Upstream::answer(200, &[JSON], metadata.to_string())
        }
        _ => Upstream::answer(404, &[], ""),
    }
}

/// Whether a call is a test of the endpoint, with a random token.
fn is_test(form: &HashMap<String, String>) -> bool {
    form["token"].starts_with("portcullis-probe-")
}

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
    let mut answer = active();
    answer[member] = value;
    answer
}

fn form(body: &[u8]) -> HashMap<String, String> {
    let decode = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            bytes.push(match byte {
                b'+' => b' ',
                b'%' => {
                    let digits = [rest.next().unwrap(), rest.next().unwrap()];
                    u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
                }
                byte => byte,
            });
        }
        String::from_utf8(bytes).unwrap()
    };
    let pairs = std::str::from_utf8(body).unwrap().split('&').map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(name, value)| (decode(name), decode(value))).collect()
}

/// Asserts that nothing of the tokens and the secret has been logged, in any of the forms in which they were sent.
fn assert_silent(portcullis: &Portcullis) {
    let log = portcullis.log();
    for canary in [TOKEN, SECRET, "100%25", "YSBzZWNyZXQ", "a+secret", "hush"] {
        assert!(!log.contains(canary), "{canary} is in the log:\n{log}");
    }
}

/// C1, D1: an opaque token that its issuer calls active is accepted; the issuer is asked by form POST.
#[tokio::test]
async fn an_active_token() {
    let asked = Asked::start().await;
    let deployment = asked.deployment("").start().await;
    deployment.assert_accepted("opaque", TOKEN).await;
    let upstream = deployment.upstream.last();
    assert_eq!(upstream.header("x-portcullis-subject"), Some("alice"));
    assert_eq!(upstream.header("x-portcullis-client"), Some("editor"));
    assert_eq!(upstream.header("x-portcullis-issuer"), Some(asked.server.origin().as_str()));
    deployment.assert_accepted("the issuer with keys", &deployment.good_token()).await;

    let sent = json!({ "token": TOKEN, "client_id": "portcullis", "client_secret": SECRET });
    assert_eq!(json!(asked.calls()), json!([sent]));
    let call = asked.server.last();
    assert_eq!(call.method, "POST");
    assert_eq!(call.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(call.header("authorization"), None);
    assert_silent(&deployment.portcullis);
}

/// D1: with basic the secret is in the header, form-encoded, and not in the form.
#[tokio::test]
async fn basic_authentication() {
    let asked = Asked::start().await;
    let deployment = asked.deployment("introspection_auth = \"basic\"").start().await;
    deployment.assert_accepted("opaque", TOKEN).await;
    assert_eq!(json!(asked.calls()), json!([{ "token": TOKEN, "client_id": "portcullis" }]));
    let pair = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, "portcullis:a+secret%3A+100%25+hush");
    assert_eq!(asked.server.last().header("authorization"), Some(format!("Basic {pair}").as_str()));
    assert_silent(&deployment.portcullis);
    assert!(!deployment.portcullis.log().contains(&pair));
}

/// D3, B1: an inactive token, or one that is not an access token for this resource: 401 with the challenge and `invalid_token`.
#[tokio::test]
async fn tokens_that_do_not_count() {
    let asked = Asked::start().await;
    let deployment = asked.deployment("").start().await;
    let cases = [
        ("inactive", json!({ "active": false }), "token.inactive"),
        ("inactive and talkative", with("active", json!(false)), "token.inactive"),
        ("no audience", with("aud", Value::Null), "token.audience_missing"),
        ("another audience", with("aud", json!(["api", "http://127.0.0.1:3000/"])), "token.audience_mismatch"),
        ("expired", with("exp", json!(1_700_000_000)), "token.expired"),
        ("another issuer", with("iss", json!("https://issuer.example")), "token.issuer_mismatch"),
        ("an ID token", with("token_type", json!("ID")), "token.not_an_access_token"),
        ("a refresh token", with("token_type", json!("Refresh")), "token.not_an_access_token"),
        ("bound to its sender", with("cnf", json!({ "jkt": "x" })), "token.sender_constrained"),
    ];
    for (number, (case, answer, code)) in cases.into_iter().enumerate() {
        asked.says(200, answer);
        deployment.assert_refused([(case, format!("{TOKEN}-{number}"), code)]).await;
    }
    assert_eq!(asked.calls().len(), 9);
    assert_silent(&deployment.portcullis);
}

/// D3, B2, D5: an issuer that does not answer as it should: 401 without `error` and with `Retry-After`, the details in the
/// log alone, no redirect followed; once it answers, the same token is good.
#[tokio::test]
async fn an_issuer_that_does_not_answer() {
    let asked = Asked::start().await;
    let deployment = asked.deployment("").start().await;
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
    for (status, says) in cases {
        asked.says(status, says);
        let answer = deployment.try_token(TOKEN).await;
        assert_eq!(answer.assert_unauthorized(), None, "{status}: {answer:?}");
        assert_eq!(answer.header("retry-after"), Some("5"), "{status}: {answer:?}");
        deployment.portcullis.assert_denied(&answer, "issuer.unavailable").await;
    }
    for code in ["introspection.status", "introspection.document", "fetch.too_large"] {
        deployment.portcullis.logged(code, |line| line["introspection.failure"] == code).await;
    }
    assert!(asked.server.recorded().iter().all(|request| request.target != "/elsewhere"), "a redirect was followed");
    assert!(deployment.upstream.recorded().is_empty(), "a request reached the upstream");
    assert_silent(&deployment.portcullis);

    asked.says(200, active());
    deployment.assert_accepted("the same token", TOKEN).await;
}

/// D2, B2: an unreachable issuer, and one whose metadata has no endpoint: the token is neither accepted nor called invalid, and readiness says
/// why.
#[tokio::test]
async fn an_endpoint_that_is_not_found() {
    let bare = Upstream::scripted(|request| {
        let origin = format!("http://{}", request.header("host").unwrap());
        Some(Upstream::answer(200, &[JSON], json!({ "issuer": origin }).to_string()))
    })
    .await;
    let wrong = Upstream::scripted(|request| {
        let origin = format!("http://{}", request.header("host").unwrap());
        let metadata = json!({ "issuer": origin, "introspection_endpoint": "http://as.example/introspect" });
        Some(Upstream::answer(200, &[JSON], metadata.to_string()))
    })
    .await;
    for (issuer, reason) in [(&bare, "issuer.no_introspection_endpoint"), (&wrong, "discovery.insecure_endpoint")] {
        let name = issuer.origin();
        let table =
            format!("[[issuer]]\nissuer = \"{name}\"\nvalidate = \"introspection\"\nclient_id = \"portcullis\"");
        let deployment = Deployment::builder().tables(table).resource(format!("issuers = [\"{name}\"]")).start().await;
        let answer = deployment.try_token(TOKEN).await;
        assert_eq!(answer.assert_unauthorized(), None, "{answer:?}");
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
        deployment.portcullis.assert_denied(&answer, "issuer.unavailable").await;
        let ready = deployment.send(Request::new("GET", "/readyz")).await;
        assert_eq!(ready.status, 503, "{ready:?}");
        assert_eq!(ready.json()["resources"][0]["issuers"][0]["reason"], reason, "{ready:?}");
        deployment.portcullis.logged(reason, |line| line["issuer.failure"] == reason).await;
        assert!(issuer.recorded().iter().all(|request| request.method == "GET"), "something was sent there");
    }
}

/// D4: one call for many requests with one token, none of them for another token.
#[tokio::test]
async fn a_remembered_token() {
    let asked = Asked::start().await;
    let deployment = asked.deployment("").start().await;
    for _ in 0..20 {
        deployment.assert_accepted("again", TOKEN).await;
    }
    assert_eq!(asked.calls().len(), 1);
    asked.says(200, json!({ "active": false }));
    deployment.assert_accepted("remembered", TOKEN).await;
    deployment.assert_refused([("another one", format!("{TOKEN}-2"), "token.inactive")]).await;
    assert_eq!(asked.calls().len(), 2);
}

/// C1, D4: with both ways a token is verified by its signature first, then its issuer is asked; a token that is revoked is
/// refused at the next request when nothing is remembered.
#[tokio::test]
async fn signature_and_introspection() {
    let asked = Asked::start().await;
    let deployment = Deployment::builder()
        .issuer(format!(
            "{}\nintrospection_endpoint = \"{}/introspect\"\nintrospection_cache = \"0s\"",
            asked.settings("jwt+introspection"),
            asked.server.origin()
        ))
        .start()
        .await;
    deployment
        .assert_refused([
            ("a bad signature", portcullis_testkit::flip_signature(&deployment.good_token()), "token.signature"),
            ("expired", deployment.token().expires_in(-60).sign(), "token.expired"),
            ("opaque", TOKEN.to_owned(), "token.malformed"),
        ])
        .await;
    assert!(asked.calls().is_empty());

    let token = deployment.good_token();
    deployment.assert_accepted("active", &token).await;
    deployment.assert_accepted("active still", &token).await;
    assert_eq!(asked.calls().len(), 2);
    asked.says(200, json!({ "active": false }));
    deployment.assert_refused([("revoked", token.clone(), "token.inactive")]).await;
    asked.says(503, json!({}));
    let answer = deployment.try_token(&token).await;
    assert_eq!(answer.assert_unauthorized(), None, "{answer:?}");
    assert!(!deployment.portcullis.log().contains(&token));
    assert_silent(&deployment.portcullis);
}

/// D2, J6: what cannot work is refused at start, in one line that names it and shows no secret.
#[tokio::test]
async fn what_cannot_work_is_refused() {
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
    assert!(good.stdout.contains("INTROSPECTION_SECRET") && !format!("{good:?}").contains("hush"), "{good:?}");
    for (issuer, named) in [
        (from_environment.as_str(), "INTROSPECTION_SECRET is not set"),
        (&format!("{ON}\nclient_secret = {{ file = \"/nowhere/secret\" }}"), "/nowhere/secret"),
        (&format!("{ON}\nclient_secret = \"{SECRET}\""), "a secret is not written into the configuration"),
        (&format!("{ON}\nintrospection_endpoint = \"http://auth.example.com/introspect\""), "introspection_endpoint"),
        ("validate = \"introspection\"", "client_id"),
    ] {
        let refused = check(issuer, &[]).await;
        assert_ne!(refused.code, Some(0), "{refused:?}");
        let said = refused.stderr.trim_end();
        assert!(said.contains(named) && !said.contains('\n') && !said.contains("hush"), "{refused:?}");
    }
}
