//! [`DevDeployment`]: a development authorization server, and a server in front of the demo tools.

use std::{net::SocketAddr, path::Path};

use portcullis_metadata::Issuer;
use url::Url;

use super::{
    expect,
    program::Program,
    server::{Server, command, serve},
};

/// The scope that both resources require.
pub(crate) const SCOPE: &str = "mcp:tools";
/// The user that the authorization server signs in by default.
pub(crate) const USER: &str = "alice";

/// The scope that the tool `multiply` requires in addition.
const ADMIN_SCOPE: &str = "mcp:admin";

const ENDPOINT: &str = "/mcp";
/// The path of a second resource of the same server.
pub(crate) const OTHER: &str = "/other";
/// The text before the issuer in the first line of `portcullis idp`.
pub(crate) const ANNOUNCEMENT: &str = "development authorization server: ";

/// A running authorization server and resource server.
pub(crate) struct DevDeployment {
    idp: Program,
    server: Server,
    pub(crate) issuer: Issuer,
    pub(crate) endpoint: Url,
}

impl DevDeployment {
    /// Starts both programs and waits until they are ready. The authorization server consents
    /// without a page.
    pub(crate) async fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        Self::start_with("", &["--auto-consent"], program, folder).await
    }

    /// As [`start`](Self::start), with a consent page, a second scope, and tokens that are valid
    /// for 20 s. The client refreshes them in the last fifth of this time, within which it must run
    /// once.
    pub(crate) async fn start_with_consent_page(
        program: &Path,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let arguments = [
            "--scope",
            SCOPE,
            "--scope",
            ADMIN_SCOPE,
            "--token-lifetime",
            "20s",
        ];
        Self::start_with("-with-consent-page", &arguments, program, folder).await
    }

    /// Starts an authorization server with these arguments, and a server that trusts it.
    async fn start_with(
        suffix: &str,
        arguments: &[&str],
        program: &Path,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let mut idp = command(program);
        idp.args(["idp", "--listen", "127.0.0.1:0"]).args(arguments);
        let mut idp = Program::start(format!("idp{suffix}"), &mut idp, folder)?;
        let issuer = idp
            .find_line(|line| line.strip_prefix(ANNOUNCEMENT).map(str::to_owned))
            .await?;
        let issuer = Issuer::parse(&issuer)?;

        let name = format!("serve{suffix}");
        let server = Server::start_on_free_port(&name, folder, |address| {
            serve(program, folder, &name, &configuration(address, &issuer))
        });
        let server = server.await?;
        let endpoint = Url::parse(&format!("http://{}{ENDPOINT}", server.address))?;
        Ok(Self {
            idp,
            server,
            issuer,
            endpoint,
        })
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Sends SIGTERM to both and expects exit code 0.
    pub(crate) async fn stop(&mut self) -> anyhow::Result<()> {
        self.server.stop().await?;
        expect::equal(
            "exit code of the authorization server",
            Some(0),
            self.idp.stop().await?.code(),
        )
    }
}

/// The configuration of a server that trusts this issuer.
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
scopes_supported = ["{SCOPE}", "{ADMIN_SCOPE}"]
required_scopes = ["{SCOPE}"]
upstream = "demo"

  [[resource.rule]]
  method = "tools/call"
  name = "multiply"
  scopes = ["{ADMIN_SCOPE}"]

[[resource]]
endpoint = "{OTHER}"
required_scopes = ["{SCOPE}"]
upstream = "demo"
"#
    )
}
