//! Tokens that end before their time: at once where Keycloak is asked, at their expiry where it is not.

use std::time::Duration;

use anyhow::{Context as _, bail};
use http::StatusCode;
use portcullis_metadata::{Clock as _, SystemClock};
use tokio::time::sleep;

use crate::walks::{
    expect,
    keycloak::{servers::Setup, stage::Stage, tokens::part},
    progress::Progress,
    request,
};

const SCOPE: &str = "mcp:tools introspection";
/// A token of the short-lived client lives for 10 s.
const EXPIRY_LIMIT: Duration = Duration::from_secs(40);
const PERIOD: Duration = Duration::from_millis(100);

pub(in crate::walks::keycloak) async fn run(stage: &Stage, progress: &mut Progress) -> anyhow::Result<()> {
    progress.step("a revoked token is inactive at once", revoked(stage)).await?;
    progress.step("a logout ends its tokens at once", logged_out(stage)).await?;
    progress.step("an administrator's logout, too", logged_out_by_administrator(stage)).await?;
    let disabled = disabled(stage);
    progress.step_within(EXPIRY_LIMIT, "a disabled user: at once, or at expiry with JWT", disabled).await?;
    progress.step("refresh rotates, and reuse ends the session", reused(stage)).await
}

async fn revoked(stage: &Stage) -> anyhow::Result<()> {
    let client = stage.client("mcp-cli")?;
    let access = client.tokens(SCOPE, "alice").await?.access;
    let other = client.tokens(SCOPE, "alice").await?.access;
    admitted_by_all(stage, &access).await?;
    client.revoke(&access).await?;
    refused_where_asked(stage, &access).await?;
    // The introspection endpoint was not called.
    stage.admitted(Setup::Jwt, &access).await?;
    admitted_by_all(stage, &other).await
}

async fn logged_out(stage: &Stage) -> anyhow::Result<()> {
    let client = stage.client("mcp-cli")?;
    let tokens = client.tokens(SCOPE, "alice").await?;
    admitted_by_all(stage, &tokens.access).await?;
    client.log_out(&tokens).await?;
    refused_where_asked(stage, &tokens.access).await
}

async fn logged_out_by_administrator(stage: &Stage) -> anyhow::Result<()> {
    let access = stage.client("mcp-cli")?.tokens(SCOPE, "bob").await?.access;
    admitted_by_all(stage, &access).await?;
    stage.admin.log_out("bob").await?;
    refused_where_asked(stage, &access).await
}

async fn disabled(stage: &Stage) -> anyhow::Result<()> {
    let short = stage.client("mcp-cli-short")?.tokens(SCOPE, "carol").await?.access;
    let long = stage.client("mcp-cli-long")?.tokens(SCOPE, "carol").await?.access;
    admitted_by_all(stage, &long).await?;
    stage.admin.enable_user("carol", false).await?;
    refused_where_asked(stage, &long).await?;
    stage.admitted(Setup::Jwt, &long).await?;
    expires(stage, &short).await?;
    let again = stage.client("mcp-cli")?.tokens(SCOPE, "carol").await;
    expect::that(again.is_err(), "another sign-in", "a refusal", "tokens")?;
    stage.admin.enable_user("carol", true).await
}

/// The server that verifies signatures takes the token until its `exp`, and then no longer.
async fn expires(stage: &Stage, token: &str) -> anyhow::Result<()> {
    let expiry = part(token, 1)?["exp"].as_u64().context("exp: expected a number")?;
    let clock = SystemClock::new();
    loop {
        let before = clock.now().as_secs();
        let answer = stage.send(request::tool_list(stage.servers.of(Setup::Jwt)?.address, token)?).await?;
        match answer.status {
            // The setup's leeway is a second; another is for the way.
            StatusCode::OK if before <= expiry + 2 => sleep(PERIOD).await,
            StatusCode::UNAUTHORIZED if clock.now().as_secs() >= expiry => break,
            status => bail!("expected 401 from {expiry} on and 200 before, got {status} at {before}"),
        }
    }
    stage.refused(Setup::Jwt, token, "token.expired").await
}

async fn reused(stage: &Stage) -> anyhow::Result<()> {
    let client = stage.client("mcp-cli")?;
    let first = client.tokens(SCOPE, "alice").await?;
    let answer = expect::json("the refresh", StatusCode::OK, &client.refresh(&first.refresh).await?)?;
    let second = answer["access_token"].as_str().context("expected an access token, got none")?;
    admitted_by_all(stage, second).await?;
    let again = client.refresh(&first.refresh).await?;
    expect::equal("status of the second use", StatusCode::BAD_REQUEST, again.status)?;
    refused_where_asked(stage, second).await
}

async fn admitted_by_all(stage: &Stage, token: &str) -> anyhow::Result<()> {
    for setup in Setup::ASKING.into_iter().chain([Setup::Jwt]) {
        stage.admitted(setup, token).await?;
    }
    Ok(())
}

async fn refused_where_asked(stage: &Stage, token: &str) -> anyhow::Result<()> {
    for setup in Setup::ASKING {
        stage.refused(setup, token, "token.inactive").await?;
    }
    Ok(())
}
