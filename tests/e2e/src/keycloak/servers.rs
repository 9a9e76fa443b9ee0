//! [`Servers`]: Portcullis in front of one resource, in several setups.

use std::path::Path;

use super::addresses::Addresses;
use crate::server::{Server, serve};

/// A setup, and the file of `tests/idp/keycloak` that describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setup {
    /// Tokens are verified by their signature.
    Jwt,
    /// As `Jwt`, with an upstream that records its requests.
    Forwarded,
    /// Introspection with the secret in the form, as a client that is in the audience in addition
    /// to the resource.
    Post,
    /// Introspection with the secret in the header, as a client whose identifier is the resource's
    /// URL.
    Basic,
    /// Introspection as a client that need not be in the audience, so that all tokens are active.
    Unchecked,
    /// As `Unchecked`, through a proxy that removes non-standard members of responses.
    Plain,
    /// Verification of the signature, and then introspection.
    Both,
}

/// The environment variables of the files, with the secrets of the realm.
const SECRETS: [(&str, &str); 3] = [
    ("INTROSPECTION_SECRET", "portcullis-secret"),
    ("RESOURCE_SECRET", "50% of a secret: a+b & c/d=e"),
    ("UNCHECKED_SECRET", "unchecked-secret"),
];

impl Setup {
    pub(super) const ALL: [Self; 7] = [
        Self::Jwt,
        Self::Forwarded,
        Self::Post,
        Self::Basic,
        Self::Unchecked,
        Self::Plain,
        Self::Both,
    ];
    /// The setups with introspection.
    pub(super) const INTROSPECTING: [Self; 5] = [
        Self::Post,
        Self::Basic,
        Self::Unchecked,
        Self::Plain,
        Self::Both,
    ];

    /// Returns the name in paths and reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Jwt => "jwt",
            Self::Forwarded => "forwarded",
            Self::Post => "post",
            Self::Basic => "basic",
            Self::Unchecked => "unchecked",
            Self::Plain => "plain",
            Self::Both => "both",
        }
    }

    /// Starts a server of this setup under this name. It listens at the resource's address if the
    /// name is that of [`Jwt`](Self::Jwt), else on any port.
    pub(super) async fn start(
        self,
        name: &'static str,
        program: &Path,
        addresses: Addresses,
        folder: &Path,
    ) -> anyhow::Result<Server> {
        let mut command = serve(
            program,
            folder,
            name,
            &addresses.file(&format!("{}.toml", self.name()))?,
        )?;
        command.envs(SECRETS);
        if name != Self::Jwt.name() {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        Server::start(name, &mut command, folder).await
    }
}

/// One server of each setup.
pub(super) struct Servers(Vec<(Setup, Server)>);

impl Servers {
    /// Starts all servers and waits until their issuers are usable.
    pub(super) async fn start(
        program: &Path,
        addresses: Addresses,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let mut servers = Vec::new();
        for setup in Setup::ALL {
            let server = setup
                .start(setup.name(), program, addresses, folder)
                .await?;
            server.ready().await?;
            servers.push((setup, server));
        }
        Ok(Self(servers))
    }

    pub(super) fn of(&self, setup: Setup) -> anyhow::Result<&Server> {
        let found = self
            .0
            .iter()
            .find(|(found, _)| *found == setup)
            .map(|(_, server)| server);
        found.ok_or_else(|| anyhow::anyhow!("no server is set up as {}", setup.name()))
    }

    /// Stops all servers and expects exit code 0.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        for (_, server) in &mut self.0 {
            server.stop().await?;
        }
        Ok(())
    }
}
