//! The nginx of this machine, as a bare reverse proxy.

use std::{fs, net::SocketAddr, path::Path, process::Command};

use anyhow::{Context as _, ensure};
use portcullis_scenarios::ReservedPort;

use super::process::MeasuredProcess;

const CONFIGURATION: &str = include_str!("nginx.conf");
const NOT_STARTED: &str =
    "cannot start nginx; install it (Debian: apt install nginx-light), or run with --micro";

/// Returns the version, such as `nginx/1.22.1`.
pub(super) fn version() -> anyhow::Result<String> {
    let output = Command::new("nginx")
        .arg("-v")
        .output()
        .context(NOT_STARTED)?;
    ensure!(
        output.status.success(),
        "nginx -v ended with {}",
        output.status
    );
    let text = String::from_utf8_lossy(&output.stderr);
    let version = text.trim();
    Ok(version
        .strip_prefix("nginx version: ")
        .unwrap_or(version)
        .to_owned())
}

/// Starts nginx in front of the upstream, and waits until it listens.
pub(super) async fn start(folder: &Path, upstream: SocketAddr) -> anyhow::Result<MeasuredProcess> {
    let port = ReservedPort::new();
    let address = port.address();
    let configuration = CONFIGURATION
        .replace("{listen}", &address.to_string())
        .replace("{upstream}", &upstream.to_string())
        .replace("{folder}", &folder.display().to_string());
    let file = folder.join("nginx.conf");
    fs::write(&file, configuration)?;
    let mut command = Command::new("nginx");
    command
        .arg("-e")
        .arg(folder.join("error.log"))
        .arg("-p")
        .arg(folder)
        .arg("-c")
        .arg(file);
    let mut nginx = MeasuredProcess::start(&mut command, address)?;
    nginx.listening().await?;
    Ok(nginx)
}
