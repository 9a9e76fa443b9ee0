//! [`KeycloakForBroker`]: a realm at which a broker is registered.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use url::Url;
use xtask::checklist::Unit;

use super::{LIMIT, distribution, fixture::RunningKeycloak};
use crate::progress::Progress;

const CLIENT: &str = "portcullis";

/// Keycloak with the realm `tests/idp/keycloak/broker-realm.json`. It ends when this is dropped.
pub(crate) struct KeycloakForBroker {
    keycloak: RunningKeycloak,
    issuer: String,
}

impl KeycloakForBroker {
    /// Downloads and builds Keycloak, unless that was done before, and returns its folder. Fails
    /// when Java is missing or the download fails.
    pub(crate) async fn install(target: &Path, ready_within: Duration) -> anyhow::Result<PathBuf> {
        let mut progress = Progress::on_standard_error(Unit::Seconds, LIMIT);
        distribution::prepared(target, ready_within, &mut progress).await
    }

    /// Starts it with the realm.
    pub(crate) async fn start(installed: &Path, folder: &Path) -> anyhow::Result<Self> {
        let keycloak = RunningKeycloak::start(installed, folder).await?;
        keycloak.create_realm("broker-realm.json").await?;
        let issuer = format!("http://{}/realms/mcp", keycloak.addresses().keycloak);
        Ok(Self { keycloak, issuer })
    }

    /// Returns the issuer.
    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Tells Keycloak the address of the broker, for logouts. The realm has the redirect URIs of
    /// brokers on all ports.
    pub(crate) async fn register(&self, base_url: &str) -> anyhow::Result<()> {
        let attributes = [
            (
                "backchannel.logout.url",
                format!("{base_url}/oauth/logout/keycloak"),
            ),
            ("backchannel.logout.session.required", "true".to_owned()),
        ];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.into()));
        let attributes = attributes.into_iter().collect();
        self.keycloak
            .admin()
            .set_attributes(CLIENT, attributes)
            .await
    }

    /// Disables a user.
    pub(crate) async fn disable_user(&self, name: &str) -> anyhow::Result<()> {
        self.keycloak.admin().enable_user(name, false).await
    }

    /// Returns the page at which a user signs out.
    pub(crate) fn logout_page(&self) -> anyhow::Result<Url> {
        let page = format!("{}/protocol/openid-connect/logout", self.issuer);
        Ok(Url::parse(&page)?)
    }

    /// Signs a user out, as an administrator does. The user's offline tokens become stale.
    pub(crate) async fn log_out(&self, name: &str) -> anyhow::Result<()> {
        self.keycloak.admin().log_out(name).await
    }

    /// Ends the sessions of a user's offline tokens, as an administrator does.
    pub(crate) async fn end_offline_sessions(&self, name: &str) -> anyhow::Result<()> {
        let admin = self.keycloak.admin();
        admin.end_offline_sessions(name, CLIENT).await
    }
}
