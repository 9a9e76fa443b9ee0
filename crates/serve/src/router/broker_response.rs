//! Responses of the broker.

use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{CONTENT_LENGTH, RETRY_AFTER},
    request::Parts,
};
use http_body::Body;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use portcullis_broker::Broker;
use portcullis_guard::RequestId;
use portcullis_telemetry::{Details, Line};
use tokio::time::timeout;

use super::local_response::{Answer, REFUSED, Refusal};
use crate::{broker::process::BrokerProcess, state::ServerState};

/// The longest time until a body has arrived.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// When a client may try again while the broker answers too many requests, in seconds.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// What a response needs.
pub(crate) struct BrokerCall {
    state: Arc<ServerState>,
    broker: Arc<Broker>,
    process: BrokerProcess,
    /// The address of the client.
    address: IpAddr,
    started: Instant,
}

impl BrokerCall {
    /// Returns what the response to a request with this path needs. `None` if the broker does not
    /// answer it.
    pub(crate) fn new<B>(
        state: &Arc<ServerState>,
        request: &Request<B>,
        peer: SocketAddr,
    ) -> Option<Self> {
        let broker = state.broker()?;
        if !broker.answers(request.uri().path()) {
            return None;
        }
        state.forwarded_headers().examine(peer, request);
        Some(Self {
            broker: Arc::clone(broker),
            process: state.process().broker.clone()?,
            address: state.forwarded_headers().client(peer, request.headers()),
            state: Arc::clone(state),
            started: Instant::now(),
        })
    }

    /// Returns whether the answer depends on records, which other replicas may have changed.
    pub(crate) fn needs_records<B>(&self, request: &Request<B>) -> bool {
        !self.broker.is_document(request.uri().path())
    }

    /// Returns the address of the client.
    #[cfg(test)]
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// Answers a request. It is answered to its end although the client disconnects after it has
    /// sent it.
    pub(crate) async fn respond<B>(self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send,
    {
        let (head, body) = request.into_parts();
        let (mut response, code) = match self.admit(&head, body).await {
            Ok(response) => {
                let is_limited = response.status() == StatusCode::TOO_MANY_REQUESTS;
                let code = is_limited.then(|| Refusal::BrokerLimited.code());
                (response, code)
            }
            Err(answer) => (answer.response(), answer.code),
        };
        let request_id = RequestId::generate();
        let headers = response.headers_mut();
        headers.insert(RequestId::HEADER, request_id.to_header_value());
        if code == Some(Refusal::BrokerBusy.code()) {
            headers.insert(RETRY_AFTER, RETRY_SECONDS);
        }
        self.log(&head, &request_id, response.status(), code);
        response.map(Full::from)
    }

    /// Checks the request, receives its body, and lets the broker answer it.
    async fn admit<B>(&self, head: &Parts, body: B) -> Result<Response<Bytes>, Answer>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send,
    {
        // The broker decides about origins at each endpoint.
        self.state
            .origins()
            .check_host(head.version, &head.uri, &head.headers)
            .map_err(|rejection| Answer::rejected(rejection.status(), rejection.code(), REFUSED))?;
        let body = self.receive(body).await.map_err(refused)?;
        let mut request = Request::new(body);
        *request.method_mut() = head.method.clone();
        *request.uri_mut() = head.uri.clone();
        request.headers_mut().clone_from(&head.headers);
        let mut response = self.call(request).await.map_err(refused)?;
        if head.method == Method::HEAD {
            let length = HeaderValue::from(response.body().len());
            response.headers_mut().insert(CONTENT_LENGTH, length);
            response.body_mut().clear();
        }
        Ok(response)
    }

    async fn receive<B>(&self, body: B) -> Result<Bytes, Refusal>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send,
    {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        let _permit = self
            .process
            .bodies
            .try_acquire()
            .map_err(|_| Refusal::BrokerBusy)?;
        let body = Limited::new(body, Broker::MAX_BODY);
        match timeout(BODY_TIMEOUT, body.collect()).await {
            Err(_) => Err(Refusal::BrokerBodyTimeout),
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) => Err(body_error(&*error)),
        }
    }

    /// Lets the broker answer on the control runtime: what a request began does not end with the
    /// connection of the client.
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Refusal> {
        let permit = Arc::clone(&self.process.requests)
            .try_acquire_owned()
            .map_err(|_| Refusal::BrokerBusy)?;
        let (broker, address) = (Arc::clone(&self.broker), self.address);
        let answering = self.process.control.spawn(async move {
            let response = broker.handle(request, address).await;
            drop(permit);
            response
        });
        answering.await.map_err(|_| Refusal::BrokerFailed)
    }

    fn log(
        &self,
        head: &Parts,
        request_id: &RequestId,
        status: StatusCode,
        code: Option<&'static str>,
    ) {
        self.state.access().write(&Line {
            request_id: request_id.as_str(),
            time: self.state.clock().now(),
            method: &head.method,
            path: head.uri.path(),
            status,
            code,
            principal: None,
            latency: self.started.elapsed(),
            details: Details {
                client_address: Some(self.address),
                ..Details::default()
            },
        });
    }
}

fn body_error(error: &(dyn Error + Send + Sync + 'static)) -> Refusal {
    let is_timeout = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
    if error.is::<LengthLimitError>() {
        Refusal::BrokerBodyTooLarge
    } else if error.downcast_ref().is_some_and(is_timeout) {
        Refusal::BrokerBodyTimeout
    } else {
        Refusal::BrokerBodyIncomplete
    }
}

fn refused(refusal: Refusal) -> Answer {
    let (status, body) = match refusal {
        Refusal::BrokerBusy => (StatusCode::SERVICE_UNAVAILABLE, "try again later\n"),
        Refusal::BrokerBodyTooLarge => (
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body is longer than 32 KiB\n",
        ),
        Refusal::BrokerBodyTimeout => (
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive in time\n",
        ),
        Refusal::BrokerBodyIncomplete => (StatusCode::BAD_REQUEST, "the body is incomplete\n"),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "server error\n"),
    };
    Answer::rejected(status, refusal.code(), body)
}
