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
    program::Program,
    test_user::{TestUser, Visit},
};

/// How often the run of a program is checked for its end and for an opened browser.
const PERIOD: Duration = Duration::from_millis(20);

/// The program with its credential store and its user.
///
/// Its output is stored separately from that of the servers, because it can contain tokens and
/// authorization requests.
pub(crate) struct Client {
    program: PathBuf,
    folder: PathBuf,
    store: PathBuf,
    environment: Vec<(&'static str, String)>,
    user: TestUser,
    runs: Cell<u32>,
}

/// The user's action when the browser opens.
#[derive(Clone, Copy)]
pub(crate) enum UserAction<'a> {
    /// Consents after opening these redirects.
    Consent(&'a [(&'static str, Redirect)]),
    /// Denies consent.
    Deny,
    /// Opens this redirect instead of the authorization server.
    OpenForgedRedirect(Redirect),
}

/// The parameters of a redirect. `{state}` in a value is replaced by that of the authorization
/// request.
pub(crate) type Redirect = &'static [(&'static str, &'static str)];

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    /// The authorization request, if there was one, and the pages that the user saw.
    pub(crate) authorization: Option<(Url, Visit)>,
}

/// The stored token of a resource, and its client.
#[derive(Clone)]
pub(crate) struct StoredToken {
    pub(crate) client_id: String,
    /// The secret of the registration, if any.
    pub(crate) client_secret: Option<String>,
    pub(crate) access_token: String,
    pub(crate) refresh_token: Option<String>,
}

impl Client {
    /// Creates a client whose browser writes the URL into a file, from which the user takes it.
    pub(crate) fn new(program: &Path, folder: &Path, user: TestUser) -> anyhow::Result<Self> {
        let folder = folder.join("client");
        fs::create_dir_all(&folder)
            .with_context(|| format!("{} cannot be created", folder.display()))?;
        let browser = folder.join("browser");
        fs::write(
            &browser,
            "#!/bin/sh\nprintf '%s' \"$1\" > \"$0.part\" && mv \"$0.part\" \"$0.url\"\n",
        )?;
        fs::set_permissions(&browser, fs::Permissions::from_mode(0o700))?;
        let store = folder.join("store");
        Ok(Self {
            program: program.to_owned(),
            folder,
            store,
            environment: Vec::new(),
            user,
            runs: Cell::default(),
        })
    }

    /// Sets variables of all runs.
    pub(crate) fn with_environment(self, environment: &[(&'static str, String)]) -> Self {
        Self {
            environment: environment.to_vec(),
            ..self
        }
    }

    /// Keeps credentials in another directory.
    pub(crate) fn with_store(self, store: &Path) -> Self {
        Self {
            store: store.to_owned(),
            ..self
        }
    }

    /// Runs `portcullis <command> <url> <more>` with a user who consents.
    pub(crate) async fn run(&self, command: &str, url: &Url, more: &[&str]) -> anyhow::Result<Run> {
        self.run_with(UserAction::Consent(&[]), command, url, more)
            .await
    }

    /// As [`run`](Self::run), with this action of the user.
    pub(crate) async fn run_with(
        &self,
        action: UserAction<'_>,
        command: &str,
        url: &Url,
        more: &[&str],
    ) -> anyhow::Result<Run> {
        let (name, mut process) = self.command(command, url, more)?;
        let mut process = Program::start(&name, &mut process, &self.folder)?;
        let mut visited = None;
        while process.is_running()? {
            if visited.is_none() {
                visited = self.act_if_opened(&name, action).await?;
            }
            sleep(PERIOD).await;
        }
        let status = process.wait().await?;
        let output = process.output();
        ensure!(
            !output.contains(PANIC),
            "portcullis {command}: a panic: {output}"
        );
        Ok(Run {
            code: status.code(),
            output,
            authorization: visited,
        })
    }

    /// Returns a name for the next run, and its command.
    fn command(
        &self,
        command: &str,
        url: &Url,
        more: &[&str],
    ) -> anyhow::Result<(String, Command)> {
        self.runs.set(self.runs.get() + 1);
        let opened = self.folder.join("browser.url");
        if opened.exists() {
            fs::remove_file(&opened)?;
        }
        let mut process = portcullis_scenarios::portcullis_command(&self.program);
        process
            .arg(command)
            .arg(url.as_str())
            .args(more)
            .arg("--store")
            .arg(&self.store);
        process
            .env("BROWSER", self.folder.join("browser"))
            .env("PORTCULLIS_LOG", "trace");
        process.envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok((format!("{:02}-{command}", self.runs.get()), process))
    }

    /// Performs the user's action if the current run has opened the browser.
    async fn act_if_opened(
        &self,
        name: &str,
        action: UserAction<'_>,
    ) -> anyhow::Result<Option<(Url, Visit)>> {
        let opened = self.folder.join("browser.url");
        if !opened.exists() {
            return Ok(None);
        }
        let url = authorization_url(&Url::parse(&fs::read_to_string(&opened)?)?).await?;
        self.act(name, action, &url).await.map(Some)
    }

    /// Performs the user's action at this URL.
    async fn act(
        &self,
        name: &str,
        action: UserAction<'_>,
        url: &Url,
    ) -> anyhow::Result<(Url, Visit)> {
        let visit = match action {
            UserAction::Consent(first) => {
                let made = first
                    .iter()
                    .map(|(name, redirect)| Ok((*name, redirect_url(url, redirect)?)));
                let first: Vec<_> = made.collect::<anyhow::Result<_>>()?;
                self.user.visit(name, url, true, &first).await?
            }
            UserAction::Deny => self.user.visit(name, url, false, &[]).await?,
            UserAction::OpenForgedRedirect(redirect) => {
                self.user
                    .open(name, url, &redirect_url(url, redirect)?)
                    .await?
            }
        };
        Ok((url.clone(), visit))
    }

    pub(crate) fn stored_token(&self, resource: &Url) -> anyhow::Result<StoredToken> {
        let records = self.records()?;
        let found = records.iter().find(|record| {
            record["resource"] == resource.as_str() && record["access_token"].is_string()
        });
        let record = found
            .with_context(|| format!("the store: expected a token for {resource}, got none"))?;
        let text = |name: &str| record[name].as_str().map(str::to_owned);
        let registered = records.iter().map(|record| &record["registration"]);
        let registered = registered
            .into_iter()
            .find(|registered| registered["client_id"] == record["client_id"]);
        Ok(StoredToken {
            client_id: text("client_id").context("the store: a token without a client")?,
            client_secret: registered
                .and_then(|registered| registered["client_secret"].as_str())
                .map(str::to_owned),
            access_token: text("access_token").context("the store: a record without a token")?,
            refresh_token: text("refresh_token"),
        })
    }

    /// Adds the stored secrets to the canaries.
    pub(crate) fn add_secrets(&self, canaries: &mut Canaries) -> anyhow::Result<()> {
        for record in self.records()? {
            for name in ["access_token", "refresh_token"] {
                canaries.add(name, record[name].as_str().unwrap_or_default());
            }
            canaries.add(
                "client_secret",
                record["registration"]["client_secret"]
                    .as_str()
                    .unwrap_or_default(),
            );
        }
        Ok(())
    }

    /// Returns all records of the store.
    fn records(&self) -> anyhow::Result<Vec<Value>> {
        let mut records = Vec::new();
        if !self.store.exists() {
            return Ok(records);
        }
        for entry in fs::read_dir(&self.store)? {
            let entry = entry?.path();
            if entry
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                records.push(serde_json::from_slice(&fs::read(entry)?)?);
            }
        }
        Ok(records)
    }
}

/// Returns the authorization URL to which the address that the program has opened redirects once.
async fn authorization_url(one_time: &Url) -> anyhow::Result<Url> {
    let addresses = one_time.socket_addrs(|| None)?;
    let address = *addresses
        .iter()
        .find(|address| address.is_ipv4())
        .or(addresses.first())
        .context("no address")?;
    let response = portcullis_scenarios::Request::new("GET", one_time.path())
        .send(address)
        .await;
    let location = response
        .header("location")
        .with_context(|| format!("{one_time} does not redirect: {response:?}"))?;
    Ok(Url::parse(location)?)
}

/// Returns the URL of a redirect to the client of an authorization request.
fn redirect_url(request: &Url, redirect: Redirect) -> anyhow::Result<Url> {
    let parameters = pages::parameters(request);
    let (Some(redirect_uri), Some(state)) =
        (parameters.get("redirect_uri"), parameters.get("state"))
    else {
        bail!("expected a request with redirect_uri and state");
    };
    let values = redirect
        .iter()
        .map(|(name, value)| (name, value.replace("{state}", state)));
    Ok(Url::parse_with_params(redirect_uri, values)?)
}

impl Run {
    /// Expects success.
    pub(crate) fn succeeded(self) -> anyhow::Result<Self> {
        match self.code {
            Some(0) => Ok(self),
            code => bail!(
                "expected exit code 0, got {code:?}: {}",
                self.output.trim_end()
            ),
        }
    }

    /// Expects a failure with this message.
    pub(crate) fn failed(self, message: &str) -> anyhow::Result<Self> {
        ensure!(
            self.code == Some(1) && self.output.contains(message),
            "expected exit code 1 and {message:?}, got {:?}: {}",
            self.code,
            self.output.trim_end()
        );
        Ok(self)
    }

    /// Returns the authorization request and the pages that the user saw.
    pub(crate) fn authorization(&self) -> anyhow::Result<&(Url, Visit)> {
        self.authorization
            .as_ref()
            .context("expected an authorization request")
    }
}
