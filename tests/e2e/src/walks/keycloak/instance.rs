//! A running Keycloak.

use std::{path::Path, process::Command, time::Duration};

use anyhow::Context as _;
use http::StatusCode;
use portcullis_discovery::{Fetch as _, FetchRequest, HttpFetch, UrlPolicy};
use tokio::time::{Instant, sleep};
use url::Url;

use super::{guide, places::Places};
use crate::walks::program::Program;

const PERIOD: Duration = Duration::from_millis(200);
/// How often a wait tells of itself.
const TELL: Duration = Duration::from_secs(5);

/// A Keycloak in a process group of its own. All of it is killed when this is dropped.
pub(super) struct Instance {
    /// None once it was made to end.
    program: Option<Program>,
    health: Url,
}

impl Instance {
    /// Starts it with the guide's own command. What it writes goes to `<folder>/<name>.log`.
    pub(super) fn start(home: &Path, places: &Places, name: &'static str, folder: &Path) -> anyhow::Result<Self> {
        let script = places.put_into(&guide::read()?.start_of_keycloak()?);
        let mut shell = Command::new("sh");
        shell.args(["-euc", &script]).env("KEYCLOAK_HOME", home);
        let health = Url::parse(&format!("http://{}/health/ready", places.management))?;
        Ok(Self { program: Some(Program::start(name, &mut shell, folder)?), health })
    }

    /// Waits until it is ready, and tells how long it has been waited.
    ///
    /// # Errors
    /// When it ends before.
    pub(super) async fn ready(&mut self) -> anyhow::Result<()> {
        let fetch = HttpFetch::new(Default::default())?;
        let started = Instant::now();
        let mut told = Duration::ZERO;
        loop {
            // Nothing listens there for most of the time.
            let answer = fetch.fetch(FetchRequest::get(self.health.clone(), UrlPolicy::Operator)).await;
            if answer.is_ok_and(|answer| answer.status == StatusCode::OK) {
                return Ok(());
            }
            self.running()?.expect_running()?;
            if started.elapsed() >= told + TELL {
                told = started.elapsed();
                eprintln!("        Keycloak starts: {:>3} s", told.as_secs());
            }
            sleep(PERIOD).await;
        }
    }

    /// Asks it to end, and waits until all of it has.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        self.running()?.stop().await?;
        self.program = None;
        Ok(())
    }

    /// Kills it, and waits until all of it is gone.
    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        self.running()?.kill().await?;
        self.program = None;
        Ok(())
    }

    pub(super) fn is_running(&self) -> bool {
        self.program.is_some()
    }

    fn running(&mut self) -> anyhow::Result<&mut Program> {
        self.program.as_mut().context("Keycloak does not run")
    }
}
