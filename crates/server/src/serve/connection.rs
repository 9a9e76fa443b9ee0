//! One connection, from its first byte to its close.

use std::{convert::Infallible, error::Error, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::Body;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    net::TcpStream,
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{
    activity::{Activity, Counted},
    linger::{Linger, Unread},
    request_body::RequestBody,
};

/// What answers the requests of a connection.
pub(super) trait Answer: Clone + Send + Sync + 'static {
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;

    fn answer(
        &self,
        request: Request<RequestBody<Incoming>>,
        peer: SocketAddr,
    ) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// The bounds of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionLimits {
    /// Bytes of a request's head.
    pub(super) max_head: usize,
    /// Time for a request's head to arrive, counted from the end of the one before.
    pub(super) idle: Duration,
    /// HTTP/2 streams open at once.
    pub(super) max_streams: u32,
}

/// HTTP/2 streams that the peer opened and reset, and errors that it caused, before the connection is closed
/// (CVE-2023-44487 and its kin).
const MAX_RESETS: usize = 20;

/// How often a silent HTTP/2 peer is asked whether it is still there.
const HTTP2_PING: Duration = Duration::from_secs(60);

/// The HTTP protocol with its bounds, made once a worker.
pub(super) fn protocol(limits: ConnectionLimits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // The time for a head is watched here, by one timer a connection in place of one a request.
    builder.http1().header_read_timeout(None).max_buf_size(limits.max_head).pipeline_flush(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.max_head).unwrap_or(u32::MAX))
        .max_concurrent_streams(limits.max_streams)
        .max_pending_accept_reset_streams(MAX_RESETS)
        .max_local_error_reset_streams(MAX_RESETS)
        .keep_alive_interval(HTTP2_PING);
    builder
}

/// Serves a connection until either side closes it, it is idle for too long, or a shutdown lets its last request end.
pub(super) async fn serve<A: Answer>(
    stream: TcpStream,
    peer: SocketAddr,
    protocol: &auto::Builder<TokioExecutor>,
    limits: ConnectionLimits,
    answer: A,
    mut shutdown: watch::Receiver<bool>,
) {
    let activity = Activity::new();
    let unread = Unread::default();
    let io = TokioIo::new(Linger::new(stream, unread.clone()));

    let service = service_fn({
        let activity = Arc::clone(&activity);
        move |request: Request<Incoming>| {
            let in_flight = activity.begin();
            let unread = (request.version() < Version::HTTP_2).then(|| unread.clone());
            let answer = answer.clone();
            async move {
                let request = request.map(|body| RequestBody::new(body, unread));
                let response = answer.answer(request, peer).await;
                Ok::<_, Infallible>(response.map(|body| Counted::new(body, in_flight)))
            }
        }
    });

    let mut connection = pin!(protocol.serve_connection(io, service));
    let mut idle = pin!(sleep_until(Instant::now() + limits.idle));
    let mut closing = false;
    loop {
        tokio::select! {
            biased;
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(error = %error, "connection ended");
                }
                return;
            }
            _ = shutdown.wait_for(|shutdown| *shutdown), if !closing => {
                closing = true;
                connection.as_mut().graceful_shutdown();
            }
            () = idle.as_mut() => match activity.idle_deadline(limits.idle) {
                Some(deadline) => idle.as_mut().reset(deadline),
                None => return,
            },
        }
    }
}
