//! [`OidcProviderForBroker`]: `oidc-provider` at which a broker is registered.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use portcullis_scenarios::BrokerIdp;
use url::Url;

use super::{ANNOUNCEMENT, package::Package};
use crate::program::Program;

/// A running `oidc-provider`, which ends when this is dropped.
pub(crate) struct OidcProviderForBroker {
    _program: Program,
    issuer: String,
    removed_users: PathBuf,
}

impl OidcProviderForBroker {
    /// Starts it for the broker with this base URL.
    pub(crate) async fn start(
        package: &Package,
        base_url: &str,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let removed_users = folder.join("removed-users");
        fs::write(&removed_users, "")
            .with_context(|| format!("{} cannot be written", removed_users.display()))?;
        let mut command = package.command();
        command
            .env("BROKER_URL", base_url)
            .env("BROKER_SECRET", BrokerIdp::SECRET)
            .env("REMOVED_USERS", &removed_users);
        let mut program = Program::start("oidc-provider", &mut command, folder)?;
        let issuer = program
            .find_line(|line| line.strip_prefix(ANNOUNCEMENT).map(str::to_owned))
            .await?;
        Ok(Self {
            _program: program,
            issuer,
            removed_users,
        })
    }

    /// Returns the issuer.
    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the page at which a user signs out.
    pub(crate) fn logout_page(&self) -> anyhow::Result<Url> {
        Ok(Url::parse(&format!("{}/session/end", self.issuer))?)
    }

    /// Removes a user.
    pub(crate) fn remove_user(&self, name: &str) -> anyhow::Result<()> {
        fs::write(&self.removed_users, name)
            .with_context(|| format!("{} cannot be written", self.removed_users.display()))
    }
}
