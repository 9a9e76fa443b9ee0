//! The confirmation of a DELETE: the client learns that its session has ended only when the end is
//! recorded.

use portcullis_scenarios::{Deployment, Scratch};

/// E9, E12: while the state directory cannot be written, no DELETE of a session is confirmed: not
/// the second one of two in progress, and not a later one.
#[tokio::test]
async fn not_while_the_disk_is_full() {
    for ended_status in [400, 404] {
        let state = Scratch::path_for("state");
        let deployment = Deployment::builder()
            .top(format!("state_dir = \"{}\"", state.as_str()))
            .tables(format!("[session]\nended_status = {ended_status}"))
            .file_limit("-f 1")
            .start()
            .await;
        let token = deployment.good_token();
        let recorded = deployment.open_session(&token).await;
        assert_eq!(
            deployment.delete_session(&token, &recorded).await.status,
            200
        );
        assert_eq!(
            deployment.delete_session(&token, &recorded).await.status,
            ended_status,
            "its end is recorded"
        );

        // The file of ends grows to its limit.
        let mut count = 0;
        loop {
            assert!(count < 100, "the limit of files has no effect");
            count += 1;
            let filling = deployment.open_session(&token).await;
            if deployment.delete_session(&token, &filling).await.status == 503 {
                break;
            }
        }
        let session = deployment.open_session(&token).await;
        let one = deployment.delete_session(&token, &session);
        let other = deployment.delete_session(&token, &session);
        let (one, other) = tokio::join!(one, other);
        for response in [
            one,
            other,
            deployment.delete_session(&token, &session).await,
        ] {
            assert_eq!(response.status, 503, "{response:?}");
            assert_eq!(response.header("retry-after"), Some("1"), "{response:?}");
            deployment
                .portcullis
                .assert_denied(&response, "session.end_not_recorded")
                .await;
        }
        // In this process, it has ended.
        assert!([400, 404].contains(&deployment.echo(&token, &session).await.status));
        assert_eq!(
            deployment.delete_session(&token, &recorded).await.status,
            ended_status,
            "its end is still recorded"
        );
    }
}
