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

/// Installs the packages of a `package.json` into a folder, unless the same were installed there before.
///
/// # Errors
/// Fails when npm is missing or fails or takes more than 10 minutes, or the folder cannot be written.
pub async fn npm_install(folder: &Path, manifest: &str) -> anyhow::Result<()> {
    let installed = folder.join("installed");
    if fs::read_to_string(&installed).is_ok_and(|found| found == manifest) {
        return Ok(());
    }
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be created", folder.display()))?;
    fs::write(folder.join("package.json"), manifest)?;
    announce(folder);
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]).arg(folder);
    npm.stdin(Stdio::null()).stdout(Stdio::null());
    let mut npm = Process::start("npm", &mut npm).context("npm is missing; install Node.js 20 or newer")?;
    let status = timeout(TIMEOUT, npm.wait()).await.context("npm did not end in 10 minutes")??;
    ensure!(status.success(), "npm ended with {status}");
    fs::write(installed, manifest)?;
    Ok(())
}

#[expect(clippy::print_stderr, reason = "an installation takes long")]
fn announce(folder: &Path) {
    eprintln!("npm installs packages into {}", folder.display());
}
