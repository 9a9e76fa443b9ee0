//! Commands of other programs.

use std::{path::Path, process::Command};

use anyhow::{Context as _, bail, ensure};

/// Runs a command. Its output goes to the terminal. Fails when it cannot be started or fails.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let name = name(command);
    let status = command
        .status()
        .with_context(|| format!("{name} could not be started"))?;
    ensure!(status.success(), "{name} ended with {status}");
    Ok(())
}

/// Runs a command and returns its standard output. Fails when it cannot be started or fails. The
/// message has its standard error.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let name = name(command);
    let output = command
        .output()
        .with_context(|| format!("{name} could not be started"))?;
    if !output.status.success() {
        bail!(
            "{name} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns whether a program is installed.
pub(crate) fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Packs an entry of a folder reproducibly: sorted, without names of owners, with one modification
/// time. Fails when `tar` or `gzip` fails.
pub(crate) fn tar_gz(folder: &Path, entry: &str, time: u64, file: &Path) -> anyhow::Result<()> {
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=u+rw,go=rX",
        "--use-compress-program=gzip -9n",
    ]);
    tar.arg(format!("--mtime=@{time}"))
        .arg("--create")
        .arg("--file")
        .arg(file)
        .arg("--directory")
        .arg(folder)
        .arg(entry);
    run(&mut tar)
}

fn name(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let first = command
        .get_args()
        .next()
        .map(|first| format!(" {}", first.to_string_lossy()))
        .unwrap_or_default();
    format!("{}{first}", program.to_string_lossy())
}
