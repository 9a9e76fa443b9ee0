//! [`Http2`]: an HTTP/2 client connection.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpStream, time::timeout};

use crate::{HttpResponse, TIMEOUT};

/// An HTTP/2 connection with prior knowledge. Clones share it.
#[derive(Clone)]
pub struct Http2 {
    sender: SendRequest<Full<Bytes>>,
}

impl Http2 {
    /// Connects, without Nagle's algorithm.
    ///
    /// # Panics
    /// Panics if the server does not accept.
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address)
            .await
            .expect("the server accepts");
        stream.set_nodelay(true).expect("a TCP option");
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .expect("the preface is sent");
        tokio::spawn(connection);
        Self { sender }
    }

    /// Returns a request with a loopback `:authority`.
    ///
    /// # Panics
    /// Panics if the target is not valid in a URI.
    pub fn request(method: &str, target: &str) -> http::request::Builder {
        http::Request::builder()
            .method(method)
            .uri(format!("http://127.0.0.1{target}"))
    }

    /// Returns a POST with the headers of an MCP client, without a token.
    pub fn post(target: &str) -> http::request::Builder {
        Self::request("POST", target)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
    }

    /// Sends a request and reads its response.
    ///
    /// # Errors
    /// Fails if the stream or the connection ends before the response is complete.
    ///
    /// # Panics
    /// Panics if the request is malformed or nothing arrives in time.
    pub async fn send(
        &mut self,
        request: http::request::Builder,
        body: impl Into<Bytes>,
    ) -> Result<HttpResponse, hyper::Error> {
        let request = request.body(Full::new(body.into())).expect("a request");
        timeout(TIMEOUT, async {
            self.sender.ready().await?;
            let (head, body) = self.sender.send_request(request).await?.into_parts();
            let text =
                |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
            let headers = head
                .headers
                .iter()
                .map(|(name, value)| (name.to_string(), text(value)))
                .collect();
            let body = body.collect().await?.to_bytes().to_vec();
            Ok(HttpResponse {
                status: head.status.as_u16(),
                headers,
                body,
            })
        })
        .await
        .expect("a response in time")
    }
}
