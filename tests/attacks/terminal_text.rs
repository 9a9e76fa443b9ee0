//! Deceptive text from clients in logs: control sequences, separators, direction marks and
//! invisible characters.

use portcullis_metadata::EscapedText;
use portcullis_scenarios::{
    Deployment, Http2, HttpResponse, Request, Scratch, audit_records, call_message,
};
use serde_json::{Value, json};

/// Control characters (C0, C1), separators, direction marks and invisible characters.
const DECEPTIVE: &str = "a\u{1b}[2J\u{7f}\u{85}\u{9b}31m\u{2028}\u{2029}\u{202e}\u{2066}\u{200b}\u{ad}\u{3164}\u{feff}\u{e0041}z";
/// The part that is allowed in a path over HTTP/2.
const IN_A_PATH: &str = "/a\u{85}\u{9b}31m\u{2028}\u{202e}\u{200b}\u{3164}z";

/// Sends deceptive text in every part that a client can choose. Returns the responses to the
/// request for the path and to the call.
async fn send_deceptive_text(deployment: &Deployment) -> [HttpResponse; 2] {
    let token = deployment
        .token()
        .subject(DECEPTIVE)
        .client_id(DECEPTIVE)
        .sign();
    let mut http2 = Http2::connect(deployment.portcullis.address()).await;
    let path = http2.send(Http2::request("GET", IN_A_PATH), "").await;
    let path = path.unwrap_or_else(|error| panic!("no response: {error}"));
    let session = deployment.open_session(&token).await;
    let post = |body: String| {
        Request::post(Deployment::ENDPOINT, body)
            .bearer(&token)
            .session(&session)
    };
    deployment
        .send(post(call_message(2, DECEPTIVE, &json!({}))))
        .await;
    let called = deployment
        .send(post(call_message(
            3,
            "tools/call",
            &json!({ "name": DECEPTIVE, "arguments": {} }),
        )))
        .await;
    [path, called]
}

fn assert_harmless(what: &str, text: &str) {
    for line in text.lines() {
        assert!(
            !line.contains(EscapedText::escapes),
            "{what} has deceptive text: {line:?}"
        );
    }
}

/// J8: JSON lines of the log and the audit trail have deceptive text escaped, with the same values.
#[tokio::test]
async fn json_lines() {
    let trail = Scratch::path_for("audit.jsonl");
    let tables = format!("[audit]\ntarget = {{ file = \"{}\" }}", trail.as_str());
    let deployment = Deployment::builder().tables(tables).start().await;
    let [path, called] = send_deceptive_text(&deployment).await;
    assert_eq!(path.status, 404, "{path:?} {called:?}");
    assert_eq!(called.status, 200, "{path:?} {called:?}");
    assert_eq!(
        deployment.portcullis.access_line(&path).await["http.path"],
        IN_A_PATH
    );
    assert_eq!(
        deployment.portcullis.access_line(&called).await["principal.subject"],
        DECEPTIVE
    );

    let is_call =
        |record: &Value| record["mcp.tool"] == DECEPTIVE && record["principal.client"] == DECEPTIVE;
    audit_records(trail.path(), is_call).await;
    audit_records(trail.path(), |record| record["mcp.method"] == DECEPTIVE).await;
    assert_harmless("the trail", &std::fs::read_to_string(trail.path()).unwrap());

    let finished = deployment.portcullis.stop().await;
    assert_harmless("the log", &finished.stderr);
}

/// J8: lines in the `human` format have it escaped.
#[tokio::test]
async fn human_lines() {
    let deployment = Deployment::builder().log_format("human").start().await;
    let [path, called] = send_deceptive_text(&deployment).await;
    let id = path.header("x-request-id").unwrap();
    let line = deployment.portcullis.logged_line(&[id, "http.path="]).await;
    assert!(
        line.contains(&format!(" http.path={} ", EscapedText(IN_A_PATH))),
        "{line}"
    );
    let id = called.header("x-request-id").unwrap();
    let line = deployment
        .portcullis
        .logged_line(&[id, "principal.subject="])
        .await;
    assert!(line.contains(r#" principal.subject="a\u001b[2J"#), "{line}");
    let finished = deployment.portcullis.stop().await;
    assert_harmless("the log", &finished.stderr);
}
