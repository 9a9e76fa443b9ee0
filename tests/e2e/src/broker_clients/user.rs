//! [`User`]: signs in when a client opens the browser.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use portcullis_scenarios::{Browser, Request};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::sleep,
};
use url::Url;

use crate::{deployment::USER, program::POLL_INTERVAL};

/// The path of the broker's authorization endpoint.
const AUTHORIZE: &str = "/oauth/authorize";
/// The most bytes of a page of a client.
const MAX_RESPONSE: u64 = 1024 * 1024;

/// A user with a command in place of a browser: it appends the URL to a file.
pub(super) struct User {
    folder: PathBuf,
    /// How many of the URLs the user has opened.
    sign_ins: usize,
}

impl User {
    pub(super) fn new(folder: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)?;
        let user = Self {
            folder: folder.to_owned(),
            sign_ins: 0,
        };
        let browser = user.browser();
        fs::write(
            &browser,
            "#!/bin/sh\nprintf '%s\\n' \"$1\" >> \"$0.urls\"\n",
        )?;
        fs::set_permissions(&browser, fs::Permissions::from_mode(0o700))?;
        Ok(user)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the command that opens a URL.
    pub(super) fn browser(&self) -> PathBuf {
        self.folder.join("browser")
    }

    /// Returns how often the user has signed in.
    pub(super) fn sign_ins(&self) -> usize {
        self.sign_ins
    }

    /// Signs in if a client has opened the browser since.
    pub(super) async fn act(&mut self) -> anyhow::Result<()> {
        let opened = fs::read_to_string(self.folder.join("browser.urls")).unwrap_or_default();
        let whole_lines = opened.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let Some(url) = whole_lines.lines().nth(self.sign_ins) else {
            return Ok(());
        };
        let opened = Url::parse(url)?;
        let authorization = if opened.path() == AUTHORIZE {
            opened
        } else {
            redirected(&opened).await?
        };
        let location = Browser::default().sign_in(&authorization, USER).await;
        get(&location).await?;
        self.sign_ins += 1;
        Ok(())
    }
}

/// Returns the authorization request to which the page of a client on this machine redirects.
async fn redirected(page: &Url) -> anyhow::Result<Url> {
    let response = get(page).await?;
    let location = response
        .lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| name.eq_ignore_ascii_case("location"));
    let (_, location) =
        location.with_context(|| format!("{page} does not redirect: {response}"))?;
    Ok(Url::parse(location)?)
}

/// Opens a page of a client on this machine, and returns the response. Some clients listen only
/// after they have opened the browser.
async fn get(url: &Url) -> anyhow::Result<String> {
    let addresses = url.socket_addrs(|| None)?;
    let mut stream = loop {
        if let Some(stream) = connect(&addresses).await {
            break stream;
        }
        sleep(POLL_INTERVAL).await;
    };
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let request = Request::without_host("GET", target)
        .header("Host", url.authority())
        .header("Connection", "close");
    stream.write_all(&request.to_bytes()).await?;
    let mut response = Vec::new();
    stream
        .take(MAX_RESPONSE)
        .read_to_end(&mut response)
        .await
        .with_context(|| format!("{} does not answer", url.authority()))?;
    Ok(String::from_utf8_lossy(&response).into_owned())
}

async fn connect(addresses: &[SocketAddr]) -> Option<TcpStream> {
    for address in addresses {
        if let Ok(stream) = TcpStream::connect(address).await {
            return Some(stream);
        }
    }
    None
}
