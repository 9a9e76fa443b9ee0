//! New session identifiers when the owner's scopes change.

use portcullis_scenarios::{Deployment, HttpResponse, Request};

/// E8: the response to a token with other scopes has a new session identifier. Both identify the
/// same session, and one DELETE ends it.
#[tokio::test]
async fn for_other_scopes() {
    let deployment = Deployment::start().await;
    let [narrow, wide] =
        ["mcp:tools", "mcp:tools mcp:admin"].map(|scope| deployment.token().scope(scope).sign());
    let first = deployment.open_session(&narrow).await;
    let upstream_session = |deployment: &Deployment| {
        deployment
            .upstream
            .last()
            .header("mcp-session-id")
            .unwrap()
            .to_owned()
    };
    let response = deployment.echo(&narrow, &first).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.count("mcp-session-id"), 0, "{response:?}");

    let theirs = upstream_session(&deployment);

    let response = deployment.echo(&wide, &first).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.count("mcp-session-id"), 1, "{response:?}");
    let second = response.header("mcp-session-id").unwrap().to_owned();
    assert!(second != first, "{second}");
    assert!(second != theirs, "{second}");
    assert!(second.len() <= 512, "{second}");

    let responses = concurrent_echoes(&deployment, &wide, &first).await;
    assert!(
        responses
            .iter()
            .all(|response| response.header("mcp-session-id") == Some(&second)),
        "{responses:?}"
    );
    for session in [&first, &second] {
        assert_eq!(deployment.echo(&wide, session).await.status, 200);
        assert_eq!(upstream_session(&deployment), theirs);
    }
    let get = Request::listen(Deployment::ENDPOINT, &wide, &first);
    assert_eq!(
        deployment.send(get).await.header("mcp-session-id"),
        Some(&*second),
        "the head of a stream has it, too"
    );

    let log = deployment.portcullis.log();
    assert!(!log.contains(&first), "an identifier is in the log");
    assert!(!log.contains(&second), "an identifier is in the log");
    let delete = Request::delete(Deployment::ENDPOINT, &wide, &first);
    assert_eq!(deployment.send(delete).await.status, 200);

    for session in [&first, &second] {
        deployment.echo(&wide, session).await.assert_no_session();
    }
}

/// Sends three requests concurrently.
async fn concurrent_echoes(
    deployment: &Deployment,
    token: &str,
    session: &str,
) -> [HttpResponse; 3] {
    tokio::join!(
        deployment.echo(token, session),
        deployment.echo(token, session),
        deployment.echo(token, session)
    )
    .into()
}

/// E7, E8: the new identifier is unknown to other owners, like the old one.
#[tokio::test]
async fn for_the_owner_only() {
    let deployment = Deployment::start().await;
    let wide = deployment.token().scope("mcp:tools mcp:admin").sign();
    let first = deployment.open_session(&deployment.good_token()).await;
    let second = deployment
        .echo(&wide, &first)
        .await
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    for stranger in [
        deployment.token().subject("mallory"),
        deployment.token().client_id("other"),
    ] {
        for session in [&first, &second] {
            let response = deployment
                .echo(
                    &stranger.clone().scope("mcp:tools mcp:admin").sign(),
                    session,
                )
                .await;
            response.assert_no_session();
            assert_eq!(response.count("mcp-session-id"), 0, "{response:?}");
            deployment
                .portcullis
                .assert_denied(&response, "session.unknown")
                .await;
        }
    }
    assert_eq!(
        deployment
            .echo(&wide, &first)
            .await
            .header("mcp-session-id"),
        Some(&*second)
    );
}
