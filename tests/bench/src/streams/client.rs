use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{configuration::PATH, http::Connection};

/// A client with a token and a session.
pub(super) struct Client {
    address: SocketAddr,
    token: String,
    session: String,
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;

impl Client {
    /// Opens a session with each token.
    pub(super) async fn open_all(
        address: SocketAddr,
        tokens: Vec<String>,
    ) -> anyhow::Result<Vec<Self>> {
        let mut connection = Connection::open(address).await?;
        let mut clients = Vec::with_capacity(tokens.len());
        for token in tokens {
            let request = format!(
                "POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
                 Accept: application/json, text/event-stream\r\nAuthorization: Bearer {token}\r\n\
                 Content-Length: {}\r\n\r\n{INITIALIZE}",
                INITIALIZE.len()
            );
            let response = connection.send(request.as_bytes()).await?.ok()?;
            let session = response
                .header("mcp-session-id")
                .context("no session was opened")?
                .to_owned();
            clients.push(Self {
                address,
                token,
                session,
            });
        }
        Ok(clients)
    }

    /// Opens an event stream and reads its first event.
    pub(super) async fn open_stream(&self) -> anyhow::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address).await?;
        let request = format!(
            "GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nAuthorization: Bearer {}\r\n\
             Mcp-Session-Id: {}\r\nMCP-Protocol-Version: 2025-11-25\r\n\r\n",
            self.token, self.session
        );
        stream.write_all(request.as_bytes()).await?;
        let mut received = Vec::with_capacity(1024);
        while !received.ends_with(b"data: {}\n\n\r\n") {
            ensure!(
                stream.read_buf(&mut received).await? > 0,
                "a stream did not open: {}",
                received.escape_ascii()
            );
        }
        ensure!(
            received.starts_with(b"HTTP/1.1 200 "),
            "a stream was refused: {}",
            received.escape_ascii()
        );
        Ok(stream)
    }
}
