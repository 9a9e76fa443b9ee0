//! [`Cells`]: what `login` and `connect` must do at a peer.

use super::{special_cases, trial::Trial};

/// The expected results of the commands.
#[derive(Clone, Copy)]
pub(super) enum Cells {
    /// Both sign in, and the token is accepted.
    Plain,
    /// The store cannot be written.
    ReadOnlyStore,
    /// The authorization server forgets the client after the first sign-in.
    ForgottenClient,
}

impl Cells {
    /// Runs `login`, and a call with its token. Fails when a command does something else than
    /// expected.
    pub(super) async fn login(self, trial: &Trial<'_>) -> anyhow::Result<()> {
        let client = trial.client("login")?;
        match self {
            Self::Plain => trial.sign_in(&client).await.map(drop),
            Self::ReadOnlyStore => special_cases::login_without_store(trial, client).await,
            Self::ForgottenClient => special_cases::login_when_forgotten(trial, &client).await,
        }
    }

    /// Runs `connect` without an earlier sign-in. Fails when the command does something else than
    /// expected.
    pub(super) async fn connect(self, trial: &Trial<'_>) -> anyhow::Result<()> {
        let client = trial.client("connect")?;
        match self {
            Self::Plain => trial.bridge(&client).await.map(drop),
            Self::ReadOnlyStore => special_cases::connect_without_store(trial, client).await,
            Self::ForgottenClient => special_cases::connect_when_forgotten(trial, &client).await,
        }
    }
}
