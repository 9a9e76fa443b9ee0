//! [`npm_install`]: installs packages by npm once.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, ensure};

use tokio::time::timeout;

use crate::process::Process;

/// The timeout of an installation.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The file that names the packages.
const MANIFEST: &str = "package.json";
/// Their versions, those of what they depend on, and the hashes of all.
const LOCK: &str = "package-lock.json";

/// Installs the packages of the `package.json` and `package-lock.json` of the folder `source` into
/// another folder, unless the same were installed there before. A package whose hash differs is not
/// installed.
///
/// # Errors
/// Fails when npm is missing or fails or takes more than 10 minutes, a file of `source` cannot be
/// read, or the folder cannot be written.
pub async fn npm_install(folder: &Path, source: &Path) -> anyhow::Result<()> {
    let read = |name| {
        let file = source.join(name);
        fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))
    };
    let (manifest, lock) = (read(MANIFEST)?, read(LOCK)?);
    let installed = folder.join("installed");
    let wanted = format!("{manifest}{lock}");
    if fs::read_to_string(&installed).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    fs::create_dir_all(folder)
        .with_context(|| format!("{} cannot be created", folder.display()))?;
    fs::write(folder.join(MANIFEST), manifest)?;
    fs::write(folder.join(LOCK), lock)?;
    announce(folder);
    let mut npm = Command::new("npm");
    npm.args([
        "ci",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        "--prefix",
    ])
    .arg(folder);
    npm.stdin(Stdio::null()).stdout(Stdio::null());
    let mut npm =
        Process::start("npm", &mut npm).context("npm is missing; install Node.js 20 or newer")?;
    let status = timeout(TIMEOUT, npm.wait())
        .await
        .context("npm did not end in 10 minutes")??;
    ensure!(status.success(), "npm ended with {status}");
    fs::write(installed, wanted)?;
    Ok(())
}

#[expect(clippy::print_stderr, reason = "an installation takes long")]
fn announce(folder: &Path) {
    eprintln!("npm installs packages into {}", folder.display());
}
