mod client;
mod google;
mod guide;
mod introspection;
mod login;
mod outage;
mod rotation;
mod tokens;
mod withdrawal;

use clap::ValueEnum;

use super::fixture::Fixture;
use crate::progress::Progress;

/// The scenarios, in order.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// From the first 401 to a session, through Keycloak's pages, with dynamic registration.
    Login,
    /// The shipped program as a client, from a login through Keycloak's pages to the logout.
    Client,
    /// Audiences, issuers, algorithms, types and scopes of tokens, and the requests at the
    /// upstream.
    Tokens,
    /// Introspection as each type of client.
    Introspection,
    /// Revocation, logout, disabled users and expiry.
    Withdrawal,
    /// Keys change under load.
    Rotation,
    /// Sign-ins with Google through Keycloak, as docs/guides/google.md describes.
    Google,
    /// Every block of docs/use/keycloak.md.
    Guide,
    /// Keycloak is stopped, started and killed under load.
    Outage,
}

impl Scenario {
    pub(super) async fn run(
        self,
        fixture: &mut Fixture,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        match self {
            Self::Login => login::run(fixture, progress).await,
            Self::Client => client::run(fixture, progress).await,
            Self::Tokens => tokens::run(fixture, progress).await,
            Self::Introspection => introspection::run(fixture, progress).await,
            Self::Withdrawal => withdrawal::run(fixture, progress).await,
            Self::Rotation => rotation::run(fixture, progress).await,
            Self::Google => google::run(fixture, progress).await,
            Self::Guide => guide::run(fixture, progress).await,
            Self::Outage => outage::run(fixture, progress).await,
        }
    }
}
