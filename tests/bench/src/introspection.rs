//! An introspection endpoint that reports every token as active.

use std::convert::Infallible;

use anyhow::Context as _;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// Serves until the process is killed. Prints its address first. Every token has the same subject,
/// client and `audience`.
pub(super) fn run(audience: &str) -> anyhow::Result<()> {
    let response = format!(
        r#"{{"active":true,"sub":"5f0d3b1c-7a52-4d0e-9c58-6a1f0c5e2b47","client_id":"test-client","token_type":"Bearer","scope":"openid profile mcp:tools","aud":"{audience}","exp":4102444800}}"#
    );
    let response = Bytes::from(response);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("no free port")?;
        println!("{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let response = response.clone();
            let service = service_fn(move |request| respond(request, response.clone()));
            tokio::spawn(
                http1::Builder::new()
                    .writev(false)
                    .serve_connection(TokioIo::new(stream), service),
            );
        }
    })
}

async fn respond(
    request: Request<Incoming>,
    response: Bytes,
) -> Result<Response<Full<Bytes>>, Infallible> {
    // An incomplete body ends its connection, so there is no response.
    let _ = request.into_body().collect().await;
    let mut response = Response::new(Full::new(response));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
