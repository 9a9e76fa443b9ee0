//! `cargo xtask e2e --restarts`: clients of other makers continue their session when `serve`
//! restarts with the default configuration.

mod client;
mod upstream;

use std::{fs, net::SocketAddr, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, anyhow, ensure};
use portcullis_scenarios::{AuthorizationServer, free_address};
use tokio::time::timeout;

use self::{
    client::{Client, Maker},
    upstream::SessionUpstream,
};
use super::{
    cell::Cell,
    server::{Server, serve},
};

/// The time limit of one client, without its installation.
const CLIENT_LIMIT: Duration = Duration::from_secs(120);
/// npm and pip deliver some 40 MB.
const INSTALL_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Tries each client, one after the other, and prints the table. Fails when a client loses its
/// session, or every client was skipped.
pub(crate) async fn run(program: &Path, target: &Path, folder: &Path) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for maker in Maker::ALL {
        eprintln!("{}", maker.title());
        let folder = folder.join(maker.name());
        fs::create_dir_all(&folder)?;
        rows.push((maker, cell(maker, program, target, &folder).await));
    }
    println!(
        "\n{:<36}session continues after SIGTERM and SIGKILL",
        "client"
    );
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
        Ok(command) => Cell::of(timeout(CLIENT_LIMIT, trial(program, command, folder))).await,
        Err(why) => Cell::Skipped {
            reason: format!("{why:#}"),
        },
    }
}

/// Calls a tool before and after each restart.
async fn trial(program: &Path, command: Command, folder: &Path) -> anyhow::Result<()> {
    let upstream = SessionUpstream::start().await;
    let address = free_address()?;
    let url = format!("http://{address}/mcp");
    let issuer = AuthorizationServer::start(&url);
    let configuration = configuration(address, &issuer, &upstream.setting());
    let start = async |name: &str| {
        let mut command = serve(program, folder, name, &configuration)?;
        // The default state directory is in here.
        command
            .env("XDG_STATE_HOME", folder.join("state"))
            .env_remove("STATE_DIRECTORY");
        let server = Server::start(name, &mut command, folder).await?;
        server.ready().await?;
        anyhow::Ok(server)
    };
    let mut server = start("serve").await?;
    let token = issuer.test_issuer().token().scope("mcp:tools").sign();
    let mut client = Client::start(command, &url, &token, folder).await?;
    let session = client.call().await.context("before the restart")?;

    // mcp-remote opens one more when it tries the transport.
    let opened = upstream.opened();
    server.stop().await?;
    let mut server = start("serve-after-sigterm").await?;
    let after = client.call().await.context("after SIGTERM")?;
    ensure!(
        after == session,
        "after SIGTERM the session was {after}, not {session}"
    );
    server.kill().await?;
    let mut server = start("serve-after-sigkill").await?;
    let after = client.call().await.context("after SIGKILL")?;
    ensure!(
        after == session,
        "after SIGKILL the session was {after}, not {session}"
    );
    ensure!(
        upstream.opened() == opened,
        "the client opened another session after a restart"
    );
    server.stop().await
}

fn configuration(address: SocketAddr, issuer: &AuthorizationServer, upstream: &str) -> String {
    format!(
        "listen = \"{address}\"\nbase_url = \"http://{address}\"\n[[issuer]]\nissuer = \"{}\"\n\
         [[resource]]\nendpoint = \"/mcp\"\nupstream = {upstream}\n",
        issuer.test_issuer().issuer().as_str()
    )
}
