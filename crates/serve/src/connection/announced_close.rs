//! `Connection: close` for the response to a request whose body was not read to its end.
//!
//! hyper closes a connection on which the rest of a body has not arrived. It announces the close only
//! if the body was dropped before the response was ready. Otherwise the client uses the connection
//! again, and its next request gets no response.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{HeaderValue, Response, header::CONNECTION};
use pin_project_lite::pin_project;

use super::lingering_close::UnreadBytes;

pin_project! {
    /// A response future that announces the close of its connection if it drops the body of its
    /// request.
    pub(super) struct AnnouncedClose<F> {
        // `None` after completion.
        #[pin]
        response: Option<F>,
        // `None` if hyper announces the close, and on HTTP/2.
        unread: Option<UnreadBytes>,
    }
}

impl<F> AnnouncedClose<F> {
    /// `unread` is that of the request from which the future was made, and is `None` on HTTP/2.
    pub(super) fn new(response: F, unread: Option<UnreadBytes>) -> Self {
        Self {
            response: Some(response),
            unread: unread.filter(|unread| !unread.is_abandoned()),
        }
    }
}

impl<F, B> Future for AnnouncedClose<F>
where
    F: Future<Output = Response<B>>,
{
    type Output = Response<B>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<B>> {
        let mut this = self.project();
        let Some(response) = this.response.as_mut().as_pin_mut() else {
            return Poll::Pending;
        };
        let mut response = ready!(response.poll(cx));
        // What the future still has of the request ends here.
        this.response.set(None);
        if this.unread.as_ref().is_some_and(UnreadBytes::is_abandoned) {
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Poll::Ready(response)
    }
}

#[cfg(test)]
mod tests {
    use std::{net::SocketAddr, time::Duration};

    use bytes::Bytes;
    use http::Request;
    use http_body_util::{BodyExt as _, Full};
    use hyper::body::Incoming;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
        sync::watch,
    };

    use super::*;
    use crate::connection::{
        ConnectionLimits, Handler,
        activity::Activity,
        protocol,
        request_body::{BodyTimeouts, RequestBody},
        serve,
    };

    const LIMITS: ConnectionLimits = ConnectionLimits {
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

    /// When a request is answered.
    #[derive(Clone, Copy, Debug)]
    enum Answer {
        AtOnce,
        Later,
        AfterBody,
    }

    impl Handler for Answer {
        type Body = Full<Bytes>;
        type Future = Pin<Box<dyn Future<Output = Response<Full<Bytes>>> + Send>>;

        fn handle(&self, request: Request<RequestBody<Incoming>>, _: SocketAddr) -> Self::Future {
            let body = match self {
                Self::AtOnce => None,
                Self::Later | Self::AfterBody => Some(request.into_body()),
            };
            let answer = *self;
            Box::pin(async move {
                if let Answer::Later = answer {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                if let (Answer::AfterBody, Some(body)) = (answer, body) {
                    let _ = body.collect().await;
                }
                Response::new(Full::from("done"))
            })
        }
    }

    /// Sends a head, and its body when the response arrives, or before it. Returns the response and
    /// the connection.
    async fn exchange(answer: Answer, waits_for_response: bool) -> (String, DuplexStream) {
        let (mut client, server) = duplex(64 << 10);
        tokio::spawn(async move {
            let (_kept, watched) = watch::channel(false);
            let peer = SocketAddr::from(([127, 0, 0, 1], 1));
            serve(
                server,
                peer,
                &protocol(LIMITS),
                LIMITS,
                answer,
                Activity::new(),
                watched,
            )
            .await;
        });
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n";
        client.write_all(head).await.unwrap();
        if !waits_for_response {
            client.write_all(b"body").await.unwrap();
        }
        let mut response = vec![0; 4096];
        let length = client.read(&mut response).await.unwrap();
        let response = String::from_utf8_lossy(&response[..length]).into_owned();
        (response, client)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_still_sending_learns_of_the_close() {
        for answer in [Answer::AtOnce, Answer::Later] {
            let (response, mut client) = exchange(answer, true).await;
            assert!(
                response.contains("connection: close"),
                "{answer:?}: {response}"
            );
            client.write_all(b"body").await.unwrap();
            let mut rest = Vec::new();
            client.read_to_end(&mut rest).await.unwrap();
            assert!(rest.is_empty(), "{answer:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_was_read_keeps_the_connection() {
        let (response, mut client) = exchange(Answer::AfterBody, false).await;
        assert!(!response.contains("connection: close"), "{response}");
        client
            .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
            .await
            .unwrap();
        let mut next = [0; 15];
        client.read_exact(&mut next).await.unwrap();
        assert_eq!(&next, b"HTTP/1.1 200 OK");
    }
}
