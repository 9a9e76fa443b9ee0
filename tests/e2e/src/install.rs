//! Installs packages at pinned versions into the target folder.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};
use portcullis_scenarios::npm_install;
use xtask::workspace;

use super::program::Program;

/// The version of pip, and its hashes.
const PIP: &str = "tests/idp/pip.txt";

/// Installs the packages of a requirements file, with the hashes that it has for all of them, into
/// a virtual environment, unless that was done before, and returns its interpreter. Fails when
/// Python is missing or pip fails.
pub(crate) async fn python(
    folder: &Path,
    requirements: &Path,
    logs: &Path,
) -> anyhow::Result<PathBuf> {
    let interpreter = folder.join("bin/python");
    let wanted = fs::read_to_string(requirements)?;
    let installed = folder.join("installed");
    if fs::read_to_string(&installed).is_ok_and(|found| found == wanted) {
        return Ok(interpreter);
    }
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(folder);
    run("venv", venv, logs).await?;
    // Older versions of pip require a hash for `name[extra]` even if `name` has one.
    let mut newest = pip(&interpreter, "install");
    newest
        .args(["--require-hashes", "--requirement"])
        .arg(workspace::root().join(PIP));
    run("pip-itself", newest, logs).await?;
    let mut pip = pip(&interpreter, "install");
    pip.args(["--require-hashes", "--requirement"])
        .arg(requirements);
    run("pip", pip, logs).await?;
    fs::write(installed, wanted)?;
    Ok(interpreter)
}

/// Returns pip's command with this name, of the environment of an interpreter.
pub(crate) fn pip(interpreter: &Path, name: &str) -> Command {
    let mut pip = Command::new(interpreter);
    pip.args(["-m", "pip", name, "--quiet", "--disable-pip-version-check"]);
    pip
}

/// Runs an installer to its end. Its output goes to `<logs>/install-<name>.log`. Fails when it is
/// missing or fails.
pub(crate) async fn run(name: &str, mut command: Command, logs: &Path) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut running = Program::start(format!("install-{name}"), &mut command, logs)
        .with_context(|| format!("{program} is not installed"))?;
    let status = running.wait().await?;
    ensure!(
        status.success(),
        "{program} ended with {status}: {}",
        running.last_lines()
    );
    Ok(())
}

/// Installs the packages of a folder once, and copies scripts of it beside them, because Node.js
/// looks for packages from where a script is. Fails when npm is missing or fails.
pub(crate) async fn npm(folder: &Path, source: &Path, scripts: &[&str]) -> anyhow::Result<()> {
    npm_install(folder, source).await?;
    for script in scripts {
        fs::copy(source.join(script), folder.join(script))?;
    }
    Ok(())
}

/// Builds a program of a package outside of the workspace, and returns its path. Fails when the
/// build fails.
pub(crate) async fn cargo(
    folder: &Path,
    source: &Path,
    program: &str,
    logs: &Path,
) -> anyhow::Result<PathBuf> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["build", "--quiet", "--locked", "--manifest-path"])
        .arg(source.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(folder);
    run("cargo", cargo, logs).await?;
    Ok(folder.join("debug").join(program))
}
