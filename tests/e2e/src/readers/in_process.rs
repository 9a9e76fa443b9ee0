//! [`InProcess`]: a reader in this process, with hyper and `serde_json`.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use anyhow::Context as _;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};

use super::{
    line::{Line, Lines},
    names::names_of,
};

/// A server, which ends when this is dropped.
pub(super) struct InProcess {
    pub(super) address: SocketAddr,
    pub(super) lines: Lines,
    task: JoinHandle<()>,
}

impl InProcess {
    /// Starts the reader on a free port.
    pub(super) async fn listen() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("no free port")?;
        let address = listener.local_addr()?;
        let lines = Lines::default();
        let kept = Arc::clone(&lines);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let kept = Arc::clone(&kept);
                let service = service_fn(move |request| respond(request, Arc::clone(&kept)));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(Self {
            address,
            lines,
            task,
        })
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reports the messages of a request, and responds with an empty result.
async fn respond(
    request: Request<Incoming>,
    lines: Lines,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    // An incomplete body is not a message.
    let body = body
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let request = head
        .headers
        .get("x-request-id")
        .and_then(|id| id.to_str().ok())
        .unwrap_or_default();
    if let Ok(message) = serde_json::from_slice::<Value>(&body) {
        let messages = message
            .as_array()
            .map_or(std::slice::from_ref(&message), Vec::as_slice);
        lines
            .lock()
            .extend(messages.iter().filter_map(|it| line(request, it)));
    }
    let mut response = Response::new(Full::from(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
    response.headers_mut().insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    Ok(response)
}

/// Returns the report about a message, or `None` if it has no method.
fn line(request: &str, message: &Value) -> Option<Line> {
    let method = message["method"].as_str()?;
    let names = names_of(method, &message["params"]);
    Some(Line {
        request: request.to_owned(),
        method: method.to_owned(),
        names,
    })
}
