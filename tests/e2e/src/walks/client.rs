//! The shipped program as a client, with a store of its own and a person beside it.

mod bridge;

use std::{
    cell::Cell,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use portcullis_testkit::Canaries;
use serde_json::Value;
use tokio::time::sleep;
use url::Url;

use super::{
    output::PANIC,
    pages,
    person::{Person, Visit},
    program::Program,
};

const PERIOD: Duration = Duration::from_millis(20);

/// The program, where what it writes is kept, and who consents.
///
/// Its output is kept apart from that of the servers: it may have tokens and authorization requests in it, since it
/// shows them to those who ask.
pub(super) struct Client {
    program: PathBuf,
    folder: PathBuf,
    store: PathBuf,
    environment: Vec<(&'static str, String)>,
    person: Person,
    runs: Cell<u32>,
}

/// What the person does when asked.
#[derive(Clone, Copy)]
pub(super) enum Asked<'a> {
    /// Consents, once these were opened.
    Consents(&'a [(&'static str, Redirect)]),
    /// Refuses.
    Refuses,
    /// Does not get to the authorization server: something else answers in its place.
    IsFooled(Redirect),
}

/// Parameters of an answer at the redirect URI of a request; `{state}` in a value stands for the request's.
pub(super) type Redirect = &'static [(&'static str, &'static str)];

/// A run that has ended.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) code: Option<i32>,
    pub(super) written: String,
    /// The authorization request, where there was one, and what the person saw of it.
    pub(super) asked: Option<(Url, Visit)>,
}

/// What the store holds for a resource.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) client_id: String,
    /// Where the registration gave one.
    pub(super) client_secret: Option<String>,
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
}

impl Client {
    pub(super) fn new(program: &Path, folder: &Path, person: Person) -> anyhow::Result<Self> {
        let folder = folder.join("client");
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let browser = folder.join("browser");
        fs::write(&browser, "#!/bin/sh\nprintf '%s' \"$1\" > \"$0.part\" && mv \"$0.part\" \"$0.url\"\n")?;
        fs::set_permissions(&browser, fs::Permissions::from_mode(0o700))?;
        let store = folder.join("store");
        Ok(Self { program: program.to_owned(), folder, store, environment: Vec::new(), person, runs: Cell::default() })
    }

    /// Sets variables of all runs.
    pub(super) fn with_environment(self, environment: &[(&'static str, String)]) -> Self {
        Self { environment: environment.to_vec(), ..self }
    }

    /// Keeps credentials in another directory.
    pub(super) fn with_store(self, store: &Path) -> Self {
        Self { store: store.to_owned(), ..self }
    }

    /// Runs `portcullis <command> <url> <more>`, with a person who consents.
    pub(super) async fn run(&self, command: &str, url: &Url, more: &[&str]) -> anyhow::Result<Run> {
        self.run_with(Asked::Consents(&[]), command, url, more).await
    }

    /// The same, with a person who does this when asked.
    pub(super) async fn run_with(
        &self,
        asked: Asked<'_>,
        command: &str,
        url: &Url,
        more: &[&str],
    ) -> anyhow::Result<Run> {
        let (name, mut process) = self.command(command, url, more)?;
        let mut process = Program::start(&name, &mut process, &self.folder)?;
        let mut visited = None;
        while process.is_running()? {
            if visited.is_none() {
                visited = self.answer_if_asked(&name, asked).await?;
            }
            sleep(PERIOD).await;
        }
        let (status, written) = (process.wait().await?, process.output());
        ensure!(!written.contains(PANIC), "portcullis {command}: a panic: {written}");
        Ok(Run { code: status.code(), written, asked: visited })
    }

    /// Returns a name for the next run, and its command.
    fn command(&self, command: &str, url: &Url, more: &[&str]) -> anyhow::Result<(String, Command)> {
        self.runs.set(self.runs.get() + 1);
        let opened = self.folder.join("browser.url");
        if opened.exists() {
            fs::remove_file(&opened)?;
        }
        let mut process = portcullis_scenarios::command(&self.program);
        process.arg(command).arg(url.as_str()).args(more).arg("--store").arg(&self.store);
        process.env("BROWSER", self.folder.join("browser")).env("PORTCULLIS_LOG", "trace");
        process.envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok((format!("{:02}-{command}", self.runs.get()), process))
    }

    /// Does what the person does when asked, if the current run has opened the browser.
    async fn answer_if_asked(&self, name: &str, asked: Asked<'_>) -> anyhow::Result<Option<(Url, Visit)>> {
        let opened = self.folder.join("browser.url");
        if !opened.exists() {
            return Ok(None);
        }
        self.answer(name, asked, &Url::parse(&fs::read_to_string(&opened)?)?).await.map(Some)
    }

    async fn answer(&self, name: &str, asked: Asked<'_>, url: &Url) -> anyhow::Result<(Url, Visit)> {
        let visit = match asked {
            Asked::Consents(first) => {
                let made = first.iter().map(|(name, redirect)| Ok((*name, answer_to(url, redirect)?)));
                let first: Vec<_> = made.collect::<anyhow::Result<_>>()?;
                self.person.visit(name, url, true, &first).await?
            }
            Asked::Refuses => self.person.visit(name, url, false, &[]).await?,
            Asked::IsFooled(redirect) => self.person.open(name, url, &answer_to(url, redirect)?).await?,
        };
        Ok((url.clone(), visit))
    }

    /// What the store holds for a resource.
    pub(super) fn held(&self, resource: &Url) -> anyhow::Result<Held> {
        let records = self.records()?;
        let found =
            records.iter().find(|record| record["resource"] == resource.as_str() && record["access_token"].is_string());
        let record = found.with_context(|| format!("the store: expected a token for {resource}, got none"))?;
        let text = |name: &str| record[name].as_str().map(str::to_owned);
        let registered = records.iter().map(|record| &record["registration"]);
        let registered = registered.into_iter().find(|registered| registered["client_id"] == record["client_id"]);
        Ok(Held {
            client_id: text("client_id").context("the store: a token without a client")?,
            client_secret: registered.and_then(|registered| registered["client_secret"].as_str()).map(str::to_owned),
            access_token: text("access_token").context("the store: a record without a token")?,
            refresh_token: text("refresh_token"),
        })
    }

    /// Adds what the store holds to what must not be in a log.
    pub(super) fn add_secrets(&self, canaries: &mut Canaries) -> anyhow::Result<()> {
        for record in self.records()? {
            for name in ["access_token", "refresh_token"] {
                canaries.add(name, record[name].as_str().unwrap_or_default());
            }
            canaries.add("client_secret", record["registration"]["client_secret"].as_str().unwrap_or_default());
        }
        Ok(())
    }

    fn records(&self) -> anyhow::Result<Vec<Value>> {
        let mut records = Vec::new();
        if !self.store.exists() {
            return Ok(records);
        }
        for entry in fs::read_dir(&self.store)? {
            let entry = entry?.path();
            if entry.extension().is_some_and(|extension| extension == "json") {
                records.push(serde_json::from_slice(&fs::read(entry)?)?);
            }
        }
        Ok(records)
    }
}

fn answer_to(request: &Url, redirect: Redirect) -> anyhow::Result<Url> {
    let asked = pages::parameters(request);
    let (Some(redirect_uri), Some(state)) = (asked.get("redirect_uri"), asked.get("state")) else {
        bail!("expected a request with redirect_uri and state");
    };
    let values = redirect.iter().map(|(name, value)| (name, value.replace("{state}", state)));
    Ok(Url::parse_with_params(redirect_uri, values)?)
}

impl Run {
    /// Expects that it succeeded.
    pub(super) fn succeeded(self) -> anyhow::Result<Self> {
        match self.code {
            Some(0) => Ok(self),
            code => bail!("expected exit code 0, got {code:?}: {}", self.written.trim_end()),
        }
    }

    /// Expects that it failed with this message.
    pub(super) fn failed(self, why: &str) -> anyhow::Result<Self> {
        ensure!(
            self.code == Some(1) && self.written.contains(why),
            "expected exit code 1 and {why:?}, got {:?}: {}",
            self.code,
            self.written.trim_end()
        );
        Ok(self)
    }

    /// The authorization request and what the person saw.
    pub(super) fn asked(&self) -> anyhow::Result<&(Url, Visit)> {
        self.asked.as_ref().context("expected that the person is asked for consent")
    }
}
