//! Revoked tokens: rejected immediately with introspection, and after their expiry without.

use std::time::Duration;

use anyhow::{Context as _, bail};
use http::StatusCode;
use portcullis_metadata::{Clock as _, SystemClock};
use tokio::time::sleep;

use crate::{
    expect,
    keycloak::{fixture::Fixture, servers::Setup, tokens},
    progress::Progress,
    request,
};

const SCOPE: &str = "mcp:tools introspection";
/// The lifetime of tokens of the short-lived client is 10 s.
const EXPIRY_LIMIT: Duration = Duration::from_secs(40);
const PERIOD: Duration = Duration::from_millis(100);

pub(in crate::keycloak) async fn run(
    fixture: &Fixture,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    progress
        .step(
            "a revoked token becomes inactive immediately",
            revoked(fixture),
        )
        .await?;
    progress
        .step("a logout ends its tokens immediately", logged_out(fixture))
        .await?;
    progress
        .step(
            "an administrator's logout, too",
            logged_out_by_administrator(fixture),
        )
        .await?;
    let disabled = disabled(fixture);
    progress
        .step_within(
            EXPIRY_LIMIT,
            "a disabled user: immediately, or at expiry with JWT",
            disabled,
        )
        .await?;
    progress
        .step(
            "refresh rotates, and reuse ends the session",
            reused(fixture),
        )
        .await
}

/// A revoked token becomes inactive immediately.
async fn revoked(fixture: &Fixture) -> anyhow::Result<()> {
    let client = fixture.client("mcp-cli")?;
    let access = client.tokens(SCOPE, "alice").await?.access;
    let other = client.tokens(SCOPE, "alice").await?.access;
    admitted_by_all(fixture, &access).await?;
    client.revoke(&access).await?;
    rejected_by_introspection(fixture, &access).await?;
    // Without introspection, the token is accepted until it expires.
    fixture.admitted(Setup::Jwt, &access).await?;
    admitted_by_all(fixture, &other).await
}

/// A logout ends its tokens immediately.
async fn logged_out(fixture: &Fixture) -> anyhow::Result<()> {
    let client = fixture.client("mcp-cli")?;
    let tokens = client.tokens(SCOPE, "alice").await?;
    admitted_by_all(fixture, &tokens.access).await?;
    client.log_out(&tokens).await?;
    rejected_by_introspection(fixture, &tokens.access).await
}

/// An administrator's logout ends the tokens of the user immediately.
async fn logged_out_by_administrator(fixture: &Fixture) -> anyhow::Result<()> {
    let access = fixture
        .client("mcp-cli")?
        .tokens(SCOPE, "bob")
        .await?
        .access;
    admitted_by_all(fixture, &access).await?;
    fixture.admin.log_out("bob").await?;
    rejected_by_introspection(fixture, &access).await
}

/// The tokens of a disabled user are rejected immediately with introspection, and at their expiry
/// without.
async fn disabled(fixture: &Fixture) -> anyhow::Result<()> {
    let short = fixture
        .client("mcp-cli-short")?
        .tokens(SCOPE, "carol")
        .await?
        .access;
    let long = fixture
        .client("mcp-cli-long")?
        .tokens(SCOPE, "carol")
        .await?
        .access;
    admitted_by_all(fixture, &long).await?;
    fixture.admin.enable_user("carol", false).await?;
    rejected_by_introspection(fixture, &long).await?;
    fixture.admitted(Setup::Jwt, &long).await?;
    expires(fixture, &short).await?;
    let again = fixture.client("mcp-cli")?.tokens(SCOPE, "carol").await;
    expect::that(again.is_err(), "another sign-in", "a refusal", "tokens")?;
    fixture.admin.enable_user("carol", true).await
}

/// Checks that the server that verifies signatures accepts the token until its `exp`.
async fn expires(fixture: &Fixture, token: &str) -> anyhow::Result<()> {
    let expiry = tokens::claims(token)?["exp"]
        .as_u64()
        .context("exp: expected a number")?;
    let clock = SystemClock::new();
    loop {
        let before = clock.now().as_secs();
        let response = fixture
            .send(request::tool_list(
                fixture.servers.of(Setup::Jwt)?.address,
                token,
            )?)
            .await?;
        match response.status {
            // The leeway of the setup is one second. Another one is for the transfer.
            StatusCode::OK if before <= expiry + 2 => sleep(PERIOD).await,
            StatusCode::UNAUTHORIZED if clock.now().as_secs() >= expiry => break,
            status => {
                bail!("expected 401 from {expiry} on and 200 before, got {status} at {before}")
            }
        }
    }
    fixture.rejected(Setup::Jwt, token, "token.expired").await
}

/// Refresh rotates, and reuse ends the session.
async fn reused(fixture: &Fixture) -> anyhow::Result<()> {
    let client = fixture.client("mcp-cli")?;
    let first = client.tokens(SCOPE, "alice").await?;
    let response = expect::json(
        "the refresh",
        StatusCode::OK,
        &client.refresh(&first.refresh).await?,
    )?;
    let second = response["access_token"]
        .as_str()
        .context("expected an access token, got none")?;
    admitted_by_all(fixture, second).await?;
    let again = client.refresh(&first.refresh).await?;
    expect::equal(
        "status of the second use",
        StatusCode::BAD_REQUEST,
        again.status,
    )?;
    rejected_by_introspection(fixture, second).await
}

async fn admitted_by_all(fixture: &Fixture, token: &str) -> anyhow::Result<()> {
    for setup in Setup::INTROSPECTING.into_iter().chain([Setup::Jwt]) {
        fixture.admitted(setup, token).await?;
    }
    Ok(())
}

async fn rejected_by_introspection(fixture: &Fixture, token: &str) -> anyhow::Result<()> {
    for setup in Setup::INTROSPECTING {
        fixture.rejected(setup, token, "token.inactive").await?;
    }
    Ok(())
}
