//! What is walked through, one file a concern.

mod client;
mod guide;
mod introspection;
mod login;
mod outage;
mod rotation;
mod tokens;
mod withdrawal;

use clap::ValueEnum;

use super::stage::Stage;
use crate::walks::progress::Progress;

/// The scenarios, in their order.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::walks) enum Scenario {
    /// From the first 401 to a session, by Keycloak's pages, with a client that registers itself.
    Login,
    /// The shipped program as a client, from a login by Keycloak's pages to the logout.
    Client,
    /// Audiences, issuers, algorithms, kinds and scopes of tokens; what reaches the upstream.
    Tokens,
    /// Introspection as each kind of client.
    Introspection,
    /// Revoked, logged out, disabled, expired.
    Withdrawal,
    /// Keys change under load.
    Rotation,
    /// Every block of docs/use/keycloak.md.
    Guide,
    /// Keycloak is stopped, started and killed under load.
    Outage,
}

impl Scenario {
    pub(super) async fn run(self, stage: &mut Stage, progress: &mut Progress) -> anyhow::Result<()> {
        match self {
            Self::Login => login::run(stage, progress).await,
            Self::Client => client::run(stage, progress).await,
            Self::Tokens => tokens::run(stage, progress).await,
            Self::Introspection => introspection::run(stage, progress).await,
            Self::Withdrawal => withdrawal::run(stage, progress).await,
            Self::Rotation => rotation::run(stage, progress).await,
            Self::Guide => guide::run(stage, progress).await,
            Self::Outage => outage::run(stage, progress).await,
        }
    }
}
