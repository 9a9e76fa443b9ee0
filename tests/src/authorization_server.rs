//! [`AuthorizationServer`]: serves the keys of a test issuer over a socket.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use portcullis_jose::Algorithm;
use portcullis_metadata::SystemClock;
use portcullis_testkit::TestIssuer;
use tokio::net::TcpSocket;

/// An authorization server that publishes the metadata and keys of an issuer over a socket. It
/// refuses connections until it is opened.
pub struct AuthorizationServer {
    test_issuer: Arc<TestIssuer>,
    socket: Option<TcpSocket>,
    hits: Arc<AtomicUsize>,
}

impl AuthorizationServer {
    /// Binds a free port without listening.
    ///
    /// # Panics
    /// Panics if there is no free port.
    pub fn closed(resource: &str) -> Self {
        Self::with_algorithm(resource, Algorithm::Rs256)
    }

    /// Starts an open server.
    pub fn start(resource: &str) -> Self {
        let mut server = Self::closed(resource);
        server.open();
        server
    }

    /// Starts an open server that signs with ES256, whose keys are generated quickly.
    pub fn start_with_es256(resource: &str) -> Self {
        let mut server = Self::with_algorithm(resource, Algorithm::Es256);
        server.open();
        server
    }

    /// Starts to accept connections.
    ///
    /// # Panics
    /// Panics if it is already open.
    pub fn open(&mut self) {
        let listener = self
            .socket
            .take()
            .expect("it is closed")
            .listen(64)
            .expect("it can listen");
        let test_issuer = Arc::clone(&self.test_issuer);
        let hits = Arc::clone(&self.hits);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let test_issuer = Arc::clone(&test_issuer);
                let hits = Arc::clone(&hits);
                let service = service_fn(move |request: Request<Incoming>| {
                    let response = response(&test_issuer, &hits, request.uri().path());
                    async move { Ok::<_, Infallible>(response) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
    }

    /// Returns the issuer.
    pub fn test_issuer(&self) -> &TestIssuer {
        &self.test_issuer
    }

    /// Returns the number of requests for the keys.
    pub fn key_requests(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }

    /// Binds a free port without listening, for an issuer that signs with this algorithm.
    fn with_algorithm(resource: &str, algorithm: Algorithm) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket
            .bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .expect("a free port");
        let address = socket.local_addr().expect("an address");
        let test_issuer = TestIssuer::new(&format!("http://{address}"))
            .with_resource(resource)
            .with_clock(SystemClock::new());
        let test_issuer = test_issuer.with_algorithm(algorithm);
        Self {
            test_issuer: Arc::new(test_issuer),
            socket: Some(socket),
            hits: Arc::default(),
        }
    }
}

/// Returns the metadata, the keys, or 404.
fn response(test_issuer: &TestIssuer, hits: &AtomicUsize, path: &str) -> Response<Full<Bytes>> {
    let body = if path == test_issuer.metadata_url().path() {
        test_issuer.metadata_json()
    } else if path == test_issuer.endpoint("jwks").path() {
        hits.fetch_add(1, Ordering::SeqCst);
        test_issuer.jwks_json()
    } else {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    };
    let mut response = Response::new(Full::from(body));
    response.headers_mut().insert(
        CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    response
}
