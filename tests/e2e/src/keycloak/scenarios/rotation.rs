//! Keycloak's keys change while requests run.

use crate::{
    expect,
    keycloak::{
        fixture::Fixture,
        load::{Allowed, Count, Load},
        servers::Setup,
        tokens,
    },
    progress::Progress,
};

const SCOPE: &str = "mcp:tools introspection";
/// The number of successful requests to wait for between two changes.
const SOME: u64 = 50;

pub(in crate::keycloak) async fn run(
    fixture: &Fixture,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let old = fixture
        .client("mcp-cli-long")?
        .tokens(SCOPE, "alice")
        .await?
        .access;
    let new = progress
        .step(
            "a new key: both tokens are accepted, no request fails",
            rotated(fixture, &old),
        )
        .await?;
    progress
        .step(
            "the old key is withdrawn: its tokens are rejected",
            withdrawn(fixture, &old, &new),
        )
        .await
}

/// Adds a key and returns a token that it signed.
async fn rotated(fixture: &Fixture, old: &str) -> anyhow::Result<String> {
    let mut load = Load::default();
    for setup in [Setup::Jwt, Setup::Both] {
        load.add(
            setup.name(),
            fixture.servers.of(setup)?.address,
            old,
            Allowed::Success,
        )?;
    }
    load.wait_for_successes(SOME).await;
    fixture.admin.add_key("second", 200).await?;
    let new = fixture
        .client("mcp-cli-long")?
        .tokens(SCOPE, "alice")
        .await?
        .access;
    expect::that(
        tokens::header(old)?["kid"] != tokens::header(&new)?["kid"],
        "kid",
        "another",
        tokens::header(&new)?,
    )?;

    // The first request with the new key is accepted.
    for setup in [Setup::Jwt, Setup::Both] {
        fixture.admitted(setup, &new).await?;
        load.add(
            setup.name(),
            fixture.servers.of(setup)?.address,
            &new,
            Allowed::Success,
        )?;
    }
    load.wait_for_successes(SOME).await;
    print_count(load.check()?);
    Ok(new)
}

/// Withdraws the first key. A token of a third key causes a fetch of the key set, after which
/// tokens of the first key are rejected.
async fn withdrawn(fixture: &Fixture, old: &str, new: &str) -> anyhow::Result<()> {
    let mut load = Load::default();
    load.add(
        "the new key",
        fixture.servers.of(Setup::Jwt)?.address,
        new,
        Allowed::Success,
    )?;
    fixture.admin.withdraw_first_key().await?;
    fixture
        .rejected(Setup::Basic, old, "token.inactive")
        .await?;
    fixture.admin.add_key("third", 300).await?;
    let third = fixture
        .client("mcp-cli-long")?
        .tokens(SCOPE, "alice")
        .await?
        .access;
    fixture.admitted(Setup::Jwt, &third).await?;
    fixture
        .rejected(Setup::Jwt, old, "token.key_unknown")
        .await?;
    load.wait_for_successes(SOME).await;
    print_count(load.check()?);
    Ok(())
}

fn print_count(count: Count) {
    println!("        {count:?}");
}
