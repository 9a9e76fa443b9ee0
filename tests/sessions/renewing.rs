//! New identifiers for sessions whose owner comes with other scopes.

use portcullis_scenarios::{Answer, Request, Site, call};
use serde_json::json;

async fn echo(site: &Site, token: &str, session: &str) -> Answer {
    site.send(Request::post(Site::ENDPOINT, call(2, "echo", &json!({}))).bearer(token).session(session)).await
}

/// E8: a token with other scopes gets the session a new identifier in the answer; both lead to the same backend session,
/// and one DELETE ends both.
#[tokio::test]
async fn for_other_scopes() {
    let site = Site::start().await;
    let [narrow, wide] = ["mcp:tools", "mcp:tools mcp:admin"].map(|scope| site.token().scope(scope).sign());
    let first = site.open_session(&narrow).await;
    let backend = |site: &Site| site.upstream.last().header("mcp-session-id").unwrap().to_owned();
    let answer = echo(&site, &narrow, &first).await;
    assert_eq!((answer.status, answer.count("mcp-session-id")), (200, 0), "{answer:?}");
    let theirs = backend(&site);

    let answer = echo(&site, &wide, &first).await;
    assert_eq!((answer.status, answer.count("mcp-session-id")), (200, 1), "{answer:?}");
    let second = answer.header("mcp-session-id").unwrap().to_owned();
    assert!(second != first && second != theirs && second.len() == 44, "{second}");
    let answers = futures_of(&site, &wide, &first).await;
    assert!(answers.iter().all(|answer| answer.header("mcp-session-id") == Some(&second)), "{answers:?}");
    for session in [&first, &second] {
        assert_eq!(echo(&site, &wide, session).await.status, 200);
        assert_eq!(backend(&site), theirs);
    }
    let get = Request::new("GET", Site::ENDPOINT).header("Accept", "text/event-stream").bearer(&wide).session(&first);
    assert_eq!(site.send(get).await.header("mcp-session-id"), Some(&*second), "a stream's head carries it, too");

    let log = site.portcullis.log();
    assert!(!log.contains(&first) && !log.contains(&second), "an identifier is in the log");
    let delete = Request::new("DELETE", Site::ENDPOINT).bearer(&wide).session(&first);
    assert_eq!(site.send(delete).await.status, 200);
    for session in [&first, &second] {
        echo(&site, &wide, session).await.assert_no_session();
    }
}

/// Several requests at once.
async fn futures_of(site: &Site, token: &str, session: &str) -> [Answer; 3] {
    tokio::join!(echo(site, token, session), echo(site, token, session), echo(site, token, session)).into()
}

/// E7, E8: the new identifier is as little use to anybody else as the old one.
#[tokio::test]
async fn for_nobody_else() {
    let site = Site::start().await;
    let wide = site.token().scope("mcp:tools mcp:admin").sign();
    let first = site.open_session(&site.good_token()).await;
    let second = echo(&site, &wide, &first).await.header("mcp-session-id").unwrap().to_owned();
    for stranger in [site.token().subject("mallory"), site.token().client_id("other")] {
        for session in [&first, &second] {
            let answer = echo(&site, &stranger.clone().scope("mcp:tools mcp:admin").sign(), session).await;
            answer.assert_no_session();
            assert_eq!(answer.count("mcp-session-id"), 0, "{answer:?}");
            site.portcullis.assert_denied(&answer, "session.unknown").await;
        }
    }
    assert_eq!(echo(&site, &wide, &first).await.header("mcp-session-id"), Some(&*second));
}
