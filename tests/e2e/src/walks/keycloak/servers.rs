//! Portcullis in front of one resource, several times, each time set up in another way.

use std::path::Path;

use super::places::Places;
use crate::walks::server::{Server, serve};

/// A setup, and the file of `tests/idp/keycloak` that describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setup {
    /// Tokens are verified by their signature.
    Jwt,
    /// As `Jwt`, with an upstream that keeps what reaches it.
    Forwarded,
    /// Keycloak is asked, with the secret in the form, by a client that the audience names beside the resource.
    Post,
    /// Keycloak is asked, with the secret in the header, by a client whose identifier is the resource's address.
    Basic,
    /// Keycloak is asked by a client that need not be in the audience, and so answers for tokens of any kind.
    Unchecked,
    /// As `Unchecked`, by a way on which only the standard members of an answer are left.
    Plain,
    /// Both: the signature, and then Keycloak.
    Both,
}

/// The secrets that the files name, as they stand in the realm.
const SECRETS: [(&str, &str); 3] = [
    ("INTROSPECTION_SECRET", "portcullis-secret"),
    ("RESOURCE_SECRET", "50% of a secret: a+b & c/d=e"),
    ("UNCHECKED_SECRET", "unchecked-secret"),
];

impl Setup {
    pub(super) const ALL: [Self; 7] =
        [Self::Jwt, Self::Forwarded, Self::Post, Self::Basic, Self::Unchecked, Self::Plain, Self::Both];
    /// Those that ask Keycloak about every token.
    pub(super) const ASKING: [Self; 5] = [Self::Post, Self::Basic, Self::Unchecked, Self::Plain, Self::Both];

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

    /// Starts a server of this setup under another name, on any port.
    pub(super) async fn start(
        self,
        name: &'static str,
        program: &Path,
        places: Places,
        folder: &Path,
    ) -> anyhow::Result<Server> {
        let mut command = serve(program, folder, name, &places.file(&format!("{}.toml", self.name()))?)?;
        command.envs(SECRETS);
        // Clients see the first one; all others stand for it behind the same address.
        if name != Self::Jwt.name() {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        Server::start(name, &mut command, folder).await
    }
}

/// One server of each setup.
pub(super) struct Servers(Vec<(Setup, Server)>);

impl Servers {
    /// Starts all, and waits until each can reach Keycloak.
    pub(super) async fn start(program: &Path, places: Places, folder: &Path) -> anyhow::Result<Self> {
        let mut servers = Vec::new();
        for setup in Setup::ALL {
            let server = setup.start(setup.name(), program, places, folder).await?;
            server.ready().await?;
            servers.push((setup, server));
        }
        Ok(Self(servers))
    }

    pub(super) fn of(&self, setup: Setup) -> anyhow::Result<&Server> {
        let found = self.0.iter().find(|(its, _)| *its == setup).map(|(_, server)| server);
        found.ok_or_else(|| anyhow::anyhow!("no server is set up as {}", setup.name()))
    }

    /// Asks all to end, and expects that they do so in order.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        for (_, server) in &mut self.0 {
            server.stop().await?;
        }
        Ok(())
    }
}
