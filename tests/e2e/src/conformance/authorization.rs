//! `cargo xtask conformance authorization`: the authorization server scenarios, against
//! `portcullis idp` or the broker.

use std::{
    fs,
    path::Path,
    process::{Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use http::header::LOCATION;
use portcullis_discovery::{Fetch as _, FetchRequest, FetchResponse, HttpFetch, UrlPolicy};
use portcullis_scenarios::{
    BrokerClient, BrokerServer, Browser, Process, ProviderKind, block_on, free_address,
    portcullis_command,
};
use serde::Deserialize;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::ChildStdout,
    time::timeout,
};
use url::Url;

use super::suite::Suite;
use crate::deployment::USER;
use xtask::built;

const CLIENT: &str = "conformance";
const RESOURCE: &str = "http://127.0.0.1:3000/mcp";
/// The scenarios that must run.
const SCENARIOS: [&str; 2] = [
    "authorization-server-metadata-endpoint",
    "authorization-code-grant",
];
const TIMEOUT: Duration = Duration::from_secs(60);

/// The options of `authorization`.
#[derive(Args, Clone, Copy)]
pub(crate) struct Arguments {
    /// Test the broker of `portcullis serve`, in front of an imitation of Entra ID, in place of
    /// `portcullis idp`.
    #[arg(long)]
    broker: bool,
}

/// An authorization server, and what the suite is told about it.
struct Subject<'a> {
    issuer: &'a str,
    authorization_endpoint: String,
    /// The identifier of a public client whose redirect URI is `/callback` on any port of loopback.
    client: &'a str,
    resource: &'a str,
    user: User,
}

/// What the user does at the authorization endpoint.
#[derive(Clone, Copy)]
enum User {
    /// Nothing: the server redirects at once.
    Consents,
    /// Approves the client, and signs in at the provider.
    SignsIn,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let suite = Suite::install()?;
    if arguments.broker {
        let results = suite.results("authorization-broker")?;
        let status = block_on(with_broker(&suite, &results))?;
        return report(&results, status);
    }
    let program = built::build(&["--package=portcullis", "--bin=portcullis", "--locked"])?
        .program("portcullis")?;
    let results = suite.results("authorization")?;
    let status = block_on(with_idp(&program, &suite, &results))?;
    report(&results, status)
}

/// Starts `portcullis idp` and runs the suite against it.
async fn with_idp(program: &Path, suite: &Suite, results: &Path) -> anyhow::Result<ExitStatus> {
    let clients = results.join("clients.toml");
    let client =
        format!("[[client]]\nid = \"{CLIENT}\"\nredirect_uris = [\"http://127.0.0.1/callback\"]\n");
    fs::write(&clients, client)?;
    let mut idp = portcullis_command(program);
    idp.args([
        "idp",
        "--listen",
        "127.0.0.1:0",
        "--auto-consent",
        "--clients",
    ])
    .arg(&clients);
    let (_idp, mut lines) = start("portcullis idp", idp)?;
    let named = |line: &str| {
        line.strip_prefix("development authorization server: ")
            .map(str::to_owned)
    };
    let issuer = find(&mut lines, named)
        .await?
        .context("portcullis idp ended before it listened")?;
    let subject = Subject {
        issuer: &issuer,
        authorization_endpoint: format!("{issuer}/authorize"),
        client: CLIENT,
        resource: RESOURCE,
        user: User::Consents,
    };
    subject.run(suite, results).await
}

/// Starts a server with a broker, registers a client there and runs the suite against it.
async fn with_broker(suite: &Suite, results: &Path) -> anyhow::Result<ExitStatus> {
    let server = BrokerServer::start(ProviderKind::Entra).await;
    let client = BrokerClient::register(&server).await;
    let resource = server.url("/mcp");
    let subject = Subject {
        issuer: server.issuer(),
        authorization_endpoint: server.url("/oauth/authorize").to_string(),
        client: &client.id,
        resource: resource.as_str(),
        user: User::SignsIn,
    };
    subject.run(suite, results).await
}

impl Subject<'_> {
    /// Runs the suite.
    async fn run(&self, suite: &Suite, results: &Path) -> anyhow::Result<ExitStatus> {
        let port = free_address()?.port().to_string();
        let arguments = [
            "authorization",
            "--url",
            self.issuer,
            "--client-id",
            self.client,
            "--resource",
            self.resource,
            "--port",
            &port,
        ];
        let mut command = suite.command(&arguments);
        command.arg("--output-dir").arg(results);
        let (mut suite, mut lines) = start("the suite", command)?;
        let authorize = format!("{}?", self.authorization_endpoint);

        // The suite usually prints the address before its own server listens.
        let mut address = None;
        let mut listens = false;
        while let Some(line) = find(&mut lines, |line| Some(line.to_owned())).await? {
            listens |= line.starts_with("Callback server started");
            address = line.starts_with(&authorize).then_some(line).or(address);
            if let Some(url) = address.take_if(|_| listens) {
                let visited = self.user.visit(&Url::parse(&url)?).await;
                visited.context("the authorization request")?;
                listens = false;
            }
        }
        timeout(TIMEOUT, suite.wait())
            .await
            .context("the suite does not end")?
    }
}

impl User {
    /// Opens the authorization URL and follows the redirect to the suite.
    async fn visit(self, url: &Url) -> anyhow::Result<()> {
        let location = match self {
            Self::Consents => {
                let response = get(url.clone()).await?;
                let location = response.headers.get(LOCATION);
                let location = location
                    .with_context(|| format!("status {} and no redirect", response.status))?;
                Url::parse(location.to_str()?)?
            }
            Self::SignsIn => Browser::default().sign_in(url, USER).await,
        };
        get(location).await.map(drop)
    }
}

async fn get(url: Url) -> anyhow::Result<FetchResponse> {
    let fetch = HttpFetch::new(Default::default())?;
    let request = FetchRequest::get(url, UrlPolicy::Operator);
    Ok(fetch.fetch(request).await?)
}

/// Starts a program and reads its standard output by lines.
fn start(
    name: &str,
    mut command: Command,
) -> anyhow::Result<(Process, Lines<BufReader<ChildStdout>>)> {
    let mut process = Process::start(name, command.stdin(Stdio::null()).stdout(Stdio::piped()))?;
    let stdout = ChildStdout::from_std(process.take_stdout().context("the output is not piped")?)?;
    Ok((process, BufReader::new(stdout).lines()))
}

/// Returns the first value found in the next lines, or `None` at the end of the output.
async fn find<T>(
    lines: &mut Lines<BufReader<ChildStdout>>,
    found: impl Fn(&str) -> Option<T>,
) -> anyhow::Result<Option<T>> {
    let searched = async {
        while let Some(line) = lines.next_line().await? {
            if let Some(found) = found(&line) {
                return anyhow::Ok(Some(found));
            }
        }
        Ok(None)
    };
    timeout(TIMEOUT, searched)
        .await
        .context("no line was printed in time")?
}

/// A check of a scenario.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    id: String,
    status: String,
    error_message: Option<String>,
}

/// Prints every check. A warning, a skipped check and a scenario that did not run are failures.
fn report(results: &Path, status: ExitStatus) -> anyhow::Result<()> {
    let mut passed = 0;
    let mut failed = 0;
    for scenario in SCENARIOS {
        println!("{scenario}");
        for check in checks(results, scenario)? {
            println!(
                "  {:8} {} {}",
                check.status,
                check.id,
                check.error_message.unwrap_or_default()
            );
            *(if check.status == "SUCCESS" {
                &mut passed
            } else {
                &mut failed
            }) += 1;
        }
    }
    if failed > 0 || !status.success() {
        bail!(
            "{failed} checks failed, and the suite ended with {status}; see {}",
            results.display()
        );
    }
    println!(
        "{passed} of {passed} checks passed in {} scenarios",
        SCENARIOS.len()
    );
    Ok(())
}

/// Returns the checks of a scenario. Its results are in a folder named after the scenario and the
/// time.
fn checks(results: &Path, scenario: &str) -> anyhow::Result<Vec<Check>> {
    let folders =
        fs::read_dir(results).with_context(|| format!("{} cannot be read", results.display()))?;
    let names_it = |name: &str| name.starts_with(&format!("authorization-server-{scenario}-"));
    let folder = folders
        .filter_map(Result::ok)
        .find(|folder| folder.file_name().to_str().is_some_and(names_it));
    let file = folder
        .with_context(|| format!("{scenario} did not run"))?
        .path()
        .join("checks.json");
    let checks: Vec<Check> = serde_json::from_slice(&fs::read(&file)?)?;
    ensure!(!checks.is_empty(), "{scenario} checked nothing");
    Ok(checks)
}
