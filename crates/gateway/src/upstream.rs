use std::{
    convert::Infallible,
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Method, Response};
use hyper::body::Incoming;
use portcullis_endpoint::Admitted;
use portcullis_guard::Peer;
use portcullis_metadata::Clock;
use tokio::time::timeout;
use tower_service::Service;

use crate::{
    HttpUpstreamSettings, SettingsError, UpstreamBody,
    address::Target,
    answer,
    failure::Failure,
    identity::Identity,
    link::{Link, Outbound, SendError},
    pool::Pool,
    request::{Inbound, RequestRules},
    stream,
};

/// An HTTP/1.1 server behind the gateway, over TCP or a unix socket.
///
/// It keeps its own connections, which belong to the runtime that they were made on: make one instance for each
/// worker. Clones share the connections.
///
/// What goes over, and what comes back:
/// - `Authorization`, `Proxy-Authorization`, `DPoP`, hop-by-hop headers (RFC 9110 section 7.6.1), `Expect`, inbound
///   copies of the identity headers and of `Forwarded` and its kin, headers that name another path or method
///   (`X-Original-URL`, `X-HTTP-Method-Override` and theirs), and headers with other signs than hyphens in their name
///   (`Mcp-Param-*` apart) stay behind, and so do cookies unless allowed;
/// - the identity headers, `X-Request-Id`, `Via`, and (when set) `Forwarded` and `X-Forwarded-*` are added; a valid
///   W3C trace context is passed on;
/// - answers are streamed, never gathered. An upstream's 401 or 407 becomes 502, and no challenge of it is
///   passed on;
/// - an upstream that cannot be reached or does not answer is a 502, one that is too slow a 504, with a generic
///   text and a [`RefusalCode`](portcullis_guard::RefusalCode) in the answer's extensions;
/// - a request is sent again only when not a byte of it was written, because the kept connection that it was meant
///   for had been closed.
#[derive(Clone)]
pub struct HttpUpstream(Arc<Shared>);

struct Shared {
    target: Target,
    rules: RequestRules,
    cookies: bool,
    connect_timeout: Duration,
    head_timeout: Option<Duration>,
    pool: Arc<Pool>,
}

type AnswerFuture = Pin<Box<dyn Future<Output = Result<Response<UpstreamBody>, Infallible>> + Send>>;

impl Service<Admitted> for HttpUpstream {
    type Response = Response<UpstreamBody>;
    type Error = Infallible;
    type Future = AnswerFuture;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, admitted: Admitted) -> AnswerFuture {
        let (parts, body, caller) = admitted.into_parts();
        self.answer(Inbound {
            method: parts.method,
            version: parts.version,
            query: parts.uri.query(),
            headers: parts.headers,
            body,
            identity: caller.principal().map(Identity::from),
            request_id: caller.request_id().to_header_value(),
            peer: parts.extensions.get().map(|Peer(address)| address.ip()),
        })
    }
}

impl HttpUpstream {
    /// An upstream without connections yet. `clock` tells how long connections have been unused.
    ///
    /// # Errors
    /// When the address is not usable (`https` is not supported yet), or a header may not carry identity.
    pub fn new(settings: HttpUpstreamSettings, clock: Arc<dyn Clock>) -> Result<Self, SettingsError> {
        let HttpUpstreamSettings {
            address,
            identity,
            public_url,
            cookies,
            connect_timeout,
            head_timeout,
            max_idle,
            max_idle_age,
        } = settings;
        Ok(Self(Arc::new(Shared {
            target: Target::new(address)?,
            rules: RequestRules::new(identity, public_url.as_ref(), cookies)?,
            cookies,
            connect_timeout,
            head_timeout,
            pool: Arc::new(Pool::new(max_idle, max_idle_age, clock)),
        })))
    }

    pub(crate) fn answer(&self, inbound: Inbound<'_>) -> AnswerFuture {
        let (method, request_id) = (inbound.method.clone(), inbound.request_id.clone());
        let request = self.0.rules.apply(inbound, &self.0.target);
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            Ok(shared.exchange(request).await.unwrap_or_else(|failure| refuse(&failure, &method, &request_id)))
        })
    }
}

impl Shared {
    async fn exchange(&self, request: Outbound) -> Result<Response<UpstreamBody>, Failure> {
        let answered = self.send(request);
        let (response, link) = match self.head_timeout {
            Some(limit) => timeout(limit, answered).await.map_err(|_| Failure::HeadTimeout)??,
            None => answered.await?,
        };
        let (mut parts, incoming) = response.into_parts();
        let body = UpstreamBody::streamed(incoming, link, Arc::clone(&self.pool));
        answer::judge(parts.status)?;
        answer::clean(&mut parts.headers, self.cookies);
        let mut response = Response::new(body);
        *response.status_mut() = parts.status;
        *response.headers_mut() = parts.headers;
        Ok(response)
    }

    /// Sends the request over a kept connection, or over a new one when there is none that takes it.
    async fn send(&self, mut request: Outbound) -> Result<(Response<Incoming>, Box<Link>), Failure> {
        while let Some(mut link) = poll_fn(|cx| Poll::Ready(self.pool.take(cx))).await {
            match link.send(request).await {
                Ok(response) => return Ok((response, link)),
                Err(SendError::NotSent(unsent, _)) => request = *unsent,
                Err(SendError::Broken(error)) => return Err(Failure::NoAnswer(error.into())),
            }
        }
        let mut link = self.connect().await?;
        match link.send(request).await {
            Ok(response) => Ok((response, link)),
            Err(SendError::NotSent(_, error) | SendError::Broken(error)) => Err(Failure::NoAnswer(error.into())),
        }
    }

    async fn connect(&self) -> Result<Box<Link>, Failure> {
        let connecting = timeout(self.connect_timeout, stream::connect(&self.target.endpoint));
        let stream = connecting.await.map_err(|_| Failure::ConnectTimeout)?.map_err(Failure::Unreachable)?;
        Link::new(stream).await.map(Box::new).map_err(|error| Failure::NoAnswer(error.into()))
    }
}

fn refuse(failure: &Failure, method: &Method, request_id: &HeaderValue) -> Response<UpstreamBody> {
    let cause = std::error::Error::source(failure).map(tracing::field::display);
    let request_id = request_id.to_str().unwrap_or_default();
    tracing::warn!(request.id = request_id, deny.code = failure.code(), cause, "{failure}");
    failure.response(method)
}

impl fmt::Debug for HttpUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpUpstream").field("host", &self.0.target.host).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
