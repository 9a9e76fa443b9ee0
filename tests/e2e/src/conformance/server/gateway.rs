use std::{fs, net::SocketAddr, path::Path};

use portcullis_metadata::SystemClock;
use portcullis_testkit::TestIssuer;

use crate::server::{Server, serve};

const ISSUER: &str = "https://issuer.example";
const BASE_URL: &str = "http://127.0.0.1:3000";

/// The real program in front of one server, and a token for it.
pub(super) struct Gateway {
    server: Server,
    token: String,
}

impl Gateway {
    /// Starts the program in front of a server. Ended sessions get 404, as
    /// `server-session-lifecycle` expects.
    pub(super) async fn start(
        program: &Path,
        folder: &Path,
        upstream: &str,
    ) -> anyhow::Result<Self> {
        let test_issuer = TestIssuer::new(ISSUER)
            .with_resource(&format!("{BASE_URL}/mcp"))
            .with_clock(SystemClock::new());
        let keys = folder.join("jwks.json");
        fs::write(&keys, test_issuer.jwks_json())?;
        let text = format!(
            "listen = \"127.0.0.1:0\"\nbase_url = \"{BASE_URL}\"\n\n\
             [session]\nended_status = 404\n\n\
             [[issuer]]\nissuer = \"{ISSUER}\"\njwks_file = {keys:?}\n\n\
             [[resource]]\nendpoint = \"/mcp\"\nupstream = {{ http = \"{upstream}\" }}\n"
        );
        let mut command = serve(program, folder, "portcullis", &text)?;
        command.env("PORTCULLIS_LOG", "info");
        let server = Server::start("portcullis", &mut command, folder).await?;
        server.ready().await?;
        Ok(Self {
            server,
            token: test_issuer.token().expires_in(3600).sign(),
        })
    }

    /// Returns the address that it listens on.
    pub(super) fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Returns a token with all scopes.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Stops the program and expects exit code 0.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        self.server.stop().await
    }
}
