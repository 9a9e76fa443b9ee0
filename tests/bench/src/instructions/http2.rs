//! [`Http2`]: a client connection that writes each request at once.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use http::Request;
use tokio::{net::TcpStream, task::JoinHandle};

/// An open HTTP/2 connection. It differs from hyper's in that the HEADERS and DATA frames of a
/// request always arrive together. Otherwise, the server would read once or twice, depending on how
/// busy the machine is.
pub(super) struct Http2 {
    sender: SendRequest<Bytes>,
    /// Writes and reads the frames.
    connection: JoinHandle<Result<(), h2::Error>>,
}

impl Http2 {
    /// Connects with prior knowledge.
    pub(super) async fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = Builder::new()
            .initial_connection_window_size(1 << 30)
            .handshake(stream)
            .await?;
        Ok(Self {
            sender,
            connection: tokio::spawn(connection),
        })
    }

    /// Sends a request, reads the whole response, and returns its status.
    pub(super) async fn send(&mut self, request: Request<()>, body: Bytes) -> anyhow::Result<u16> {
        let mut sender = self.sender.clone().ready().await?;
        // Nothing is awaited between these two, so that the connection writes their frames in one
        // go.
        let (response, mut stream) = sender.send_request(request, false)?;
        stream.send_data(body, true)?;
        let (head, mut body) = response.await?.into_parts();
        while let Some(data) = body.data().await {
            body.flow_control().release_capacity(data?.len())?;
        }
        Ok(head.status.as_u16())
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.connection.abort();
    }
}
