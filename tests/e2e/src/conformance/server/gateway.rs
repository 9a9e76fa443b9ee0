//! The real program in front of one server.

use std::{fs, net::SocketAddr, path::Path};

use portcullis_metadata::SystemClock;
use portcullis_testkit::TestIssuer;

use crate::walks::server::{Server, serve};

const ISSUER: &str = "https://issuer.example";
const BASE_URL: &str = "http://127.0.0.1:3000";

/// A running gateway and a token for it.
pub(super) struct Gateway {
    server: Server,
    token: String,
}

impl Gateway {
    /// Starts it in front of a server. Ended sessions are answered 404, as `server-session-lifecycle` expects.
    pub(super) async fn start(program: &Path, folder: &Path, upstream: &str) -> anyhow::Result<Self> {
        let test_issuer =
            TestIssuer::new(ISSUER).with_resource(&format!("{BASE_URL}/mcp")).with_clock(SystemClock::new());
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
        Ok(Self { server, token: test_issuer.token().expires_in(3600).sign() })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// A token that may do everything.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Asks it to end, and expects that it does so in order.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        self.server.stop().await
    }
}
