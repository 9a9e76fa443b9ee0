//! `oidc-provider`, a server in front of resources whose tokens are signed, and one that introspects.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use portcullis_metadata::Issuer;
use url::Url;

use super::package::Package;
use xtask::workspace;

use crate::walks::{
    program::Program,
    server::{Server, command},
};

/// Where the client's metadata document is said to be. Nothing can be served at such an address here, so that the
/// authorization server reads a file in its place.
pub(super) const CLIENT_DOCUMENT_URL: &str = "https://client.example/portcullis.json";

const ANNOUNCEMENT: &str = "oidc-provider listens: ";
const SECRET: &str = "portcullis-secret-of-tests";
/// Ports that are tried when another process takes the one chosen.
const TRIES: usize = 5;

/// All three, running.
pub(super) struct Site {
    idp: Program,
    pub(super) issuer: Issuer,
    pub(super) server: Server,
    pub(super) introspecting: Server,
    document: PathBuf,
}

impl Site {
    /// Starts all, and waits until they are ready.
    pub(super) async fn start(package: &Package, program: &Path, folder: &Path) -> anyhow::Result<Self> {
        let document = folder.join("client-document.json");
        let mut idp = package.command();
        idp.env("CLIENT_DOCUMENT_URL", CLIENT_DOCUMENT_URL).env("CLIENT_DOCUMENT", &document);
        idp.env("INTROSPECTION_SECRET", SECRET);
        let mut idp = Program::start("oidc-provider", &mut idp, folder)?;
        let issuer = idp.says(|line| line.strip_prefix(ANNOUNCEMENT).map(str::to_owned)).await?;
        let issuer = Issuer::parse(&issuer)?;
        let server = start_server("portcullis", program, folder, &issuer).await?;
        let introspecting = start_server("introspecting", program, folder, &issuer).await?;
        Ok(Self { idp, issuer, server, introspecting, document })
    }

    /// A resource whose tokens are signed.
    pub(super) fn resource(&self, path: &str) -> anyhow::Result<Url> {
        Ok(Url::parse(&format!("http://{}{path}", self.server.address))?)
    }

    /// The resource whose tokens say nothing by themselves.
    pub(super) fn opaque(&self) -> anyhow::Result<Url> {
        Ok(Url::parse(&format!("http://{}/opaque", self.introspecting.address))?)
    }

    /// Puts the client's document where the authorization server finds it.
    pub(super) fn publish(&self, document: &[u8]) -> anyhow::Result<()> {
        fs::write(&self.document, document).with_context(|| format!("{} cannot be written", self.document.display()))
    }

    /// Asks all to end.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        self.server.stop().await?;
        self.introspecting.stop().await?;
        // It has no end of its own that it could tell of.
        self.idp.stop().await.map(drop)
    }
}

/// Starts the server that a file of `tests/idp/oidc-provider` describes, on a port that was free a moment ago.
async fn start_server(name: &'static str, program: &Path, folder: &Path, issuer: &Issuer) -> anyhow::Result<Server> {
    for _ in 0..TRIES {
        let address = TcpListener::bind("127.0.0.1:0").context("no free port")?.local_addr()?;
        let file = folder.join(format!("{name}.toml"));
        fs::write(&file, configuration(name, address, issuer)?)?;
        let mut serve = command(program);
        serve.args(["serve", "--config"]).arg(&file).env("INTROSPECTION_SECRET", SECRET);
        match Server::start(name, &mut serve, folder).await {
            Ok(server) => {
                server.ready().await?;
                return Ok(server);
            }
            Err(error) if format!("{error:#}").contains("cannot listen on") => {}
            Err(error) => return Err(error),
        }
    }
    bail!("each of {TRIES} ports was taken by another process")
}

fn configuration(name: &str, address: SocketAddr, issuer: &Issuer) -> anyhow::Result<String> {
    let path = workspace::root().join(format!("tests/idp/oidc-provider/{name}.toml"));
    let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let address = address.to_string();
    let text = text.replace("127.0.0.1:3000", &address).replace("127.0.0.1:3001", &address);
    Ok(text.replace("http://127.0.0.1:9100", issuer.as_str()))
}
