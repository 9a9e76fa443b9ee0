//! Servers that ask Keycloak, each as another kind of client.

use anyhow::Context as _;

use crate::walks::{
    keycloak::{servers::Setup, stage::Stage},
    progress::Progress,
};

/// What gets a token for the resource, for Portcullis's own client, and an ID token.
const SCOPE: &str = "openid mcp:tools introspection";

pub(in crate::walks::keycloak) async fn run(stage: &Stage, progress: &mut Progress) -> anyhow::Result<()> {
    progress.step("client_secret_post, a client in the audience", layout(stage, Setup::Post)).await?;
    progress.step("client_secret_basic, form-encoded", layout(stage, Setup::Basic)).await?;
    progress.step("a client without the audience check", layout(stage, Setup::Unchecked)).await?;
    progress.step("answers with standard members alone", layout(stage, Setup::Plain)).await?;
    progress.step("signature and introspection together", layout(stage, Setup::Both)).await?;
    progress.step("a client that is not in the audience: 401", not_in_audience(stage)).await?;
    progress.step("audience of another resource: 401", wrong_audience(stage)).await?;
    progress.step("refresh token: 401 everywhere", refresh_token(stage)).await?;
    progress.step("ID token: 401 everywhere", id_token(stage)).await
}

async fn layout(stage: &Stage, setup: Setup) -> anyhow::Result<()> {
    stage.admitted(setup, &stage.access(SCOPE).await?).await
}

/// Keycloak answers a client only about tokens that are for it.
async fn not_in_audience(stage: &Stage) -> anyhow::Result<()> {
    let token = stage.access("mcp:tools").await?;
    stage.refused(Setup::Post, &token, "token.inactive").await?;
    stage.admitted(Setup::Basic, &token).await
}

async fn wrong_audience(stage: &Stage) -> anyhow::Result<()> {
    let token = stage.access("mcp:elsewhere introspection").await?;
    stage.refused(Setup::Post, &token, "token.audience_mismatch").await?;
    stage.refused(Setup::Basic, &token, "token.inactive").await?;
    stage.refused(Setup::Unchecked, &token, "token.audience_mismatch").await?;
    stage.refused(Setup::Both, &token, "token.audience_mismatch").await
}

async fn id_token(stage: &Stage) -> anyhow::Result<()> {
    let id = stage.tokens(SCOPE).await?.id.context("expected an ID token, got none")?;
    stage.refused(Setup::Post, &id, "token.inactive").await?;
    stage.refused(Setup::Basic, &id, "token.inactive").await?;
    // Keycloak calls it active.
    stage.refused(Setup::Unchecked, &id, "token.not_an_access_token").await?;
    stage.refused(Setup::Plain, &id, "token.not_an_access_token").await?;
    stage.refused(Setup::Both, &id, "token.not_an_access_token").await
}

async fn refresh_token(stage: &Stage) -> anyhow::Result<()> {
    let refresh = stage.tokens(SCOPE).await?.refresh;
    stage.refused(Setup::Post, &refresh, "token.inactive").await?;
    stage.refused(Setup::Basic, &refresh, "token.inactive").await?;
    // Keycloak calls it active, and gives it the audience of the access token.
    stage.refused(Setup::Unchecked, &refresh, "token.not_an_access_token").await?;
    stage.refused(Setup::Plain, &refresh, "token.not_an_access_token").await?;
    stage.refused(Setup::Both, &refresh, "token.algorithm_unsupported").await
}
