//! [`Instance`]: a Keycloak process.

use std::{path::Path, process::Command, time::Duration};

use anyhow::Context as _;
use http::StatusCode;
use portcullis_discovery::{Fetch as _, FetchRequest, HttpFetch, UrlPolicy};
use tokio::time::{Instant, sleep};
use url::Url;

use super::{addresses::Addresses, guide};
use crate::program::Program;

const PERIOD: Duration = Duration::from_millis(200);
/// The interval at which a wait is reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// A Keycloak in a process group of its own. All of it is killed when this is dropped.
pub(super) struct Instance {
    /// `None` after it was stopped or killed.
    program: Option<Program>,
    health: Url,
}

impl Instance {
    /// Starts Keycloak with the guide's command. Its output goes to `<folder>/<name>.log`.
    pub(super) fn start(
        home: &Path,
        addresses: &Addresses,
        name: &'static str,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let script = addresses.replace_in(&guide::read()?.start_of_keycloak()?);
        let mut shell = Command::new("sh");
        shell.args(["-euc", &script]).env("KEYCLOAK_HOME", home);
        let health = Url::parse(&format!("http://{}/health/ready", addresses.management))?;
        Ok(Self {
            program: Some(Program::start(name, &mut shell, folder)?),
            health,
        })
    }

    /// Waits until Keycloak is ready, and reports the waiting time. Fails if Keycloak ends before.
    pub(super) async fn ready(&mut self) -> anyhow::Result<()> {
        let fetch = HttpFetch::new(Default::default())?;
        let started = Instant::now();
        let mut reported = Duration::ZERO;
        loop {
            // The connection is refused until Keycloak listens.
            let response = fetch
                .fetch(FetchRequest::get(self.health.clone(), UrlPolicy::Operator))
                .await;
            if response.is_ok_and(|response| response.status == StatusCode::OK) {
                return Ok(());
            }
            self.running()?.expect_running()?;
            if started.elapsed() >= reported + REPORT_INTERVAL {
                reported = started.elapsed();
                eprintln!("        Keycloak starts: {:>3} s", reported.as_secs());
            }
            sleep(PERIOD).await;
        }
    }

    /// Sends SIGTERM and waits until all processes have ended.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        self.running()?.stop().await?;
        self.program = None;
        Ok(())
    }

    /// Sends SIGKILL and waits until all processes have ended.
    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        self.running()?.kill().await?;
        self.program = None;
        Ok(())
    }

    pub(super) fn is_running(&self) -> bool {
        self.program.is_some()
    }

    fn running(&mut self) -> anyhow::Result<&mut Program> {
        self.program.as_mut().context("Keycloak is not running")
    }
}
