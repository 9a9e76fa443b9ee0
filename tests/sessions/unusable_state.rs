//! State directories that cannot be used. Sessions that have ended must not be accepted again.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use portcullis_scenarios::{
    Deployment, DeploymentBuilder, Finished, HttpResponse, Portcullis, Request, Scratch, Signal,
};
use tokio::time::sleep;

/// The keys of all processes, which outlive the state directory.
fn keys() -> Scratch {
    let keys = Scratch::file("session-keys", "a-session-key-of-more-than-32-characters\n");
    fs::set_permissions(keys.path(), fs::Permissions::from_mode(0o600)).unwrap();
    keys
}

fn builder(state: &Scratch, keys: &Scratch, session: &str) -> DeploymentBuilder {
    Deployment::builder()
        .top(format!("state_dir = \"{}\"\nshutdown_timeout = \"2s\"", state.as_str()))
        .tables(format!("[session]\nkeys = [{{ file = \"{}\" }}]\n{session}", keys.as_str()))
}

async fn delete(deployment: &Deployment, session: &str) -> HttpResponse {
    let request = Request::new("DELETE", Deployment::ENDPOINT).bearer(&deployment.good_token());
    deployment.send(request.session(session)).await
}

/// Starts a program with this configuration, which fails.
async fn refused(configuration: &str) -> Finished {
    let file = Scratch::file("portcullis.toml", configuration);
    let finished = Portcullis::run(&["serve", "--config", file.as_str()]).await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    finished
}

/// N4, E12: the server does not start without its state directory, and names the reason and the fix.
#[tokio::test]
async fn prevents_the_start() {
    let (state, keys) = (Scratch::path_for("state"), keys());
    let deployment = builder(&state, &keys, "").start().await;
    let configuration = deployment.configuration().to_owned();
    let refusal = refused(&configuration).await.stderr;
    assert!(refusal.contains("state.in_use"), "{refusal}");
    assert!(refusal.contains("waiting for the process that uses the state directory"), "{refusal}");
    deployment.portcullis.stop().await;

    let ends = state.path().join("session-ends");
    assert!(ends.is_file(), "{:?}", fs::read_dir(state.path()).unwrap().collect::<Vec<_>>());
    fs::write(&ends, "another format\n").unwrap();
    let refusal = refused(&configuration).await.stderr;
    assert!(refusal.contains("state.format"), "{refusal}");

    fs::remove_dir_all(state.path()).unwrap();
    fs::write(state.path(), "").unwrap();
    let refusal = refused(&configuration).await.stderr;
    assert!(refusal.contains("state.io"), "{refusal}");
    assert!(refusal.contains("session.without_state = \"reject_ends\""), "{refusal}");
    fs::remove_file(state.path()).unwrap();
}

/// N4: a restart that overlaps waits for the process before it, and then has its sessions and its chain of audit records.
#[tokio::test]
async fn of_the_process_before_is_waited_for() {
    let (state, keys, trail) = (Scratch::path_for("state"), keys(), Scratch::path_for("audit.jsonl"));
    let audit = format!("ended_status = 404\n[audit]\ntarget = {{ file = \"{}\" }}", trail.as_str());
    let deployment = builder(&state, &keys, &audit).start().await;
    let kept = deployment.open_session(&deployment.good_token()).await;
    let deleted = deployment.open_session(&deployment.good_token()).await;
    assert_eq!(delete(&deployment, &deleted).await.status, 200);
    let configuration = deployment.configuration().to_owned();
    let next = tokio::spawn(async move { Portcullis::serve(&configuration).await });
    sleep(Duration::from_millis(500)).await;
    assert!(!next.is_finished(), "it waits");
    deployment.portcullis.signal(Signal::TERM);
    let next = next.await.unwrap();

    let echo = |session: &str| Request::echo(Deployment::ENDPOINT, &deployment.good_token(), session);
    assert_eq!(echo(&kept).send(next.address()).await.status, 200);
    assert_eq!(echo(&deleted).send(next.address()).await.status, 404);
    next.stop().await;
    let records = fs::read_to_string(trail.path()).unwrap();
    assert!(records.lines().all(|record| record.contains("\"mac\":")), "{records}");
}

/// N4: with `without_state = "reject_ends"`, the server starts, knows no earlier session, and confirms no end.
#[tokio::test]
async fn can_be_permitted() {
    let (state, keys) = (Scratch::path_for("state"), keys());
    let deployment = builder(&state, &keys, "without_state = \"reject_ends\"\nended_status = 404").start().await;
    let kept = deployment.open_session(&deployment.good_token()).await;
    let deleted = deployment.open_session(&deployment.good_token()).await;
    assert_eq!(delete(&deployment, &deleted).await.status, 200);
    // The directory is damaged while the process ends.
    deployment.portcullis.signal(Signal::KILL);
    fs::remove_dir_all(state.path()).unwrap();
    fs::write(state.path(), "").unwrap();
    let deployment = deployment.restart(Signal::KILL).await;
    let forwarded = deployment.upstream.count();
    for session in [&kept, &deleted] {
        let response = deployment.echo(&deployment.good_token(), session).await;
        assert_eq!(response.status, 404, "{response:?}");
    }
    assert_eq!(deployment.upstream.count(), forwarded);

    let session = deployment.open_session(&deployment.good_token()).await;
    assert_eq!(deployment.echo(&deployment.good_token(), &session).await.status, 200);
    for _ in 0..2 {
        assert_eq!(delete(&deployment, &session).await.status, 503);
    }
    assert_eq!(deployment.echo(&deployment.good_token(), &session).await.status, 404);
    drop(deployment);
    fs::remove_file(state.path()).unwrap();
}
