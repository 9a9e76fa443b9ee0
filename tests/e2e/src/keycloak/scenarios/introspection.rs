//! Introspection, as each type of client.

use anyhow::Context as _;

use crate::{
    keycloak::{fixture::Fixture, servers::Setup},
    progress::Progress,
};

/// Scopes for a token for the resource and Portcullis's client, and for an ID token.
const SCOPE: &str = "openid mcp:tools introspection";

pub(in crate::keycloak) async fn run(
    fixture: &Fixture,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    progress
        .step(
            "client_secret_post, a client in the audience",
            layout(fixture, Setup::Post),
        )
        .await?;
    progress
        .step(
            "client_secret_basic, form-encoded",
            layout(fixture, Setup::Basic),
        )
        .await?;
    progress
        .step(
            "a client without the audience check",
            layout(fixture, Setup::Unchecked),
        )
        .await?;
    progress
        .step(
            "introspection responses with standard members only",
            layout(fixture, Setup::Plain),
        )
        .await?;
    progress
        .step(
            "signature and introspection together",
            layout(fixture, Setup::Both),
        )
        .await?;
    progress
        .step(
            "a client that is not in the audience: 401",
            not_in_audience(fixture),
        )
        .await?;
    progress
        .step("audience of another resource: 401", wrong_audience(fixture))
        .await?;
    progress
        .step("refresh token: 401 everywhere", refresh_token(fixture))
        .await?;
    progress
        .step("ID token: 401 everywhere", id_token(fixture))
        .await
}

/// Checks that a server of this setup accepts a token with [`SCOPE`].
async fn layout(fixture: &Fixture, setup: Setup) -> anyhow::Result<()> {
    fixture.admitted(setup, &fixture.access(SCOPE).await?).await
}

/// Keycloak introspects tokens only for clients in their audience.
async fn not_in_audience(fixture: &Fixture) -> anyhow::Result<()> {
    let token = fixture.access("mcp:tools").await?;
    fixture
        .rejected(Setup::Post, &token, "token.inactive")
        .await?;
    fixture.admitted(Setup::Basic, &token).await
}

/// A token for another resource is rejected.
async fn wrong_audience(fixture: &Fixture) -> anyhow::Result<()> {
    let token = fixture.access("mcp:elsewhere introspection").await?;
    fixture
        .rejected(Setup::Post, &token, "token.audience_mismatch")
        .await?;
    fixture
        .rejected(Setup::Basic, &token, "token.inactive")
        .await?;
    fixture
        .rejected(Setup::Unchecked, &token, "token.audience_mismatch")
        .await?;
    fixture
        .rejected(Setup::Both, &token, "token.audience_mismatch")
        .await
}

/// An ID token is rejected everywhere.
async fn id_token(fixture: &Fixture) -> anyhow::Result<()> {
    let id = fixture
        .tokens(SCOPE)
        .await?
        .id
        .context("expected an ID token, got none")?;
    fixture.rejected(Setup::Post, &id, "token.inactive").await?;
    fixture
        .rejected(Setup::Basic, &id, "token.inactive")
        .await?;
    // Keycloak reports the token as active.
    fixture
        .rejected(Setup::Unchecked, &id, "token.not_an_access_token")
        .await?;
    fixture
        .rejected(Setup::Plain, &id, "token.not_an_access_token")
        .await?;
    fixture
        .rejected(Setup::Both, &id, "token.not_an_access_token")
        .await
}

/// A refresh token is rejected everywhere.
async fn refresh_token(fixture: &Fixture) -> anyhow::Result<()> {
    let refresh = fixture.tokens(SCOPE).await?.refresh;
    fixture
        .rejected(Setup::Post, &refresh, "token.inactive")
        .await?;
    fixture
        .rejected(Setup::Basic, &refresh, "token.inactive")
        .await?;
    // Keycloak reports the token as active, with the audience of the access token.
    fixture
        .rejected(Setup::Unchecked, &refresh, "token.not_an_access_token")
        .await?;
    fixture
        .rejected(Setup::Plain, &refresh, "token.not_an_access_token")
        .await?;
    fixture
        .rejected(Setup::Both, &refresh, "token.algorithm_unsupported")
        .await
}
