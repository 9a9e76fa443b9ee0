//! Keycloak's keys change while requests run.

use crate::walks::{
    expect,
    keycloak::{
        load::{Allowed, Count, Load},
        servers::Setup,
        stage::Stage,
        tokens::part,
    },
    progress::Progress,
};

const SCOPE: &str = "mcp:tools introspection";
/// Answers that are waited for between two changes.
const SOME: u64 = 50;

pub(in crate::walks::keycloak) async fn run(stage: &Stage, progress: &mut Progress) -> anyhow::Result<()> {
    let old = stage.client("mcp-cli-long")?.tokens(SCOPE, "alice").await?.access;
    let new = progress.step("a new key: both tokens are good, no request fails", rotated(stage, &old)).await?;
    progress.step("the old key is withdrawn: its tokens end", withdrawn(stage, &old, &new)).await
}

/// Gives a token of the new key.
async fn rotated(stage: &Stage, old: &str) -> anyhow::Result<String> {
    let mut load = Load::default();
    for setup in [Setup::Jwt, Setup::Both] {
        load.add(setup.name(), stage.servers.of(setup)?.address, old, Allowed::Answer)?;
    }
    load.answers(SOME).await;
    stage.admin.add_key("second", 200).await?;
    let new = stage.client("mcp-cli-long")?.tokens(SCOPE, "alice").await?.access;
    expect::that(part(old, 0)?["kid"] != part(&new, 0)?["kid"], "kid", "another", part(&new, 0)?)?;
    // The very first request with the new key is admitted.
    for setup in [Setup::Jwt, Setup::Both] {
        stage.admitted(setup, &new).await?;
        load.add(setup.name(), stage.servers.of(setup)?.address, &new, Allowed::Answer)?;
    }
    load.answers(SOME).await;
    told(load.check()?);
    Ok(new)
}

/// A token of a third key makes the server look at the key set again.
async fn withdrawn(stage: &Stage, old: &str, new: &str) -> anyhow::Result<()> {
    let mut load = Load::default();
    load.add("the new key", stage.servers.of(Setup::Jwt)?.address, new, Allowed::Answer)?;
    stage.admin.withdraw_first_key().await?;
    stage.refused(Setup::Basic, old, "token.inactive").await?;
    stage.admin.add_key("third", 300).await?;
    let third = stage.client("mcp-cli-long")?.tokens(SCOPE, "alice").await?.access;
    stage.admitted(Setup::Jwt, &third).await?;
    stage.refused(Setup::Jwt, old, "token.key_unknown").await?;
    load.answers(SOME).await;
    told(load.check()?);
    Ok(())
}

fn told(count: Count) {
    println!("        {count:?}");
}
