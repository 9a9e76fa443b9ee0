//! [`Browser`]: opens a URL in the browser of the user, and waits for the redirect.

use std::{env, process::Command};

use anyhow::{Context as _, ensure};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

/// The most bytes of the first line of a request.
const MAX_LINE: u64 = 8 * 1024;

const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nsigned in";

/// A listener for the redirects of the browser.
pub(crate) struct Browser {
    listener: TcpListener,
    redirect_uri: String,
}

impl Browser {
    pub(crate) async fn new() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let redirect_uri = format!("http://{}/callback", listener.local_addr()?);
        Ok(Self {
            listener,
            redirect_uri,
        })
    }

    pub(crate) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Opens a URL with the command of BROWSER, and returns the URL to which the browser was
    /// redirected.
    pub(crate) async fn open(&self, url: &str) -> anyhow::Result<String> {
        let browser = env::var("BROWSER").context("BROWSER is not set")?;
        let status = Command::new(browser).arg(url).status()?;
        ensure!(status.success(), "the browser ended with {status}");
        let (stream, _) = self.listener.accept().await?;
        let target = answer(stream).await?;
        Ok(format!("http://{}{target}", self.listener.local_addr()?))
    }
}

/// Answers a request and returns its target.
async fn answer(mut stream: TcpStream) -> anyhow::Result<String> {
    let (reader, mut writer) = stream.split();
    let mut line = String::new();
    BufReader::new(reader.take(MAX_LINE))
        .read_line(&mut line)
        .await?;
    writer.write_all(RESPONSE).await?;
    let target = line.split(' ').nth(1).context("not a request line")?;
    Ok(target.to_owned())
}
