//! Requests to an upstream, over the same address and with the same trust as the gateway.

use std::{io, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use portcullis_discovery::FetchResponse;
use portcullis_gateway::{HttpUpstreamSettings, UpstreamAddress};
use portcullis_mcp::sse::Decoder;
use rustls::{CertificateError, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    time::timeout,
};
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::REQUEST_TIMEOUT;

/// The most bytes of a response that are read.
const MAX_BODY: usize = 256 * 1024;
/// The time limit of one connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// An upstream.
pub(super) struct Upstream<'a> {
    settings: &'a HttpUpstreamSettings,
    url: &'a Url,
}

/// A request to an upstream.
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
    Http(hyper::Error),
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
        matches!(self.settings.address, UpstreamAddress::Unix { .. })
    }

    /// The addresses of the host; none for a socket, and if the name cannot be resolved.
    pub(super) async fn addresses(&self) -> Vec<SocketAddr> {
        if self.is_socket() { Vec::new() } else { resolve(self.url()).await }
    }

    /// Sends a request within [`REQUEST_TIMEOUT`]. Of an event stream, the first messages are read.
    pub(super) async fn send(&self, request: UpstreamRequest) -> Result<FetchResponse, NoResponse> {
        timeout(REQUEST_TIMEOUT, self.exchange(request)).await.unwrap_or(Err(NoResponse::Timeout))
    }

    async fn exchange(&self, request: UpstreamRequest) -> Result<FetchResponse, NoResponse> {
        if let UpstreamAddress::Unix { path, .. } = &self.settings.address {
            let stream = UnixStream::connect(path).await.map_err(NoResponse::Connect)?;
            return send_over(stream, request).await;
        }
        let url = &request.url;
        let stream = connect(url).await?;
        match (&self.settings.trust, url.scheme()) {
            (Some(trust), "https") => {
                let name = ServerName::try_from(url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned());
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
            found.ok().and_then(Result::ok).map(Iterator::collect).unwrap_or_default()
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
    match error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidMessage(_)) => NoResponse::NotTls,
        Some(rustls::Error::InvalidCertificate(problem)) => NoResponse::Certificate(problem.clone()),
        _ => NoResponse::Tls(error),
    }
}

async fn send_over<S>(stream: S, request: UpstreamRequest) -> Result<FetchResponse, NoResponse>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(NoResponse::Http)?;
    let connection = tokio::spawn(connection);
    let result = async {
        let response = sender.send_request(built(request)).await.map_err(NoResponse::Http)?;
        let (head, body) = response.into_parts();
        let body = if portcullis_metadata::is_event_stream(&head.headers) {
            first_messages(body).await
        } else {
            whole(body).await
        };
        Ok(FetchResponse { status: head.status, headers: head.headers, body })
    }
    .await;
    connection.abort();
    result
}

fn built(UpstreamRequest { method, url, headers, body }: UpstreamRequest) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    // A URL's path and query are a valid target, and its host a valid header.
    if let Ok(target) = url[url::Position::BeforePath..url::Position::AfterQuery].parse() {
        *request.uri_mut() = target;
    }
    if let Ok(host) = HeaderValue::from_str(&url[url::Position::BeforeHost..url::Position::AfterPort]) {
        request.headers_mut().insert(header::HOST, host);
    }
    request.headers_mut().extend(headers);
    request
}

/// The body, as far as it arrives and fits.
async fn whole(mut body: Incoming) -> Bytes {
    let mut read = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > MAX_BODY {
            break;
        }
        read.extend_from_slice(&data);
    }
    read.into()
}

/// The first event that is a response, or the first event of another name, as an event stream of its own data.
async fn first_messages(mut body: Incoming) -> Bytes {
    let mut decoder = Decoder::new(MAX_BODY);
    let wait = REQUEST_TIMEOUT / 2;
    let mut kept = Bytes::new();
    while let Ok(Some(Ok(frame))) = timeout(wait, body.frame()).await {
        let Ok(data) = frame.into_data() else { continue };
        let Ok(events) = decoder.push(&data) else { break };
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
