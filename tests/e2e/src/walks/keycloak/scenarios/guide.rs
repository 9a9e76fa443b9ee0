//! `docs/use/keycloak.md`, block by block, as an operator goes through it.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use portcullis_discovery::{FetchRequest, UrlPolicy};
use url::Url;

use crate::walks::{
    keycloak::{
        guide::{self, Block, Guide, Role},
        places::Places,
        stage::Stage,
    },
    output,
    pages::{self, Answers},
    program::Program,
    progress::Progress,
    server::Server,
};

/// Each of the guide's calls of `kcadm.sh` starts a Java of its own.
const LIMIT: Duration = Duration::from_secs(600);
/// The guide's own user.
const USER: &str = "alice";
const PASSWORD: &str = "alice-password";
const BIN: &str = "bin";
/// Where the client's redirect arrives, without its port.
const CALLBACK: &str = "/callback";

pub(in crate::walks::keycloak) async fn run(stage: &Stage, progress: &mut Progress) -> anyhow::Result<()> {
    let walked = Walk::new(stage)?.blocks(guide::read()?);
    progress.step_within(LIMIT, "every block of docs/use/keycloak.md", walked).await
}

/// An operator in a folder of the guide's own.
struct Walk<'a> {
    stage: &'a Stage,
    /// The guide's Portcullis is another one, in front of the same Keycloak.
    places: Places,
    folder: PathBuf,
    server: Option<Server>,
    /// Of the logs of the servers to come.
    names: std::array::IntoIter<&'static str, 2>,
}

impl<'a> Walk<'a> {
    fn new(stage: &'a Stage) -> anyhow::Result<Self> {
        let folder = stage.folder.join("guide");
        install(&stage.program, &folder.join(BIN))?;
        let places = Places { portcullis: Places::choose()?.portcullis, ..stage.places };
        Ok(Self { stage, places, folder, server: None, names: ["guide-1", "guide-2"].into_iter() })
    }

    async fn blocks(mut self, guide: Guide) -> anyhow::Result<()> {
        for block in &guide.blocks {
            let script = self.places.put_into(&guide.script(block)?);
            let done = self.block(block, &script).await;
            done.with_context(|| format!("docs/use/keycloak.md, block in line {}", block.line))?;
        }
        match &mut self.server {
            Some(server) => server.stop().await,
            None => bail!("the guide starts no server"),
        }
    }

    async fn block(&mut self, block: &Block, script: &str) -> anyhow::Result<()> {
        match &block.role {
            Role::Names | Role::Keycloak | Role::Shown => Ok(()),
            Role::File(name) => Ok(fs::write(self.folder.join(name), self.places.put_into(&block.text))?),
            Role::Server => {
                if let Some(mut server) = self.server.take() {
                    server.stop().await?;
                }
                // So that it is the server, and not its shell, that is asked to end.
                let script = script.replace("\nportcullis serve", "\nexec portcullis serve");
                let name = self.names.next().context("the guide starts more servers than expected")?;
                let server = Server::start(name, &mut self.shell(&script)?, &self.stage.folder).await?;
                server.ready().await?;
                self.server = Some(server);
                Ok(())
            }
            Role::Run => {
                let mut program = Program::start("command", &mut self.shell(script)?, &self.folder)?;
                succeeds(&mut program).await
            }
            Role::SignIn => {
                let mut program = Program::start("sign-in", &mut self.shell(script)?, &self.folder)?;
                let url = program
                    .find_line(|line| line.starts_with("http://").then(|| Url::parse(line).ok()).flatten())
                    .await?;
                self.sign_in(&url).await?;
                succeeds(&mut program).await
            }
        }
    }

    /// Does what a person does in the browser, the last redirect included.
    async fn sign_in(&self, url: &Url) -> anyhow::Result<()> {
        let redirect_uri = pages::parameters(url).remove("redirect_uri").unwrap_or_default();
        ensure!(redirect_uri.ends_with(CALLBACK), "the redirect goes to {redirect_uri}");
        let arrival = pages::visit(&self.stage.wire, url, &redirect_uri, &Answers::consents(USER, PASSWORD)).await?;
        let request = FetchRequest::get(arrival.location, UrlPolicy::Operator);
        self.stage.send(request).await.map(drop)
    }

    /// The shell in which the guide is followed.
    fn shell(&self, script: &str) -> anyhow::Result<Command> {
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([self.folder.join(BIN)].into_iter().chain(env::split_paths(&path)))?;
        let mut shell = Command::new("sh");
        shell.args(["-euc", script]).current_dir(&self.folder);
        shell.env("KEYCLOAK_HOME", &self.stage.home).env("PATH", path).env("PORTCULLIS_LOG", "trace");
        // Where the client keeps its tokens: not among those of whoever runs this.
        shell.env("XDG_STATE_HOME", &self.folder);
        Ok(shell)
    }
}

/// Puts a `portcullis` into the path that logs as all other servers do.
fn install(program: &Path, bin: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(bin).with_context(|| format!("{} cannot be made", bin.display()))?;
    let file = bin.join("portcullis");
    fs::write(&file, format!("#!/bin/sh\nexec '{}' --log-format json \"$@\"\n", program.display()))?;
    Ok(fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?)
}

/// What a command prints is for a person, and so not searched for what it shows on purpose.
async fn succeeds(program: &mut Program) -> anyhow::Result<()> {
    let status = program.wait().await?;
    ensure!(!program.output().contains(output::PANIC), "{}", program.last_lines());
    if status.success() {
        return Ok(());
    }
    bail!("ended with {status}:\n{}", program.last_lines())
}
