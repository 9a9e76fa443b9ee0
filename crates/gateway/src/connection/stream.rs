use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;
use url::Host;

use super::limit::ConnectionPermit;
use crate::address::Endpoint;

/// A byte stream to the upstream over TCP, TLS or a Unix socket, with its connection permit.
pub(crate) struct Stream {
    transport: Transport,
    permit: ConnectionPermit,
}

/// What carries the bytes.
enum Transport {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    #[cfg(unix)]
    Unix(UnixStream),
}

/// The reason why no connection was made.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// The name cannot be resolved, or no address accepts the connection.
    Unreachable(io::Error),
    /// The TLS handshake has failed.
    Tls(io::Error),
}

impl Stream {
    /// Connects, without a time limit. The permit counts the connection until it closes. Fails if
    /// the name cannot be resolved, all its addresses reject the connection, or the TLS handshake
    /// fails.
    pub(crate) async fn connect(
        endpoint: &Endpoint,
        permit: ConnectionPermit,
    ) -> Result<Self, ConnectError> {
        let transport = match endpoint {
            Endpoint::Tcp(host, port) => Transport::Tcp(connect_tcp(host, *port).await?),
            Endpoint::Tls {
                host,
                port,
                name,
                connector,
            } => {
                let stream = connect_tcp(host, *port).await?;
                let stream = connector
                    .connect(name.clone(), stream)
                    .await
                    .map_err(ConnectError::Tls)?;
                Transport::Tls(Box::new(stream))
            }
            #[cfg(unix)]
            Endpoint::Unix(path) => Transport::Unix(
                UnixStream::connect(path)
                    .await
                    .map_err(ConnectError::Unreachable)?,
            ),
            #[cfg(not(unix))]
            Endpoint::Unix(_) => {
                return Err(ConnectError::Unreachable(io::ErrorKind::Unsupported.into()));
            }
        };
        Ok(Self { transport, permit })
    }

    /// Closes the stream and keeps its permit.
    pub(super) fn into_permit(self) -> ConnectionPermit {
        self.permit
    }
}

/// Connects to a host. A name is resolved, and its addresses are tried in order.
async fn connect_tcp(host: &Host<String>, port: u16) -> Result<TcpStream, ConnectError> {
    let stream = match host {
        Host::Domain(name) => TcpStream::connect((name.as_str(), port)).await,
        Host::Ipv4(address) => TcpStream::connect((*address, port)).await,
        Host::Ipv6(address) => TcpStream::connect((*address, port)).await,
    };
    let stream = stream.map_err(ConnectError::Unreachable)?;
    stream
        .set_nodelay(true)
        .map_err(ConnectError::Unreachable)?;
    Ok(stream)
}

/// Calls a method of the transport.
macro_rules! delegate {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut $self.get_mut().transport {
            Transport::Tcp($stream) => $call,
            Transport::Tls($stream) => $call,
            #[cfg(unix)]
            Transport::Unix($stream) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => Pin::new(stream).poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
