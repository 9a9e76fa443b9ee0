//! [`Trial`]: the commands that sign in at a peer.

use std::{path::Path, sync::Arc};

use anyhow::ensure;

use super::site::Site;
use crate::{
    client::{Client, Run},
    deployment::USER,
    recorder::Recorder,
    test_user::TestUser,
};

/// A peer, and where the commands write.
pub(super) struct Trial<'a> {
    pub(super) program: &'a Path,
    pub(super) folder: &'a Path,
    pub(super) site: &'a Site,
    pub(super) recorder: Arc<Recorder>,
}

impl Trial<'_> {
    /// Signs in with `login` and calls a method with the token.
    pub(super) async fn sign_in(&self, client: &Client) -> anyhow::Result<Run> {
        let login = self.run(client, "login", &[]).await?.succeeded()?;
        ensure!(
            self.site.is_automatic() || login.authorization.is_some(),
            "expected that login opens the browser"
        );
        let call = self
            .run(client, "call", &["tools/list"])
            .await?
            .succeeded()?;
        ensure!(
            call.authorization.is_none(),
            "expected that the call uses the token of the login"
        );
        ensure!(
            call.output.contains("\"tools\""),
            "expected a list of tools, got: {}",
            call.output.trim_end()
        );
        Ok(login)
    }

    /// Signs in with `connect` and lists the tools.
    pub(super) async fn bridge(&self, client: &Client) -> anyhow::Result<Run> {
        let run = client
            .connect(&self.site.url, &self.options(&[]))
            .await?
            .succeeded()?;
        ensure!(
            self.site.is_automatic() || run.authorization.is_some(),
            "expected that connect opens the browser"
        );
        Ok(run)
    }

    /// Runs a command with the options of the peer.
    pub(super) async fn run(
        &self,
        client: &Client,
        command: &str,
        first: &[&str],
    ) -> anyhow::Result<Run> {
        client
            .run(command, &self.site.url, &self.options(first))
            .await
    }

    /// Returns options followed by those of the peer.
    fn options<'a>(&'a self, first: &[&'a str]) -> Vec<&'a str> {
        first
            .iter()
            .copied()
            .chain(self.site.options.iter().map(String::as_str))
            .collect()
    }

    /// Returns a client with its own store.
    pub(super) fn client(&self, name: &str) -> anyhow::Result<Client> {
        let user = TestUser::with_forms(USER, Arc::clone(&self.recorder));
        let client = Client::new(self.program, &self.folder.join(name), user)?;
        Ok(client.with_environment(&self.site.environment))
    }
}
