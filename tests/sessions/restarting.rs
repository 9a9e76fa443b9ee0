//! Sessions that continue after a restart, with the state directory.

use std::{fs, os::unix::fs::PermissionsExt as _};

use portcullis_scenarios::{Deployment, HttpResponse, Scratch, Signal};

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

fn with_state(directory: &Scratch) -> String {
    format!("state_dir = \"{}\"", directory.as_str())
}

/// E12: clients continue their sessions after a crash and after a shutdown, without a new
/// `initialize` at the upstream. A deleted session stays deleted.
#[tokio::test]
async fn sessions_continue() {
    let state = Scratch::path_for("state");
    let mut deployment = Deployment::builder()
        .top(with_state(&state))
        .tables("[session]\nended_status = 404")
        .start()
        .await;
    assert_eq!(
        fs::metadata(state.path()).unwrap().permissions().mode() & 0o777,
        0o700
    );

    let kept = open(&deployment).await;
    let deleted = open(&deployment).await;
    assert_eq!(echo(&deployment, &kept).await.status, 200);
    let backend = deployment
        .upstream
        .last()
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    assert_eq!(delete(&deployment, &deleted).await.status, 200);

    for signal in [Signal::KILL, Signal::TERM] {
        let before = deployment.upstream.count();
        deployment = deployment.restart(signal).await;
        assert_eq!(echo(&deployment, &kept).await.status, 200);
        let seen = deployment.upstream.last();
        assert_eq!(
            seen.header("mcp-session-id"),
            Some(backend.as_str()),
            "the upstream's own session continues"
        );
        echo(&deployment, &deleted)
            .await
            .assert_rpc_error(404, -32000);
        assert_eq!(
            deployment.upstream.count(),
            before + 1,
            "only the call reached the upstream"
        );
        let mallory = deployment.token().subject("mallory").sign();
        deployment.echo(&mallory, &kept).await.assert_no_session();
    }
    assert_eq!(delete(&deployment, &kept).await.status, 200);

    let deployment = deployment.restart(Signal::KILL).await;
    echo(&deployment, &kept).await.assert_rpc_error(404, -32000);
}

/// E10: the owner of a session that the server ended gets 404, and opens a new one. A session that
/// its owner deleted is unknown, also after a restart. Both are unknown to anyone else.
#[tokio::test]
async fn the_owner_opens_another_session_after_a_404() {
    let state = Scratch::path_for("state");
    let mut deployment = Deployment::builder()
        .top(with_state(&state))
        .tables("[session]\nidle_timeout = \"3s\"")
        .start()
        .await;
    let idle = open(&deployment).await;
    let deleted = open(&deployment).await;
    assert_eq!(delete(&deployment, &deleted).await.status, 200);
    deployment
        .portcullis
        .logged("idle", |line| line["session.reason"] == "idle")
        .await;
    let mallory = deployment.token().subject("mallory").sign();
    for signal in [Signal::KILL, Signal::TERM] {
        for session in [&idle, &deleted] {
            deployment.echo(&mallory, session).await.assert_no_session();
        }
        let response = echo(&deployment, &idle).await;
        response.assert_ended_session();
        deployment
            .portcullis
            .assert_denied(&response, "session.ended")
            .await;
        echo(&deployment, &deleted).await.assert_no_session();
        deployment = deployment.restart(signal).await;
    }
}

/// E12: without a state directory, sessions are kept in memory. They end with the process, also at
/// the upstream.
#[tokio::test]
async fn without_a_directory() {
    let deployment = Deployment::builder()
        .top("state_dir = \"off\"")
        .start()
        .await;
    let session = open(&deployment).await;
    let ended = deployment.upstream.count();
    let deployment = deployment.restart(Signal::TERM).await;
    let seen = deployment.upstream.recorded()[ended].method.clone();
    assert_eq!(
        seen,
        http::Method::DELETE,
        "the session is ended at the upstream"
    );
    echo(&deployment, &session).await.assert_no_session();
}
