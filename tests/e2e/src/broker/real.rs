//! [`RealProviders`]: Keycloak and npm's oidc-provider with a broker as their application.

use std::{path::Path, time::Duration};

use anyhow::anyhow;
use portcullis_scenarios::{BrokerIdp, BrokerServer, BrokerSettings, ReservedPort, Scratch};

use tokio::time::timeout;

use super::provider::Provider;
use crate::{
    cell::Cell,
    keycloak::KeycloakForBroker,
    oidc_provider::{OidcProviderForBroker, Package},
    sign_in::Environment,
};

/// The time limit of the creation of the realm.
const REALM_LIMIT: Duration = Duration::from_secs(120);

/// What the selected providers need, or the cell of their trials.
pub(super) struct RealProviders {
    pub(super) keycloak: Result<KeycloakForBroker, Cell>,
    oidc_provider: Result<Package, Cell>,
}

/// The scopes that a broker requests.
#[derive(Clone, Copy)]
pub(super) enum Scopes {
    /// Those of the kind, which include `offline_access`.
    Default,
    WithoutOfflineAccess,
}

/// A provider in front of which a server runs, with the file of the application's secret.
pub(super) struct Registered<P> {
    pub(super) provider: P,
    _secret: Scratch,
}

impl RealProviders {
    /// Installs both and starts Keycloak, if they are selected.
    pub(super) async fn prepare(environment: &Environment<'_>, selected: &[Provider]) -> Self {
        Self {
            keycloak: if selected.contains(&Provider::Keycloak) {
                keycloak(environment).await
            } else {
                Err(not_selected())
            },
            oidc_provider: if selected.contains(&Provider::NpmOidc) {
                let installed = Package::install(environment.target).await;
                installed.map_err(|error| Cell::skipped(&error))
            } else {
                Err(not_selected())
            },
        }
    }

    /// Starts a server in front of Keycloak.
    pub(super) async fn in_front_of_keycloak(
        &self,
        settings: BrokerSettings,
        scopes: Scopes,
    ) -> Result<BrokerServer<Registered<()>>, Cell> {
        let keycloak = self.keycloak.as_ref().map_err(Cell::clone)?;
        let port = ReservedPort::new();
        let registered = keycloak.register(&base_url(&port)).await;
        registered.map_err(|error| Cell::failed(&error))?;
        start(port, (), keycloak.issuer(), settings, scopes).await
    }

    /// Starts an oidc-provider, and a server in front of it.
    pub(super) async fn in_front_of_oidc_provider(
        &self,
        settings: BrokerSettings,
        folder: &Path,
    ) -> Result<BrokerServer<Registered<OidcProviderForBroker>>, Cell> {
        let package = self.oidc_provider.as_ref().map_err(Cell::clone)?;
        let port = ReservedPort::new();
        let provider = OidcProviderForBroker::start(package, &base_url(&port), folder).await;
        let provider = provider.map_err(|error| Cell::failed(&error))?;
        let issuer = provider.issuer().to_owned();
        start(port, provider, &issuer, settings, Scopes::Default).await
    }
}

async fn keycloak(environment: &Environment<'_>) -> Result<KeycloakForBroker, Cell> {
    let installed = KeycloakForBroker::install(environment.target, environment.ready_within).await;
    let installed = installed.map_err(|error| Cell::skipped(&error))?;
    let limit = environment.ready_within + REALM_LIMIT;
    let keycloak = timeout(
        limit,
        KeycloakForBroker::start(&installed, environment.folder),
    )
    .await;
    let keycloak = keycloak.unwrap_or_else(|_| Err(anyhow!("it did not start in time")));
    keycloak.map_err(|error| Cell::failed(&error.context("Keycloak does not start")))
}

fn not_selected() -> Cell {
    Cell::Skipped {
        reason: "it is not selected".to_owned(),
    }
}

fn base_url(port: &ReservedPort) -> String {
    format!("http://{}", port.address())
}

async fn start<P>(
    port: ReservedPort,
    provider: P,
    issuer: &str,
    settings: BrokerSettings,
    scopes: Scopes,
) -> Result<BrokerServer<Registered<P>>, Cell> {
    let secret = Scratch::file("provider-secret", BrokerIdp::SECRET);
    let mut table = settings.kind.table(issuer, secret.as_str());
    if let Scopes::WithoutOfflineAccess = scopes {
        table.push_str("scopes = [\"openid\", \"profile\", \"email\"]\n");
    }
    let registered = Registered {
        provider,
        _secret: secret,
    };
    let server = BrokerServer::in_front_of(port, registered, &table, settings);
    Cell::started(server).await
}
