//! What ends a grant, with the tokens of real providers behind it.

mod trial;

use std::{fs, path::Path, time::Duration};

use portcullis_scenarios::{BrokerSettings, ProviderKind};
use xtask::checklist::Unit;

use self::trial::{Real, Trial};
use super::{
    provider::Provider,
    real::{RealProviders, Scopes},
};
use crate::{cell::Cell, progress::Progress, sign_in::Environment};

/// The time limit of a step, except the wait until users are checked again.
const LIMIT: Duration = Duration::from_secs(60);

/// The steps at each real provider.
#[derive(Default)]
pub(super) struct Grants(Vec<(&'static str, Outcome)>);

enum Outcome {
    /// The table of the steps, and the result.
    Ran(String, anyhow::Result<()>),
    /// The provider is missing, or does not start.
    NotRun(Cell),
}

/// Runs the steps at each of these providers that is real.
pub(super) async fn run(
    environment: &Environment<'_>,
    providers: &[Provider],
    real: &RealProviders,
) -> Grants {
    let mut grants = Grants::default();
    if providers.contains(&Provider::Keycloak) {
        let title = "Keycloak 26.7.3";
        grants.add(title, at_keycloak(real, title).await);
        let title = "Keycloak 26.7.3, without offline_access";
        grants.add(title, logouts_at_keycloak(real, title).await);
    }
    if providers.contains(&Provider::NpmOidc) {
        let title = "oidc-provider 9.13.3";
        let folder = environment.folder.join("grants");
        grants.add(title, at_oidc_provider(real, title, &folder).await);
    }
    grants
}

async fn at_keycloak(real: &RealProviders, title: &str) -> Result<Outcome, Cell> {
    let keycloak = real.keycloak.as_ref().map_err(Cell::clone)?;
    let settings = settings(ProviderKind::Keycloak);
    let server = real.in_front_of_keycloak(settings, Scopes::Default).await?;
    let mut progress = begin(title);
    let result = Trial::new(&server)
        .await?
        .all(Real::Keycloak(keycloak), &mut progress)
        .await;
    Ok(Outcome::Ran(progress.table(), result))
}

async fn logouts_at_keycloak(real: &RealProviders, title: &str) -> Result<Outcome, Cell> {
    let keycloak = real.keycloak.as_ref().map_err(Cell::clone)?;
    let settings = settings(ProviderKind::Keycloak);
    let scopes = Scopes::WithoutOfflineAccess;
    let server = real.in_front_of_keycloak(settings, scopes).await?;
    let mut progress = begin(title);
    let result = Trial::new(&server)
        .await?
        .logouts(keycloak, &mut progress)
        .await;
    Ok(Outcome::Ran(progress.table(), result))
}

async fn at_oidc_provider(
    real: &RealProviders,
    title: &str,
    folder: &Path,
) -> Result<Outcome, Cell> {
    fs::create_dir_all(folder).map_err(|error| Cell::failed(&error.into()))?;
    let settings = settings(ProviderKind::Oidc);
    let server = real.in_front_of_oidc_provider(settings, folder).await?;
    let provider = Real::OidcProvider(&server.idp.provider);
    let mut progress = begin(title);
    let result = Trial::new(&server)
        .await?
        .all(provider, &mut progress)
        .await;
    Ok(Outcome::Ran(progress.table(), result))
}

fn settings(kind: ProviderKind) -> BrokerSettings {
    BrokerSettings {
        broker: "recheck = \"1m\"",
        ..BrokerSettings::of(kind)
    }
}

fn begin(title: &str) -> Progress {
    eprintln!("the ends of grants at {title}");
    Progress::on_standard_error(Unit::Seconds, LIMIT)
}

impl Grants {
    fn add(&mut self, title: &'static str, outcome: Result<Outcome, Cell>) {
        self.0
            .push((title, outcome.unwrap_or_else(Outcome::NotRun)));
    }

    /// Prints the tables.
    pub(super) fn print(&self) {
        for (title, outcome) in &self.0 {
            println!("grants at {title}");
            match outcome {
                Outcome::Ran(table, _) => println!("{table}"),
                Outcome::NotRun(cell) => {
                    println!("{cell}: {}\n", cell.reason().unwrap_or_default());
                }
            }
        }
    }

    /// Fails when a step failed, or a provider did not start.
    pub(super) fn result(self) -> anyhow::Result<()> {
        self.0
            .into_iter()
            .try_for_each(|(_, outcome)| match outcome {
                Outcome::Ran(_, result) => result,
                Outcome::NotRun(Cell::Failed { reason }) => Err(anyhow::anyhow!(reason)),
                Outcome::NotRun(_) => Ok(()),
            })
    }
}
