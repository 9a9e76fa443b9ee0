//! `cargo xtask e2e --broker-clients`: what clients of many makers do at a broker, from the first
//! sign-in to the end of the grant.

mod calls;
mod maker;
mod report;
mod trial;
mod user;

use std::{fs, path::Path, time::Duration};

use anyhow::anyhow;
use portcullis_scenarios::ProviderKind;
use tokio::time::timeout;

pub(crate) use self::maker::Maker;
use self::{
    report::{Report, Row},
    trial::Trial,
};

/// The providers with which MCP clients cannot register.
const KINDS: [ProviderKind; 3] = [
    ProviderKind::Entra,
    ProviderKind::Google,
    ProviderKind::GitHub,
];

/// The time limit of one client at all providers, without its installation.
const CLIENT_LIMIT: Duration = Duration::from_secs(5 * 60);
/// npm, pip and cargo deliver some 100 MB, and the client on rmcp is compiled.
const INSTALL_LIMIT: Duration = Duration::from_secs(15 * 60);

/// Tries each client, one after the other, and prints the table. Fails when a client does something
/// else than expected, or every client was skipped.
pub(crate) async fn run(
    program: &Path,
    target: &Path,
    folder: &Path,
    only: &[Maker],
) -> anyhow::Result<()> {
    let mut report = Report::default();
    for maker in Maker::ALL
        .into_iter()
        .filter(|maker| only.is_empty() || only.contains(maker))
    {
        eprintln!("{}", maker.title());
        let folder = folder.join(maker.name());
        fs::create_dir_all(&folder)?;
        let row = row(maker, program, target, &folder).await;
        eprintln!("{row}");
        report.add(row);
    }
    println!("\n{report}");
    report.result()
}

async fn row(maker: Maker, program: &Path, target: &Path, folder: &Path) -> Row {
    let installed = timeout(INSTALL_LIMIT, maker.install(program, target, folder)).await;
    let installed = match installed.unwrap_or_else(|_| Err(anyhow!("it was not installed in time")))
    {
        Ok(installed) => installed,
        Err(why) => return Row::skipped(maker, &why),
    };
    let trials = KINDS.map(|kind| Trial {
        kind,
        installed: &installed,
        folder,
    });
    let [first, second, third] = &trials;
    let all = async { tokio::try_join!(first.run(), second.run(), third.run()) };
    let observed = timeout(CLIENT_LIMIT, all)
        .await
        .unwrap_or_else(|_| Err(anyhow!("it did not end in time")));
    Row::of(maker, observed.map(<[_; 3]>::from))
}
