//! `cargo xtask e2e --idp keycloak`: the real program with a real Keycloak.

mod addresses;
mod admin;
mod distribution;
mod fixture;
mod for_broker;
mod google;
mod guide;
mod installed;
mod instance;
mod load;
mod scenarios;
mod servers;
mod standard_members;
mod tokens;
mod upstream;

use std::{path::Path, sync::Arc, time::Duration};

use super::{canary, output, progress::Progress, recorder::Recorder, test_user::TestUser};
use clap::ValueEnum as _;
use fixture::{Fixture, RunningKeycloak};

pub(crate) use for_broker::KeycloakForBroker;
pub(crate) use installed::Installed;
pub(crate) use scenarios::Scenario;

/// The time limit of a step. Keycloak's password hash alone takes seconds on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// The time limit of the creation of the realms.
const REALMS_LIMIT: Duration = Duration::from_secs(120);
/// The time limit of the start and of the end of the servers.
const SERVERS_LIMIT: Duration = Duration::from_secs(30);
/// The time limit of the search of the output.
const SEARCH_LIMIT: Duration = Duration::from_secs(3 * 60);

/// The options of a run.
pub(crate) struct Options<'a> {
    pub(crate) program: &'a Path,
    pub(crate) target: &'a Path,
    pub(crate) folder: &'a Path,
    /// The time limit of a start of Keycloak.
    pub(crate) ready_within: Duration,
    /// The scenarios to run; all if empty.
    pub(crate) only: &'a [Scenario],
}

/// Installs and starts Keycloak and the servers, runs all scenarios, and stops everything. A failed
/// scenario does not prevent the others.
pub(crate) async fn run(
    options: &Options<'_>,
    recorder: Arc<Recorder>,
    user: TestUser,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let Options {
        target,
        folder,
        ready_within,
        only,
        ..
    } = *options;
    let built = distribution::prepared(target, ready_within, progress).await?;
    let keycloak = RunningKeycloak::start(&built, folder);
    let keycloak = progress
        .step_within(ready_within, "Keycloak starts", keycloak)
        .await?;
    progress
        .step_within(
            REALMS_LIMIT,
            "the realms of tests/idp are created",
            keycloak.create_realms(),
        )
        .await?;
    let fixture = keycloak.with_servers(options, recorder, user);
    let mut fixture = progress
        .step_within(SERVERS_LIMIT, "a server of each setup starts", fixture)
        .await?;

    let mut results = Vec::new();
    for scenario in Scenario::value_variants()
        .iter()
        .filter(|scenario| only.is_empty() || only.contains(scenario))
    {
        results.push(scenario.run(&mut fixture, progress).await);
    }
    let stopped = progress.step_within(
        SERVERS_LIMIT,
        "SIGTERM ends the servers with exit code 0",
        fixture.servers.stop(),
    );
    let stopped = stopped.await;
    // A failed scenario can leave Keycloak stopped.
    let ended = if fixture.keycloak.is_running() {
        progress
            .step_within(SERVERS_LIMIT, "Keycloak ends", fixture.keycloak.stop())
            .await
    } else {
        Ok(())
    };
    let searched = search(&fixture, folder);
    let searched = progress
        .step_within(
            SEARCH_LIMIT,
            "no panic and no secret in their output",
            searched,
        )
        .await;
    results
        .into_iter()
        .chain([stopped, ended, searched])
        .collect()
}

async fn search(fixture: &Fixture, folder: &Path) -> anyhow::Result<()> {
    let mut canaries = canary::canaries(&fixture.recorder.exchanges());
    fixture.shipped_client.add_secrets(&mut canaries)?;
    output::search(folder, &canaries)
}
