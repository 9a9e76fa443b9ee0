//! The clients of the soak. Each runs until the soak ends, and fails at an unexpected response.

use std::{sync::Arc, time::Duration};

use anyhow::ensure;
use portcullis_scenarios::{Request, call_message, modern_request};
use portcullis_testkit::TestIssuer;
use serde_json::json;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::sleep};

use super::{traffic::Traffic, user::User};
use crate::{configuration::PATH, http::Connection};

/// The pause of a client after a request.
const PAUSE: Duration = Duration::from_millis(60);
/// The subjects of a client, in turn.
const SUBJECTS: usize = 5;

/// Opens sessions, calls tools and listens in them, and deletes most of them.
pub(super) async fn use_sessions(traffic: Arc<Traffic>, client: usize) -> anyhow::Result<()> {
    for round in client.. {
        let mut user =
            User::connect(&traffic, format!("user-{client}-{}", round % SUBJECTS)).await?;
        user.open_session().await?;
        let stream = if round % 3 == 0 {
            Some(user.open_stream().await?)
        } else {
            None
        };
        for number in 0..5 + round % 16 {
            user.expect_in_session(200, echo(number)).await?;
            sleep(PAUSE).await;
        }
        drop(stream);
        if round % 4 != 3 {
            user.expect_in_session(200, Request::new("DELETE", PATH))
                .await?;
            user.expect_in_session(400, echo(0)).await?;
        }
    }
    Ok(())
}

/// Sends invalid tokens, none, and invalid messages, which are rejected.
pub(super) async fn send_rejected(traffic: Arc<Traffic>) -> anyhow::Result<()> {
    let foreign = TestIssuer::new("https://foreign.example");
    loop {
        let signed = |change: fn(_) -> _| traffic.issuer().sign(change).token;
        let rejected = [
            "not-a-token".to_owned(),
            foreign.token().sign(),
            traffic
                .issuer()
                .test_issuer()
                .token()
                .signed_by(foreign.key())
                .sign(),
            signed(|token| token.expires_in(-600)),
            signed(|token| token.audience("https://other.example/mcp")),
        ];
        let requests = rejected
            .iter()
            .map(|token| echo(0).bearer(token))
            .chain([echo(0)]);
        let mut connection = Connection::open(traffic.address()).await?;
        for request in requests {
            traffic.count();
            let response = connection.send(&request.to_bytes()).await?;
            ensure!(
                response.status == 401,
                "unexpected status {} of a rejected token",
                response.status
            );
            sleep(PAUSE).await;
        }
        let mut user = User::connect(&traffic, "rejected".to_owned()).await?;
        user.expect(400, &Request::post(PATH, "not JSON").session("unknown"))
            .await?;
        user.expect(400, &echo(0).session("unknown")).await?;
        user.expect(400, &Request::new("DELETE", PATH)).await?;
        sleep(PAUSE).await;
    }
}

/// Calls tools without a session, as clients of revision 2026-07-28 do.
pub(super) async fn send_modern(traffic: Arc<Traffic>) -> anyhow::Result<()> {
    let request = modern_request(
        PATH,
        "tools/call",
        &json!({ "name": "echo", "arguments": {} }),
    )
    .header("Mcp-Name", "echo");
    loop {
        let mut user = User::connect(&traffic, "modern".to_owned()).await?;
        for _ in 0..20 {
            user.expect(200, &request).await?;
            sleep(PAUSE).await;
        }
    }
}

/// Disconnects within a request, before its response, and from an event stream before its first
/// event.
pub(super) async fn disconnect(traffic: Arc<Traffic>) -> anyhow::Result<()> {
    loop {
        let mut user = User::connect(&traffic, "disconnecting".to_owned()).await?;
        user.open_session().await?;
        drop(user.open_stream().await?);
        let token = traffic
            .issuer()
            .sign(|token| token.subject("disconnecting"));
        let call = modern_request(
            PATH,
            "tools/call",
            &json!({ "name": "echo", "arguments": {} }),
        )
        .header("Mcp-Name", "echo");
        let call = call.bearer(&token.token).to_bytes();
        for part in [&call[..call.len() / 2], &call[..call.len() - 1], &call] {
            let mut stream = TcpStream::connect(traffic.address()).await?;
            stream.write_all(part).await?;
            traffic.count();
            sleep(PAUSE / 4).await;
        }
        user.expect_in_session(200, Request::new("DELETE", PATH))
            .await?;
        sleep(PAUSE).await;
    }
}

/// Returns a call of the tool `echo`.
fn echo(id: usize) -> Request {
    Request::post(
        PATH,
        call_message(
            id as u64,
            "tools/call",
            &json!({ "name": "echo", "arguments": {} }),
        ),
    )
}
