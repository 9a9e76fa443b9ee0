//! Administrators list and end sessions, and drop cached tokens.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    time::Duration,
};

use http::Method;
use portcullis_scenarios::{
    Administration, AuthorizationServer, Deployment, EventStreams, Request, Scratch, Signal,
    TIMEOUT, audit_records, modern_request,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::listening::END_TIME;

fn end(body: &Value) -> Request {
    Request::post("/v1/sessions/end", body.to_string()).bearer(Administration::TOKEN)
}

/// E12: the list has each session with its hash, its owner, its age and its streams, page by page,
/// and no identifier.
#[tokio::test]
async fn sessions_are_listed() {
    let administration = Administration::default();
    let streams = EventStreams::default();
    let builder = Deployment::builder().upstream(streams.upstream().await);
    let deployment = administration.of(builder, "").start().await;
    let alice = deployment.token().subject("alice").sign();
    let bob = deployment.token().subject("bob").client_id("cli").sign();
    let session = deployment.open_session(&alice).await;
    let _listening = streams.listen(&deployment, &alice, &session).await;
    for _ in 0..3 {
        deployment.open_session(&bob).await;
    }
    let list = administration.sessions("").await;
    assert_eq!(list["total"], 4, "{list}");
    assert_eq!(list["next"], Value::Null, "{list}");

    let of_alice = administration.sessions("?subject=alice").await;
    let [entry] = of_alice["sessions"].as_array().unwrap().as_slice() else {
        panic!("{of_alice}")
    };
    assert_eq!(entry["subject"], "alice");
    assert_eq!(entry["streams"], 1);
    assert_eq!(entry["in_use"], true);
    assert_eq!(entry["issuer"], "https://issuer.example");
    assert_eq!(entry["resource"], json!(Deployment::RESOURCE));
    assert_eq!(entry["adopted"], false);
    assert!(
        entry["age_seconds"].as_u64().is_some_and(|age| age < 60),
        "{entry}"
    );
    assert_eq!(entry["session"].as_str().map(str::len), Some(16));
    assert!(!list.to_string().contains(&session), "{list}");

    let mut after = String::new();
    let mut listed = BTreeSet::new();
    for _ in 0..3 {
        let page = administration
            .sessions(&format!("?limit=1&client=cli{after}"))
            .await;
        let [entry] = page["sessions"].as_array().unwrap().as_slice() else {
            panic!("{page}")
        };
        assert!(listed.insert(entry["session"].to_string()), "{page}");
        after = page["next"]
            .as_str()
            .map_or_else(String::new, |next| format!("&after={next}"));
    }
    assert_eq!(after, "", "the third page is the last one");

    for query in ["?limit=0", "?limit=1001", "?after=x", "?user=alice"] {
        let request =
            Request::new("GET", &format!("/v1/sessions{query}")).bearer(Administration::TOKEN);
        assert_eq!(administration.send(request).await.0, 400, "{query}");
    }
}

/// E9, E12: the sessions of a subject end, also at the upstream. Their streams, and streams without
/// a session, end soon. Other subjects keep theirs, and the subject can open new ones.
#[tokio::test]
async fn a_subject_ends() {
    let administration = Administration::default();
    let streams = EventStreams::default();
    let builder = Deployment::builder().upstream(streams.upstream().await);
    let deployment = administration.of(builder, "").start().await;
    let alice = deployment.token().subject("alice").sign();
    let bob = deployment.token().subject("bob").sign();
    let session = deployment.open_session(&alice).await;
    let kept = deployment.open_session(&bob).await;
    let mut listening = streams.listen(&deployment, &alice, &session).await;
    let listen = modern_request(
        Deployment::ENDPOINT,
        "subscriptions/listen",
        &json!({ "notifications": {} }),
    );
    let mut modern = streams.open(&deployment, listen.bearer(&alice)).await;
    let mut of_bob = streams.listen(&deployment, &bob, &kept).await;
    let (status, ended) = administration
        .send(end(&json!({ "subject": "alice" })))
        .await;
    let since = Instant::now();
    assert_eq!(status, 200);
    assert_eq!(ended, json!({ "sessions_ended": 1, "streams_ended": 2 }));
    listening.assert_ended().await;

    // The result of the request precedes the end.
    assert!(modern.connection.chunk().await.is_some());
    modern.assert_ended().await;
    assert!(since.elapsed() < END_TIME, "{:?}", since.elapsed());
    of_bob.assert_open().await;

    deployment
        .echo(&alice, &session)
        .await
        .assert_ended_session();
    assert_eq!(deployment.echo(&bob, &kept).await.status, 200);
    while deployment.upstream.count_of(&Method::DELETE) == 0 {
        assert!(
            since.elapsed() < TIMEOUT,
            "the session of the upstream does not end"
        );
        sleep(Duration::from_millis(10)).await;
    }
    let again = deployment.open_session(&alice).await;
    assert_eq!(deployment.echo(&alice, &again).await.status, 200);
    assert_eq!(deployment.upstream.count_of(&Method::DELETE), 1);
}

/// E12: sessions in no table end with their subject or client, after a restart before and after the
/// end.
#[tokio::test]
async fn sessions_in_no_table_end() {
    let administration = Administration::default();
    let state = Scratch::path_for("state");
    let builder = Deployment::builder().top(format!("state_dir = \"{}\"", state.as_str()));
    let deployment = administration.of(builder, "").start().await;
    let tokens = ["alice", "bob", "carol"].map(|subject| {
        deployment
            .token()
            .subject(subject)
            .client_id(subject)
            .sign()
    });
    let mut sessions = Vec::new();
    for token in &tokens {
        sessions.push(deployment.open_session(token).await);
    }
    let deployment = deployment.restart(Signal::KILL).await;
    assert_eq!(administration.sessions("").await["total"], 0);

    let nothing = json!({ "sessions_ended": 0, "streams_ended": 0 });
    let issuer = "https://issuer.example";
    assert_eq!(
        administration
            .send(end(&json!({ "subject": "alice", "issuer": issuer })))
            .await,
        (200, nothing.clone())
    );
    assert_eq!(
        administration.send(end(&json!({ "client": "bob" }))).await,
        (200, nothing)
    );

    let unknown = administration
        .send(end(
            &json!({ "subject": "carol", "issuer": "https://other.example" }),
        ))
        .await;
    assert_eq!(unknown.0, 404);
    assert_eq!(unknown.1["error"]["code"], "admin.issuer_unknown");
    let deployment = deployment.restart(Signal::KILL).await;
    let before = deployment.upstream.count();
    for (token, session) in tokens.iter().zip(&sessions).take(2) {
        deployment.echo(token, session).await.assert_ended_session();
    }
    assert_eq!(deployment.upstream.count(), before);
    assert_eq!(deployment.echo(&tokens[2], &sessions[2]).await.status, 200);
    assert_eq!(
        administration.sessions("").await["sessions"][0]["adopted"],
        true
    );
}

/// E12: one session ends by its hash, and the owner's others do not.
#[tokio::test]
async fn one_session_ends() {
    let administration = Administration::default();
    let deployment = administration.of(Deployment::builder(), "").start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let hash = administration.sessions("").await["sessions"][0]["session"].clone();
    let other = deployment.open_session(&token).await;
    let (status, ended) = administration.send(end(&json!({ "session": hash }))).await;
    assert_eq!(status, 200, "{ended}");
    assert_eq!(ended["sessions_ended"], 1, "{ended}");

    deployment
        .echo(&token, &session)
        .await
        .assert_ended_session();
    assert_eq!(deployment.echo(&token, &other).await.status, 200);
    let (status, again) = administration.send(end(&json!({ "session": hash }))).await;
    assert_eq!(status, 404);
    assert_eq!(again["error"]["code"], "admin.session_unknown");
}

/// C11: an issuer's cached tokens are dropped, its streams end, and its keys are fetched again: a
/// token of a withdrawn key is rejected at once.
#[tokio::test]
async fn cached_tokens_are_dropped() {
    let administration = Administration::default();
    let server = AuthorizationServer::start(Deployment::RESOURCE);
    let issuer = server.test_issuer().issuer().as_str().to_owned();
    let streams = EventStreams::default();
    let builder = Deployment::builder()
        .upstream(streams.upstream().await)
        .resource(format!("issuers = [\"{issuer}\"]"));
    let deployment = administration
        .of(builder, &format!("[[issuer]]\nissuer = \"{issuer}\""))
        .start()
        .await;
    let token = server.test_issuer().token().sign();
    let session = deployment.open_session(&token).await;
    let mut listening = streams.listen(&deployment, &token, &session).await;

    server.test_issuer().rotate();
    assert_eq!(
        deployment.try_token(&token).await.status,
        200,
        "the token is cached"
    );
    let drop_tokens = |issuer: &str| {
        let body = json!({ "issuer": issuer, "note": "incident 42" }).to_string();
        Request::post("/v1/tokens/drop", body).bearer(Administration::TOKEN)
    };
    let (status, dropped) = administration.send(drop_tokens(&issuer)).await;
    assert_eq!(status, 200);
    assert_eq!(
        dropped,
        json!({ "tokens_dropped": 1, "streams_ended": 1, "keys_fetched": true })
    );
    assert_eq!(deployment.try_token(&token).await.status, 401);
    listening.assert_ended().await;

    let (status, unknown) = administration
        .send(drop_tokens("https://other.example"))
        .await;
    assert_eq!(status, 404);
    assert_eq!(unknown["error"]["code"], "admin.issuer_unknown");
}

/// J2, J4: each action is audited with its target, its result and its client, rejected ones too.
/// The token is neither in the log nor in the trail.
#[tokio::test]
async fn actions_are_audited() {
    let administration = Administration::default();
    let audit = Scratch::file("audit.jsonl", "");
    let tables = format!("[audit]\ntarget = {{ file = \"{}\" }}", audit.as_str());
    let deployment = administration
        .of(Deployment::builder(), &tables)
        .start()
        .await;
    deployment
        .open_session(&deployment.token().subject("alice").sign())
        .await;
    administration.sessions("?subject=alice").await;
    let body = json!({ "subject": "alice", "note": "left the company" });
    assert_eq!(administration.send(end(&body)).await.0, 200);

    let wrong = "wrong-token-of-a-scenario-0123456789abcdef";
    assert_eq!(
        administration
            .send(Request::new("GET", "/v1/sessions").bearer(wrong))
            .await
            .0,
        401
    );
    let records = audit_records(audit.path(), |record| {
        record["deny.code"] == "admin.token_invalid"
    })
    .await;
    let of = |event: &str| {
        records
            .iter()
            .filter(|record| record["event"] == event)
            .cloned()
            .collect::<Vec<_>>()
    };
    let [listed, ended, refused] = of("administration").try_into().unwrap();
    assert_eq!(listed["admin.action"], "sessions.list");
    assert_eq!(listed["principal.subject"], "alice");
    assert_eq!(ended["admin.action"], "sessions.end");
    assert_eq!(ended["decision"], "allow");
    assert_eq!(ended["sessions.ended"], 1);
    assert_eq!(ended["admin.note"], "left the company");
    assert_eq!(refused["admin.action"], "none");
    assert_eq!(refused["decision"], "deny");
    assert!(ended["client.uid"].is_number(), "{ended}");
    assert_eq!(of("session.ended")[0]["session.reason"], "administrator");

    deployment
        .portcullis
        .logged("was not performed", |line| {
            line["deny.code"] == "admin.token_invalid"
        })
        .await;
    let written = format!("{records:?}{}", deployment.portcullis.log());
    assert!(!written.contains(Administration::TOKEN));
    assert!(!written.contains(wrong));
}

/// E12: the command lists, ends and drops as a table and as JSON, and its exit codes tell what
/// happened.
#[tokio::test]
async fn the_command_does_the_same() {
    let administration = Administration::default();
    let deployment = administration.of(Deployment::builder(), "").start().await;
    let alice = deployment.token().subject("alice").sign();
    let session = deployment.open_session(&alice).await;
    let listed = administration.run(&["sessions"]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.stdout.contains("alice"), "{listed:?}");
    assert!(listed.stdout.contains("SUBJECT"), "{listed:?}");

    let listed = administration
        .run(&["sessions", "--json", "--subject", "alice"])
        .await;
    let list: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(list["total"], 1, "{list}");
    assert_eq!(list["has_more"], false, "{list}");

    let hash = list["sessions"][0]["session"].as_str().unwrap();
    let ended = administration.run(&["end", "--session", hash]).await;
    assert_eq!(ended.code, Some(0));
    assert_eq!(
        ended.stdout.trim_end(),
        "ended 1 session in the server's table and 0 event streams"
    );

    deployment
        .echo(&alice, &session)
        .await
        .assert_ended_session();
    let again = administration.run(&["end", "--session", hash]).await;
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("admin.session_unknown"), "{again:?}");

    let ended = administration
        .run(&["end", "--subject", "alice", "--note", "x"])
        .await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("in no table"), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("clients of 2026-07-28 have no sessions"),
        "{ended:?}"
    );
    let dropped = administration
        .run(&[
            "drop-tokens",
            "--issuer",
            "https://issuer.example",
            "--json",
        ])
        .await;
    assert_eq!(dropped.code, Some(0), "{dropped:?}");
    assert_eq!(administration.run(&["end"]).await.code, Some(2));

    let listed = administration.run(&["sessions"]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert_eq!(
        listed.stdout.trim_end(),
        "there are no sessions in the server's table; clients of 2026-07-28 have no sessions"
    );
    let filtered = administration
        .run(&["sessions", "--subject", "alice"])
        .await;
    assert!(filtered.stdout.contains("no such sessions"), "{filtered:?}");
}

/// E12: the socket is private, goes with its server, and is replaced after a crash. A reload does
/// not change it.
#[tokio::test]
async fn the_socket_follows_the_server() {
    let administration = Administration::default();
    let deployment = administration.of(Deployment::builder(), "").start().await;
    let socket = || fs::metadata(administration.socket()).unwrap();
    let mode = || socket().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);

    let created = socket().ino();
    deployment.portcullis.signal(Signal::HUP);
    deployment
        .portcullis
        .logged("config.reload", |line| line["config.reload"] == 1)
        .await;
    assert_eq!(socket().ino(), created);
    assert_eq!(administration.sessions("").await["total"], 0);

    let deployment = deployment.restart(Signal::KILL).await;
    assert_eq!(mode(), 0o600);
    assert_eq!(administration.sessions("").await["total"], 0);
    deployment.portcullis.stop().await;
    assert!(!administration.socket().exists());
    let stopped = administration.run(&["sessions"]).await;
    assert_eq!(stopped.code, Some(1));
    assert!(
        stopped.stderr.contains("is the server running?"),
        "{stopped:?}"
    );
}
