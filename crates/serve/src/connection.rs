//! The connections of clients: listening, accepting and TLS, and here the serving of one
//! connection, from its first byte to its close.

pub(super) mod accept;
pub(super) mod activity;
mod bounded_frames;
pub(super) mod client_listener;
mod counted_response;
mod early_response;
mod lingering_close;
pub(super) mod listener;
pub(super) mod request_body;
mod signals;
pub(super) mod table;
pub(super) mod tls;

use std::{error::Error, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::Body;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    time::Instant,
};

use activity::{Activity, Inactivity, InactivityLimits};
use counted_response::CountedResponse;
use early_response::EarlyResponse;
use lingering_close::{LingeringClose, UnreadBytes};
use request_body::{BodyTimeouts, RequestBody};
use signals::{Signal, Signals};

/// Responds to the requests of a connection.
pub(super) trait Handler: Clone + Send + Sync + 'static {
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;
    type Future: Future<Output = Response<Self::Body>> + Send + 'static;

    fn handle(&self, request: Request<RequestBody<Incoming>>, peer: SocketAddr) -> Self::Future;
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionLimits {
    /// The maximum size of a request's head in bytes.
    pub(super) max_head: usize,
    /// The maximum number of header fields of an HTTP/1.1 request. On HTTP/2 the handler counts
    /// them.
    pub(super) max_headers: usize,
    /// The time limit for a request's head, counted from the end of the previous request.
    pub(super) idle: Duration,
    /// The time limits for a request's body, and for the client to read a part of a response.
    pub(super) body: BodyTimeouts,
    /// The maximum number of open HTTP/2 streams.
    pub(super) max_streams: u32,
    /// The number of HTTP/2 streams that the peer resets, and of errors that it causes, after which
    /// the connection is closed (CVE-2023-44487 and similar attacks).
    pub(super) max_resets: usize,
}

/// The number of response bytes that are buffered per HTTP/2 stream while the peer does not read.
const HTTP2_MAX_UNSENT: usize = 64 << 10;

/// hyper's default for `max_headers`, up to which it parses headers on the stack.
const HEADERS_ON_STACK: usize = 100;

/// The longest time that an idle or blocked connection takes to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long an idle HTTP/1.1 connection stays open at a shutdown. A request that is on its way is
/// still answered, and the response asks the client to close.
const LAST_REQUEST_TIMEOUT: Duration = Duration::from_millis(250);

/// How often a silent HTTP/2 peer is pinged.
const HTTP2_PING: Duration = Duration::from_secs(60);

/// Builds the HTTP protocol with its limits. Each worker does so once.
pub(super) fn protocol(limits: ConnectionLimits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // `serve` enforces the timeout of a head with one timer per connection, not one per request.
    // `pipeline_flush` stays off: it delays a response while bytes of the next head arrive, without
    // limit if the response refuses that head. Head and body leave in one plain write.
    builder
        .http1()
        .header_read_timeout(None)
        .max_buf_size(limits.max_head)
        .writev(false);
    if limits.max_headers != HEADERS_ON_STACK {
        builder.http1().max_headers(limits.max_headers);
    }
    // Resets sent by this side keep h2's limit of 1,024 per connection: late data after an early
    // rejection causes one, and a connection can have many rejections.
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.max_head).unwrap_or(u32::MAX))
        .max_concurrent_streams(limits.max_streams)
        .max_pending_accept_reset_streams(limits.max_resets)
        .max_send_buf_size(HTTP2_MAX_UNSENT)
        .keep_alive_interval(HTTP2_PING);
    builder
}

/// Serves a connection until either side closes it, it is idle or blocked for too long, or the
/// server shuts down and the last request has ended. At a shutdown, HTTP/2 clients receive GOAWAY,
/// and responses of HTTP/1.1 have `Connection: close`.
pub(super) async fn serve<S, H>(
    stream: S,
    peer: SocketAddr,
    protocol: &auto::Builder<TokioExecutor>,
    limits: ConnectionLimits,
    handler: H,
    activity: Arc<Activity>,
    draining: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
{
    let unread = UnreadBytes::default();
    let protocol_flags = unread.clone();
    let io = TokioIo::new(LingeringClose::new(stream, unread.clone()));

    let service = service_fn({
        let activity = Arc::clone(&activity);
        let last_requests = draining.clone();
        move |request: Request<Incoming>| {
            let Some(in_flight) = activity.begin() else {
                return CountedResponse::never();
            };
            let is_http1 = request.version() < Version::HTTP_2;
            let unread = if is_http1 {
                Some(unread.clone())
            } else {
                unread.ignore();
                None
            };
            let asks_to_close = is_http1 && *last_requests.borrow();
            let request = request.map(|body| RequestBody::new(body, unread.clone(), limits.body));
            let response = EarlyResponse::new(handler.handle(request, peer), unread);
            CountedResponse::new(response, in_flight, asks_to_close)
        }
    });

    let mut connection = pin!(protocol.serve_connection(io, service));
    let inactivity_limits = InactivityLimits {
        idle: limits.idle,
        blocked: limits.body.pause,
    };
    let mut signals = Signals::new(
        draining,
        Instant::now() + limits.idle.min(limits.body.pause),
    );
    let mut is_draining = false;
    let mut is_closing = false;
    loop {
        let signal = tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(error = %error, "connection ended");
                }
                return;
            }
            Some(signal) = signals.next() => signal,
        };
        match signal {
            Signal::Draining => {
                is_draining = true;
                if matches!(activity.inactivity(), Some(Inactivity::Idle(_)))
                    && !protocol_flags.is_multiplexed()
                {
                    signals = Signals::draining_until(Instant::now() + LAST_REQUEST_TIMEOUT);
                } else {
                    is_closing = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
            Signal::Timer => {
                if is_draining && !is_closing {
                    is_closing = true;
                    connection.as_mut().graceful_shutdown();
                }
                let next_check = match activity.next_check(inactivity_limits) {
                    Some(next_check) => next_check,
                    None if is_closing => return,
                    // Requests that the client has already started are still served.
                    None => {
                        is_closing = true;
                        connection.as_mut().graceful_shutdown();
                        Instant::now() + CLOSE_TIMEOUT
                    }
                };
                signals.set_timer(next_check);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use http_body_util::{BodyExt as _, Full};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
        sync::Semaphore,
    };

    use super::*;

    pub(super) const LIMITS: ConnectionLimits = ConnectionLimits {
        max_head: 32 << 10,
        max_headers: 100,
        idle: Duration::from_secs(30),
        body: BodyTimeouts {
            pause: Duration::from_secs(30),
            whole: Duration::from_secs(300),
        },
        max_streams: 100,
        max_resets: 20,
    };

    /// Responds to a request when a permit is available.
    #[derive(Clone)]
    struct Slow(Arc<Semaphore>);

    impl Handler for Slow {
        type Body = Full<Bytes>;
        type Future = Pin<Box<dyn Future<Output = Response<Full<Bytes>>> + Send>>;

        fn handle(&self, request: Request<RequestBody<Incoming>>, _: SocketAddr) -> Self::Future {
            let permits = Arc::clone(&self.0);
            Box::pin(async move {
                let _ = request.into_body().collect().await;
                permits.acquire().await.unwrap().forget();
                Response::new(Full::from("done"))
            })
        }
    }

    /// Responds with one mebibyte.
    #[derive(Clone)]
    struct Large;

    const MIB: usize = 1 << 20;

    impl Handler for Large {
        type Body = Full<Bytes>;
        type Future = std::future::Ready<Response<Full<Bytes>>>;

        fn handle(&self, _: Request<RequestBody<Incoming>>, _: SocketAddr) -> Self::Future {
            std::future::ready(Response::new(Full::from(vec![0; MIB])))
        }
    }

    struct Served {
        client: DuplexStream,
        permits: Arc<Semaphore>,
        shutdown: watch::Sender<bool>,
        task: tokio::task::JoinHandle<()>,
    }

    fn served() -> Served {
        let (client, server) = duplex(64 << 10);
        let permits = Arc::new(Semaphore::new(0));
        let (shutdown, watched) = watch::channel(false);
        let answer = Slow(Arc::clone(&permits));
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let task = tokio::spawn(async move {
            serve(
                server,
                peer,
                &protocol(LIMITS),
                LIMITS,
                answer,
                Activity::new(),
                watched,
            )
            .await
        });
        Served {
            client,
            permits,
            shutdown,
            task,
        }
    }

    /// Returns how long the connection lasts if the client sends these bytes and waits.
    async fn lifetime(sent: &[u8]) -> Duration {
        let mut served = served();
        served.client.write_all(sent).await.unwrap();
        let started = Instant::now();
        served.client.read_to_end(&mut Vec::new()).await.unwrap();
        started.elapsed()
    }

    /// F4: a connection that stays silent, or does not finish a head, is closed.
    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_closed() {
        for sent in [
            "",
            "P",
            "PRI * HTTP/2.0\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ",
        ] {
            let lasted = lifetime(sent.as_bytes()).await;
            assert!(lasted >= LIMITS.idle, "{sent:?}: {lasted:?}");
            assert!(
                lasted <= LIMITS.idle + CLOSE_TIMEOUT,
                "{sent:?}: {lasted:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_connection_stays_open_and_is_idle_after_its_response() {
        let Served {
            mut client,
            permits,
            shutdown: _kept,
            task: _,
        } = served();
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        tokio::time::sleep(LIMITS.idle * 10).await;
        permits.add_permits(1);
        let mut answer = vec![0; 4096];
        let length = client.read(&mut answer).await.unwrap();
        assert!(answer[..length].starts_with(b"HTTP/1.1 200 OK"));
        let answered = Instant::now();
        client.read_to_end(&mut Vec::new()).await.unwrap();
        assert!(
            answered.elapsed() >= LIMITS.idle,
            "{:?}",
            answered.elapsed()
        );
    }

    /// Returns the client's end of a connection with this number of requests for a mebibyte, and
    /// the task that serves it.
    async fn connection_with_requests(
        requests: usize,
    ) -> (DuplexStream, tokio::task::JoinHandle<()>) {
        let (mut client, server) = duplex(64 << 10);
        client
            .write_all(
                "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
                    .repeat(requests)
                    .as_bytes(),
            )
            .await
            .unwrap();
        let task = tokio::spawn(async move {
            let (_kept, watched) = watch::channel(false);
            let peer = SocketAddr::from(([127, 0, 0, 1], 1));
            serve(
                server,
                peer,
                &protocol(LIMITS),
                LIMITS,
                Large,
                Activity::new(),
                watched,
            )
            .await;
        });
        (client, task)
    }

    /// L9: a connection whose client does not read is closed.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_disconnected() {
        for requests in [1, 10] {
            let (started, (_client, task)) =
                (Instant::now(), connection_with_requests(requests).await);
            task.await.unwrap();
            let lasted = started.elapsed();
            // hyper may take one more piece into its buffer when the timer wakes it.
            assert!(lasted >= LIMITS.body.pause, "{lasted:?}");
            assert!(
                lasted <= LIMITS.body.pause * 2 + CLOSE_TIMEOUT * 2,
                "{lasted:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_gets_everything() {
        let (started, (mut client, _task)) = (Instant::now(), connection_with_requests(1).await);
        let mut piece = [0; 4 << 10];
        let mut received = 0;
        while received < MIB {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let length = client.read(&mut piece).await.unwrap();
            assert!(
                length > 0,
                "cut off after {received} bytes, {:?}",
                started.elapsed()
            );
            received += length;
        }
        assert!(
            started.elapsed() > LIMITS.body.pause * 5,
            "{:?}",
            started.elapsed()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_lets_the_request_end() {
        let Served {
            mut client,
            permits,
            shutdown,
            task,
        } = served();
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        shutdown.send(true).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!task.is_finished(), "the request is still in progress");
        permits.add_permits(1);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert!(
            answer.ends_with(b"done"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
        task.await.unwrap();
    }
}
