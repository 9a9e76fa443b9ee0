//! Sealed session identifiers that were truncated, extended or spliced.

use portcullis_scenarios::{Deployment, HttpResponse, Request, Scratch, Upstream, call_message};
use serde_json::json;

const KEYS: [&str; 2] = [
    "the-first-key-of-both-0123456789abcdef01",
    "the-second-key-of-both-0123456789abcdef0",
];
const CHARACTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn tables(keys: &Scratch) -> String {
    format!(
        "[session]\nended_status = 404\nkeys = [{{ file = \"{}\" }}]",
        keys.as_str()
    )
}

async fn post(deployment: &Deployment, path: &str, token: &str, session: &str) -> HttpResponse {
    deployment
        .send(
            Request::post(path, call_message(7, "echo", &json!({})))
                .bearer(token)
                .session(session),
        )
        .await
}

/// Returns `identifier` with the next character of the alphabet at this position.
fn changed_at(identifier: &str, position: usize) -> String {
    let known = CHARACTERS
        .find(&identifier[position..=position])
        .unwrap_or_default();
    let other = CHARACTERS.as_bytes()[(known + 1) % 64] as char;
    format!(
        "{}{other}{}",
        &identifier[..position],
        &identifier[position + 1..]
    )
}

/// E1, E12: a modified identifier is unknown, even for the session's owner, in the process that
/// opened the session and in another replica. The session continues.
#[tokio::test]
async fn modified() {
    let keys = Scratch::file("session-keys", KEYS[0]);
    let first = Deployment::builder().tables(tables(&keys)).start().await;
    let setting = first.upstream.setting();
    let second = Deployment::builder()
        .upstream_setting(setting)
        .tables(tables(&keys))
        .start()
        .await;
    let session = first.open_session(&first.good_token()).await;
    let before = first.upstream.count();
    let mut modified: Vec<String> = (0..session.len())
        .step_by(5)
        .map(|position| changed_at(&session, position))
        .collect();
    modified.push(changed_at(&session, session.len() - 1));
    modified.extend(
        (0..session.len())
            .step_by(23)
            .map(|length| session[..length].to_owned()),
    );
    modified.extend(["A", "=", "==", "AAAA", "%3D", "~"].map(|more| format!("{session}{more}")));
    modified.extend([
        format!("A{session}"),
        format!("{session}{session}"),
        "A".repeat(512),
        "A".repeat(513),
    ]);
    modified.push(session.to_lowercase());
    for deployment in [&first, &second] {
        let token = deployment.good_token();
        for identifier in modified.iter().filter(|identifier| !identifier.is_empty()) {
            post(deployment, Deployment::ENDPOINT, &token, identifier)
                .await
                .assert_no_session();
        }
    }
    assert_eq!(
        first.upstream.count(),
        before,
        "a request reached the upstream"
    );

    for deployment in [&first, &second] {
        let response = post(
            deployment,
            Deployment::ENDPOINT,
            &deployment.good_token(),
            &session,
        )
        .await;
        assert_eq!(response.status, 200, "{response:?}");
    }
}

/// E7, E8, E12: spliced identifiers of two sessions, owners, scopes, resources or keys are unknown.
#[tokio::test]
async fn spliced() {
    let keys = Scratch::file("session-keys", KEYS[0]);
    let upstream = Upstream::start().await;
    let other_resource = format!(
        "[[resource]]\nendpoint = \"/other\"\nupstream = {}",
        upstream.setting()
    );
    let first = Deployment::builder()
        .upstream(upstream)
        .tables(format!("{other_resource}\n{}", tables(&keys)))
        .start()
        .await;
    let alice = first.good_token();
    let session = first.open_session(&alice).await;
    let open = async |deployment: &Deployment, path: &str, token: &str| {
        let response = deployment
            .send(Request::post(path, portcullis_scenarios::INITIALIZE).bearer(token))
            .await;
        response
            .header("mcp-session-id")
            .expect("a session identifier")
            .to_owned()
    };
    let wide = first.token().scope("mcp:tools mcp:admin").sign();
    let successor = post(&first, Deployment::ENDPOINT, &wide, &session).await;
    let mut others = vec![
        first.open_session(&alice).await,
        first
            .open_session(&first.token().subject("mallory").sign())
            .await,
        successor.header("mcp-session-id").unwrap().to_owned(),
    ];
    std::fs::write(keys.path(), format!("{}\n{}", KEYS[1], KEYS[0])).unwrap();
    let setting = first.upstream.setting();
    let second = Deployment::builder()
        .upstream_setting(setting)
        .tables(tables(&keys))
        .start()
        .await;
    others.push(second.open_session(&second.good_token()).await);
    others.push(
        open(
            &first,
            "/other",
            &first.token().audience(other_audience()).sign(),
        )
        .await,
    );

    let before = first.upstream.count();
    for other in &others {
        let length = session.len().min(other.len());
        for at in [2, 12, 23, 24, length / 2, length - 22, length - 2] {
            for spliced in [
                format!("{}{}", &session[..at], &other[at..]),
                format!("{}{}", &other[..at], &session[at..]),
            ] {
                if spliced == session || spliced == *other {
                    continue;
                }
                post(
                    &second,
                    Deployment::ENDPOINT,
                    &second.good_token(),
                    &spliced,
                )
                .await
                .assert_no_session();
            }
        }
    }
    assert_eq!(
        first.upstream.count(),
        before,
        "a request reached the upstream"
    );
    assert_eq!(
        post(
            &second,
            Deployment::ENDPOINT,
            &second.good_token(),
            &session
        )
        .await
        .status,
        200
    );
}

fn other_audience() -> String {
    Deployment::RESOURCE.replace("/mcp", "/other")
}

/// E7, E12: an identifier of one resource is unknown at another one, even for its owner.
#[tokio::test]
async fn at_another_resource() {
    let keys = Scratch::file("session-keys", KEYS[0]);
    let upstream = Upstream::start().await;
    let other_resource = format!(
        "[[resource]]\nendpoint = \"/other\"\nupstream = {}",
        upstream.setting()
    );
    let deployment = Deployment::builder()
        .upstream(upstream)
        .tables(format!("{other_resource}\n{}", tables(&keys)))
        .start()
        .await;
    let session = deployment.open_session(&deployment.good_token()).await;
    let token = deployment.token().audience(other_audience()).sign();
    let before = deployment.upstream.count();
    post(&deployment, "/other", &token, &session)
        .await
        .assert_no_session();
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
}
