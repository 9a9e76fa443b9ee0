//! How many sessions there may be.

use portcullis_scenarios::{Answer, INITIALIZE, Request, Site, Upstream, call};
use serde_json::json;

fn assert_full(answer: &Answer) {
    answer.assert_rpc_error(503, -32603);
    assert!(
        answer.header("retry-after").is_some_and(|value| value.parse::<u32>().is_ok_and(|seconds| seconds > 0)),
        "{answer:?}"
    );
    assert_eq!(answer.count("mcp-session-id"), 0, "{answer:?}");
}

/// E9: at an owner's limit new sessions are 503 with `Retry-After`; the existing ones go on, others may open theirs, and
/// an ended one makes room.
#[tokio::test]
async fn per_owner() {
    let site = Site::builder().tables("[session]\nmax_per_owner = 2").start().await;
    let (alice, bob) = (site.token().subject("alice").sign(), site.token().subject("bob").sign());
    let (first, second) = (site.open_session(&alice).await, site.open_session(&alice).await);
    let before = site.upstream.count();
    let answer = site.try_token(&alice).await;
    assert_full(&answer);
    site.portcullis.assert_denied(&answer, "session.owner_full").await;
    assert_eq!(site.upstream.count(), before, "room is reserved before the backend is asked");
    site.open_session(&bob).await;
    for session in [&first, &second] {
        let post = Request::post(Site::ENDPOINT, call(2, "echo", &json!({}))).bearer(&alice).session(session);
        assert_eq!(site.send(post).await.status, 200);
    }
    assert_eq!(site.send(Request::new("DELETE", Site::ENDPOINT).bearer(&alice).session(&first)).await.status, 200);
    site.open_session(&alice).await;
}

/// E9: the same in total, whoever asks.
#[tokio::test]
async fn in_total() {
    let site = Site::builder().tables("[session]\nmax_total = 3").start().await;
    for subject in ["a", "b", "c"] {
        site.open_session(&site.token().subject(subject).sign()).await;
    }
    let answer = site.try_token(&site.token().subject("d").sign()).await;
    assert_full(&answer);
    site.portcullis.assert_denied(&answer, "session.store_full").await;
}

/// E2: room that was reserved for a session that the backend refused is given back.
#[tokio::test]
async fn refused_sessions_take_no_room() {
    let refusing = std::sync::atomic::AtomicUsize::new(0);
    let upstream = Upstream::scripted(move |_| {
        let number = refusing.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        (number < 5).then(|| Upstream::answer(500, &[], ""))
    })
    .await;
    let site = Site::builder().upstream(upstream).tables("[session]\nmax_per_owner = 1").start().await;
    let token = site.good_token();
    for _ in 0..5 {
        assert_eq!(site.send(Request::post(Site::ENDPOINT, INITIALIZE).bearer(&token)).await.status, 500);
    }
    site.open_session(&token).await;
    assert_full(&site.try_token(&token).await);
}
