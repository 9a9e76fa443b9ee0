//! New session identifiers when the owner's scopes change.

use portcullis_scenarios::{Answer, Deployment, Request, call};
use serde_json::json;

async fn echo(deployment: &Deployment, token: &str, session: &str) -> Answer {
    deployment
        .send(Request::post(Deployment::ENDPOINT, call(2, "echo", &json!({}))).bearer(token).session(session))
        .await
}

/// E8: the response to a token with other scopes has a new session identifier. Both identify the same session, and one
/// DELETE ends it.
#[tokio::test]
async fn for_other_scopes() {
    let deployment = Deployment::start().await;
    let [narrow, wide] = ["mcp:tools", "mcp:tools mcp:admin"].map(|scope| deployment.token().scope(scope).sign());
    let first = deployment.open_session(&narrow).await;
    let backend = |deployment: &Deployment| deployment.upstream.last().header("mcp-session-id").unwrap().to_owned();
    let answer = echo(&deployment, &narrow, &first).await;
    assert_eq!((answer.status, answer.count("mcp-session-id")), (200, 0), "{answer:?}");
    let theirs = backend(&deployment);

    let answer = echo(&deployment, &wide, &first).await;
    assert_eq!((answer.status, answer.count("mcp-session-id")), (200, 1), "{answer:?}");
    let second = answer.header("mcp-session-id").unwrap().to_owned();
    assert!(second != first && second != theirs && second.len() <= 512, "{second}");
    let answers = futures_of(&deployment, &wide, &first).await;
    assert!(answers.iter().all(|answer| answer.header("mcp-session-id") == Some(&second)), "{answers:?}");
    for session in [&first, &second] {
        assert_eq!(echo(&deployment, &wide, session).await.status, 200);
        assert_eq!(backend(&deployment), theirs);
    }
    let get =
        Request::new("GET", Deployment::ENDPOINT).header("Accept", "text/event-stream").bearer(&wide).session(&first);
    assert_eq!(deployment.send(get).await.header("mcp-session-id"), Some(&*second), "a stream's head carries it, too");

    let log = deployment.portcullis.log();
    assert!(!log.contains(&first) && !log.contains(&second), "an identifier is in the log");
    let delete = Request::new("DELETE", Deployment::ENDPOINT).bearer(&wide).session(&first);
    assert_eq!(deployment.send(delete).await.status, 200);
    for session in [&first, &second] {
        echo(&deployment, &wide, session).await.assert_no_session();
    }
}

/// Sends several requests concurrently.
async fn futures_of(deployment: &Deployment, token: &str, session: &str) -> [Answer; 3] {
    tokio::join!(echo(deployment, token, session), echo(deployment, token, session), echo(deployment, token, session))
        .into()
}

/// E7, E8: the new identifier is unknown to other owners, like the old one.
#[tokio::test]
async fn for_the_owner_only() {
    let deployment = Deployment::start().await;
    let wide = deployment.token().scope("mcp:tools mcp:admin").sign();
    let first = deployment.open_session(&deployment.good_token()).await;
    let second = echo(&deployment, &wide, &first).await.header("mcp-session-id").unwrap().to_owned();
    for stranger in [deployment.token().subject("mallory"), deployment.token().client_id("other")] {
        for session in [&first, &second] {
            let answer = echo(&deployment, &stranger.clone().scope("mcp:tools mcp:admin").sign(), session).await;
            answer.assert_no_session();
            assert_eq!(answer.count("mcp-session-id"), 0, "{answer:?}");
            deployment.portcullis.assert_denied(&answer, "session.unknown").await;
        }
    }
    assert_eq!(echo(&deployment, &wide, &first).await.header("mcp-session-id"), Some(&*second));
}
