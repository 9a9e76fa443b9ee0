//! [`Provider`]: the rows of the table.

use std::{any::Any, fs, path::Path};

use clap::{ValueEnum, builder::PossibleValue};
use portcullis_scenarios::{BrokerServer, BrokerSettings, ProviderKind};
use url::Url;

use super::real::{RealProviders, Scopes};
use crate::cell::Cell;

/// A provider in front of which the broker runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    /// The development authorization server as this kind of provider.
    Imitated(ProviderKind),
    /// Keycloak. Needs Java 17.
    Keycloak,
    /// npm's oidc-provider. Needs npm.
    NpmOidc,
}

/// A server with a broker, which ends when this is dropped.
pub(super) struct Site {
    /// The resource, whose tools are those of the demo.
    pub(super) url: Url,
    _server: Box<dyn Any>,
}

impl Provider {
    /// Returns the name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Imitated(ProviderKind::Oidc) => "like-oidc",
            Self::Imitated(ProviderKind::Entra) => "like-entra",
            Self::Imitated(ProviderKind::Google) => "like-google",
            Self::Imitated(ProviderKind::GitHub) => "like-github",
            Self::Imitated(ProviderKind::GitHubApp) => "like-github-app",
            Self::Imitated(ProviderKind::Okta) => "like-okta",
            Self::Imitated(ProviderKind::Auth0) => "like-auth0",
            Self::Imitated(ProviderKind::Keycloak) => "like-keycloak",
            Self::Imitated(ProviderKind::Cognito) => "like-cognito",
            Self::Keycloak => "keycloak",
            Self::NpmOidc => "oidc-provider",
        }
    }

    /// Returns the name in the table.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Imitated(ProviderKind::Oidc) => "devidp",
            Self::Imitated(ProviderKind::Entra) => "devidp --like entra",
            Self::Imitated(ProviderKind::Google) => "devidp --like google",
            Self::Imitated(ProviderKind::GitHub) => "devidp --like github",
            Self::Imitated(ProviderKind::GitHubApp) => "devidp --like github-app",
            Self::Imitated(ProviderKind::Okta) => "devidp --like okta",
            Self::Imitated(ProviderKind::Auth0) => "devidp --like auth0",
            Self::Imitated(ProviderKind::Keycloak) => "devidp --like keycloak",
            Self::Imitated(ProviderKind::Cognito) => "devidp --like cognito",
            Self::Keycloak => "Keycloak 26.7.3",
            Self::NpmOidc => "oidc-provider 9.13.3",
        }
    }

    /// Starts a server with a broker in front of the provider. Returns the cell of a provider that
    /// is missing or does not start.
    pub(super) async fn start(self, real: &RealProviders, folder: &Path) -> Result<Site, Cell> {
        fs::create_dir_all(folder).map_err(|error| Cell::failed(&error.into()))?;
        let demo = |kind| BrokerSettings {
            upstream: Some("\"demo\""),
            ..BrokerSettings::of(kind)
        };
        Ok(match self {
            Self::Imitated(kind) => Site::of(Cell::started(BrokerServer::with(demo(kind))).await?),
            Self::Keycloak => Site::of(
                real.in_front_of_keycloak(demo(ProviderKind::Keycloak), Scopes::Default)
                    .await?,
            ),
            Self::NpmOidc => {
                let settings = demo(ProviderKind::Oidc);
                Site::of(real.in_front_of_oidc_provider(settings, folder).await?)
            }
        })
    }
}

impl Site {
    fn of<P: 'static>(server: BrokerServer<P>) -> Self {
        Self {
            url: server.url("/mcp"),
            _server: Box::new(server),
        }
    }
}

impl ValueEnum for Provider {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Imitated(ProviderKind::Oidc),
            Self::Imitated(ProviderKind::Entra),
            Self::Imitated(ProviderKind::Google),
            Self::Imitated(ProviderKind::GitHub),
            Self::Imitated(ProviderKind::GitHubApp),
            Self::Imitated(ProviderKind::Okta),
            Self::Imitated(ProviderKind::Auth0),
            Self::Imitated(ProviderKind::Keycloak),
            Self::Imitated(ProviderKind::Cognito),
            Self::Keycloak,
            Self::NpmOidc,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()))
    }
}
