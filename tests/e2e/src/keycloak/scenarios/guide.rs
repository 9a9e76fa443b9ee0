//! Every code block of `docs/use/keycloak.md`, in order.

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

use crate::{
    keycloak::{
        addresses::Addresses,
        fixture::Fixture,
        guide::{self, Block, Guide, Role},
    },
    output,
    pages::{self, UserInput},
    program::Program,
    progress::Progress,
    server::Server,
};

/// The time limit. Each call of `kcadm.sh` starts Java.
const LIMIT: Duration = Duration::from_secs(600);
/// The guide's user.
const USER: &str = "alice";
const PASSWORD: &str = "alice-password";
const BIN: &str = "bin";
/// The path of the client's redirect URI.
const CALLBACK: &str = "/callback";

pub(in crate::keycloak) async fn run(
    fixture: &Fixture,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let run = GuideRun::new(fixture)?.blocks(guide::read()?);
    progress
        .step_within(LIMIT, "every block of docs/use/keycloak.md", run)
        .await
}

/// A run of the guide in its own folder.
struct GuideRun<'a> {
    fixture: &'a Fixture,
    /// The guide starts its own Portcullis, with the same Keycloak.
    addresses: Addresses,
    folder: PathBuf,
    server: Option<Server>,
    /// The names of the logs of the next servers.
    names: std::array::IntoIter<&'static str, 2>,
}

impl<'a> GuideRun<'a> {
    fn new(fixture: &'a Fixture) -> anyhow::Result<Self> {
        let folder = fixture.folder.join("guide");
        install(&fixture.program, &folder.join(BIN))?;
        let addresses = Addresses {
            portcullis: Addresses::choose()?.portcullis,
            ..fixture.addresses
        };
        Ok(Self {
            fixture,
            addresses,
            folder,
            server: None,
            names: ["guide-1", "guide-2"].into_iter(),
        })
    }

    /// Does what each block of the guide says.
    async fn blocks(mut self, guide: Guide) -> anyhow::Result<()> {
        for block in &guide.blocks {
            let script = self.addresses.replace_in(&guide.script(block)?);
            let done = self.block(block, &script).await;
            done.with_context(|| format!("docs/use/keycloak.md, block in line {}", block.line))?;
        }
        match &mut self.server {
            Some(server) => server.stop().await,
            None => bail!("the guide starts no server"),
        }
    }

    /// Does what one block says.
    async fn block(&mut self, block: &Block, script: &str) -> anyhow::Result<()> {
        match &block.role {
            Role::Names | Role::Keycloak | Role::Shown => Ok(()),
            Role::File(name) => Ok(fs::write(
                self.folder.join(name),
                self.addresses.replace_in(&block.text),
            )?),
            Role::Server => {
                if let Some(mut server) = self.server.take() {
                    server.stop().await?;
                }
                // The server replaces its shell, so that it receives the signal.
                let script = script.replace("\nportcullis serve", "\nexec portcullis serve");
                let name = self
                    .names
                    .next()
                    .context("the guide starts more servers than expected")?;
                let server =
                    Server::start(name, &mut self.shell(&script)?, &self.fixture.folder).await?;
                server.ready().await?;
                self.server = Some(server);
                Ok(())
            }
            Role::Run => {
                let mut program =
                    Program::start("command", &mut self.shell(script)?, &self.folder)?;
                succeeds(&mut program).await
            }
            Role::SignIn => {
                let mut program =
                    Program::start("sign-in", &mut self.shell(script)?, &self.folder)?;
                let url = program
                    .find_line(|line| {
                        line.starts_with("http://")
                            .then(|| Url::parse(line).ok())
                            .flatten()
                    })
                    .await?;
                self.sign_in(&url).await?;
                succeeds(&mut program).await
            }
        }
    }

    /// Signs in as a user does in the browser, and follows the last redirect.
    async fn sign_in(&self, url: &Url) -> anyhow::Result<()> {
        let redirect_uri = pages::parameters(url)
            .remove("redirect_uri")
            .unwrap_or_default();
        ensure!(
            redirect_uri.ends_with(CALLBACK),
            "the redirect goes to {redirect_uri}"
        );
        let arrival = pages::visit(
            &self.fixture.recorder,
            url,
            &redirect_uri,
            &UserInput::consents(USER, PASSWORD),
        )
        .await?;
        let request = FetchRequest::get(arrival.location, UrlPolicy::Operator);
        self.fixture.send(request).await.map(drop)
    }

    fn shell(&self, script: &str) -> anyhow::Result<Command> {
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(
            [self.folder.join(BIN)]
                .into_iter()
                .chain(env::split_paths(&path)),
        )?;
        let mut shell = Command::new("sh");
        shell.args(["-euc", script]).current_dir(&self.folder);
        shell
            .env("KEYCLOAK_HOME", &self.fixture.home)
            .env("PATH", path)
            .env("PORTCULLIS_LOG", "trace");
        // The client's tokens are not stored among those of the user who runs this.
        shell.env("XDG_STATE_HOME", &self.folder);
        Ok(shell)
    }
}

/// Installs a `portcullis` script that sets the log format.
fn install(program: &Path, bin: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(bin).with_context(|| format!("{} cannot be created", bin.display()))?;
    let file = bin.join("portcullis");
    fs::write(
        &file,
        format!(
            "#!/bin/sh\nexec '{}' --log-format json \"$@\"\n",
            program.display()
        ),
    )?;
    Ok(fs::set_permissions(
        &file,
        fs::Permissions::from_mode(0o755),
    )?)
}

/// Waits for a command to succeed. Its output can contain tokens and is searched only for panics.
async fn succeeds(program: &mut Program) -> anyhow::Result<()> {
    let status = program.wait().await?;
    ensure!(
        !program.output().contains(output::PANIC),
        "{}",
        program.last_lines()
    );
    if status.success() {
        return Ok(());
    }
    bail!("ended with {status}:\n{}", program.last_lines())
}
