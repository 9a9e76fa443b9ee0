//! Times in the future, from a state directory that a server with a wrong clock has written.

use std::{fs::OpenOptions, io::Write as _};

use portcullis_scenarios::{Administration, Deployment, Scratch, Signal};

/// The end of all sessions that were created until the year 11476.
const FLOOR: &str = "AwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEQ2TFuwAAAAAAA";

/// E12, J9: an end in the far future ends the sessions of the present only. The next ones work,
/// expire, and are listed.
#[tokio::test]
async fn ends_in_the_future_end_nothing_later() {
    let state = Scratch::path_for("state");
    let administration = Administration::default();
    let deployment = Deployment::builder()
        .top(format!("state_dir = \"{}\"", state.as_str()))
        .tables(format!(
            "[session]\nended_status = 404\n{}",
            administration.table()
        ))
        .start()
        .await;
    let token = deployment.good_token();
    let ended = deployment.open_session(&token).await;
    let mut file = OpenOptions::new()
        .append(true)
        .open(state.path().join("session-ends"))
        .unwrap();
    writeln!(file, "{FLOOR}").unwrap();

    let deployment = deployment.restart(Signal::KILL).await;
    deployment
        .echo(&token, &ended)
        .await
        .assert_rpc_error(404, -32000);
    let session = deployment.open_session(&token).await;
    assert_eq!(deployment.echo(&token, &session).await.status, 200);
    let list = administration.sessions("").await;
    assert_eq!(list["total"], 1, "{list}");
    let created = list["sessions"][0]["created"].as_str().unwrap();
    assert!(created.starts_with("20"), "{list}");
}
