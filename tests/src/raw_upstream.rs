use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{sleep, timeout},
};

use crate::TIMEOUT;

/// An upstream that responds with arbitrary bytes.
pub struct RawUpstream {
    address: SocketAddr,
    open: Arc<AtomicUsize>,
    /// The number of requests so far.
    requests: watch::Sender<usize>,
}

/// A request to a scripted [`RawUpstream`].
pub struct RawRequest {
    /// The request line and the header lines.
    pub head: String,
    /// The body, by its announced length.
    pub body: String,
    /// The number of earlier requests on the connection.
    pub earlier: usize,
}

impl RawUpstream {
    /// Starts one on a free port that responds to every request with the same bytes and closes the
    /// connection.
    ///
    /// # Panics
    /// Panics if there is no free port.
    pub async fn start(response: impl Into<Vec<u8>>) -> Self {
        let response = response.into();
        Self::serve(move |mut stream, requests| {
            let response = response.clone();
            async move {
                if read_request(&mut stream, &mut Vec::new()).await.is_none() {
                    return;
                }
                requests.send_modify(|count| *count += 1);
                // The other side may have closed the connection.
                let _ = stream.write_all(&response).await;
                let _ = stream.shutdown().await;
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest).await;
            }
        })
        .await
    }

    /// Starts one on a free port that responds by a script and keeps its connections open. `None`
    /// sends no response.
    ///
    /// # Panics
    /// Panics if there is no free port.
    pub async fn scripted(
        script: impl Fn(&RawRequest) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        let script = Arc::new(script);
        Self::serve(move |mut stream, requests| {
            let script = Arc::clone(&script);
            async move {
                let mut received = Vec::new();
                for earlier in 0.. {
                    let Some((head, body)) = read_request(&mut stream, &mut received).await else {
                        return;
                    };
                    requests.send_modify(|count| *count += 1);
                    if let Some(response) = script(&RawRequest {
                        head,
                        body,
                        earlier,
                    }) && stream.write_all(&response).await.is_err()
                    {
                        return;
                    }
                }
            }
        })
        .await
    }

    /// Starts one that handles each connection with a function, and counts the open ones. The
    /// function counts the requests.
    async fn serve<F>(
        handle: impl Fn(TcpStream, watch::Sender<usize>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let open = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&open);
        let requests = watch::Sender::new(0);
        let counted_requests = requests.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let open = Arc::clone(&counted);
                let handled = handle(stream, counted_requests.clone());
                open.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    handled.await;
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self {
            address,
            open,
            requests,
        }
    }

    /// Returns the URL of the endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/backend", self.address)
    }

    /// Returns the value of `upstream` in a configuration.
    pub fn setting(&self) -> String {
        format!("{{ http = \"{}\" }}", self.url())
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Returns the number of requests so far.
    pub fn count(&self) -> usize {
        *self.requests.borrow()
    }

    /// Waits until this number of requests has arrived.
    ///
    /// # Panics
    /// Panics if they do not arrive in time.
    pub async fn wait_for_requests(&self, wanted: usize) {
        let mut count = self.requests.subscribe();
        timeout(TIMEOUT, count.wait_for(|count| *count >= wanted))
            .await
            .expect("in time")
            .expect("it counts");
    }

    /// Waits until this number of connections is open.
    ///
    /// # Panics
    /// Panics if that does not happen in time.
    pub async fn wait_for_open(&self, wanted: usize) {
        let reached = timeout(TIMEOUT, async {
            while self.open() != wanted {
                sleep(Duration::from_millis(10)).await;
            }
        });
        assert!(
            reached.await.is_ok(),
            "{} connections are open, not {wanted}",
            self.open()
        );
    }
}

/// Reads the head and the body of the next request. Returns `None` at the end of the connection.
async fn read_request(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<(String, String)> {
    loop {
        if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).into_owned();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let whole = end + 4 + length.map_or(0, |length| length.parse().expect("a length"));
            if received.len() >= whole {
                let body = String::from_utf8_lossy(&received[end + 4..whole]).into_owned();
                received.drain(..whole);
                return Some((head, body));
            }
        }
        if !matches!(stream.read_buf(received).await, Ok(count) if count > 0) {
            return None;
        }
    }
}
