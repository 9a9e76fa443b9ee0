//! Requests to an upstream, over the same address and with the same trust as the gateway.

use std::{io, net::SocketAddr, path::Path, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, header, uri::PathAndQuery};
use portcullis_discovery::{FetchResponse, SentSecrets};
use portcullis_gateway::{HttpUpstreamSettings, UpstreamAddress};
use portcullis_http1::{Connection, ConnectionError, Request, RequestBuilder};
use portcullis_mcp::sse::Decoder;
use rustls::{CertificateError, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    time::timeout,
};
use tokio_rustls::TlsConnector;
use url::{Host, Position, Url};

use super::REQUEST_TIMEOUT;
use crate::exchange::host_name;

/// The most bytes of a response that are read.
const MAX_BODY: usize = 256 * 1024;
/// The time limit of one connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

pub(super) struct Upstream<'a> {
    settings: &'a HttpUpstreamSettings,
    url: &'a Url,
}

pub(super) struct UpstreamRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Bytes,
}

/// Why there is no response.
#[derive(Debug)]
pub(super) enum NoResponse {
    Resolve,
    Connect(io::Error),
    /// The server does not speak TLS on this port.
    NotTls,
    Certificate(CertificateError),
    Tls(io::Error),
    Timeout,
    /// The connection was closed, or the response is not HTTP.
    Http(ConnectionError),
}

impl<'a> Upstream<'a> {
    /// Returns `None` for an address of another type, which no configuration has.
    pub(super) fn new(settings: &'a HttpUpstreamSettings) -> Option<Self> {
        let url = match &settings.address {
            UpstreamAddress::Unix { uri, .. } => uri,
            UpstreamAddress::Tcp(url) => url,
            _ => return None,
        };
        Some(Self { settings, url })
    }

    /// The URL of the requests.
    pub(super) fn url(&self) -> &'a Url {
        self.url
    }

    /// Whether it is a Unix socket.
    pub(super) fn is_socket(&self) -> bool {
        self.socket().is_some()
    }

    /// The path of the Unix socket, if it is one.
    pub(super) fn socket(&self) -> Option<&'a Path> {
        match &self.settings.address {
            UpstreamAddress::Unix { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The addresses of the host; none for a socket, and if the name cannot be resolved.
    pub(super) async fn addresses(&self) -> Vec<SocketAddr> {
        if self.is_socket() {
            Vec::new()
        } else {
            resolve(self.url()).await
        }
    }

    /// Sends a request within [`REQUEST_TIMEOUT`]. Of an event stream, the first response is read.
    pub(super) async fn send(&self, request: UpstreamRequest) -> Result<FetchResponse, NoResponse> {
        timeout(REQUEST_TIMEOUT, self.exchange(request))
            .await
            .unwrap_or(Err(NoResponse::Timeout))
    }

    async fn exchange(&self, request: UpstreamRequest) -> Result<FetchResponse, NoResponse> {
        if let UpstreamAddress::Unix { path, .. } = &self.settings.address {
            let stream = UnixStream::connect(path)
                .await
                .map_err(NoResponse::Connect)?;
            return send_over(stream, request).await;
        }
        let url = &request.url;
        let stream = connect(url).await?;
        match (&self.settings.trust, url.scheme()) {
            (Some(trust), "https") => {
                let name = ServerName::try_from(host_name(url).to_owned());
                let name = name.map_err(|_| NoResponse::Resolve)?;
                let connector = TlsConnector::from(trust.tls_settings());
                let stream = connector.connect(name, stream).await.map_err(tls_failure)?;
                send_over(stream, request).await
            }
            _ => send_over(stream, request).await,
        }
    }
}

async fn resolve(url: &Url) -> Vec<SocketAddr> {
    let port = url.port_or_known_default().unwrap_or(80);
    match url.host() {
        Some(Host::Ipv4(address)) => vec![SocketAddr::from((address, port))],
        Some(Host::Ipv6(address)) => vec![SocketAddr::from((address, port))],
        Some(Host::Domain(name)) => {
            let found = timeout(CONNECT_TIMEOUT, tokio::net::lookup_host((name, port))).await;
            found
                .ok()
                .and_then(Result::ok)
                .map(Iterator::collect)
                .unwrap_or_default()
        }
        None => Vec::new(),
    }
}

async fn connect(url: &Url) -> Result<TcpStream, NoResponse> {
    let mut last = NoResponse::Resolve;
    for address in resolve(url).await {
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = NoResponse::Connect(error),
            Err(_) => last = NoResponse::Timeout,
        }
    }
    Err(last)
}

fn tls_failure(error: io::Error) -> NoResponse {
    match error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>())
    {
        Some(rustls::Error::InvalidMessage(_)) => NoResponse::NotTls,
        Some(rustls::Error::InvalidCertificate(problem)) => {
            NoResponse::Certificate(problem.clone())
        }
        _ => NoResponse::Tls(error),
    }
}

async fn send_over<S>(stream: S, request: UpstreamRequest) -> Result<FetchResponse, NoResponse>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let sent = Connection::new(stream).send(encoded(request)).await;
    let (response, connection) = sent.map_err(|failed| NoResponse::Http(failed.error))?;
    let (head, ()) = response.into_parts();
    let body = if portcullis_metadata::syntax::is_event_stream(&head.headers) {
        first_message(connection).await
    } else {
        whole(connection).await
    };
    Ok(FetchResponse {
        status: head.status,
        headers: head.headers,
        body,
        sent: SentSecrets::default(),
    })
}

fn encoded(
    UpstreamRequest {
        method,
        url,
        headers,
        body,
    }: UpstreamRequest,
) -> Request {
    // A URL's path and query are a valid target, and its host a valid header.
    let target = PathAndQuery::try_from(&url[Position::BeforePath..Position::AfterQuery]);
    let mut request = RequestBuilder::new(
        &method,
        &target.unwrap_or_else(|_| PathAndQuery::from_static("/")),
    );
    if let Ok(host) = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]) {
        request.header(&header::HOST, &host);
    }
    for (name, value) in &headers {
        request.header(name, value);
    }
    request.body(body)
}

/// The body, as far as it arrives and fits.
async fn whole<S: AsyncRead + AsyncWrite + Unpin>(mut connection: Connection<S>) -> Bytes {
    let mut read = Vec::new();
    while let Some(Ok(data)) = connection.next_data().await {
        if read.len() + data.len() > MAX_BODY {
            break;
        }
        read.extend_from_slice(&data);
    }
    read.into()
}

/// The data of the first event that is a response, else of the last event that arrived. For the
/// event `endpoint` of the former transport, the text `event: endpoint`.
async fn first_message<S: AsyncRead + AsyncWrite + Unpin>(mut connection: Connection<S>) -> Bytes {
    let mut decoder = Decoder::new(MAX_BODY);
    let wait = REQUEST_TIMEOUT / 2;
    let mut kept = Bytes::new();
    while let Ok(Some(Ok(data))) = timeout(wait, connection.next_data()).await {
        let Ok(events) = decoder.push(&data) else {
            break;
        };
        for event in events {
            let is_response = event.data.contains("\"result\"") || event.data.contains("\"error\"");
            if event.event.as_deref() == Some("endpoint") {
                return Bytes::from_static(b"event: endpoint");
            }
            kept = Bytes::from(event.data);
            if is_response {
                return kept;
            }
        }
    }
    kept
}
