//! A bare reverse proxy on hyper, written as in hyper's guides. The difference to it is the cost of
//! Portcullis' own code.

use std::{convert::Infallible, net::SocketAddr, thread};

use anyhow::Context as _;
use http_body_util::{Either, Empty};
use hyper::{
    Request, Response, StatusCode, Uri,
    body::{Bytes, Incoming},
    http::uri::{Authority, Scheme},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use tokio::{net::TcpListener, sync::mpsc};

const WORKERS: usize = 2;

type Pool = Client<HttpConnector, Incoming>;

/// Serves until the process is killed. Prints its address first.
pub(super) fn run(upstream: SocketAddr) -> anyhow::Result<()> {
    let upstream: Authority = upstream.to_string().parse()?;
    let inboxes = (0..WORKERS)
        .map(|_| worker(upstream.clone()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("no free port")?;
        println!("{}", listener.local_addr()?);
        for turn in 0.. {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            inboxes[turn % WORKERS].send(stream.into_std()?).await?;
        }
        Ok(())
    })
}

/// Starts a thread that serves the connections it is sent.
fn worker(upstream: Authority) -> anyhow::Result<mpsc::Sender<std::net::TcpStream>> {
    let (inbox, mut accepted) = mpsc::channel(64);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    thread::spawn(move || {
        runtime.block_on(async {
            let mut connector = HttpConnector::new();
            connector.set_nodelay(true);
            let pool: Pool = Client::builder(TokioExecutor::new()).build(connector);
            while let Some(stream) = accepted.recv().await {
                let Ok(stream) = tokio::net::TcpStream::from_std(stream) else {
                    continue;
                };
                let pool = pool.clone();
                let upstream = upstream.clone();
                let service =
                    service_fn(move |request| forward(pool.clone(), upstream.clone(), request));
                let mut protocol = http1::Builder::new();
                // As in the server under test: head and body in one write, and no `pipeline_flush`,
                // which delays responses when bytes of the next head have arrived.
                tokio::spawn(
                    protocol
                        .writev(false)
                        .serve_connection(TokioIo::new(stream), service),
                );
            }
        });
    });
    Ok(inbox)
}

/// Forwards one request.
async fn forward(
    pool: Pool,
    upstream: Authority,
    mut request: Request<Incoming>,
) -> Result<Response<Either<Incoming, Empty<Bytes>>>, Infallible> {
    let mut target = std::mem::take(request.uri_mut()).into_parts();
    (target.scheme, target.authority) = (Some(Scheme::HTTP), Some(upstream));
    let response = match Uri::from_parts(target) {
        Ok(target) => {
            *request.uri_mut() = target;
            pool.request(request).await.ok()
        }
        Err(_) => None,
    };
    Ok(response
        .map(|response| response.map(Either::Left))
        .unwrap_or_else(|| {
            let mut response = Response::new(Either::Right(Empty::new()));
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }))
}
