//! The nginx of this machine, as a bare reverse proxy.

use std::{fs, net::SocketAddr, path::Path, process::Command};

use anyhow::Context as _;
use portcullis_scenarios::free_address;

use super::process::MeasuredProcess;

const CONFIGURATION: &str = include_str!("nginx.conf");
const MISSING: &str = "nginx is not on PATH; install it (Debian: apt install nginx-light), or run with --micro";

/// Returns the version, such as `nginx/1.22.1`.
pub(super) fn version() -> anyhow::Result<String> {
    let output = Command::new("nginx").arg("-v").output().context(MISSING)?;
    let text = String::from_utf8_lossy(&output.stderr);
    Ok(text.trim().trim_start_matches("nginx version: ").to_owned())
}

/// Starts nginx in front of the upstream.
pub(super) async fn start(folder: &Path, upstream: SocketAddr) -> anyhow::Result<MeasuredProcess> {
    let address = free_address()?;
    let configuration = CONFIGURATION
        .replace("{listen}", &address.to_string())
        .replace("{upstream}", &upstream.to_string())
        .replace("{folder}", &folder.display().to_string());
    let file = folder.join("nginx.conf");
    fs::write(&file, configuration)?;
    let mut command = Command::new("nginx");
    command.arg("-e").arg(folder.join("error.log")).arg("-p").arg(folder).arg("-c").arg(file);
    let mut nginx = MeasuredProcess::start(&mut command, address)?;
    nginx.listening().await?;
    Ok(nginx)
}
