//! [`Http`]: an HTTP/1.1 connection that returns its failures as errors.

use std::{net::SocketAddr, time::Duration};

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::spawn_local, time::timeout};

/// The maximum time of one request.
const LIMIT: Duration = Duration::from_secs(30);

/// A response with its complete body.
pub(super) struct Response {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// A connection to one address. It is opened again after a failure.
pub(super) struct Http {
    address: SocketAddr,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl Http {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            connection: None,
        }
    }

    /// Sends a request and reads the complete response. Fails when the connection cannot be opened
    /// or ends early, and after 30 s.
    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<Response> {
        let previous = self.connection.take();
        let exchange = async {
            let mut connection = match previous.filter(SendRequest::is_ready) {
                Some(connection) => connection,
                None => open(self.address).await?,
            };
            let (head, body) = connection.send_request(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            anyhow::Ok((
                connection,
                Response {
                    status: head.status,
                    headers: head.headers,
                    body,
                },
            ))
        };
        let (connection, response) = timeout(LIMIT, exchange)
            .await
            .context("no response in time")??;
        self.connection = Some(connection);
        Ok(response)
    }
}

/// Opens a connection.
async fn open(address: SocketAddr) -> anyhow::Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    // Its error is that of the request.
    spawn_local(async { drop(connection.await) });
    sender.ready().await?;
    Ok(sender)
}
