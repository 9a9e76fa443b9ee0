//! `cargo xtask e2e --idp keycloak`: the real program against a real Keycloak.

mod admin;
mod distribution;
mod guide;
mod installed;
mod instance;
mod load;
mod places;
mod scenarios;
mod servers;
mod stage;
mod standard_members;
mod tokens;
mod upstream;

use std::{path::Path, sync::Arc, time::Duration};

use super::{canary, output, person::Person, progress::Progress, wire::Wire};
use clap::ValueEnum as _;
use stage::{Ready, Stage};

pub(super) use installed::Installed;
pub(super) use scenarios::Scenario;

/// How long one step may take. Keycloak's password hash alone takes seconds on a busy machine.
pub(super) const LIMIT: Duration = Duration::from_secs(60);
/// A realm takes seconds to make, and on a busy machine many.
const REALMS_LIMIT: Duration = Duration::from_secs(120);
/// How long the servers may take to start, and to end.
const SERVERS_LIMIT: Duration = Duration::from_secs(30);
/// What is written within a walk is searched in this time.
const SEARCH_LIMIT: Duration = Duration::from_secs(3 * 60);

/// What is walked through, and with what.
pub(super) struct Wanted<'a> {
    pub(super) program: &'a Path,
    pub(super) target: &'a Path,
    pub(super) folder: &'a Path,
    /// How long Keycloak may take until it is ready.
    pub(super) ready_within: Duration,
    /// The scenarios; all when there is none.
    pub(super) only: &'a [Scenario],
}

/// Prepares, starts, walks through all scenarios, and ends. A scenario that fails does not keep the others from
/// being tried.
pub(super) async fn whole(
    wanted: &Wanted<'_>,
    wire: Arc<Wire>,
    person: Person,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let Wanted { target, folder, ready_within, only, .. } = *wanted;
    let built = distribution::prepared(target, ready_within, progress).await?;
    let ready = Ready::start(&built, folder);
    let ready = progress.step_within(ready_within, "Keycloak starts", ready).await?;
    progress.step_within(REALMS_LIMIT, "the realms of tests/idp are made", ready.make_realms()).await?;
    let stage = ready.with_servers(wanted, wire, person);
    let mut stage = progress.step_within(SERVERS_LIMIT, "a server of each setup starts", stage).await?;

    let mut walked = Vec::new();
    for scenario in Scenario::value_variants().iter().filter(|scenario| only.is_empty() || only.contains(scenario)) {
        walked.push(scenario.run(&mut stage, progress).await);
    }
    let stopped =
        progress.step_within(SERVERS_LIMIT, "SIGTERM ends the servers with exit code 0", stage.servers.stop());
    let stopped = stopped.await;
    // A walk that failed may have left it stopped.
    let ended = if stage.keycloak.is_running() {
        progress.step_within(SERVERS_LIMIT, "Keycloak ends", stage.keycloak.stop()).await
    } else {
        Ok(())
    };
    let searched = search(&stage, folder);
    let searched = progress.step_within(SEARCH_LIMIT, "no panic and no secret in what they wrote", searched).await;
    walked.into_iter().chain([stopped, ended, searched]).collect()
}

async fn search(stage: &Stage, folder: &Path) -> anyhow::Result<()> {
    let mut canaries = canary::canaries(&stage.wire.exchanges());
    stage.person_client.add_secrets(&mut canaries)?;
    output::search(folder, &canaries)
}
