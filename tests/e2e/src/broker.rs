//! `cargo xtask e2e --broker`: clients sign in at a broker in front of imitated and real providers.

mod client;
mod grants;
mod provider;
mod real;
mod redirect;
mod report;

use std::{fs, io::Write as _, path::Path, process::Command, sync::Arc, time::Duration};

use anyhow::{Context as _, anyhow, ensure};
use clap::{Args, ValueEnum as _};
use tokio::time::timeout;
use url::Url;

use self::{
    client::{Installed, Maker},
    provider::{Provider, Site},
    real::RealProviders,
    redirect::RedirectListener,
    report::Report,
};
use crate::{
    cell::Cell, chromium::Chromium, client::Client, deployment::USER, program::Program,
    recorder::Recorder, sign_in::Environment, test_user::TestUser,
};

/// The time limit of one client at one provider, without its installation.
const CELL_LIMIT: Duration = Duration::from_secs(5 * 60);
/// npm and pip deliver some 40 MB.
const INSTALL_LIMIT: Duration = Duration::from_secs(5 * 60);
/// The time limit of a request of the user's browser. Keycloak's password hash alone takes seconds
/// on a busy machine.
const PAGE_LIMIT: Duration = Duration::from_secs(60);

/// The options of `--broker`.
#[derive(Args, Clone)]
#[group(skip)]
pub(crate) struct Options {
    /// Sign in only at this provider; can be repeated.
    #[arg(long, value_enum, value_name = "PROVIDER", requires = "broker")]
    provider: Vec<Provider>,
}

/// How the user of each client signs in.
#[derive(Clone, Copy)]
struct Users<'a> {
    /// The folder of screenshots, if the user has a headless Chromium.
    pictures: Option<&'a Path>,
}

/// Tries each client at each provider, one after the other, and what ends grants at the real
/// providers. Prints the tables. Fails when a trial fails, or every trial was skipped.
pub(crate) async fn run(
    environment: &Environment<'_>,
    options: &Options,
    with_browser: bool,
) -> anyhow::Result<()> {
    let providers: Vec<_> = Provider::value_variants()
        .iter()
        .copied()
        .filter(|provider| options.provider.is_empty() || options.provider.contains(provider))
        .collect();
    let pictures = environment.target.join("pictures/broker");
    let users = Users {
        pictures: with_browser.then_some(&pictures),
    };
    users.check()?;
    let real = RealProviders::prepare(environment, &providers).await;
    let mut report = Report::new(&providers);
    for maker in Maker::ALL {
        eprintln!("{}", maker.title());
        let folder = environment.folder.join(maker.name());
        fs::create_dir_all(&folder)?;
        let installed = timeout(INSTALL_LIMIT, maker.install(environment.target, &folder)).await;
        let cells = match installed.unwrap_or_else(|_| Err(anyhow!("it was not installed in time")))
        {
            Ok(installed) => {
                let client = Trial {
                    program: environment.program,
                    installed: &installed,
                    folder: &folder,
                    users,
                };
                client.cells(&providers, &real).await
            }
            Err(why) => vec![Cell::skipped(&why); providers.len()],
        };
        report.add(maker, cells);
    }
    let grants = grants::run(environment, &providers, &real).await;
    println!("\n{report}");
    grants.print();
    report.result().and(grants.result())
}

impl Users<'_> {
    /// Fails if the browser is missing.
    fn check(self) -> anyhow::Result<()> {
        if let Some(pictures) = self.pictures {
            Chromium::find(pictures)
                .with_context(|| format!("none of {} is installed", Chromium::names()))?;
        }
        Ok(())
    }

    /// Returns a user, the screenshots of whose pages are kept in this folder.
    fn user(self, folder: &Path) -> anyhow::Result<TestUser> {
        let pictures = self.pictures.map(|pictures| pictures.join(folder));
        Ok(match pictures.as_deref().and_then(Chromium::find) {
            Some(chromium) => TestUser::with_chromium(USER, chromium),
            None => TestUser::with_forms(USER, Arc::new(Recorder::new(PAGE_LIMIT)?)),
        })
    }
}

/// A client, and the user who signs in.
struct Trial<'a> {
    program: &'a Path,
    installed: &'a Installed,
    /// The folder of logs.
    folder: &'a Path,
    users: Users<'a>,
}

impl Trial<'_> {
    async fn cells(&self, providers: &[Provider], real: &RealProviders) -> Vec<Cell> {
        let mut cells = Vec::new();
        for provider in providers {
            let folder = self.folder.join(provider.name());
            let cell = match provider.start(real, &folder).await {
                Ok(site) => Cell::of(timeout(CELL_LIMIT, self.sign_in(*provider, &site))).await,
                Err(cell) => cell,
            };
            eprintln!("    {:<36}{cell}", provider.title());
            cells.push(cell);
        }
        cells
    }

    /// Signs in at one provider.
    async fn sign_in(&self, provider: Provider, site: &Site) -> anyhow::Result<()> {
        let name = provider.name();
        match self.installed {
            Installed::Own => self.own_client(&site.url, name).await,
            Installed::Sdk(sdk) => self.sdk_client(sdk.command(&site.url), name).await,
        }
    }

    fn user(&self, provider: &str) -> anyhow::Result<TestUser> {
        let client = self.folder.file_name().context("a folder with a name")?;
        self.users.user(&Path::new(provider).join(client))
    }

    /// Signs in with a client of another maker, which reads the redirect of the user's browser from
    /// its standard input.
    async fn sdk_client(&self, mut command: Command, provider: &str) -> anyhow::Result<()> {
        let name = format!("client-{provider}");
        let mut client = Program::start_with_input(&name, &mut command, self.folder)?;
        let mut input = client.take_stdin().context("the standard input is piped")?;
        let authorization = client
            .find_line(|line| line.strip_prefix("authorize ").map(str::to_owned))
            .await?;
        let authorization = Url::parse(&authorization)?;
        let user = self.user(provider)?;
        let mut listener = RedirectListener::listen(&authorization).await?;
        user.visit(&name, &authorization, true, &[]).await?;
        writeln!(input, "{}", listener.redirect().await?)?;
        for expected in ["answer 3", "refreshed 3"] {
            client
                .find_line(|line| (line == expected).then_some(()))
                .await?;
        }
        let status = client.wait().await?;
        ensure!(
            status.success(),
            "the client ended with {status}: {}",
            client.last_lines()
        );
        Ok(())
    }

    /// Signs in with `connect`, and with `login`, each with an empty store.
    async fn own_client(&self, url: &Url, provider: &str) -> anyhow::Result<()> {
        let folder = self.folder.join(provider);
        let client =
            |name: &str| Client::new(self.program, &folder.join(name), self.user(provider)?);
        let connected = client("connect")?.connect(url, &[]).await?.succeeded()?;
        connected.authorization()?;
        let client = client("login")?;
        let login = client.run("login", url, &[]).await?.succeeded()?;
        login.authorization()?;
        let call = client
            .run("call", url, &["tools/list"])
            .await?
            .succeeded()?;
        ensure!(
            call.output.contains("\"tools\""),
            "expected a list of tools, got: {}",
            call.output.trim_end()
        );
        ensure!(
            call.authorization.is_none(),
            "expected that the call uses the token of the login"
        );
        Ok(())
    }
}
