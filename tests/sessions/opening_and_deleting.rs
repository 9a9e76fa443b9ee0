//! One user who opens and deletes sessions in a loop.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use portcullis_scenarios::{
    Connection, Deployment, INITIALIZE, Request, Scratch, Signal, is_full_run,
};
use tokio::task::JoinSet;

const CLIENTS: usize = 8;

/// The number of sessions. The full one is more than the file of ends could take without being
/// rewritten.
fn sessions() -> usize {
    if is_full_run() { 20_000 } else { 1_000 }
}

/// The ends of one owner that are remembered.
const REMEMBERED: usize = 256;
/// The clients of one subject whose ends are remembered.
const CLIENTS_OF_SUBJECT: usize = 256;
/// The length of an end in the file. An end can be written twice, when the floor rises.
const LINE: u64 = 61;
/// The file is rewritten when it has grown by this, in bytes.
const GROWTH: u64 = 1 << 20;

/// E9, E12: one user in a loop of `initialize` and DELETE ends no session of another user, not even
/// after a restart, and the state directory stays small.
#[tokio::test]
async fn in_a_loop() {
    let state = Scratch::path_for("state");
    let top = format!("state_dir = \"{}\"", state.as_str());
    let deployment = Deployment::builder()
        .top(top)
        .tables("[session]\nended_status = 404")
        .start()
        .await;
    let bob = deployment.token().subject("bob").sign();
    let kept = deployment.open_session(&bob).await;
    let address = deployment.portcullis.address();
    let left = Arc::new(AtomicUsize::new(sessions()));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let token = deployment.token().subject("mallory").sign();
        let left = Arc::clone(&left);
        clients.spawn(async move {
            let mut connection = Connection::open(address).await;
            let mut last = String::new();
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                    left.checked_sub(1)
                })
                .is_ok()
            {
                let answer = connection
                    .send(&Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&token))
                    .await;
                assert_eq!(answer.status, 200, "{answer:?}");
                last = answer.header("mcp-session-id").unwrap().to_owned();
                let delete = Request::delete(Deployment::ENDPOINT, &token, &last);
                assert_eq!(connection.send(&delete).await.status, 200);
            }
            (token, last)
        });
    }
    let mut deleted = Vec::new();
    while let Some(client) = clients.join_next().await {
        deleted.push(client.unwrap());
    }
    assert_eq!(deployment.echo(&bob, &kept).await.status, 200);
    assert!(
        size(&state) <= 2 * LINE * sessions() as u64 + GROWTH / 16,
        "{}",
        size(&state)
    );
    assert!(size(&state) <= 2 * GROWTH, "{}", size(&state));

    let deployment = deployment.restart(Signal::KILL).await;
    assert_eq!(deployment.echo(&bob, &kept).await.status, 200);
    for (token, session) in deleted.iter().filter(|(_, session)| !session.is_empty()) {
        deployment
            .echo(token, session)
            .await
            .assert_rpc_error(404, -32000);
    }
    assert!(
        size(&state) <= 2 * LINE * (REMEMBERED as u64 + 2),
        "{}",
        size(&state)
    );
}

/// E9, E12: a subject that registers a client for each session ends its own oldest sessions,
/// instead of filling the table of ends for all. What it has deleted stays deleted.
#[tokio::test]
async fn with_many_clients() {
    let state = Scratch::path_for("state");
    let top = format!("state_dir = \"{}\"", state.as_str());
    let deployment = Deployment::builder()
        .top(top)
        .tables("[session]\nended_status = 404")
        .start()
        .await;
    let bob = deployment.token().subject("bob").sign();
    let kept = deployment.open_session(&bob).await;
    let mallory = |client: usize| {
        deployment
            .token()
            .subject("mallory")
            .client_id(&format!("client-{client}"))
            .sign()
    };
    let oldest = deployment.open_session(&mallory(0)).await;
    let mut deleted = Vec::new();
    for client in 1..=CLIENTS_OF_SUBJECT + 1 {
        let token = mallory(client);
        let session = deployment.open_session(&token).await;
        let delete = Request::delete(Deployment::ENDPOINT, &token, &session);
        assert_eq!(deployment.send(delete).await.status, 200);
        deleted.push((token, session));
    }
    deployment
        .echo(&mallory(0), &oldest)
        .await
        .assert_rpc_error(404, -32000);
    assert_eq!(deployment.echo(&bob, &kept).await.status, 200);

    let deployment = deployment.restart(Signal::KILL).await;
    assert_eq!(deployment.echo(&bob, &kept).await.status, 200);
    for (token, session) in deleted.iter().step_by(16) {
        deployment
            .echo(token, session)
            .await
            .assert_rpc_error(404, -32000);
    }
}

/// Returns the size of all files, in bytes. A file that is being replaced may be gone meanwhile.
fn size(state: &Scratch) -> u64 {
    let files = fs::read_dir(state.path())
        .unwrap()
        .filter_map(|entry| entry.unwrap().metadata().ok())
        .map(|metadata| metadata.len());
    files.sum()
}
