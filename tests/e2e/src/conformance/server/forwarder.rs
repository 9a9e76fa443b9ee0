use std::{convert::Infallible, net::SocketAddr};

use anyhow::Context as _;
use bytes::Bytes;
use http::{
    HeaderValue, Request, Response, StatusCode, Uri, header::AUTHORIZATION, uri::Authority,
};
use http_body_util::{Either, Empty};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use tokio::{net::TcpListener, task::JoinHandle};

type ForwardedResponse = Response<Either<Incoming, Empty<Bytes>>>;

/// Adds a token to each request and forwards everything else unchanged, until it is dropped.
pub(super) struct Forwarder {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Forwarder {
    /// Starts a forwarder to this address.
    pub(super) async fn listen(to: SocketAddr, token: &str) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("no free port")?;
        let address = listener.local_addr()?;
        let to: Authority = to.to_string().parse()?;
        let bearer = HeaderValue::try_from(format!("Bearer {token}"))?;
        let client = Client::builder(TokioExecutor::new()).build_http();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let client = client.clone();
                let to = to.clone();
                let bearer = bearer.clone();
                let service = service_fn(move |request| {
                    forward(client.clone(), to.clone(), bearer.clone(), request)
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(Self { address, task })
    }

    /// Returns the URL for the suite.
    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Forwards a request with the token. Does not change `Host`, because a scenario tests it. Returns
/// 502 if there is no response.
async fn forward(
    client: Client<HttpConnector, Incoming>,
    to: Authority,
    bearer: HeaderValue,
    mut request: Request<Incoming>,
) -> Result<ForwardedResponse, Infallible> {
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str())
        .to_owned();
    let Ok(uri) = Uri::builder()
        .scheme("http")
        .authority(to)
        .path_and_query(path)
        .build()
    else {
        return Ok(bad_gateway());
    };
    *request.uri_mut() = uri;
    request.headers_mut().insert(AUTHORIZATION, bearer);
    Ok(client
        .request(request)
        .await
        .map_or_else(|_| bad_gateway(), |response| response.map(Either::Left)))
}

fn bad_gateway() -> ForwardedResponse {
    let mut response = Response::new(Either::Right(Empty::new()));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}
