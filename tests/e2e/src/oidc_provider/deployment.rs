//! [`OidcProviderDeployment`]: `oidc-provider`, a server that verifies JWTs, and a server that
//! introspects tokens.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use portcullis_metadata::Issuer;
use url::Url;

use super::{ANNOUNCEMENT, package::Package};
use xtask::workspace;

use crate::{
    program::Program,
    server::{Server, serve},
};

/// The URL of the client's metadata document. Nothing is served there: the authorization server of
/// the test reads a file instead.
pub(super) const CLIENT_DOCUMENT_URL: &str = "https://client.example/portcullis.json";

const SECRET: &str = "portcullis-secret-of-tests";

/// The three running programs.
pub(crate) struct OidcProviderDeployment {
    idp: Program,
    pub(super) issuer: Issuer,
    pub(super) server: Server,
    pub(super) introspecting: Server,
    document: PathBuf,
}

impl OidcProviderDeployment {
    /// Starts all programs and waits until they are ready.
    pub(crate) async fn start(
        package: &Package,
        program: &Path,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let document = folder.join("client-document.json");
        let mut idp = package.command();
        idp.env("CLIENT_DOCUMENT_URL", CLIENT_DOCUMENT_URL)
            .env("CLIENT_DOCUMENT", &document);
        idp.env("INTROSPECTION_SECRET", SECRET);
        let mut idp = Program::start("oidc-provider", &mut idp, folder)?;
        let issuer = idp
            .find_line(|line| line.strip_prefix(ANNOUNCEMENT).map(str::to_owned))
            .await?;
        let issuer = Issuer::parse(&issuer)?;
        let server = start_server("portcullis", program, folder, &issuer).await?;
        let introspecting = start_server("introspecting", program, folder, &issuer).await?;
        Ok(Self {
            idp,
            issuer,
            server,
            introspecting,
            document,
        })
    }

    /// Returns the URL of a resource of the server that verifies JWTs.
    pub(crate) fn resource(&self, path: &str) -> anyhow::Result<Url> {
        Ok(Url::parse(&format!(
            "http://{}{path}",
            self.server.address
        ))?)
    }

    /// Returns the URL of the resource with opaque tokens.
    pub(super) fn opaque(&self) -> anyhow::Result<Url> {
        Ok(Url::parse(&format!(
            "http://{}/opaque",
            self.introspecting.address
        ))?)
    }

    /// Writes the client's metadata document to the file that the authorization server reads.
    pub(super) fn publish(&self, document: &[u8]) -> anyhow::Result<()> {
        fs::write(&self.document, document)
            .with_context(|| format!("{} cannot be written", self.document.display()))
    }

    /// Sends SIGTERM to all programs.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        self.server.stop().await?;
        self.introspecting.stop().await?;
        // It does not handle SIGTERM, so it has no exit code.
        self.idp.stop().await.map(drop)
    }
}

/// Starts a server with the file `tests/idp/oidc-provider/<name>.toml`.
async fn start_server(
    name: &'static str,
    program: &Path,
    folder: &Path,
    issuer: &Issuer,
) -> anyhow::Result<Server> {
    let start = Server::start_on_free_port(name, folder, |address| {
        let mut command = serve(
            program,
            folder,
            name,
            &configuration(name, address, issuer)?,
        )?;
        command.env("INTROSPECTION_SECRET", SECRET);
        Ok(command)
    });
    start.await
}

fn configuration(name: &str, address: SocketAddr, issuer: &Issuer) -> anyhow::Result<String> {
    let path = workspace::root().join(format!("tests/idp/oidc-provider/{name}.toml"));
    let text =
        fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let address = address.to_string();
    let text = text
        .replace("127.0.0.1:3000", &address)
        .replace("127.0.0.1:3001", &address);
    Ok(text.replace("http://127.0.0.1:9100", issuer.as_str()))
}
