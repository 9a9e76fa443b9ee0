//! Reloads of the configuration: which changes take effect, and which sessions and streams end.

use http::Method;
use portcullis_scenarios::{
    AuthorizationServer, EventStreams, ReloadableServer, Scratch, Upstream, audit_records,
};

const SCOPES: (&str, &str) = (
    "required_scopes = [\"mcp:tools\"]",
    "required_scopes = [\"mcp:admin\"]",
);

fn initializes(upstream: &Upstream) -> usize {
    upstream
        .recorded()
        .iter()
        .filter(|request| request.message_method().as_deref() == Some("initialize"))
        .count()
}

/// J10: a valid change takes effect and is logged with key, old and new value; sessions, cached
/// tokens, keys of issuers and other resources remain.
#[tokio::test]
async fn a_valid_change_keeps_the_rest() {
    let reloading = ReloadableServer::start(Upstream::start().await, "").await;
    let mcp = reloading.token(ReloadableServer::MCP);
    let other = reloading.token(ReloadableServer::OTHER);
    let session = reloading.open_session("/mcp", &mcp).await;
    let elsewhere = reloading.open_session("/other", &other).await;
    let fetches = reloading.issuer.key_requests();
    let initialized = initializes(&reloading.upstream);
    let line = reloading.reload(&[SCOPES]).await;
    assert_eq!(line["config.changes"], 1, "{line}");
    assert_eq!(line["sessions.ended"], 0, "{line}");

    let change = reloading
        .portcullis
        .logged("a setting has changed", |_| true)
        .await;
    assert_eq!(
        change["config.key"], "resource[\"/mcp\"].required_scopes",
        "{change}"
    );
    assert_eq!(change["config.old"], "[\"mcp:tools\"]");
    assert_eq!(change["config.new"], "[\"mcp:admin\"]");
    assert_eq!(reloading.call("/mcp", &mcp, &session).await.status, 403);
    assert_eq!(
        reloading.call("/other", &other, &elsewhere).await.status,
        200
    );

    reloading.reload(&[]).await;
    assert_eq!(reloading.call("/mcp", &mcp, &session).await.status, 200);
    assert_eq!(initializes(&reloading.upstream), initialized);
    assert_eq!(reloading.issuer.key_requests(), fetches);

    let unchanged = reloading.reload(&[]).await;
    assert_eq!(
        unchanged["message"], "the configuration has not changed",
        "{unchanged}"
    );
}

/// J10: an invalid configuration is rejected as a whole, with every reason in the log, and the
/// running one stays in use.
#[tokio::test]
async fn an_invalid_configuration_changes_nothing() {
    let reloading = ReloadableServer::start(Upstream::start().await, "").await;
    let token = reloading.token(ReloadableServer::MCP);
    let session = reloading.open_session("/mcp", &token).await;
    for (number, (edits, reasons)) in [
        (
            vec![
                SCOPES,
                ("workers = 2", "workers = 0\ntrusted_proxies = [\"x\"]"),
                ("\"/other\"", "\"other\""),
            ],
            vec![
                "workers",
                "trusted_proxies",
                "resource[1].endpoint = \\\"other\\\"",
            ],
        ),
        (
            vec![
                SCOPES,
                ("workers = 2", "worker = 2"),
                ("\"/other\"", "\"/other\"\nrealms = \"x\""),
            ],
            vec![": worker is not a known key", "realms"],
        ),
        (
            vec![SCOPES, ("workers = 2", "workers =")],
            vec!["portcullis.toml"],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let line = reloading.reload(&edits).await;
        assert_eq!(line["level"], "ERROR", "{line}");
        assert_eq!(
            line["config.reasons"],
            reasons.len(),
            "{line}\n{}",
            reloading.portcullis.log()
        );
        let log = reloading.portcullis.log();
        let logged: Vec<&str> = log
            .lines()
            .filter(|line| {
                line.contains(&format!("\"config.reload\":{}", number + 1))
                    && line.contains("config.reason\"")
            })
            .collect();
        for reason in reasons {
            assert!(
                logged.iter().any(|line| line.contains(reason)),
                "{reason}: {logged:?}"
            );
        }
        assert_eq!(reloading.call("/mcp", &token, &session).await.status, 200);
    }
}

/// J10: changed settings that need a restart reject the configuration as a whole. The log names
/// each, with both values and the fix.
#[tokio::test]
async fn settings_that_need_a_restart() {
    let reloading = ReloadableServer::start(Upstream::start().await, "").await;
    let token = reloading.token(ReloadableServer::MCP);
    let session = reloading.open_session("/mcp", &token).await;
    let line = reloading
        .reload(&[
            SCOPES,
            ("workers = 2", "workers = 3\nlimits = { max_headers = 70 }"),
        ])
        .await;
    assert_eq!(line["level"], "ERROR", "{line}");
    assert_eq!(line["config.reasons"], 2, "{line}");
    for change in [
        "workers needs a restart to change from 2 to 3; restart the server",
        "limits.max_headers needs a restart to change from 100 to 70; restart the server",
    ] {
        reloading
            .portcullis
            .logged_line(&[change, "config.reason", "portcullis.toml:"])
            .await;
    }
    assert_eq!(reloading.call("/mcp", &token, &session).await.status, 200);
}

/// J10, E9: sessions of a removed resource end, at the upstream and in the audit trail, and
/// requests for the resource get 404.
#[tokio::test]
async fn a_removed_resource() {
    let audit = Scratch::file("audit.jsonl", "");
    let tables = format!("[audit]\ntarget = {{ file = \"{}\" }}", audit.as_str());
    let reloading = ReloadableServer::start(Upstream::start().await, &tables).await;
    let mcp = reloading.token(ReloadableServer::MCP);
    let token = reloading.token(ReloadableServer::OTHER);
    let kept = reloading.open_session("/mcp", &mcp).await;
    let session = reloading.open_session("/other", &token).await;
    let removed = reloading.other_resource();
    let line = reloading.reload(&[(removed, "")]).await;
    assert_eq!(line["sessions.ended"], 1, "{line}");
    assert_eq!(reloading.call("/other", &token, &session).await.status, 404);
    assert_eq!(reloading.call("/mcp", &mcp, &kept).await.status, 200);

    let records = audit_records(audit.path(), |record| {
        record["session.reason"] == "resource_removed"
    })
    .await;
    assert_eq!(
        records
            .iter()
            .filter(|record| record["event"] == "session.ended")
            .count(),
        1,
        "{records:?}"
    );
    reloading.reload(&[]).await;
    reloading
        .call("/other", &token, &session)
        .await
        .assert_ended_session();

    // Two sessions were opened, one was used, and one was ended.
    reloading.upstream.wait_for_requests(4).await;
    assert_eq!(reloading.upstream.count_of(&Method::DELETE), 1);
    assert_eq!(reloading.call("/mcp", &mcp, &kept).await.status, 200);
}

/// J10, E9: if the upstream of a resource changes, its sessions end, also at the former upstream.
#[tokio::test]
async fn a_changed_upstream() {
    let reloading = ReloadableServer::start(Upstream::start().await, "").await;
    let token = reloading.token(ReloadableServer::OTHER);
    let session = reloading.open_session("/other", &token).await;
    let new = Upstream::start().await;
    let from = reloading.other_resource();
    let setting = new.setting();
    let to = from.replace(&reloading.upstream.setting(), &setting);
    let line = reloading.reload(&[(from, &to)]).await;
    assert_eq!(line["sessions.ended"], 1, "{line}");

    reloading
        .call("/other", &token, &session)
        .await
        .assert_ended_session();
    let session = reloading.open_session("/other", &token).await;
    assert_eq!(reloading.call("/other", &token, &session).await.status, 200);
    reloading.upstream.wait_for_requests(2).await;
    assert_eq!(initializes(&new), 1);
    assert_eq!(new.count_of(&Method::DELETE), 0);
    assert_eq!(reloading.upstream.count_of(&Method::DELETE), 1);
}

/// B4, J10: tokens of a removed issuer are rejected immediately, and their sessions end.
#[tokio::test]
async fn a_removed_issuer() {
    let second = AuthorizationServer::start(ReloadableServer::MCP);
    let table = format!(
        "[[issuer]]\nissuer = \"{}\"",
        second.test_issuer().issuer().as_str()
    );
    let reloading = ReloadableServer::start(Upstream::start().await, &table).await;
    let kept = reloading.token(ReloadableServer::MCP);
    let removed = second.test_issuer().token().scope("mcp:tools").sign();
    let session = reloading.open_session("/mcp", &removed).await;
    let other = reloading.open_session("/mcp", &kept).await;
    let line = reloading.reload(&[(&table, "")]).await;
    assert_eq!(line["sessions.ended"], 1, "{line}");

    let response = reloading.call("/mcp", &removed, &session).await;
    assert_eq!(
        response.assert_unauthorized(),
        Some("invalid_token"),
        "{response:?}"
    );
    assert_eq!(reloading.call("/mcp", &kept, &other).await.status, 200);
    reloading.reload(&[]).await;
    reloading
        .call("/mcp", &removed, &session)
        .await
        .assert_ended_session();
}

/// J10, L3: streams end when their request does not satisfy changed rules, and others continue.
#[tokio::test]
async fn streams_that_do_not_satisfy_new_rules() {
    let events = EventStreams::default();
    let upstream = events.listening_upstream().await;
    let reloading = ReloadableServer::start(upstream, "").await;
    let mut streams = Vec::new();
    for (endpoint, resource) in [
        ("/mcp", ReloadableServer::MCP),
        ("/other", ReloadableServer::OTHER),
    ] {
        let token = reloading.token(resource);
        let session = reloading.open_session(endpoint, &token).await;
        streams.push(reloading.open_stream(endpoint, &token, &session).await);
    }
    reloading
        .reload(&[("\"/other\"", "\"/other\"\nrealm = \"r\"")])
        .await;
    for (number, stream) in streams.iter_mut().enumerate() {
        events.send(number);
        assert_eq!(
            ReloadableServer::next_event(stream).await.as_deref(),
            Some(EventStreams::EVENT.as_bytes())
        );
    }
    let line = reloading.reload(&[SCOPES]).await;
    assert_eq!(line["streams.ended"], 1, "{line}");
    assert_eq!(line["sessions.ended"], 0, "{line}");
    assert_eq!(ReloadableServer::next_event(&mut streams[0]).await, None);

    events.send(1);
    assert_eq!(
        ReloadableServer::next_event(&mut streams[1])
            .await
            .as_deref(),
        Some(EventStreams::EVENT.as_bytes())
    );
    reloading
        .portcullis
        .logged("stream.configuration_changed", |_| true)
        .await;
}

/// J10: with `reload = "watch"`, a changed file is reloaded without a signal.
#[tokio::test]
async fn a_watched_file() {
    let reloading = ReloadableServer::start(Upstream::start().await, "").await;
    let token = reloading.token(ReloadableServer::MCP);
    let session = reloading.open_session("/mcp", &token).await;
    let watch = ("reload = \"signal\"", "reload = \"watch\"");
    reloading.reload(&[watch]).await;
    reloading.write(&[watch, SCOPES]);
    let line = reloading.wait_for_reload().await;
    assert_eq!(line["config.changes"], 1, "{line}");
    assert_eq!(reloading.call("/mcp", &token, &session).await.status, 403);
}
