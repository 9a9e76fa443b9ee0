//! [`Peer`]: the rows of the table.

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use super::{
    Environment, cells::Cells, keycloak, networks, oidc_provider, providers, python, site::Start,
    typescript,
};

/// The time limit of a start whose packages are installed.
const START_LIMIT: Duration = Duration::from_secs(60);
/// The time limit of a start that downloads packages, at the first run.
const INSTALL_LIMIT: Duration = Duration::from_secs(5 * 60);
/// The time limit of the download of Keycloak, at the first run.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(20 * 60);

/// A server, a network or another condition of a sign-in.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Peer {
    /// The development authorization server, with its consent page.
    Devidp,
    /// The development server, imitating Microsoft Entra ID.
    LikeEntra,
    /// The development server, imitating Microsoft Entra ID with tokens of version 1.0.
    LikeEntraV1,
    /// The development server, imitating Google.
    LikeGoogle,
    /// The development server, imitating GitHub.
    LikeGithub,
    /// The development server, imitating Okta.
    LikeOkta,
    /// The development server, imitating Auth0.
    LikeAuth0,
    /// The development server, imitating Keycloak.
    LikeKeycloak,
    /// The development server, imitating Authentik.
    LikeAuthentik,
    /// Keycloak. Needs Java 17.
    Keycloak,
    /// npm's oidc-provider. Needs npm.
    OidcProvider,
    /// FastMCP with its in-memory authorization server. Needs Python.
    FastmcpInMemory,
    /// FastMCP with its OAuthProxy in front of the development server. Needs Python.
    FastmcpOauthProxy,
    /// The demonstration server of the TypeScript SDK. Needs npm.
    TypescriptSdk,
    /// The example servers of the Python SDK. Needs Python.
    PythonSdk,
    /// Two hosts that are reachable through a proxy only, without DNS.
    ConnectProxy,
    /// A resource whose certificate is from a private authority.
    PrivateCa,
    /// A store that cannot be written.
    ReadOnlyStore,
    /// A server that has forgotten the client after its first sign-in.
    ForgottenClient,
}

impl Peer {
    /// Returns the name on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }

    /// Returns the name in the table.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Devidp => "devidp",
            Self::LikeEntra => "devidp --like entra",
            Self::LikeEntraV1 => "devidp --like entra-v1",
            Self::LikeGoogle => "devidp --like google",
            Self::LikeGithub => "devidp --like github",
            Self::LikeOkta => "devidp --like okta",
            Self::LikeAuth0 => "devidp --like auth0",
            Self::LikeKeycloak => "devidp --like keycloak",
            Self::LikeAuthentik => "devidp --like authentik",
            Self::Keycloak => "Keycloak 26.7.3",
            Self::OidcProvider => "oidc-provider 9.13.3",
            Self::FastmcpInMemory => "FastMCP 4.1.2, in memory",
            Self::FastmcpOauthProxy => "FastMCP 4.1.2, OAuthProxy",
            Self::TypescriptSdk => "TypeScript SDK 1.32.2, demo",
            Self::PythonSdk => "Python SDK 2.3.0, example",
            Self::ConnectProxy => "CONNECT proxy, no DNS",
            Self::PrivateCa => "private CA",
            Self::ReadOnlyStore => "read-only store",
            Self::ForgottenClient => "forgotten client",
        }
    }

    /// Starts the peer. Fails when it does not start although its requirements are installed.
    pub(super) async fn start(self, environment: &Environment<'_>) -> anyhow::Result<Start> {
        match self {
            Self::Devidp | Self::ReadOnlyStore => {
                providers::start(&providers::PLAIN, environment).await
            }
            Self::LikeEntra => providers::start(&providers::ENTRA, environment).await,
            Self::LikeEntraV1 => providers::start(&providers::ENTRA_V1, environment).await,
            Self::LikeGoogle => providers::start(&providers::GOOGLE, environment).await,
            Self::LikeGithub => providers::start(&providers::GITHUB, environment).await,
            Self::LikeOkta => providers::start(&providers::OKTA, environment).await,
            Self::LikeAuth0 => providers::start(&providers::AUTH0, environment).await,
            Self::LikeKeycloak => providers::start(&providers::KEYCLOAK, environment).await,
            Self::LikeAuthentik => providers::start(&providers::AUTHENTIK, environment).await,
            Self::ForgottenClient => providers::start(&providers::WITH_ADMIN, environment).await,
            Self::Keycloak => keycloak::start(environment).await,
            Self::OidcProvider => oidc_provider::start(environment).await,
            Self::FastmcpInMemory => python::in_memory(environment).await,
            Self::FastmcpOauthProxy => python::oauth_proxy(environment).await,
            Self::TypescriptSdk => typescript::start(environment).await,
            Self::PythonSdk => python::example(environment).await,
            Self::ConnectProxy => networks::connect_proxy().await,
            Self::PrivateCa => networks::private_ca(environment).await,
        }
    }

    /// Returns how long the peer may take to start, including downloads.
    pub(super) fn start_limit(self, environment: &Environment<'_>) -> Duration {
        match self {
            Self::Keycloak => DOWNLOAD_LIMIT + 2 * environment.ready_within,
            Self::OidcProvider
            | Self::FastmcpInMemory
            | Self::FastmcpOauthProxy
            | Self::TypescriptSdk
            | Self::PythonSdk => INSTALL_LIMIT,
            _ => START_LIMIT,
        }
    }

    /// Returns the expected results.
    pub(super) fn cells(self) -> Cells {
        match self {
            Self::ReadOnlyStore => Cells::ReadOnlyStore,
            Self::ForgottenClient => Cells::ForgottenClient,
            _ => Cells::Plain,
        }
    }
}
