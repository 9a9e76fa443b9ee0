//! `cargo xtask e2e --broker`: clients sign in at a broker in front of imitated providers.

mod client;

use std::{fs, io::Write as _, path::Path, process::Command, sync::Arc, time::Duration};

use anyhow::{Context as _, anyhow, ensure};
use portcullis_scenarios::{BrokerServer, BrokerSettings, Browser, ProviderKind};
use tokio::time::timeout;
use url::Url;

use self::client::{Installed, Maker};
use crate::{
    cell::Cell, client::Client, deployment::USER, program::Program, recorder::Recorder,
    test_user::TestUser,
};

/// The time limit of one client at all providers, without its installation.
const CLIENT_LIMIT: Duration = Duration::from_secs(120);
/// npm and pip deliver some 40 MB.
const INSTALL_LIMIT: Duration = Duration::from_secs(5 * 60);
/// The time limit of a request of the user's browser.
const PAGE_LIMIT: Duration = Duration::from_secs(20);

/// The providers with which MCP clients cannot register.
const KINDS: [ProviderKind; 3] = [
    ProviderKind::Entra,
    ProviderKind::Google,
    ProviderKind::GitHub,
];

/// Tries each client, one after the other, and prints the table. Fails when a client cannot sign in,
/// or every client was skipped.
pub(crate) async fn run(program: &Path, target: &Path, folder: &Path) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for maker in Maker::ALL {
        eprintln!("{}", maker.title());
        let folder = folder.join(maker.name());
        fs::create_dir_all(&folder)?;
        rows.push((maker, cell(maker, program, target, &folder).await));
    }
    println!("\n{:<36}signs in, calls and refreshes", "client");
    for (maker, cell) in &rows {
        println!("{:<36}{cell}", maker.title());
        cell.reason()
            .into_iter()
            .for_each(|reason| println!("    {}", reason.trim_end().replace('\n', "\n    ")));
    }
    Cell::check_all(rows.iter().map(|(_, cell)| cell))
}

async fn cell(maker: Maker, program: &Path, target: &Path, folder: &Path) -> Cell {
    let installed = timeout(INSTALL_LIMIT, maker.install(target, folder)).await;
    match installed.unwrap_or_else(|_| Err(anyhow!("it was not installed in time"))) {
        Ok(installed) => Cell::of(timeout(CLIENT_LIMIT, trial(program, &installed, folder))).await,
        Err(why) => Cell::Skipped {
            reason: format!("{why:#}"),
        },
    }
}

/// Signs in at each provider.
async fn trial(program: &Path, installed: &Installed, folder: &Path) -> anyhow::Result<()> {
    for kind in KINDS {
        let server = BrokerServer::with(BrokerSettings {
            upstream: Some("\"demo\""),
            ..BrokerSettings::of(kind)
        })
        .await;
        let url = server.url("/mcp");
        let result = match installed {
            Installed::Own => own_client(program, &url, &folder.join(kind.name())).await,
            Installed::Sdk(sdk) => {
                let name = format!("client-{}", kind.name());
                sdk_client(sdk.command(&url), &name, folder).await
            }
        };
        result.with_context(|| format!("with {}", kind.name()))?;
    }
    Ok(())
}

/// Signs in with a client of another maker, whose redirect the browser of the user returns.
async fn sdk_client(mut command: Command, name: &str, folder: &Path) -> anyhow::Result<()> {
    let mut client = Program::start_with_input(name, &mut command, folder)?;
    let mut input = client.take_stdin().context("the standard input is piped")?;
    let authorization = client
        .find_line(|line| line.strip_prefix("authorize ").map(str::to_owned))
        .await?;
    let authorization = Url::parse(&authorization)?;
    let location = Browser::default().sign_in(&authorization, USER).await;
    writeln!(input, "{location}")?;
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
async fn own_client(program: &Path, url: &Url, folder: &Path) -> anyhow::Result<()> {
    let recorder = Arc::new(Recorder::new(PAGE_LIMIT)?);
    let client = |name: &str| {
        let user = TestUser::with_forms(USER, Arc::clone(&recorder));
        Client::new(program, &folder.join(name), user)
    };
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
