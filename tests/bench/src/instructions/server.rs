//! The server under callgrind, from its start to its end.

use std::{
    fs::{self, File},
    path::Path,
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail};
use portcullis_scenarios::{Process, Scratch, Signal, free_address};
use tokio::time::{Instant, sleep, timeout};

use super::{callgrind, case::Case, profile::Profile, traffic, upstream::Upstream};
use crate::{
    configuration::{BASE_URL, Configuration, ISSUER, PATH},
    http::Connection,
    issuer::BenchIssuer,
};

/// The maximum time until the server is ready. It is about fifty times slower than without callgrind.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// The maximum time from the signal to the end.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs the server under callgrind, with this number of requests.
///
/// # Errors
/// Fails when the server does not start or does not end, or at an unexpected response.
pub(super) async fn profile(valgrind: &Path, program: &Path, case: Case, requests: u32) -> anyhow::Result<Profile> {
    let folder = Scratch::folder("instructions");
    let path = |name: &str| folder.path().join(name);
    let upstream = Upstream::start().await?;
    let configuration = configuration(case);
    let issuer = BenchIssuer::new(ISSUER, &format!("{BASE_URL}{PATH}"), configuration.algorithm());
    issuer.publish(folder.path())?;
    let address = free_address()?;
    let text = configuration.text(address, upstream.address, folder.path(), &path("audit.jsonl"));
    fs::write(path("portcullis.toml"), text)?;

    let mut command = callgrind::command(valgrind, program, &path("callgrind.out"));
    command.arg("serve").arg("--config").arg(path("portcullis.toml"));
    // With one worker, every request finds what the one before it left.
    command.env("PORTCULLIS_WORKERS", "1");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(path("server.log"))?);
    let mut process = Process::start("valgrind", &mut command)?;
    let log = || fs::read_to_string(path("server.log")).unwrap_or_default();
    let started = Instant::now();
    loop {
        if let Ok(mut connection) = Connection::open(address).await
            && connection.get("/readyz").await.is_ok_and(|response| response.status == 200)
        {
            break;
        }
        if process.try_wait()?.is_some() || started.elapsed() > READY_TIMEOUT {
            bail!("the server does not become ready under valgrind:\n{}", log());
        }
        sleep(Duration::from_millis(20)).await;
    }
    traffic::send(case, address, &issuer, &upstream, requests).await.with_context(log)?;
    process.signal(Signal::TERM);
    timeout(END_TIMEOUT, process.wait()).await.context("the server does not end")??;
    let output = fs::read_to_string(path("callgrind.out")).context("callgrind wrote nothing")?;
    Ok(Profile::parse(&output))
}

/// Returns the configuration of a case.
fn configuration(case: Case) -> Configuration {
    match case {
        Case::AuditedPost => Configuration::Audited,
        Case::UncachedEs256 => Configuration::Es256,
        Case::CachedPost
        | Case::StreamMessage
        | Case::Stateless
        | Case::UncachedRs256
        | Case::Refused
        | Case::Http2 => Configuration::Standard,
    }
}
