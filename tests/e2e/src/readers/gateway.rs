use std::{
    collections::HashMap,
    fmt::Write as _,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use portcullis_metadata::SystemClock;
use portcullis_testkit::TestIssuer;

use super::{
    PRIVILEGED,
    audit::{self, Decision},
    names::{ADMIN, RULES},
    reader::Reader,
};
use crate::server::{Server, serve};

const BASE_URL: &str = "http://127.0.0.1:3000";
const ISSUER: &str = "https://issuer.example";
const SCOPE: &str = "mcp:tools";

/// The real program in front of all readers, one resource each, and the issuer that it trusts.
pub(super) struct Gateway {
    server: Server,
    test_issuer: TestIssuer,
    trail: PathBuf,
}

impl Gateway {
    /// Starts the program with rules for the protected names, and an audit trail in the folder.
    pub(super) async fn start(
        program: &Path,
        folder: &Path,
        readers: &[Reader],
    ) -> anyhow::Result<Self> {
        let test_issuer = TestIssuer::new(ISSUER).with_clock(SystemClock::new());
        let keys = folder.join("jwks.json");
        let trail = folder.join("audit.jsonl");
        fs::write(&keys, test_issuer.jwks_json())?;
        let mut command = serve(
            program,
            folder,
            "portcullis",
            &configuration(readers, &keys, &trail)?,
        )?;
        command.env("PORTCULLIS_LOG", "info");
        let server = Server::start("portcullis", &mut command, folder).await?;
        server.ready().await?;
        Ok(Self {
            server,
            test_issuer,
            trail,
        })
    }

    /// Returns the address that it listens on.
    pub(super) fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Returns a token for a reader. The privileged one has all scopes.
    pub(super) fn token(&self, reader: &Reader, is_privileged: bool) -> String {
        let token = self
            .test_issuer
            .token()
            .audience(format!("{BASE_URL}/{}", reader.name))
            .expires_in(3600);
        if is_privileged {
            token
                .subject(PRIVILEGED)
                .scope(&format!("{SCOPE} {ADMIN}"))
                .sign()
        } else {
            token.scope(SCOPE).sign()
        }
    }

    /// Stops the program and returns every decision by request.
    pub(super) async fn decisions(&mut self) -> anyhow::Result<HashMap<String, Decision>> {
        self.server.stop().await?;
        audit::decisions(&self.trail)
    }
}

/// The configuration with one resource for each reader.
fn configuration(readers: &[Reader], keys: &Path, trail: &Path) -> anyhow::Result<String> {
    let mut text = format!(
        "listen = \"127.0.0.1:0\"\nbase_url = \"{BASE_URL}\"\n\n\
         [audit]\ntarget = {{ file = {trail:?} }}\n\n\
         [[issuer]]\nissuer = \"{ISSUER}\"\njwks_file = {keys:?}\n"
    );
    for reader in readers {
        write!(
            text,
            "\n[[resource]]\nendpoint = \"/{}\"\nupstream = {{ http = \"http://{}/mcp\" }}\n\
             required_scopes = [\"{SCOPE}\"]\nscopes_supported = [\"{SCOPE}\", \"{ADMIN}\"]\n",
            reader.name, reader.address
        )?;
        for (method, name) in RULES {
            let rule = format!("method = \"{method}\"\nname = \"{name}\"\nscopes = [\"{ADMIN}\"]");
            write!(text, "\n[[resource.rule]]\n{rule}\n")?;
        }
    }
    Ok(text)
}
