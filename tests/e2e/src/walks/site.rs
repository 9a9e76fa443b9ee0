//! The two programs: the development authorization server, and the server in front of the demo tools.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::Path,
};

use anyhow::{Context as _, bail};
use portcullis_metadata::Issuer;
use url::Url;

use super::{
    expect,
    program::Program,
    server::{Server, command},
};

/// What tokens must be allowed to do.
pub(super) const SCOPE: &str = "mcp:tools";
/// Whom the authorization server signs in when nobody is named.
pub(super) const USER: &str = "alice";

/// What one tool of the demonstration needs beside that, for people.
const MORE: &str = "mcp:admin";

const ENDPOINT: &str = "/mcp";
/// Another resource behind the same server.
pub(super) const OTHER: &str = "/other";
const ANNOUNCEMENT: &str = "development authorization server: ";
/// Ports that are tried when another process takes the one chosen.
const TRIES: usize = 5;

/// Both programs, running.
pub(super) struct Site {
    idp: Program,
    server: Server,
    pub(super) issuer: Issuer,
    pub(super) endpoint: Url,
}

impl Site {
    /// Starts both, and waits until they are ready.
    pub(super) async fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        Self::start_with("", &["--auto-consent"], program, folder).await
    }

    /// The same with a consent page, another scope, and tokens that live for seconds.
    pub(super) async fn start_for_people(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        let arguments = ["--scope", SCOPE, "--scope", MORE, "--token-lifetime", "8s"];
        Self::start_with("-for-people", &arguments, program, folder).await
    }

    async fn start_with(suffix: &str, arguments: &[&str], program: &Path, folder: &Path) -> anyhow::Result<Self> {
        let mut idp = command(program);
        idp.args(["idp", "--listen", "127.0.0.1:0"]).args(arguments);
        let mut idp = Program::start(format!("idp{suffix}"), &mut idp, folder)?;
        let issuer = idp.says(|line| line.strip_prefix(ANNOUNCEMENT).map(str::to_owned)).await?;
        let issuer = Issuer::parse(&issuer)?;

        for _ in 0..TRIES {
            if let Some(server) = start_server(&format!("serve{suffix}"), program, folder, &issuer).await? {
                server.ready().await?;
                let endpoint = Url::parse(&format!("http://{}{ENDPOINT}", server.address))?;
                return Ok(Self { idp, server, issuer, endpoint });
            }
        }
        bail!("each of {TRIES} ports was taken by another process")
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// Asks both to end, and expects that they do so in order.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        self.server.stop().await?;
        expect::equal("exit code of the authorization server", Some(0), self.idp.stop().await?.code())
    }
}

/// Starts the server on a port that was free a moment ago; none when it no longer was.
async fn start_server(name: &str, program: &Path, folder: &Path, issuer: &Issuer) -> anyhow::Result<Option<Server>> {
    let address = TcpListener::bind("127.0.0.1:0").context("no free port")?.local_addr()?;
    let file = folder.join(format!("{name}.toml"));
    fs::write(&file, configuration(address, issuer))?;
    match Server::start(name, command(program).arg("serve").arg("--config").arg(&file), folder).await {
        Ok(server) => {
            expect::equal("the address that is listened on", address, server.address)?;
            Ok(Some(server))
        }
        Err(error) if format!("{error:#}").contains("cannot listen on") => Ok(None),
        Err(error) => Err(error),
    }
}

fn configuration(address: SocketAddr, issuer: &Issuer) -> String {
    format!(
        r#"
listen = "{address}"
base_url = "http://{address}"

[[issuer]]
issuer = "{issuer}"

[[resource]]
endpoint = "{ENDPOINT}"
default = true
scopes_supported = ["{SCOPE}", "{MORE}"]
required_scopes = ["{SCOPE}"]
upstream = "demo"

  [[resource.rule]]
  method = "tools/call"
  name = "multiply"
  scopes = ["{MORE}"]

[[resource]]
endpoint = "{OTHER}"
required_scopes = ["{SCOPE}"]
upstream = "demo"
"#
    )
}
