//! [`Installed`]: Keycloak with one server, for runs without scenarios.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use url::Url;
use xtask::checklist::Unit;

use super::{LIMIT, distribution, fixture::RunningKeycloak, servers::Setup};
use crate::{progress::Progress, server::Server};

/// An installed Keycloak.
pub(crate) struct Installed(PathBuf);

/// The running programs, which end when this is dropped.
pub(crate) struct Running {
    _keycloak: RunningKeycloak,
    _server: Server,
}

impl Installed {
    /// Downloads and builds Keycloak, unless that was done before. Fails when Java is missing or
    /// the download fails.
    pub(crate) async fn prepare(target: &Path, ready_within: Duration) -> anyhow::Result<Self> {
        let mut progress = Progress::on_standard_error(Unit::Seconds, LIMIT);
        distribution::prepared(target, ready_within, &mut progress)
            .await
            .map(Self)
    }

    /// Starts it with the realms of `tests/idp/keycloak` and the server that verifies its tokens,
    /// and returns the resource.
    pub(crate) async fn start(
        &self,
        program: &Path,
        folder: &Path,
    ) -> anyhow::Result<(Url, Running)> {
        let keycloak = RunningKeycloak::start(&self.0, folder).await?;
        keycloak.create_realms().await?;
        let addresses = keycloak.addresses();
        let server = Setup::Jwt
            .start(Setup::Jwt.name(), program, addresses, folder)
            .await?;
        server.ready().await?;
        let url = Url::parse(&format!("http://{}/mcp", addresses.portcullis))?;
        Ok((
            url,
            Running {
                _keycloak: keycloak,
                _server: server,
            },
        ))
    }
}
