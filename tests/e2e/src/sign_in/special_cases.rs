//! Sign-ins with a store that cannot be written, and at a server that has forgotten the client.

use std::path::Path;

use anyhow::{Context as _, ensure};
use http::StatusCode;
use portcullis_discovery::{Fetch as _, FetchRequest, UrlPolicy};

use super::trial::Trial;
use crate::{client::Client, expect};

/// A directory that even root cannot create.
const READ_ONLY: &str = "/proc/portcullis/store";

/// Checks that `login` fails before it asks the user, and names the option to use.
pub(super) async fn login_without_store(trial: &Trial<'_>, client: Client) -> anyhow::Result<()> {
    let client = client.with_store(Path::new(READ_ONLY));
    let run = trial.run(&client, "login", &[]).await?.failed("--store")?;
    ensure!(
        run.authorization.is_none(),
        "expected that the browser is not opened for a sign-in that cannot be stored"
    );
    Ok(())
}

/// Checks that `connect` works with tokens in memory and warns once.
pub(super) async fn connect_without_store(trial: &Trial<'_>, client: Client) -> anyhow::Result<()> {
    let run = trial
        .bridge(&client.with_store(Path::new(READ_ONLY)))
        .await?;
    expect::equal("warnings", 1, run.output.matches("kept in memory").count())
}

/// Checks that a second `login` registers again before it opens the browser.
pub(super) async fn login_when_forgotten(trial: &Trial<'_>, client: &Client) -> anyhow::Result<()> {
    trial.sign_in(client).await?;
    let first = client.stored_token(&trial.site.url)?.client_id;
    forget(trial).await?;
    trial
        .sign_in(client)
        .await
        .context("after the server forgot the client")?;
    ensure!(
        client.stored_token(&trial.site.url)?.client_id != first,
        "expected another client"
    );
    Ok(())
}

/// Checks `connect` after a `logout`, when only the forgotten registration is stored.
pub(super) async fn connect_when_forgotten(
    trial: &Trial<'_>,
    client: &Client,
) -> anyhow::Result<()> {
    trial.bridge(client).await?;
    let first = client.stored_token(&trial.site.url)?.client_id;
    // The tokens cannot be revoked, but are deleted here.
    forget(trial).await?;
    client.run("logout", &trial.site.url, &[]).await?;
    ensure!(
        client.stored_token(&trial.site.url).is_err(),
        "expected that logout removes the tokens"
    );
    trial
        .bridge(client)
        .await
        .context("after the server forgot the client")?;
    ensure!(
        client.stored_token(&trial.site.url)?.client_id != first,
        "expected another client"
    );
    Ok(())
}

/// Makes the authorization server forget all clients.
async fn forget(trial: &Trial<'_>) -> anyhow::Result<()> {
    let url = trial
        .site
        .forget
        .clone()
        .context("this server does not forget")?;
    let request = FetchRequest::post_json(url, "{}", UrlPolicy::Operator);
    let response = trial.recorder.fetch(request).await?;
    expect::equal(
        "status of /admin/forget",
        StatusCode::NO_CONTENT,
        response.status,
    )
}
