//! Responses to requests whose body was not read to its end.
//!
//! After such a response, hyper keeps the connection if the rest of the body has arrived, and
//! closes it otherwise. It examines this, and announces the close, only if the body was dropped
//! before the response is ready. Without the announcement, the client uses the connection again,
//! and its next request gets no response.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::Response;
use pin_project_lite::pin_project;

use super::lingering_close::UnreadBytes;

pin_project! {
    /// A response future that, if it drops the body of its request, lets hyper examine the
    /// connection before it is ready.
    pub(super) struct EarlyResponse<F, B> {
        // `None` after completion.
        #[pin]
        future: Option<F>,
        // The response, while hyper examines the connection.
        response: Option<Response<B>>,
        // `None` if hyper has examined the connection, and on HTTP/2.
        unread: Option<UnreadBytes>,
    }
}

impl<F, B> EarlyResponse<F, B> {
    /// `unread` is that of the request from which the future was made, and is `None` on HTTP/2.
    pub(super) fn new(future: F, unread: Option<UnreadBytes>) -> Self {
        Self {
            future: Some(future),
            response: None,
            unread: unread.filter(|unread| !unread.is_abandoned()),
        }
    }
}

impl<F, B> Future for EarlyResponse<F, B>
where
    F: Future<Output = Response<B>>,
{
    type Output = Response<B>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<B>> {
        let mut this = self.project();
        if let Some(response) = this.response.take() {
            return Poll::Ready(response);
        }
        let Some(future) = this.future.as_mut().as_pin_mut() else {
            return Poll::Pending;
        };
        let response = ready!(future.poll(cx));
        // What the future still has of the request ends here.
        this.future.set(None);
        if this.unread.as_ref().is_some_and(UnreadBytes::is_abandoned) {
            // hyper reads before it polls a response again.
            *this.response = Some(response);
            cx.waker().wake_by_ref();
            return Poll::Pending;
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
        Handler, activity::Activity, protocol, request_body::RequestBody, serve, tests::LIMITS,
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
    async fn a_body_that_has_arrived_keeps_the_connection() {
        for answer in [Answer::AtOnce, Answer::Later, Answer::AfterBody] {
            let (response, mut client) = exchange(answer, false).await;
            assert!(
                !response.contains("connection: close"),
                "{answer:?}: {response}"
            );
            client
                .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
                .await
                .unwrap();
            let mut next = [0; 15];
            client.read_exact(&mut next).await.unwrap();
            assert_eq!(&next, b"HTTP/1.1 200 OK", "{answer:?}");
        }
    }
}
