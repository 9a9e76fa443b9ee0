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

use crate::{address::Endpoint, failure::Failure};

/// A connection's bytes.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    #[cfg(unix)]
    Unix(UnixStream),
}

/// Connects, without a limit of time.
pub(crate) async fn connect(endpoint: &Endpoint) -> Result<Stream, Failure> {
    match endpoint {
        Endpoint::Tcp(host, port) => tcp(host, *port).await.map(Stream::Tcp).map_err(Failure::Unreachable),
        Endpoint::Tls { host, port, name, connector } => {
            let stream = tcp(host, *port).await.map_err(Failure::Unreachable)?;
            let stream = connector.connect(name.clone(), stream).await.map_err(Failure::Tls)?;
            Ok(Stream::Tls(Box::new(stream)))
        }
        #[cfg(unix)]
        Endpoint::Unix(path) => UnixStream::connect(path).await.map(Stream::Unix).map_err(Failure::Unreachable),
        #[cfg(not(unix))]
        Endpoint::Unix(_) => Err(Failure::Unreachable(io::ErrorKind::Unsupported.into())),
    }
}

async fn tcp(host: &Host<String>, port: u16) -> io::Result<TcpStream> {
    let stream = match host {
        Host::Domain(name) => TcpStream::connect((name.as_str(), port)).await?,
        Host::Ipv4(address) => TcpStream::connect((*address, port)).await?,
        Host::Ipv6(address) => TcpStream::connect((*address, port)).await?,
    };
    stream.set_nodelay(true)?;
    Ok(stream)
}

macro_rules! delegate {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Stream::Tcp($stream) => $call,
            Stream::Tls($stream) => $call,
            #[cfg(unix)]
            Stream::Unix($stream) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
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
