//! Keycloak is stopped, started, and killed while requests run.

use crate::walks::{
    expect,
    keycloak::{
        instance::Instance,
        load::{Allowed, Load},
        servers::Setup,
        stage::Stage,
    },
    progress::Progress,
    server::Server,
};

const SCOPE: &str = "mcp:tools introspection";
/// Answers that are waited for in each state.
const SOME: u64 = 50;

pub(in crate::walks::keycloak) async fn run(stage: &mut Stage, progress: &mut Progress) -> anyhow::Result<()> {
    let token = stage.client("mcp-cli-long")?.tokens(SCOPE, "alice").await?.access;
    let mut load = Load::default();
    for setup in Setup::ALL.into_iter().filter(|setup| *setup != Setup::Forwarded) {
        let allowed = if Setup::ASKING.contains(&setup) { Allowed::AnswerOrLater } else { Allowed::Answer };
        load.add(setup.name(), stage.servers.of(setup)?.address, &token, allowed)?;
    }
    load.answers(SOME).await;
    expect::equal("requests put off before", 0, load.count().later)?;

    progress.step("Keycloak stops under load", stage.keycloak.stop()).await?;
    progress.step("keys serve on; who must ask says later", down(stage, &load, &token)).await?;
    let late = progress.step("a server starts without Keycloak", start_without(stage, &token)).await?;
    restart(stage, progress, "Keycloak starts again", "keycloak-2").await?;
    progress.step("the same token is good everywhere again", up(stage, &token)).await?;
    progress.step("so it is where Keycloak was missing at start", recovered(stage, late, &token)).await?;

    progress.step("Keycloak is killed under load", stage.keycloak.kill()).await?;
    progress.step("keys serve on, as before", down(stage, &load, &token)).await?;
    restart(stage, progress, "Keycloak starts after the kill", "keycloak-3").await?;
    progress.step("the same token is good again after the kill", up(stage, &token)).await?;
    let checked = async {
        load.answers(SOME).await;
        println!("        {:?}", load.check()?);
        Ok(())
    };
    progress.step("no request failed that should not", checked).await
}

async fn restart(
    stage: &mut Stage,
    progress: &mut Progress,
    step: &'static str,
    name: &'static str,
) -> anyhow::Result<()> {
    let (home, places, folder) = (stage.home.clone(), stage.places, stage.folder.clone());
    let started = async {
        stage.keycloak = Instance::start(&home, &places, name, &folder)?;
        stage.keycloak.ready().await
    };
    progress.step_within(stage.ready_within, step, started).await
}

async fn down(stage: &Stage, load: &Load, token: &str) -> anyhow::Result<()> {
    stage.admitted(Setup::Jwt, token).await?;
    for setup in Setup::ASKING {
        stage.put_off(setup.name(), stage.servers.of(setup)?, token).await?;
    }
    load.answers(SOME).await;
    load.check().map(drop)
}

async fn up(stage: &Stage, token: &str) -> anyhow::Result<()> {
    let new = stage.client("mcp-cli")?.tokens(SCOPE, "bob").await?.access;
    for setup in Setup::ALL {
        stage.admitted(setup, token).await?;
        stage.admitted(setup, &new).await?;
    }
    Ok(())
}

async fn start_without(stage: &Stage, token: &str) -> anyhow::Result<Server> {
    let server = Setup::Jwt.start("late", &stage.program, stage.places, &stage.folder).await?;
    stage.put_off("late", &server, token).await?;
    Ok(server)
}

async fn recovered(stage: &Stage, mut late: Server, token: &str) -> anyhow::Result<()> {
    late.ready().await?;
    stage.admitted_by("late", &late, token).await?;
    late.stop().await
}
