//! [`Trial`]: what a client does at a broker in front of one provider.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, ensure};
use portcullis_scenarios::{Administration, BrokerServer, BrokerSettings, ProviderKind};
use tokio::time::sleep;

use super::{
    calls::{Called, Calls},
    maker::Installed,
};

/// The shortest that can be configured.
const LIFETIME: &str = "access_token_lifetime = \"1m\"";
/// The lifetime, the leeway of 10 s with which it is checked, and a second.
const EXPIRY: Duration = Duration::from_secs(71);
/// What the server logs when it has issued a token for a refresh token.
const REFRESHED: &str = "\"token.refreshed\":true";

/// An endpoint with a tool that needs a scope of its own. Clients learn that a session has ended.
const TABLES: &str = r#"
[session]
ended_status = 404

[[resource]]
endpoint = "/steps"
required_scopes = ["mcp:tools"]
scopes_supported = ["mcp:tools", "mcp:admin"]
upstream = "demo"
  [[resource.rule]]
  method = "tools/call"
  name = "multiply"
  scopes = ["mcp:admin"]
"#;

/// What a client does, as far as the user sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    /// Signs in for the first call.
    pub(super) signs_in: bool,
    /// Asks the user for more when a tool needs a further scope, and calls it.
    pub(super) steps_up: bool,
    /// Gets the next access token when one has expired, without the user.
    pub(super) refreshes: bool,
    /// Asks the user to sign in again after the grant and its sessions were ended.
    pub(super) signs_in_again: bool,
    /// Then calls the tool in a new session, in at most two calls.
    pub(super) continues: bool,
}

pub(super) struct Trial<'a> {
    pub(super) kind: ProviderKind,
    pub(super) installed: &'a Installed,
    /// The folder of logs.
    pub(super) folder: &'a Path,
}

impl Trial<'_> {
    /// Takes all steps. Fails when the client ends, or does not answer a call.
    pub(super) async fn run(&self) -> anyhow::Result<Steps> {
        let name = self.kind.name();
        let administration = Administration::default();
        let server = self.server(&administration).await;
        let steps = self.steps(&server, &administration).await;
        let log = self.folder.join(format!("server-{name}.log"));
        fs::write(log, server.program().log())?;
        steps.with_context(|| format!("with {name}"))
    }

    async fn steps(
        &self,
        server: &BrokerServer,
        administration: &Administration,
    ) -> anyhow::Result<Steps> {
        let url = server.url("/steps");
        let mut client = Calls::start(self.installed, &url, self.folder, self.kind.name())?;
        let signed_in = client.call("add").await?;
        let stepped_up = client.call("multiply").await?;

        // Some clients refresh before the call, when the server ends their event stream.
        let refreshes = || server.program().log().matches(REFRESHED).count();
        let refreshes_before = refreshes();
        sleep(EXPIRY).await;
        let refreshed = client.call("add").await?;
        let has_refreshed = refreshes() > refreshes_before;

        self.end_grants(administration).await?;
        let after_end = Self::call_until_answered(&mut client).await?;
        Ok(Steps {
            signs_in: signed_in == answered("3", 1),
            steps_up: stepped_up == answered("2", 1),
            refreshes: refreshed == answered("3", 0) && has_refreshed,
            signs_in_again: after_end.sign_ins == 1,
            continues: after_end.answer.as_deref() == Ok("3"),
        })
    }

    /// Calls a tool, and once more after an error: the end of an event stream is the first error of
    /// some clients.
    async fn call_until_answered(client: &mut Calls) -> anyhow::Result<Called> {
        let first = client.call("add").await?;
        if first.answer.is_ok() {
            return Ok(first);
        }
        let second = client.call("add").await?;
        Ok(Called {
            sign_ins: first.sign_ins + second.sign_ins,
            ..second
        })
    }

    async fn server(&self, administration: &Administration) -> BrokerServer {
        let tables = format!("{TABLES}\n{}", administration.table());
        BrokerServer::with(BrokerSettings {
            upstream: Some("\"demo\""),
            broker: LIFETIME,
            // The settings of a scenario are constants. The process ends after this run.
            tables: tables.leak(),
            ..BrokerSettings::of(self.kind)
        })
        .await
    }

    /// Signs out all users, as an administrator does.
    async fn end_grants(&self, administration: &Administration) -> anyhow::Result<()> {
        let ended = administration
            .run(&["end-grants", "--provider", self.kind.name()])
            .await;
        ensure!(ended.code == Some(0), "{ended:?}");
        Ok(())
    }
}

fn answered(text: &str, sign_ins: usize) -> Called {
    Called {
        answer: Ok(text.to_owned()),
        sign_ins,
    }
}
