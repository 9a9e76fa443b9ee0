//! A user with a token, a connection and a session.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use portcullis_scenarios::{INITIALIZE, Request};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{issuer::NumberedToken, traffic::Traffic};
use crate::{configuration::PATH, http::Connection};

/// The time until a request that was rejected for its token is repeated with another one.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// The maximum time until the head of a response.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// A user. Its token is signed again when the issuer's key is replaced.
pub(super) struct User<'a> {
    traffic: &'a Traffic,
    subject: String,
    token: NumberedToken,
    connection: Connection,
    session: String,
}

/// The parts of a response that are compared.
pub(super) struct Answer {
    pub(super) status: u16,
    session: Option<String>,
}

impl<'a> User<'a> {
    pub(super) async fn connect(traffic: &'a Traffic, subject: String) -> anyhow::Result<Self> {
        let token = traffic.issuer().sign(|token| token.subject(&subject));
        let connection = Connection::open(traffic.address()).await?;
        Ok(Self {
            traffic,
            subject,
            token,
            connection,
            session: String::new(),
        })
    }

    pub(super) async fn open_session(&mut self) -> anyhow::Result<()> {
        let answer = self.expect(200, &Request::post(PATH, INITIALIZE)).await?;
        self.session = answer.session.context("no session was opened")?;
        Ok(())
    }

    /// Sends a request in the session and asserts its status.
    pub(super) async fn expect_in_session(
        &mut self,
        status: u16,
        request: Request,
    ) -> anyhow::Result<()> {
        let request = request.session(&self.session);
        self.expect(status, &request).await.map(drop)
    }

    /// Sends a request with the token and asserts its status. While the server may not know the key
    /// yet, repeats it.
    pub(super) async fn expect(
        &mut self,
        status: u16,
        request: &Request,
    ) -> anyhow::Result<Answer> {
        loop {
            let bytes = request.clone().bearer(&self.token.token).to_bytes();
            let may_be_rejected = self.may_be_rejected();
            let answer = self.send(&bytes).await?;
            if answer.status == status {
                return Ok(answer);
            }
            self.accept_rejection(may_be_rejected, answer.status, request)
                .await?;
        }
    }

    /// Opens an event stream and reads the head of its response.
    pub(super) async fn open_stream(&mut self) -> anyhow::Result<TcpStream> {
        let request = Request::new("GET", PATH)
            .header("Accept", "text/event-stream")
            .session(&self.session);
        loop {
            let may_be_rejected = self.may_be_rejected();
            let mut stream = TcpStream::connect(self.traffic.address()).await?;
            stream
                .write_all(&request.clone().bearer(&self.token.token).to_bytes())
                .await?;
            self.traffic.count();
            let mut head = Vec::with_capacity(1024);
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                let read = timeout(HEAD_TIMEOUT, stream.read_buf(&mut head))
                    .await
                    .context("no response to GET")??;
                ensure!(
                    read > 0,
                    "the connection of a stream ended: {}",
                    head.escape_ascii()
                );
            }
            if head.starts_with(b"HTTP/1.1 200 ") {
                return Ok(stream);
            }
            let status = if head.starts_with(b"HTTP/1.1 401 ") {
                401
            } else {
                0
            };
            self.accept_rejection(may_be_rejected, status, &request)
                .await
                .with_context(|| head.escape_ascii().to_string())?;
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> anyhow::Result<Answer> {
        self.traffic.count();
        let response = timeout(HEAD_TIMEOUT, self.connection.send(bytes))
            .await
            .context("no response")??;
        let session = response.header("mcp-session-id").map(str::to_owned);
        Ok(Answer {
            status: response.status,
            session,
        })
    }

    fn may_be_rejected(&self) -> bool {
        self.traffic.issuer().may_be_rejected(&self.token)
    }

    /// Signs another token after a 401 that a rotation explains, before the request or during it.
    async fn accept_rejection(
        &mut self,
        before: bool,
        status: u16,
        request: &Request,
    ) -> anyhow::Result<()> {
        if status != 401 || !(before || self.may_be_rejected()) {
            bail!(
                "unexpected status {status} of {}",
                String::from_utf8_lossy(&request.to_bytes())
            );
        }
        sleep(RETRY_PAUSE).await;
        self.token = self
            .traffic
            .issuer()
            .sign(|token| token.subject(&self.subject));
        Ok(())
    }
}
