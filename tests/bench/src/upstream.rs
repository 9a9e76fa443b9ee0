//! The upstream of all measurements: a hyper server that responds to every POST with the same 90
//! bytes and counts them. Like an MCP server, it opens a session for a POST without one.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::Context as _;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Method, Request, Response,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// 90 bytes of JSON-RPC.
const RESPONSE: &[u8] =
    br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"0123456789abcdefg"}]}}"#;

/// Serves until the process is killed. Prints its address first. The response to GET is the number
/// of POST requests.
pub(super) fn run() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("no free port")?;
        println!("{}", listener.local_addr()?);
        let hits = Arc::new(AtomicU64::new(0));
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let hits = Arc::clone(&hits);
            let service = service_fn(move |request| respond(request, Arc::clone(&hits)));
            tokio::spawn(
                http1::Builder::new()
                    .writev(false)
                    .serve_connection(TokioIo::new(stream), service),
            );
        }
    })
}

/// Responds to a POST as an MCP server does, and to a GET with the number of requests.
async fn respond(
    request: Request<Incoming>,
    hits: Arc<AtomicU64>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() == Method::GET {
        return Ok(Response::new(Full::from(
            hits.load(Ordering::Relaxed).to_string(),
        )));
    }
    let has_session = request.headers().contains_key(SESSION);
    // An incomplete body ends its connection, so there is no response.
    let _ = request.into_body().collect().await;
    hits.fetch_add(1, Ordering::Relaxed);
    let mut response = Response::new(Full::from(RESPONSE));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if !has_session {
        response.headers_mut().insert(
            SESSION,
            HeaderValue::from_static("0e3b5d5c-6a1f-4a0e-8d57-2f6c9b7e1a43"),
        );
    }
    Ok(response)
}
