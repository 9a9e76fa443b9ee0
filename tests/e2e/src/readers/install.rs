//! The readers' packages, installed once at pinned versions into the target folder.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;

use super::reader::Start;
use portcullis_scenarios::npm_install;
use xtask::workspace;

use crate::install;

/// An installed reader, or the reason why there is none.
pub(super) enum Installed {
    Ready(Start),
    /// The reason.
    Missing(String),
}

/// Installs the readers, in the order of the table.
///
/// A reader without its language or its packages is missing. A failed build is an error.
pub(super) async fn all(
    target: &Path,
    logs: &Path,
) -> anyhow::Result<Vec<(&'static str, Installed)>> {
    fs::create_dir_all(target).with_context(|| format!("{} cannot be made", target.display()))?;
    let installer = Installer {
        sources: workspace::root().join("tests/readers"),
        target: target.to_owned(),
        logs,
    };
    let go = async { anyhow::Ok((installer.go("go").await?, installer.go("go-sdk").await?)) };
    let (typescript, python, go) = tokio::join!(installer.typescript(), installer.python(), go);
    let (go, go_sdk) = go?;
    let python = |folder: &str| {
        installed(&python, |interpreter| {
            let mut command = command(
                interpreter,
                &[&installer.sources.join(folder).join("server.py")],
            );
            command
                .env("PYTHONPATH", installer.sources.join("common"))
                .env("PYTHONDONTWRITEBYTECODE", "1");
            command
        })
    };
    Ok(vec![
        ("serde_json", Installed::Ready(Start::InProcess)),
        ("aiohttp", python("aiohttp")),
        ("go", go),
        (
            "typescript",
            installed(&typescript, |script| command(Path::new("node"), &[script])),
        ),
        ("python", python("python")),
        ("go-sdk", go_sdk),
    ])
}

struct Installer<'a> {
    sources: PathBuf,
    target: PathBuf,
    logs: &'a Path,
}

impl Installer<'_> {
    /// Installs the packages and returns the script. It is copied next to them, because Node.js
    /// resolves them from the script's folder.
    async fn typescript(&self) -> anyhow::Result<PathBuf> {
        let source = self.sources.join("typescript");
        let folder = self.target.join("typescript");
        install::run(
            "node",
            command(Path::new("node"), &[Path::new("--version")]),
            self.logs,
        )
        .await?;
        npm_install(&folder, &source).await?;
        let script = folder.join("server.mjs");
        fs::copy(source.join("server.mjs"), &script)?;
        Ok(script)
    }

    /// Returns an interpreter with the packages.
    async fn python(&self) -> anyhow::Result<PathBuf> {
        install::python(
            &self.target.join("python"),
            &self.sources.join("requirements.txt"),
            self.logs,
        )
        .await
    }

    /// Builds a reader. Go's cache determines what is rebuilt.
    async fn go(&self, name: &'static str) -> anyhow::Result<Installed> {
        let program = self.target.join(format!("{name}-reader"));
        let go = |arguments: &[&str]| {
            let mut go = Command::new("go");
            go.args(arguments).current_dir(self.sources.join(name));
            go.env("GOTOOLCHAIN", "local")
                .env("GOFLAGS", "-modcacherw -mod=readonly");
            go.env("GOMODCACHE", self.target.join("go-modules"));
            go
        };
        if let Err(why) = install::run(
            &format!("{name}-download"),
            go(&["mod", "download"]),
            self.logs,
        )
        .await
        {
            return Ok(Installed::Missing(format!("{why:#}")));
        }
        let mut build = go(&["build", "-o"]);
        build.arg(&program).arg(".");
        install::run(&format!("{name}-build"), build, self.logs).await?;
        Ok(Installed::Ready(Start::Program(Command::new(program))))
    }
}

fn installed<T>(result: &anyhow::Result<T>, command: impl FnOnce(&T) -> Command) -> Installed {
    match result {
        Ok(ready) => Installed::Ready(Start::Program(command(ready))),
        Err(why) => Installed::Missing(format!("{why:#}")),
    }
}

fn command(program: &Path, arguments: &[&Path]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}
