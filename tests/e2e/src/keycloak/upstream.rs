//! [`Upstream`]: an MCP server behind Portcullis that records its requests.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{net::TcpListener, task::JoinHandle};

const RESPONSE_BODY: &[u8] = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

/// The server, which ends when this is dropped.
pub(super) struct Upstream {
    received: Arc<Mutex<Vec<Received>>>,
    task: JoinHandle<()>,
}

/// One request.
pub(super) struct Received {
    pub(super) headers: HeaderMap,
    /// The head and the body.
    pub(super) all: String,
}

impl Upstream {
    /// Listens, and records the requests.
    pub(super) async fn listen(address: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let kept = Arc::clone(&received);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let kept = Arc::clone(&kept);
                let service = service_fn(move |request| respond(request, Arc::clone(&kept)));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(Self { received, task })
    }

    /// Returns the requests since the last call.
    pub(super) fn take(&self) -> Vec<Received> {
        std::mem::take(&mut self.received.lock())
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Records a request, and responds as an MCP server.
async fn respond(
    request: Request<Incoming>,
    kept: Arc<Mutex<Vec<Received>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    // An incomplete body ends its connection.
    let body = body
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let all = format!(
        "{} {:?} {}",
        head.uri,
        head.headers,
        String::from_utf8_lossy(&body)
    );
    kept.lock().push(Received {
        headers: head.headers,
        all,
    });
    let mut response = Response::new(Full::from(RESPONSE_BODY));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    Ok(response)
}
