//! The guides in `docs/guides`, the pages of `docs/use` and the README: their files are written and
//! their commands executed, as a reader would.

pub(crate) mod browser;
mod document;
#[cfg(test)]
mod links;
mod page;

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use portcullis_scenarios::Scratch;
use tokio::time::{Instant, sleep, timeout};
use xtask::programs;

use self::{
    document::{Document, folder_of_guides},
    page::{Page, Step},
};
use super::{install, program::Program};

/// Options of the guides.
#[derive(Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Execute only this guide or page, named by its file without `.md`; can be repeated. `readme`
    /// is that of the repository.
    #[arg(long, value_name = "NAME", requires = "guides")]
    guide: Vec<String>,
}

/// The time limit of a command. Installers download packages.
const COMMAND_LIMIT: Duration = Duration::from_secs(300);
/// How long a command is repeated while a server that was started before it is not ready.
const READY_LIMIT: Duration = Duration::from_secs(20);

/// Executes all guides and pages with commands, or the selected ones, and prints a line for each.
/// Fails when a command fails, or its output is not what the guide shows, and when no command was
/// executed.
pub(crate) async fn run(
    program: &Path,
    target: &Path,
    folder: &Path,
    options: &Options,
) -> anyhow::Result<()> {
    let documents = Document::all()?;
    for name in &options.guide {
        ensure!(
            documents.iter().any(|document| document.name == *name),
            "there is no guide {name:?}"
        );
    }
    let mut failed = Vec::new();
    let mut executed = 0;
    for Document {
        name,
        path,
        is_guide,
    } in documents
    {
        if !options.guide.is_empty() && !options.guide.contains(&name) {
            continue;
        }
        let page = Page::parse(&fs::read_to_string(&path)?).with_context(|| name.clone())?;
        let started = Instant::now();
        if let Some(missing) = page
            .needs
            .iter()
            .find(|needed| programs::find(needed).is_none())
        {
            println!("skipped  {name}: {missing} is not installed");
            continue;
        }
        match execute(&page, program, target, &folder.join(&name)).await {
            Ok(0) if !is_guide => {}
            Ok(0) => println!("nothing  {name}: no command of this guide is executed"),
            Ok(commands) => {
                executed += commands;
                println!(
                    "passed   {name}: {commands} commands, {} s",
                    started.elapsed().as_secs()
                );
            }
            Err(error) => {
                println!("FAILED   {name}: {error:#}");
                failed.push(name);
            }
        }
    }
    ensure!(
        failed.is_empty(),
        "these guides do not work: {}",
        failed.join(", ")
    );
    ensure!(executed > 0, "no command was executed");
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::create_dir_all(path.parent().context("a file has a folder")?)?;
    Ok(fs::write(path, text)?)
}

/// Executes a guide in a folder of its own, outside of this workspace. Its output goes to `logs`.
/// Returns the number of commands.
async fn execute(page: &Page, program: &Path, target: &Path, logs: &Path) -> anyhow::Result<usize> {
    let scratch = Scratch::folder("guide");
    let folder = scratch.path();
    fs::create_dir_all(logs)?;
    let desk = Desk::new(page, program, target, folder, logs).await?;
    let mut running = Vec::new();
    let mut commands = 0;
    for step in &page.steps {
        match step {
            Step::File { name, text } => write(&folder.join(name), text)?,
            Step::OtherFile { page, name } => {
                let path = folder_of_guides().join(page).with_extension("md");
                let other = Page::parse(&fs::read_to_string(path).with_context(|| page.clone())?)?;
                write(
                    &folder.join(name),
                    other
                        .file(name)
                        .with_context(|| format!("{page} has no {name}"))?,
                )?;
            }
            Step::Stop => stop(&mut running).await?,
            Step::Background { line } => {
                commands += 1;
                let name = format!("{commands:02}-running");
                running.push(Program::start(name, &mut desk.shell(line), logs)?);
            }
            Step::Command { line, expected } => {
                commands += 1;
                let name = format!("{commands:02}-command");
                desk.run(&name, line, expected, &mut running)
                    .await
                    .with_context(|| format!("`{line}`"))?;
            }
        }
    }
    stop(&mut running).await?;
    Ok(commands)
}

async fn stop(running: &mut Vec<Program>) -> anyhow::Result<()> {
    for mut program in running.drain(..) {
        program.stop().await?;
    }
    Ok(())
}

/// Where a guide is executed: a folder, and an environment in which nothing of the user's is
/// changed.
struct Desk {
    folder: PathBuf,
    logs: PathBuf,
    path: OsString,
}

impl Desk {
    async fn new(
        page: &Page,
        program: &Path,
        target: &Path,
        folder: &Path,
        logs: &Path,
    ) -> anyhow::Result<Self> {
        fs::create_dir_all(folder.join("home"))?;
        let browser = folder.join("browser");
        let this = std::env::current_exe()?;
        let script = format!("#!/bin/sh\nexec \"{}\" browser \"$1\"\n", this.display());
        fs::write(&browser, script)?;
        fs::set_permissions(&browser, fs::Permissions::from_mode(0o755))?;
        let mut folders = vec![
            program
                .parent()
                .context("the program has no folder")?
                .to_owned(),
        ];
        if page.needs.iter().any(|needed| needed == "python3") {
            let environment = target.join("guides-python");
            if !environment.join("bin/python3").exists() {
                let mut venv = Command::new("python3");
                venv.args(["-m", "venv"]).arg(&environment);
                install::run("venv", venv, logs).await?;
            }
            folders.push(environment.join("bin"));
        }
        folders.extend(std::env::split_paths(
            &std::env::var_os("PATH").unwrap_or_default(),
        ));
        Ok(Self {
            folder: folder.to_owned(),
            logs: logs.to_owned(),
            path: std::env::join_paths(folders)?,
        })
    }

    /// A shell that runs this line in the reader's environment.
    fn shell(&self, line: &str) -> Command {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", line])
            .current_dir(&self.folder)
            .env("PATH", &self.path);
        shell
            .env("HOME", self.folder.join("home"))
            .env("BROWSER", self.folder.join("browser"));
        // Cargo's own folders are in the user's.
        if let Some(home) = std::env::home_dir() {
            for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
                shell.env(
                    name,
                    std::env::var_os(name).unwrap_or_else(|| home.join(folder).into()),
                );
            }
        }
        for name in [
            "XDG_CONFIG_HOME",
            "XDG_STATE_HOME",
            "XDG_DATA_HOME",
            "XDG_RUNTIME_DIR",
        ] {
            shell.env_remove(name);
        }
        shell
    }

    /// Runs a command until it succeeds with the expected output. It is repeated only while servers
    /// are starting.
    async fn run(
        &self,
        name: &str,
        line: &str,
        expected: &[String],
        running: &mut [Program],
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let mut program = Program::start(name, &mut self.shell(line), &self.logs)?;
            let status = timeout(COMMAND_LIMIT, program.wait())
                .await
                .context("it did not end in time")??;
            let output = program.output();
            let missing = missing_line(&output, expected);
            if status.success() && missing.is_none() {
                return Ok(());
            }
            for server in &mut *running {
                server.expect_running()?;
            }
            if running.is_empty() || begun.elapsed() > READY_LIMIT {
                match missing {
                    Some(line) if status.success() => {
                        bail!(
                            "no line with {line:?} in its output:\n{}",
                            output.trim_end()
                        )
                    }
                    _ => bail!("it ended with {status}:\n{}", output.trim_end()),
                }
            }
            sleep(Duration::from_millis(300)).await;
        }
    }
}

/// Returns the first expected text that the output does not have after the texts before it.
fn missing_line<'a>(output: &str, expected: &'a [String]) -> Option<&'a String> {
    let mut lines = output.lines();
    expected
        .iter()
        .find(|text| !lines.any(|line| line.contains(text.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_lines_are_found_in_order() {
        let expected = |texts: &[&str]| {
            texts
                .iter()
                .map(|&text| text.to_owned())
                .collect::<Vec<_>>()
        };
        let output = "one\ntwo and more\nthree\n";
        assert_eq!(
            missing_line(output, &expected(&["one", "two", "three"])),
            None
        );
        assert_eq!(
            missing_line(output, &expected(&["two", "one"])),
            Some(&"one".to_owned())
        );
        assert_eq!(
            missing_line(output, &expected(&["four"])),
            Some(&"four".to_owned())
        );
    }
}
