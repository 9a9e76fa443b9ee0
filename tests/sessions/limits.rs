//! The limits of sessions in total, and the capacity that rejected ones release.

use portcullis_scenarios::{Deployment, HttpResponse, INITIALIZE, Request, Upstream};

fn assert_full(response: &HttpResponse) {
    response.assert_rpc_error(503, -32603);
    assert!(
        response
            .header("retry-after")
            .is_some_and(|value| value.parse::<u32>().is_ok_and(|seconds| seconds > 0)),
        "{response:?}"
    );
    assert_eq!(response.count("mcp-session-id"), 0, "{response:?}");
}

/// E9: at the total limit, new sessions get 503 with `Retry-After` for every owner. No session is
/// evicted, not even one of the same owner.
#[tokio::test]
async fn in_total() {
    let deployment = Deployment::builder()
        .tables("[session]\nmax_total = 3")
        .start()
        .await;
    for subject in ["a", "b", "c"] {
        deployment
            .open_session(&deployment.token().subject(subject).sign())
            .await;
    }
    for subject in ["d", "a"] {
        let response = deployment
            .try_token(&deployment.token().subject(subject).sign())
            .await;
        assert_full(&response);
        deployment
            .portcullis
            .assert_denied(&response, "session.store_full")
            .await;
    }
    assert!(!deployment.portcullis.log().contains("session ended"));
}

/// E2: the capacity that was reserved for a session is released if the upstream rejects it.
#[tokio::test]
async fn rejected_sessions_release_their_capacity() {
    let request_count = std::sync::atomic::AtomicUsize::new(0);
    let upstream = Upstream::scripted(move |_| {
        let number = request_count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        (number < 5).then(|| Upstream::response(500, &[], ""))
    })
    .await;
    let deployment = Deployment::builder()
        .upstream(upstream)
        .tables("[session]\nmax_total = 1")
        .start()
        .await;
    let token = deployment.good_token();
    for _ in 0..5 {
        assert_eq!(
            deployment
                .send(Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&token))
                .await
                .status,
            500
        );
    }
    deployment.open_session(&token).await;
    assert_full(&deployment.try_token(&token).await);
}

/// E9: one subject has a limit with all its clients together, so that it cannot take all sessions
/// by registering clients. Its clients still replace their own sessions, and other subjects are not
/// affected.
#[tokio::test]
async fn of_a_subject_with_many_clients() {
    let tables = "[session]\nmax_total = 40\nmax_per_owner = 2\nmax_per_subject = 5";
    let deployment = Deployment::builder().tables(tables).start().await;
    let token = |client: usize| {
        deployment
            .token()
            .subject("mallory")
            .client_id(&format!("client-{client}"))
            .sign()
    };
    for number in 0..5 {
        deployment.open_session(&token(number / 2)).await;
    }
    for client in 3..6 {
        let response = deployment.try_token(&token(client)).await;
        assert_full(&response);
        deployment
            .portcullis
            .assert_denied(&response, "session.subject_full")
            .await;
    }
    assert_full(&deployment.try_token(&token(2)).await);
    deployment.open_session(&token(0)).await;
    deployment
        .portcullis
        .logged("session ended", |line| line["session.reason"] == "evicted")
        .await;
    assert_full(&deployment.try_token(&token(3)).await);
    deployment
        .open_session(&deployment.token().subject("alice").sign())
        .await;
}

/// E9: one subject cannot fill the table of remembered ends with many clients. With the ends of
/// more than 256 clients, the oldest are forgotten, and sessions of the subject that were created
/// before them end, with whichever client. Other subjects are not affected.
#[tokio::test]
async fn remembered_ends_of_a_subject_with_many_clients() {
    const CLIENTS: usize = 257;
    let deployment = Deployment::start().await;
    let token = |client: &str| {
        deployment
            .token()
            .subject("mallory")
            .client_id(client)
            .sign()
    };
    let alice = deployment.token().subject("alice").sign();
    let kept = deployment.open_session(&alice).await;
    let earlier = deployment.open_session(&token("earlier")).await;
    for number in 0..CLIENTS {
        let token = token(&format!("client-{number}"));
        let session = deployment.open_session(&token).await;
        let delete = Request::new("DELETE", Deployment::ENDPOINT)
            .bearer(&token)
            .session(&session);
        assert_eq!(deployment.send(delete).await.status, 200);
        if number + 1 < CLIENTS {
            assert!(
                !deployment.portcullis.log().contains("overflow"),
                "{number}"
            );
        }
    }
    deployment
        .portcullis
        .logged("session ended", |line| line["session.reason"] == "overflow")
        .await;
    assert_eq!(
        deployment.echo(&token("earlier"), &earlier).await.status,
        404
    );
    assert_eq!(deployment.echo(&alice, &kept).await.status, 200);
}
