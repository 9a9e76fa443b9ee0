//! [`RedirectListener`]: receives the redirect of the user's browser for a client that has no
//! listener.

use std::convert::Infallible;

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpListener,
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    task::JoinHandle,
};
use url::Url;

use crate::pages;

const PAGE: &str = "<!DOCTYPE html><title>Signed in</title><h1>Signed in</h1>";

/// A server at the redirect URI of an authorization request. It ends when this is dropped.
pub(super) struct RedirectListener {
    redirect_uri: Url,
    received: UnboundedReceiver<Uri>,
    task: JoinHandle<()>,
}

impl RedirectListener {
    /// Listens at the redirect URI of an authorization request.
    pub(super) async fn listen(authorization: &Url) -> anyhow::Result<Self> {
        let redirect_uri = pages::parameters(authorization).remove("redirect_uri");
        let redirect_uri = redirect_uri.context("the request has no redirect_uri")?;
        let redirect_uri = Url::parse(&redirect_uri)?;
        let addresses = redirect_uri.socket_addrs(|| None)?;
        let listener = TcpListener::bind(&*addresses)
            .await
            .with_context(|| format!("cannot listen at {redirect_uri}"))?;
        let (sender, received) = unbounded_channel();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let sender = sender.clone();
                let service = service_fn(move |request: Request<Incoming>| {
                    // The receiver is gone after the first redirect.
                    sender.send(request.uri().clone()).ok();
                    async { Ok::<_, Infallible>(page()) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(Self {
            redirect_uri,
            received,
            task,
        })
    }

    /// Waits for the redirect, and returns its URL.
    pub(super) async fn redirect(&mut self) -> anyhow::Result<Url> {
        loop {
            let uri = self.received.recv().await.context("the listener ended")?;
            // Browsers request an icon, too.
            if uri.path() == self.redirect_uri.path() {
                return Ok(self.redirect_uri.join(&uri.to_string())?);
            }
        }
    }
}

impl Drop for RedirectListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn page() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(PAGE));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    response
}
