//! `cargo xtask advisories`: compares `Cargo.lock` with a pinned snapshot of the RustSec advisory
//! database.
//!
//! The repository contains the commit and the date of the snapshot. git fetches the commit, whose
//! hash covers the content of the database, so that the source need not be trusted.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde::Deserialize;

use xtask::{checklist::Outcome, workspace};

/// The file that names the snapshot.
const PIN: &str = "advisory-db.toml";
/// The folder that `deny.toml` names as `db-path`.
const FOLDER: &str = "target/advisories";
/// The name that cargo-deny 0.20 gives the database of this URL in its folder.
const DATABASE: &str = "advisory-db-3157b0e258782691";
/// The variable that names another git repository with the snapshot, such as a local clone.
const SOURCE_VARIABLE: &str = "PORTCULLIS_ADVISORY_DB";
/// Aborts a transfer of fewer than 1000 bytes/s for 30 s, and never asks for a password.
const GIT_ENVIRONMENT: [(&str, &str); 3] = [
    ("GIT_HTTP_LOW_SPEED_LIMIT", "1000"),
    ("GIT_HTTP_LOW_SPEED_TIME", "30"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// Options of the check.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Replace the pinned snapshot by the newest one of the source first.
    #[arg(long)]
    update: bool,
}

/// A snapshot of the database.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Pin {
    repository: String,
    commit: String,
    /// The date of the commit.
    date: String,
}

/// Checks, after an update if the arguments want one. Fails when an advisory applies to a
/// dependency and `deny.toml` does not ignore it, or the snapshot cannot be fetched.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.update {
        update()?;
    }
    ensure!(
        check()? == Outcome::Passed,
        "the advisory database cannot be fetched; {SOURCE_VARIABLE} can name a clone"
    );
    Ok(())
}

/// Checks. The result is [`Outcome::NotRun`] if the snapshot cannot be fetched, as on a machine
/// that reaches only the registries of packages. Fails when an advisory applies to a dependency and
/// `deny.toml` does not ignore it.
pub(crate) fn check() -> anyhow::Result<Outcome> {
    let pin = read_pin()?;
    let database = workspace::root().join(FOLDER).join(DATABASE);
    if git(&database, &["rev-parse", "HEAD"]).ok().as_deref() != Some(&pin.commit) {
        let source = env::var_os(SOURCE_VARIABLE).unwrap_or_else(|| pin.repository.clone().into());
        if let Err(why) = fetch(&database, source, &pin.commit) {
            println!(
                "not run: the advisory database of {} cannot be fetched: {why:#}",
                pin.date
            );
            return Ok(Outcome::NotRun);
        }
    }
    println!("advisories of {} (commit {})", pin.date, pin.commit);
    // With --offline, cargo-deny neither fetches another snapshot nor downloads crates.
    for arguments in [
        &["fetch", "--locked"][..],
        &["deny", "--workspace", "--offline", "check", "advisories"],
    ] {
        let status = workspace::cargo(arguments)
            .status()
            .context("cargo could not be started")?;
        ensure!(
            status.success(),
            "cargo {} ended with {status}",
            arguments[0]
        );
    }
    Ok(Outcome::Passed)
}

/// Fetches the newest commit, and writes it to the file of the snapshot.
fn update() -> anyhow::Result<()> {
    let pin = read_pin()?;
    let database = workspace::root().join(FOLDER).join(DATABASE);
    let source = env::var_os(SOURCE_VARIABLE).unwrap_or_else(|| pin.repository.clone().into());
    fetch(&database, source, "HEAD")?;
    let commit = git(&database, &["rev-parse", "HEAD"])?;
    let date = git(&database, &["show", "--no-patch", "--format=%cs", "HEAD"])?;
    let file = workspace::root().join(PIN);
    let text = fs::read_to_string(&file)?
        .replace(&pin.commit, &commit)
        .replace(&pin.date, &date);
    ensure!(
        parse(&text)?
            == Pin {
                commit,
                date,
                ..pin
            },
        "{PIN} could not be changed"
    );
    fs::write(file, text)?;
    Ok(())
}

fn read_pin() -> anyhow::Result<Pin> {
    parse(
        &fs::read_to_string(workspace::root().join(PIN))
            .with_context(|| format!("{PIN} cannot be read"))?,
    )
}

fn parse(text: &str) -> anyhow::Result<Pin> {
    let pin: Pin = toml::from_str(text).with_context(|| format!("{PIN} is not as expected"))?;
    let is_hash = pin.commit.len() == 40 && pin.commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    ensure!(is_hash, "{PIN}: commit is not the SHA-1 hash of a commit");
    Ok(pin)
}

/// Checks out a commit of a repository, without its history.
fn fetch(database: &Path, source: OsString, commit: &str) -> anyhow::Result<()> {
    if !database.join(".git").exists() {
        fs::create_dir_all(database)?;
        git(database, &["init", "--quiet"])?;
    }
    // A relative path is one of the working directory.
    let source = fs::canonicalize(&source).map_or(source, PathBuf::into_os_string);
    let mut fetch = command(database);
    output(
        fetch
            .args(["fetch", "--quiet", "--depth=1", "--no-tags"])
            .arg(source)
            .arg(commit),
    )?;
    git(
        database,
        &["checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"],
    )?;
    Ok(())
}

fn git(folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    ensure!(
        folder.join(".git").exists() || arguments[0] == "init",
        "{} is not a repository",
        folder.display()
    );
    output(command(folder).args(arguments))
}

fn command(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).envs(GIT_ENVIRONMENT);
    git
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().context("git could not be started")?;
    if !output.status.success() {
        bail!(
            "git ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_pin_is_valid() {
        let pin = read_pin().unwrap();
        assert_eq!(pin.repository, "https://github.com/RustSec/advisory-db");
        assert_eq!(pin.date.len(), "2026-08-21".len());
        for commit in ["", "main", &pin.commit[..39]] {
            let text = format!("repository = \"r\"\ncommit = \"{commit}\"\ndate = \"2026-08-21\"");
            assert!(parse(&text).is_err(), "{commit}");
        }
    }

    /// Another repository can deliver the snapshot, and only the commit that is asked for.
    #[test]
    fn a_commit_of_a_local_repository_is_checked_out() {
        let folder = env::temp_dir().join(format!("portcullis-advisories-{}", std::process::id()));
        let [source, database] = ["source", "database"].map(|name| folder.join(name));
        fs::create_dir_all(&source).unwrap();
        git(&source, &["init", "--quiet"]).unwrap();
        for content in ["one", "two"] {
            fs::write(source.join("advisory"), content).unwrap();
            git(&source, &["add", "advisory"]).unwrap();
            let mut commit = command(&source);
            commit.args([
                "-c",
                "user.name=x",
                "-c",
                "user.email=x@example.com",
                "-c",
                "commit.gpgSign=false",
            ]);
            output(commit.args(["commit", "--quiet", "--message", content])).unwrap();
        }
        let first = git(&source, &["rev-parse", "HEAD~1"]).unwrap();
        fetch(&database, source.clone().into(), &first).unwrap();
        assert_eq!(
            fs::read_to_string(database.join("advisory")).unwrap(),
            "one"
        );
        assert_eq!(git(&database, &["rev-parse", "HEAD"]).unwrap(), first);
        fetch(&database, source.clone().into(), "HEAD").unwrap();
        assert_eq!(
            fs::read_to_string(database.join("advisory")).unwrap(),
            "two"
        );
        assert!(fetch(&database, source.into(), &"0".repeat(40)).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
