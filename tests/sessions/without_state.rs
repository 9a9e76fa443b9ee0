//! Shared session keys without the record of ended sessions: sessions of earlier processes never
//! continue.

use std::fs;

use portcullis_scenarios::{
    Administration, Deployment, DeploymentBuilder, HttpResponse, Request, Scratch, Signal,
};
use serde_json::json;

const KEY: &str = "a-session-key-0123456789abcdef0123456789";

async fn echo(deployment: &Deployment, session: &str) -> HttpResponse {
    deployment.echo(&deployment.good_token(), session).await
}

async fn delete(deployment: &Deployment, session: &str) -> HttpResponse {
    deployment
        .delete_session(&deployment.good_token(), session)
        .await
}

async fn open(deployment: &Deployment) -> String {
    deployment.open_session(&deployment.good_token()).await
}

fn session_table(keys: &Scratch, more: &str) -> String {
    format!(
        "[session]\nended_status = 404\nkeys = [{{ file = \"{}\" }}]\n{more}\n",
        keys.as_str()
    )
}

fn with_keys(state: &str, keys: &Scratch) -> DeploymentBuilder {
    Deployment::builder()
        .top(format!("state_dir = \"{state}\""))
        .tables(session_table(keys, ""))
}

/// Opens two sessions, and deletes the second one.
async fn open_and_delete(deployment: &Deployment) -> [String; 2] {
    let sessions = [open(deployment).await, open(deployment).await];
    for session in &sessions {
        assert_eq!(echo(deployment, session).await.status, 200);
    }
    assert_eq!(delete(deployment, &sessions[1]).await.status, 200);
    sessions
}

async fn assert_ended(deployment: &Deployment, sessions: &[String]) {
    let before = deployment.upstream.count();
    for session in sessions {
        let response = echo(deployment, session).await;
        response.assert_rpc_error(404, -32000);
        deployment
            .portcullis
            .assert_denied(&response, "session.ended")
            .await;
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
}

/// E12, N4: where the operator chose it, a server with a damaged state directory starts, accepts no
/// identifier of an earlier process, and confirms no end.
#[tokio::test]
async fn ends_are_rejected() {
    let state = Scratch::path_for("state");
    let keys = Scratch::file("session-keys", KEY);
    let administration = Administration::default();
    let builder = Deployment::builder().top(format!("state_dir = \"{}\"", state.as_str()));
    let tables = session_table(&keys, "without_state = \"reject_ends\"");
    let deployment = administration.of(builder, &tables).start().await;
    let earlier = open_and_delete(&deployment).await;
    fs::write(state.path().join("session-ends"), "damaged").unwrap();

    let deployment = deployment.restart(Signal::TERM).await;
    deployment
        .portcullis
        .logged("DELETE requests get 503", |line| {
            line["error.code"] == "state.format"
        })
        .await;
    assert_ended(&deployment, &earlier).await;
    let session = open(&deployment).await;
    assert_eq!(echo(&deployment, &session).await.status, 200);
    for _ in 0..2 {
        let response = delete(&deployment, &session).await;
        assert_eq!(response.status, 503, "{response:?}");
        deployment
            .portcullis
            .assert_denied(&response, "session.end_not_recorded")
            .await;
    }
    open(&deployment).await;
    let end = Request::post(
        "/v1/sessions/end",
        json!({ "client": "client" }).to_string(),
    );
    let (status, body) = administration.send(end.bearer(Administration::TOKEN)).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (503, &json!("session.end_not_recorded")),
        "{body}"
    );
}

/// E12, N4: a state directory whose file of ends was removed does not know which sessions have
/// ended. None of an earlier process continues, also after another restart. Later ones do.
#[tokio::test]
async fn the_record_is_lost() {
    let state = Scratch::path_for("state");
    let keys = Scratch::file("session-keys", KEY);
    let deployment = with_keys(state.as_str(), &keys).start().await;
    let earlier = open_and_delete(&deployment).await;
    fs::remove_file(state.path().join("session-ends")).unwrap();
    let deployment = deployment.restart(Signal::KILL).await;
    deployment
        .portcullis
        .logged("has no record of ended sessions", |line| {
            line["level"] == "WARN"
        })
        .await;
    assert_ended(&deployment, &earlier).await;
    let later = open(&deployment).await;
    assert_eq!(echo(&deployment, &later).await.status, 200);
    let deployment = deployment.restart(Signal::KILL).await;
    assert_ended(&deployment, &earlier).await;
    assert_eq!(echo(&deployment, &later).await.status, 200);
}
