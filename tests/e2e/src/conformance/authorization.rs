//! `cargo xtask conformance authorization`: the authorization server scenarios, against `portcullis idp`.

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use http::header::LOCATION;
use portcullis_discovery::{Fetch as _, FetchRequest, FetchSettings, HttpFetch, UrlPolicy};
use serde::Deserialize;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};
use url::Url;

use super::suite::Suite;
use xtask::built;

const CLIENT: &str = "conformance";
const RESOURCE: &str = "http://127.0.0.1:3000/mcp";
/// The scenarios that have to run, so that none is lost unseen.
const SCENARIOS: [&str; 2] = ["authorization-server-metadata-endpoint", "authorization-code-grant"];
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn run() -> anyhow::Result<()> {
    let program = built::build(&["--package=portcullis", "--bin=portcullis", "--locked"])?.program("portcullis")?;
    let suite = Suite::install()?;
    let results = suite.results("authorization")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let status = runtime.block_on(judged(&program, &suite, &results))?;
    report(&results, status)
}

/// Starts the server, and lets the suite judge it.
async fn judged(program: &Path, suite: &Suite, results: &Path) -> anyhow::Result<ExitStatus> {
    let clients = results.join("clients.toml");
    let client = format!("[[client]]\nid = \"{CLIENT}\"\nredirect_uris = [\"http://127.0.0.1/callback\"]\n");
    fs::write(&clients, client)?;
    let mut idp = Command::new(program);
    idp.args(["idp", "--listen", "127.0.0.1:0", "--auto-consent", "--clients"]).arg(&clients);
    let (_idp, mut lines) = start(idp).context("portcullis idp")?;
    let named = |line: &str| line.strip_prefix("development authorization server: ").map(str::to_owned);
    let issuer = find(&mut lines, named).await?.context("portcullis idp ended before it listened")?;

    let port = free_port()?.to_string();
    let arguments = ["authorization", "--url", &issuer, "--client-id", CLIENT, "--resource", RESOURCE, "--port", &port];
    let mut command = suite.command(&arguments);
    command.arg("--output-dir").arg(results);
    let (mut suite, mut lines) = start(command.into()).context("the suite")?;
    let authorize = format!("{issuer}/authorize?");
    // The suite prints the address before its own server listens, most times.
    let (mut address, mut listens) = (None, false);
    while let Some(line) = find(&mut lines, |line| Some(line.to_owned())).await? {
        listens |= line.starts_with("Callback server started");
        address = line.starts_with(&authorize).then_some(line).or(address);
        if let Some(url) = address.take_if(|_| listens) {
            visit(&url).await.context("the authorization request")?;
            listens = false;
        }
    }
    Ok(timeout(PATIENCE, suite.wait()).await.context("the suite does not end")??)
}

/// Does what a browser would: asks for consent, and brings the answer to the suite.
async fn visit(url: &str) -> anyhow::Result<()> {
    let fetch = HttpFetch::new(FetchSettings::default())?;
    let get = async |url: &str| {
        let url = Url::parse(url)?;
        anyhow::Ok(fetch.fetch(FetchRequest::get(url, UrlPolicy::Operator)).await?)
    };
    let answer = get(url).await?;
    let location = answer.headers.get(LOCATION).with_context(|| format!("status {} and no redirect", answer.status))?;
    get(location.to_str()?).await?;
    Ok(())
}

/// Starts a program that is killed when it is dropped, and what it prints.
fn start(mut command: Command) -> anyhow::Result<(Child, Lines<BufReader<ChildStdout>>)> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let stdout = child.stdout.take().context("its output is not piped")?;
    Ok((child, BufReader::new(stdout).lines()))
}

/// The next line in which something is found; `None` at the end of the output.
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
    timeout(PATIENCE, searched).await.context("nothing is printed any more")?
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// One thing that a scenario looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    id: String,
    status: String,
    error_message: Option<String>,
}

/// Prints every check. Strict: a warning or a skipped check counts as a failure, and so does a scenario that did not run.
fn report(results: &Path, status: ExitStatus) -> anyhow::Result<()> {
    let (mut passed, mut failed) = (0, 0);
    for scenario in SCENARIOS {
        println!("{scenario}");
        for check in checks(results, scenario)? {
            println!("  {:8} {} {}", check.status, check.id, check.error_message.unwrap_or_default());
            *(if check.status == "SUCCESS" { &mut passed } else { &mut failed }) += 1;
        }
    }
    if failed > 0 || !status.success() {
        bail!("{failed} checks failed, and the suite ended with {status}; see {}", results.display());
    }
    println!("{passed} of {passed} checks passed in {} scenarios", SCENARIOS.len());
    Ok(())
}

/// What a scenario left behind, in a folder that is named after it and the time.
fn checks(results: &Path, scenario: &str) -> anyhow::Result<Vec<Check>> {
    let folders = fs::read_dir(results).with_context(|| format!("{} cannot be read", results.display()))?;
    let names_it = |name: &str| name.starts_with(&format!("authorization-server-{scenario}-"));
    let folder = folders.filter_map(Result::ok).find(|folder| folder.file_name().to_str().is_some_and(names_it));
    let file = folder.with_context(|| format!("{scenario} did not run"))?.path().join("checks.json");
    let checks: Vec<Check> = serde_json::from_slice(&fs::read(&file)?)?;
    ensure!(!checks.is_empty(), "{scenario} checked nothing");
    Ok(checks)
}
