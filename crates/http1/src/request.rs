use std::{
    fmt,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, header::InvalidHeaderValue, uri::PathAndQuery};
use tokio::io::AsyncWrite;

/// A body up to this length is copied behind the head and written with it: one system call instead
/// of two slices.
const MAX_COPIED_BODY: usize = 4096;
/// The capacity for a head. A longer one is moved to a larger buffer.
const INITIAL_HEAD_CAPACITY: usize = 1024;

/// Builds a [`Request`] header by header (RFC 9112 section 3).
///
/// It writes what it is given: the caller adds `Host` (RFC 9112 section 3.2) and must not add
/// `Content-Length` or `Transfer-Encoding`.
pub struct RequestBuilder {
    head: Vec<u8>,
    /// Whether an empty body is announced with `Content-Length: 0`, as servers expect for this
    /// method (RFC 9110 section 8.6).
    announces_empty_body: bool,
    is_head: bool,
}

impl RequestBuilder {
    /// Starts a request for `target`, which is sent in origin form.
    pub fn new(method: &Method, target: &PathAndQuery) -> Self {
        let mut head = Vec::with_capacity(INITIAL_HEAD_CAPACITY);
        head.extend_from_slice(method.as_str().as_bytes());
        head.push(b' ');
        head.extend_from_slice(target.as_str().as_bytes());
        head.extend_from_slice(b" HTTP/1.1\r\n");
        let announces_empty_body = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
        Self {
            head,
            announces_empty_body,
            is_head: *method == Method::HEAD,
        }
    }

    /// Adds a header.
    pub fn header(&mut self, name: &HeaderName, value: &HeaderValue) -> &mut Self {
        encode_header(&mut self.head, name, value.as_bytes());
        self
    }

    /// Adds a header with this text as its value. Printable ASCII is written without an
    /// intermediate [`HeaderValue`].
    ///
    /// # Errors
    /// Fails if the text has a character that [`HeaderValue::from_str`] rejects.
    pub fn text_header(
        &mut self,
        name: &HeaderName,
        text: &str,
    ) -> Result<&mut Self, InvalidHeaderValue> {
        // Checks many bytes at once because no byte ends the loop early.
        if !text
            .bytes()
            .fold(true, |all, byte| all & matches!(byte, b' '..=b'~'))
        {
            HeaderValue::from_str(text)?;
        }
        encode_header(&mut self.head, name, text.as_bytes());
        Ok(self)
    }

    /// Adds headers that were encoded before.
    pub fn headers(&mut self, headers: &EncodedHeaders) -> &mut Self {
        self.head.extend_from_slice(&headers.0);
        self
    }

    /// Adds the body, with its `Content-Length` (RFC 9112 section 6.2), and completes the request.
    pub fn body(self, body: Bytes) -> Request {
        let Self {
            mut head,
            announces_empty_body,
            is_head,
        } = self;
        if announces_empty_body || !body.is_empty() {
            head.extend_from_slice(b"content-length: ");
            head.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        let body = if body.len() <= MAX_COPIED_BODY {
            head.extend_from_slice(&body);
            Bytes::new()
        } else {
            body
        };
        Request {
            head,
            body,
            written: 0,
            is_flushed: false,
            is_head,
        }
    }
}

impl fmt::Debug for RequestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBuilder").finish_non_exhaustive()
    }
}

/// Encoded headers that many requests repeat.
pub struct EncodedHeaders(Box<[u8]>);

impl FromIterator<(HeaderName, HeaderValue)> for EncodedHeaders {
    fn from_iter<I: IntoIterator<Item = (HeaderName, HeaderValue)>>(headers: I) -> Self {
        let mut encoded = Vec::new();
        headers
            .into_iter()
            .for_each(|(name, value)| encode_header(&mut encoded, &name, value.as_bytes()));
        Self(encoded.into())
    }
}

impl fmt::Debug for EncodedHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodedHeaders").finish_non_exhaustive()
    }
}

/// Appends a header. Neither the name nor the value contains CR or LF: the name by its type, the
/// value because it is that of a [`HeaderValue`] or was checked.
fn encode_header(head: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    head.extend_from_slice(name.as_str().as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

/// An encoded request, from [`RequestBuilder`].
pub struct Request {
    /// The head, followed by a small body.
    head: Vec<u8>,
    /// A large body.
    body: Bytes,
    /// The number of bytes of the head and the body that were written.
    written: usize,
    is_flushed: bool,
    /// Whether the method is HEAD, so that the response has no body.
    is_head: bool,
}

impl Request {
    /// Returns the encoded request. For tests of code that builds requests.
    pub fn to_vec(&self) -> Vec<u8> {
        [&self.head[..], &self.body].concat()
    }

    /// Returns whether a byte was written.
    pub(crate) fn is_started(&self) -> bool {
        self.written > 0
    }

    /// Returns whether the method is HEAD.
    pub(crate) fn is_head(&self) -> bool {
        self.is_head
    }

    /// Writes and flushes the bytes that were not written yet.
    pub(crate) fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.written < self.head.len() + self.body.len() {
            let head = &self.head[self.written.min(self.head.len())..];
            let body = &self.body[self.written.saturating_sub(self.head.len())..];
            let written = if body.is_empty() {
                ready!(Pin::new(&mut *stream).poll_write(cx, head))?
            } else {
                ready!(
                    Pin::new(&mut *stream)
                        .poll_write_vectored(cx, &[IoSlice::new(head), IoSlice::new(body)])
                )?
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        if !self.is_flushed {
            ready!(Pin::new(stream).poll_flush(cx))?;
            self.is_flushed = true;
        }
        Poll::Ready(Ok(()))
    }
}

/// Prints no headers and no body: they can contain credentials.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("is_started", &self.is_started())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn request(method: Method, body: &Bytes) -> Request {
        RequestBuilder::new(&method, &PathAndQuery::from_static("/mcp?a")).body(body.clone())
    }

    /// L1: a body is announced by its length, and the empty body of a POST, too. Other requests
    /// without a body have no `Content-Length`.
    #[test]
    fn content_length() {
        let length = |method, body: &'static str| {
            let encoded = request(method, &Bytes::from_static(body.as_bytes())).to_vec();
            let head = String::from_utf8(encoded).unwrap();
            head.lines()
                .find_map(|line| line.strip_prefix("content-length: ").map(str::to_owned))
        };
        assert_eq!(length(Method::POST, "{}").as_deref(), Some("2"));
        assert_eq!(length(Method::POST, "").as_deref(), Some("0"));
        assert_eq!(length(Method::DELETE, "{}").as_deref(), Some("2"));
        for method in [Method::GET, Method::HEAD, Method::DELETE] {
            assert_eq!(length(method, ""), None);
        }
    }

    /// L1: text that could end a header is rejected, and adds nothing.
    #[test]
    fn text_headers_are_valid() {
        let name = HeaderName::from_static("x-a");
        let mut builder = RequestBuilder::new(&Method::GET, &PathAndQuery::from_static("/"));
        for text in ["a\r\nb: c", "a\nb", "\0", "\u{7f}"] {
            assert!(builder.text_header(&name, text).is_err(), "{text:?}");
        }
        builder
            .text_header(&name, "a b~!")
            .unwrap()
            .text_header(&name, "\t")
            .unwrap();
        let encoded = builder.body(Bytes::new()).to_vec();
        assert_eq!(
            String::from_utf8(encoded).unwrap(),
            "GET / HTTP/1.1\r\nx-a: a b~!\r\nx-a: \t\r\n\r\n"
        );
    }

    /// Accepts at most `width` bytes per write, from any number of slices, and is pending every
    /// other time.
    struct SlowStream {
        width: usize,
        is_ready: bool,
        written: Vec<u8>,
    }

    impl AsyncWrite for SlowStream {
        fn poll_write(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.is_ready = !self.is_ready;
            if !self.is_ready {
                return Poll::Pending;
            }
            let bytes: Vec<u8> = slices
                .iter()
                .flat_map(|slice| slice.iter().copied())
                .take(self.width)
                .collect();
            self.written.extend_from_slice(&bytes);
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// L1: each byte is written once and in order for any size of the writes.
    #[test]
    fn partial_writes() {
        for body in [
            0,
            2,
            MAX_COPIED_BODY,
            MAX_COPIED_BODY + 1,
            3 * MAX_COPIED_BODY,
        ]
        .map(|length| Bytes::from(vec![b'x'; length]))
        {
            for width in [1, 7, 60, 100_000] {
                let mut request = request(Method::POST, &body);
                let expected = request.to_vec();
                let mut cx = Context::from_waker(Waker::noop());
                let mut stream = SlowStream {
                    width,
                    is_ready: true,
                    written: Vec::new(),
                };
                assert!(!request.is_started());
                while request.poll_write(&mut stream, &mut cx).is_pending() {}
                assert!(request.is_started());
                assert_eq!(stream.written, expected);
                assert!(expected.ends_with(&body));
            }
        }
    }

    /// L1: a stream that accepts no more bytes is an error, not an endless loop.
    #[test]
    fn a_stream_without_progress_is_an_error() {
        let mut stream = SlowStream {
            width: 0,
            is_ready: false,
            written: Vec::new(),
        };
        let sent = request(Method::GET, &Bytes::new())
            .poll_write(&mut stream, &mut Context::from_waker(Waker::noop()));
        assert!(
            matches!(sent, Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::WriteZero)
        );
    }
}
