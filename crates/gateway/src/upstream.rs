use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{HeaderValue, Method, Response};
use portcullis_endpoint::Admitted;
use portcullis_metadata::Clock;
use tokio::time::timeout;
use tower_service::Service;

use crate::{
    HttpUpstreamSettings, UpstreamBody, UpstreamSettingsError,
    address::Target,
    answer,
    connection_limit::ConnectionLimit,
    deadlines::{Deadlines, Waiting},
    failure::Failure,
    identity::Identity,
    link::{Head, Link, Outbound, SendError, Sending},
    pool::Pool,
    request::{Inbound, RequestRules},
    stream,
};

/// An HTTP/1.1 server behind the gateway, over TCP, TLS or a unix socket.
///
/// It keeps its own connections, which belong to the runtime that they were made on: make one instance for each
/// worker. Clones share the connections.
///
/// What goes over, and what comes back:
/// - `Authorization`, `Proxy-Authorization`, `DPoP`, hop-by-hop headers (RFC 9110 section 7.6.1), `Expect`, inbound
///   copies of the identity headers, headers that speak for the client (`Forwarded`, `X-Real-IP`, `Remote-User` and
///   those of other proxies, unless [`forward`](HttpUpstreamSettings::forward_headers) lists them), headers that name another
///   path or method (`X-Original-URL`, `X-HTTP-Method-Override` and theirs), and headers with other signs than hyphens in
///   their name (`Mcp-Param-*` apart) stay behind, and so do cookies unless allowed;
/// - the identity headers, `X-Request-Id`, `Via`, and (when set) `Forwarded` and `X-Forwarded-*` are added; a valid
///   W3C trace context is passed on. A POST is `application/json`, in this spelling, without a `Content-Encoding`;
/// - answers are streamed, never gathered. An upstream's 401 or 407 becomes 502, and no challenge of it is
///   passed on. A redirect becomes 502, and headers with addresses of the upstream (`Location`, `Content-Location`,
///   `Refresh`, `Alt-Svc`) stay behind;
/// - an upstream that cannot be reached, shows a wrong certificate or does not answer is a 502, one that is too slow a 504, with a generic
///   text and a [`RejectionCode`](portcullis_guard::RejectionCode) in the answer's extensions. One that has as many connections
///   as it may have is a 503 with `Retry-After`;
/// - a request is sent again only when not a byte of it was written, because the kept connection that it was meant
///   for had been closed.
#[derive(Clone)]
pub struct HttpUpstream(Arc<Shared>);

struct Shared {
    target: Target,
    rules: RequestRules,
    forward_cookies: bool,
    connect_timeout: Duration,
    deadlines: Deadlines,
    connection_limit: ConnectionLimit,
    pool: Arc<Pool>,
}

impl Service<Admitted> for HttpUpstream {
    type Response = Response<UpstreamBody>;
    type Error = Infallible;
    type Future = UpstreamFuture;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, admitted: Admitted) -> UpstreamFuture {
        let (parts, body, caller) = admitted.into_parts();
        self.answer(Inbound {
            method: parts.method,
            version: parts.version,
            query: parts.uri.query(),
            headers: parts.headers,
            body,
            identity: caller.principal().map(Identity::from),
            request_id: caller.request_id().to_header_value(),
            client_address: caller.client_address(),
        })
    }
}

impl HttpUpstream {
    /// An upstream without connections yet. `clock` tells how long connections have been unused.
    ///
    /// # Errors
    /// When the address is not usable, it is `https` and there are no certificates to judge it by, or a header may not
    /// carry identity.
    pub fn new(settings: HttpUpstreamSettings, clock: Arc<dyn Clock>) -> Result<Self, UpstreamSettingsError> {
        let HttpUpstreamSettings {
            address,
            trust,
            identity_headers,
            forward_headers,
            public_url,
            forward_cookies,
            connect_timeout,
            head_timeout,
            connection_limit,
            max_idle_connections,
            idle_timeout,
        } = settings;
        let pool = Arc::new(Pool::new(max_idle_connections, idle_timeout, clock));
        connection_limit.register(&pool);
        Ok(Self(Arc::new(Shared {
            target: Target::new(address, trust)?,
            rules: RequestRules::new(identity_headers, forward_headers, public_url.as_ref(), forward_cookies)?,
            forward_cookies,
            connect_timeout,
            deadlines: Deadlines::new(head_timeout),
            connection_limit,
            pool,
        })))
    }

    pub(crate) fn answer(&self, inbound: Inbound<'_>) -> UpstreamFuture {
        let (is_post, request_id) = (inbound.method == Method::POST, inbound.request_id.clone());
        let request = self.0.rules.apply(inbound, &self.0.target);
        let shared = Arc::clone(&self.0);
        let exchange = match shared.pool.take() {
            Some(link) => Exchange::Kept { sending: link.send(request) },
            None => Exchange::Other(Box::pin(Arc::clone(&shared).over_another(request))),
        };
        UpstreamFuture { shared, exchange, waiting: None, is_post, request_id }
    }
}

impl Shared {
    /// Sends a request over a kept connection that is still open, or over a new one.
    async fn over_another(self: Arc<Self>, mut request: Outbound) -> Answered {
        while let Some(kept) = self.pool.take() {
            match kept.send(request).await {
                Ok((head, link)) => return self.judge(head, link),
                Err(SendError::NotSent(unsent, _)) => request = unsent,
                Err(SendError::Broken(error)) => return Err(Failure::NoAnswer(error.into())),
            }
        }
        match self.connect().await?.send(request).await {
            Ok((head, link)) => self.judge(head, link),
            Err(SendError::NotSent(_, error) | SendError::Broken(error)) => Err(Failure::NoAnswer(error.into())),
        }
    }

    /// What the client gets of the upstream's answer.
    fn judge(&self, head: Head, link: Box<Link>) -> Answered {
        let Head { status, mut headers, .. } = head;
        let body = UpstreamBody::over(link, &self.pool);
        answer::check(status, &headers, &self.target)?;
        answer::clean(&mut headers, self.forward_cookies);
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }

    async fn connect(&self) -> Result<Box<Link>, Failure> {
        let permit = self.connection_limit.acquire().ok_or(Failure::TooManyConnections)?;
        let connecting = timeout(self.connect_timeout, stream::connect(&self.target.endpoint));
        let stream = connecting.await.map_err(|_| Failure::ConnectTimeout)??;
        Ok(Box::new(Link::new(stream, permit)))
    }
}

type Answered = Result<Response<UpstreamBody>, Failure>;

/// One request and its answer, from an [`HttpUpstream`].
pub struct UpstreamFuture {
    shared: Arc<Shared>,
    exchange: Exchange,
    /// Its place among the requests that wait for a head.
    waiting: Option<Waiting>,
    is_post: bool,
    request_id: HeaderValue,
}

enum Exchange {
    /// Over a connection that was kept: what nearly every request takes, and so not boxed.
    Kept {
        sending: Sending,
    },
    Other(Pin<Box<dyn Future<Output = Answered> + Send>>),
    /// It was answered or given up. Nothing holds a connection.
    Over,
}

impl Exchange {
    fn poll(&mut self, shared: &Arc<Shared>, cx: &mut Context<'_>) -> Poll<Answered> {
        if let Self::Kept { sending } = self {
            match ready!(Pin::new(sending).poll(cx)) {
                Ok((head, link)) => return Poll::Ready(shared.judge(head, link)),
                Err(SendError::Broken(error)) => return Poll::Ready(Err(Failure::NoAnswer(error.into()))),
                Err(SendError::NotSent(unsent, _)) => {
                    *self = Self::Other(Box::pin(Arc::clone(shared).over_another(unsent)));
                }
            }
        }
        match self {
            Self::Other(exchange) => exchange.as_mut().poll(cx),
            Self::Kept { .. } | Self::Over => Poll::Pending,
        }
    }
}

impl Future for UpstreamFuture {
    type Output = Result<Response<UpstreamBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        // Polled again after the end, which the contract of `Future` leaves open.
        if matches!(this.exchange, Exchange::Over) {
            return Poll::Pending;
        }
        let answered = match this.exchange.poll(&this.shared, cx) {
            Poll::Ready(answered) => answered,
            Poll::Pending => {
                ready!(this.shared.deadlines.poll_overdue(&mut this.waiting, cx));
                Err(Failure::HeadTimeout)
            }
        };
        this.exchange = Exchange::Over;
        this.shared.deadlines.remove(&mut this.waiting);
        Poll::Ready(Ok(answered.unwrap_or_else(|failure| refuse(&failure, this.is_post, &this.request_id))))
    }
}

impl Drop for UpstreamFuture {
    fn drop(&mut self) {
        self.shared.deadlines.remove(&mut self.waiting);
    }
}

fn refuse(failure: &Failure, is_post: bool, request_id: &HeaderValue) -> Response<UpstreamBody> {
    let cause = std::error::Error::source(failure).map(tracing::field::display);
    let request_id = request_id.to_str().unwrap_or_default();
    tracing::warn!(request.id = request_id, deny.code = failure.code(), cause, "{failure}");
    failure.response(is_post)
}

impl fmt::Debug for HttpUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpUpstream").field("host", &self.0.target.host).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
