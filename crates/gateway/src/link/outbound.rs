use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, uri::PathAndQuery};
use tokio::io::AsyncWrite;

/// A body up to this size is copied behind its head: that costs less than a second piece to write.
const COPIED: usize = 4096;
/// Room for a common request: the largest piece of memory that the allocator has at hand.
const ROOM: usize = 1024;

/// A request in the bytes that go over the wire, and how far they went.
pub(crate) struct Outbound {
    /// The head, and a small body behind it.
    head: Vec<u8>,
    /// A larger body.
    body: Bytes,
    sent: usize,
    flushed: bool,
    is_head: bool,
}

/// The head of a request in the making (RFC 9112 section 3).
pub(crate) struct OutboundHead {
    lines: Vec<u8>,
    /// Whether servers expect to be told that there is no body.
    says_no_body: bool,
    is_head: bool,
}

/// Header lines that are sent time and again.
pub(crate) struct HeaderLines(Box<[u8]>);

impl OutboundHead {
    /// The request line.
    pub(crate) fn new(method: &Method, target: &PathAndQuery) -> Self {
        let mut lines = Vec::with_capacity(ROOM);
        lines.extend_from_slice(method.as_str().as_bytes());
        lines.push(b' ');
        lines.extend_from_slice(target.as_str().as_bytes());
        lines.extend_from_slice(b" HTTP/1.1\r\n");
        let says_no_body = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
        Self { lines, says_no_body, is_head: *method == Method::HEAD }
    }

    pub(crate) fn header(&mut self, name: &HeaderName, value: &HeaderValue) {
        write_line(&mut self.lines, name, value);
    }

    pub(crate) fn headers(&mut self, lines: &HeaderLines) {
        self.lines.extend_from_slice(&lines.0);
    }

    /// Ends the head. The body is framed by its length (RFC 9112 section 6.2).
    pub(crate) fn finish(self, body: Bytes) -> Outbound {
        let Self { lines: mut head, says_no_body, is_head } = self;
        if says_no_body || !body.is_empty() {
            head.extend_from_slice(b"content-length: ");
            head.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        let body = if body.len() <= COPIED {
            head.extend_from_slice(&body);
            Bytes::new()
        } else {
            body
        };
        Outbound { head, body, sent: 0, flushed: false, is_head }
    }
}

impl FromIterator<(HeaderName, HeaderValue)> for HeaderLines {
    fn from_iter<I: IntoIterator<Item = (HeaderName, HeaderValue)>>(headers: I) -> Self {
        let mut lines = Vec::new();
        headers.into_iter().for_each(|(name, value)| write_line(&mut lines, &name, &value));
        Self(lines.into())
    }
}

/// Neither a name nor a value can hold the end of its line: their types see to that.
fn write_line(lines: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) {
    lines.extend_from_slice(name.as_str().as_bytes());
    lines.extend_from_slice(b": ");
    lines.extend_from_slice(value.as_bytes());
    lines.extend_from_slice(b"\r\n");
}

impl Outbound {
    /// Whether any of it may have reached the upstream.
    pub(crate) fn has_begun(&self) -> bool {
        self.sent > 0
    }

    /// Whether this is a HEAD request, whose answer has no body whatever its head says.
    pub(crate) fn is_head(&self) -> bool {
        self.is_head
    }

    fn is_written(&self) -> bool {
        self.sent == self.head.len() + self.body.len()
    }

    /// Writes what was not written yet.
    pub(crate) fn poll_send<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.is_written() {
            let head = &self.head[self.sent.min(self.head.len())..];
            let body = &self.body[self.sent.saturating_sub(self.head.len())..];
            let written = if body.is_empty() {
                ready!(Pin::new(&mut *stream).poll_write(cx, head))?
            } else {
                ready!(Pin::new(&mut *stream).poll_write_vectored(cx, &[IoSlice::new(head), IoSlice::new(body)]))?
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += written;
        }
        if !self.flushed {
            ready!(Pin::new(stream).poll_flush(cx))?;
            self.flushed = true;
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use http::HeaderMap;

    use super::*;

    /// A request read back.
    pub(crate) struct Parsed {
        pub(crate) line: String,
        pub(crate) headers: HeaderMap,
        pub(crate) body: Bytes,
    }

    impl Outbound {
        pub(crate) fn parsed(&self) -> Parsed {
            let mut room = [httparse::EMPTY_HEADER; 64];
            let mut request = httparse::Request::new(&mut room);
            let httparse::Status::Complete(length) = request.parse(&self.head).unwrap() else {
                panic!("no whole head")
            };
            let mut headers = HeaderMap::new();
            for httparse::Header { name, value } in request.headers.iter() {
                headers.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value).unwrap());
            }
            let line = String::from_utf8(self.head.split(|&b| b == b'\r').next().unwrap().to_vec()).unwrap();
            Parsed { line, headers, body: [&self.head[length..], &self.body].concat().into() }
        }
    }

    fn outbound(method: Method, body: &Bytes) -> Outbound {
        OutboundHead::new(&method, &PathAndQuery::from_static("/mcp?a")).finish(body.clone())
    }

    /// L1: a body is announced by its length, and so is that a POST has none; requests that have none are not framed.
    #[test]
    fn lengths_are_said() {
        let length = |method, body: &'static str| {
            let headers = outbound(method, &Bytes::from_static(body.as_bytes())).parsed().headers;
            headers.get("content-length").map(|length| length.to_str().unwrap().to_owned())
        };
        assert_eq!(length(Method::POST, "{}").as_deref(), Some("2"));
        assert_eq!(length(Method::POST, "").as_deref(), Some("0"));
        assert_eq!(length(Method::DELETE, "{}").as_deref(), Some("2"));
        for method in [Method::GET, Method::HEAD, Method::DELETE] {
            assert_eq!(length(method, ""), None);
        }
    }

    /// Takes so many bytes at a time, from as many slices as it is given, and every other time none.
    struct Narrow {
        width: usize,
        is_open: bool,
        taken: Vec<u8>,
    }

    impl AsyncWrite for Narrow {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.is_open = !self.is_open;
            if !self.is_open {
                return Poll::Pending;
            }
            let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).take(self.width).collect();
            self.taken.extend_from_slice(&bytes);
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// L1: each byte goes over once and in order, however few the socket takes at a time.
    #[test]
    fn requests_go_over_in_pieces() {
        for body in [0, 2, COPIED, COPIED + 1, 3 * COPIED].map(|length| Bytes::from(vec![b'x'; length])) {
            for width in [1, 7, 60, 100_000] {
                let mut request = outbound(Method::POST, &body);
                let (expected, mut cx) =
                    ([&request.head[..], &request.body].concat(), Context::from_waker(Waker::noop()));
                let mut stream = Narrow { width, is_open: true, taken: Vec::new() };
                assert!(!request.has_begun());
                while request.poll_send(&mut stream, &mut cx).is_pending() {}
                assert!(request.has_begun());
                assert_eq!(stream.taken, expected);
                assert!(expected.ends_with(&body));
            }
        }
    }

    /// L1: a socket that takes nothing any more is an error, not a loop.
    #[test]
    fn a_closed_socket_ends_it() {
        let mut stream = Narrow { width: 0, is_open: false, taken: Vec::new() };
        let sent = outbound(Method::GET, &Bytes::new()).poll_send(&mut stream, &mut Context::from_waker(Waker::noop()));
        assert!(matches!(sent, Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::WriteZero));
    }
}
