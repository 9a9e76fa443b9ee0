use crate::{
    expect,
    keycloak::{
        fixture::Fixture,
        instance::Instance,
        load::{Allowed, Load},
        servers::Setup,
    },
    progress::Progress,
    server::Server,
};

/// The scopes of all tokens.
const SCOPE: &str = "mcp:tools introspection";
/// The number of successful requests to wait for in each state.
const SOME: u64 = 50;

/// Stops Keycloak, starts it again, and then kills it, while requests run at all servers. Fails at
/// the first request with an unexpected response.
pub(in crate::keycloak) async fn run(
    fixture: &mut Fixture,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let token = fixture
        .client("mcp-cli-long")?
        .tokens(SCOPE, "alice")
        .await?
        .access;
    let mut load = Load::default();
    for setup in Setup::ALL
        .into_iter()
        .filter(|setup| *setup != Setup::Forwarded)
    {
        let allowed = if Setup::INTROSPECTING.contains(&setup) {
            Allowed::SuccessOrUnavailable
        } else {
            Allowed::Success
        };
        load.add(
            setup.name(),
            fixture.servers.of(setup)?.address,
            &token,
            allowed,
        )?;
    }
    load.wait_for_successes(SOME).await;
    expect::equal(
        "unavailable responses before the outage",
        0,
        load.count().unavailable,
    )?;

    progress
        .step("Keycloak stops under load", fixture.keycloak.stop())
        .await?;
    progress
        .step(
            "cached keys are used; introspection is unavailable",
            check_outage(fixture, &load, &token),
        )
        .await?;
    let late = progress
        .step(
            "a server starts without Keycloak",
            start_late_server(fixture, &token),
        )
        .await?;
    restart_keycloak(fixture, progress, "Keycloak starts again", "keycloak-2").await?;
    progress
        .step(
            "the same token is accepted everywhere again",
            check_recovery(fixture, &token),
        )
        .await?;
    progress
        .step(
            "also by the server that started without Keycloak",
            check_late_server(fixture, late, &token),
        )
        .await?;

    progress
        .step("Keycloak is killed under load", fixture.keycloak.kill())
        .await?;
    progress
        .step(
            "cached keys are used again",
            check_outage(fixture, &load, &token),
        )
        .await?;
    restart_keycloak(
        fixture,
        progress,
        "Keycloak starts after the kill",
        "keycloak-3",
    )
    .await?;
    progress
        .step(
            "the same token is accepted after the kill",
            check_recovery(fixture, &token),
        )
        .await?;
    let checked = async {
        load.wait_for_successes(SOME).await;
        println!("        {:?}", load.check()?);
        Ok(())
    };
    progress
        .step("no request failed unexpectedly", checked)
        .await
}

/// Starts Keycloak again and waits until it is ready.
async fn restart_keycloak(
    fixture: &mut Fixture,
    progress: &mut Progress,
    step: &'static str,
    name: &'static str,
) -> anyhow::Result<()> {
    let home = fixture.home.clone();
    let addresses = fixture.addresses;
    let folder = fixture.folder.clone();
    let started = async {
        fixture.keycloak = Instance::start(&home, &addresses, name, &folder)?;
        fixture.keycloak.ready().await
    };
    progress
        .step_within(fixture.ready_within, step, started)
        .await
}

/// Checks that signatures are verified with the cached keys, and that introspection is unavailable.
async fn check_outage(fixture: &Fixture, load: &Load, token: &str) -> anyhow::Result<()> {
    fixture.admitted(Setup::Jwt, token).await?;
    for setup in Setup::INTROSPECTING {
        fixture
            .unavailable(setup.name(), fixture.servers.of(setup)?, token)
            .await?;
    }
    load.wait_for_successes(SOME).await;
    load.check().map(drop)
}

/// Checks that the same token and a new one are accepted by all servers.
async fn check_recovery(fixture: &Fixture, token: &str) -> anyhow::Result<()> {
    let new = fixture
        .client("mcp-cli")?
        .tokens(SCOPE, "bob")
        .await?
        .access;
    for setup in Setup::ALL {
        fixture.admitted(setup, token).await?;
        fixture.admitted(setup, &new).await?;
    }
    Ok(())
}

/// Starts a server that has no keys, and checks that it rejects no token for good.
async fn start_late_server(fixture: &Fixture, token: &str) -> anyhow::Result<Server> {
    let server = Setup::Jwt
        .start("late", &fixture.program, fixture.addresses, &fixture.folder)
        .await?;
    fixture.unavailable("late", &server, token).await?;
    Ok(server)
}

/// Checks that the late server has fetched the keys.
async fn check_late_server(fixture: &Fixture, mut late: Server, token: &str) -> anyhow::Result<()> {
    late.ready().await?;
    fixture.admitted_by("late", &late, token).await?;
    late.stop().await
}
