//! [`StandardMembers`]: a proxy to Keycloak's introspection that keeps only the members of RFC 7662
//! in responses, so that only `token_type` has the type of a token, as with other authorization
//! servers.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use portcullis_discovery::{Fetch as _, FetchRequest, HttpFetch, UrlPolicy};
use serde_json::{Map, Value};
use tokio::{net::TcpListener, task::JoinHandle};

/// RFC 7662 section 2.2.
const STANDARD: &[&str] = &[
    "active",
    "scope",
    "client_id",
    "username",
    "token_type",
    "exp",
    "iat",
    "nbf",
    "sub",
    "aud",
    "iss",
    "jti",
];

/// The proxy, which ends when this is dropped.
pub(super) struct StandardMembers(JoinHandle<()>);

impl StandardMembers {
    /// Listens, and forwards requests to Keycloak.
    pub(super) async fn listen(address: SocketAddr, keycloak: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        let fetch = Arc::new(HttpFetch::new(Default::default())?);
        Ok(Self(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let fetch = Arc::clone(&fetch);
                let service =
                    service_fn(move |request| respond(Arc::clone(&fetch), keycloak, request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        })))
    }
}

impl Drop for StandardMembers {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns 502 if Keycloak cannot be reached.
async fn respond(
    fetch: Arc<HttpFetch>,
    keycloak: SocketAddr,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::default());
    match forward(&fetch, keycloak, request).await {
        Ok((status, members)) => {
            *response.status_mut() = status;
            response.headers_mut().insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            );
            *response.body_mut() = Full::from(Value::Object(members).to_string());
        }
        Err(_) => *response.status_mut() = StatusCode::BAD_GATEWAY,
    }
    Ok(response)
}

/// Forwards a request to Keycloak, and returns the status and the standard members of the response.
async fn forward(
    fetch: &HttpFetch,
    keycloak: SocketAddr,
    request: Request<Incoming>,
) -> anyhow::Result<(StatusCode, Map<String, Value>)> {
    let (head, body) = request.into_parts();
    let url = format!("http://{keycloak}{}", head.uri.path()).parse()?;
    let mut forwarded = FetchRequest::new(head.method, url, UrlPolicy::Operator);
    for name in [header::AUTHORIZATION, header::CONTENT_TYPE, header::ACCEPT] {
        if let Some(value) = head.headers.get(&name) {
            forwarded = forwarded.header(name, value.clone());
        }
    }
    forwarded.body = body.collect().await?.to_bytes();
    let response = fetch.fetch(forwarded).await?;
    let mut members: Map<String, Value> = serde_json::from_slice(&response.body)?;
    members.retain(|name, _| STANDARD.contains(&name.as_str()));
    Ok((response.status, members))
}
