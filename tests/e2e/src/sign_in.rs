//! `cargo xtask e2e --sign-in`: `login` and `connect` at many authorization servers, and in special
//! networks.

mod cells;
mod keycloak;
mod networks;
mod oidc_provider;
mod peer;
mod providers;
mod python;
mod report;
mod site;
mod special_cases;
mod trial;
mod typescript;

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::anyhow;
use clap::{Args, ValueEnum as _};
use tokio::time::timeout;

use self::{
    cells::Cells,
    peer::Peer,
    report::{Report, Row},
    site::Start,
    trial::Trial,
};
use super::{cell::Cell, recorder::Recorder};

/// The time limit of one cell. Keycloak's password hash alone takes many seconds on a busy machine.
const CELL_LIMIT: Duration = Duration::from_secs(180);

/// The options of `--sign-in`.
#[derive(Args, Clone)]
#[group(skip)]
pub(crate) struct Options {
    /// Sign in only at this peer; can be repeated.
    #[arg(long, value_enum, value_name = "PEER", requires = "sign_in")]
    peer: Vec<Peer>,
    /// Print the table as JSON. Progress goes to standard error.
    #[arg(long, requires = "sign_in")]
    json: bool,
}

/// What all peers need.
#[derive(Clone, Copy)]
pub(crate) struct Environment<'a> {
    pub(crate) program: &'a Path,
    pub(crate) target: &'a Path,
    /// The folder of logs.
    pub(crate) folder: &'a Path,
    /// The time limit of a start of Keycloak.
    pub(crate) ready_within: Duration,
}

/// Signs in at each peer in turn and prints the table. Fails when a cell fails. A peer that cannot
/// be installed here is skipped, with the reason.
pub(crate) async fn run(environment: &Environment<'_>, options: &Options) -> anyhow::Result<()> {
    let mut report = Report::default();
    for peer in Peer::value_variants()
        .iter()
        .filter(|peer| options.peer.is_empty() || options.peer.contains(peer))
    {
        eprintln!("{}", peer.title());
        let folder = environment.folder.join(peer.name());
        std::fs::create_dir_all(&folder)?;
        let row = row(
            *peer,
            &Environment {
                folder: &folder,
                ..*environment
            },
        )
        .await;
        eprintln!("{row}");
        report.add(row);
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("\n{report}");
    }
    report.result()
}

/// Signs in at one peer.
async fn row(peer: Peer, environment: &Environment<'_>) -> Row {
    let start = timeout(peer.start_limit(environment), peer.start(environment)).await;
    let site = match start.unwrap_or_else(|_| Err(anyhow!("it did not start in time"))) {
        Ok(Start::Ready(site)) => site,
        Ok(Start::Missing(reason)) => return Row::same(peer, Cell::Skipped { reason }),
        Err(error) => {
            return Row::same(
                peer,
                Cell::failed(&error.context("the peer does not start")),
            );
        }
    };
    let recorder = match Recorder::new(CELL_LIMIT) {
        Ok(recorder) => Arc::new(recorder),
        Err(error) => return Row::same(peer, Cell::failed(&error.into())),
    };
    let trial = Trial {
        program: environment.program,
        folder: environment.folder,
        site: &site,
        recorder,
    };
    let cells: Cells = peer.cells();
    let login = Cell::of(timeout(CELL_LIMIT, cells.login(&trial))).await;
    let connect = Cell::of(timeout(CELL_LIMIT, cells.connect(&trial))).await;
    Row {
        peer,
        login,
        connect,
    }
}
