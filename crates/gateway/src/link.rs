mod chunked;
mod framing;
mod head;
mod malformed;
mod outbound;
mod rest;

use std::{
    io,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use tokio::io::AsyncReadExt as _;

use crate::{connection_limit::ConnectionPermit, stream::Stream};
use head::HeadReader;
use malformed::Malformed;
use rest::Rest;

pub(crate) use head::Head;
pub(crate) use outbound::{HeaderLines, Outbound, OutboundHead};

/// What one read takes at first. It grows while reads fill it.
const READ: usize = 4 * 1024;
const MAX_READ: usize = 64 * 1024;
/// Less room than this is not worth a read.
const MIN_READ: usize = 1024;
/// How many 1xx answers may come before the answer itself.
const MAX_INTERIM: usize = 16;

/// One HTTP/1.1 connection to the upstream (RFC 9112), driven by whoever uses it: nothing stands between a request and
/// the socket, neither a task nor a channel. Dropping it closes the connection.
pub(crate) struct Link {
    stream: Stream,
    /// What came and was not read yet.
    inbox: BytesMut,
    read_size: usize,
    /// The request under way, until it is sent, or what is left of it no longer can be.
    outbound: Option<Outbound>,
    /// What is to come of its answer's body.
    rest: Rest,
    /// Whether another request may follow.
    keeps: bool,
    /// Its place among the connections that the upstream may have.
    permit: ConnectionPermit,
}

/// Why a request got no answer.
pub(crate) enum SendError {
    /// Not a byte of it was written: here it is again.
    NotSent(Outbound, Broken),
    /// It may have been acted on.
    Broken(Broken),
}

/// Why a connection is of no further use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("the connection was closed before the answer")]
    Closed,
    #[error("an answer came that nobody asked for")]
    Unasked,
}

impl Link {
    pub(crate) fn new(stream: Stream, permit: ConnectionPermit) -> Self {
        let (inbox, rest) = (BytesMut::new(), Rest::Nothing);
        Self { stream, inbox, read_size: READ, outbound: None, rest, keeps: true, permit }
    }

    /// Closes the connection and keeps its place for another one.
    pub(crate) fn into_permit(self) -> ConnectionPermit {
        self.permit
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) fn send(mut self: Box<Self>, request: Outbound) -> Sending {
        let reader = HeadReader::default();
        let awaited = Awaited { reader, to_head: request.is_head(), interim: 0, interim_keeps: true };
        self.outbound = Some(request);
        Sending { link: Some(self), awaited }
    }

    /// The next piece of the answer's body; nothing after its end.
    pub(crate) fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        // An upstream may answer while it still reads, or because it does not want the rest.
        let _ = self.poll_outbound(cx);
        loop {
            match self.rest.take(&mut self.inbox) {
                Ok(Some(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(None) if self.rest.is_nothing() => return Poll::Ready(None),
                Ok(None) => {}
                Err(malformed) => return Poll::Ready(Some(Err(malformed.into()))),
            }
            match ready!(self.poll_read(cx)) {
                Ok(0) => {
                    self.keeps = false;
                    if let Err(broken_off) = self.rest.close() {
                        return Poll::Ready(Some(Err(broken_off.into())));
                    }
                }
                Ok(_) => {}
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            }
        }
    }

    /// The answer's body, when all of it came with its head, as most do.
    pub(crate) fn take_whole(&mut self) -> Option<Bytes> {
        match self.rest {
            Rest::Nothing => Some(Bytes::new()),
            Rest::Length(length) if length <= self.inbox.len() as u64 => self.rest.take(&mut self.inbox).ok().flatten(),
            _ => None,
        }
    }

    /// The length of what is to come of the answer's body, where it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        self.rest.length()
    }

    /// Whether the last answer is read to its end and another request may follow, as far as was noticed yet. Bytes that
    /// nobody asked for are no beginning of the next answer.
    pub(crate) fn is_idle(&self) -> bool {
        self.keeps && self.rest.is_nothing() && self.outbound.is_none() && self.inbox.is_empty()
    }

    /// Gives up the memory of large reads: nobody uses it for now.
    pub(crate) fn park(&mut self) {
        if self.read_size > READ {
            (self.inbox, self.read_size) = (BytesMut::new(), READ);
        }
    }

    fn poll_head(&mut self, awaited: &mut Awaited, cx: &mut Context<'_>) -> Poll<Result<Head, SendError>> {
        if let Some(broken) = self.before_sending(cx)
            && let Some(request) = self.outbound.take()
        {
            return Poll::Ready(Err(SendError::NotSent(request, broken)));
        }
        if let Poll::Ready(Err(error)) = self.poll_outbound(cx)
            && let Some(request) = self.outbound.take()
        {
            return Poll::Ready(Err(SendError::NotSent(request, error.into())));
        }
        loop {
            match awaited.take(&mut self.inbox) {
                Ok(Some(head)) => {
                    self.rest = head.framing.into();
                    self.keeps &= head.keeps;
                    return Poll::Ready(Ok(head));
                }
                Ok(None) => {}
                Err(malformed) => return Poll::Ready(Err(SendError::Broken(malformed.into()))),
            }
            match ready!(self.poll_read(cx)) {
                Ok(0) => return Poll::Ready(Err(SendError::Broken(Broken::Closed))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(SendError::Broken(error.into()))),
            }
        }
    }

    /// Why a request that was not begun cannot go over this connection: its other end closed it meanwhile, or said
    /// something that would be taken for the answer.
    fn before_sending(&mut self, cx: &mut Context<'_>) -> Option<Broken> {
        if self.outbound.as_ref().is_none_or(Outbound::has_begun) {
            return None;
        }
        match self.poll_read(cx) {
            Poll::Pending => None,
            Poll::Ready(Ok(0)) => Some(Broken::Closed),
            Poll::Ready(Ok(_)) => Some(Broken::Unasked),
            Poll::Ready(Err(error)) => Some(error.into()),
        }
    }

    /// Sends what is left of the request. After an error nothing is left, except of a request that was not begun.
    fn poll_outbound(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(outbound) = &mut self.outbound else { return Poll::Ready(Ok(())) };
        let sent = ready!(outbound.poll_send(&mut self.stream, cx));
        self.keeps &= sent.is_ok();
        if sent.is_ok() || outbound.has_begun() {
            self.outbound = None;
        }
        Poll::Ready(sent)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.inbox.capacity() - self.inbox.len() < MIN_READ {
            self.inbox.reserve(self.read_size);
        }
        let room = self.inbox.capacity() - self.inbox.len();
        let read = ready!(pin!(self.stream.read_buf(&mut self.inbox)).poll(cx))?;
        if read == room {
            self.read_size = (self.read_size * 2).min(MAX_READ);
        }
        Poll::Ready(Ok(read))
    }
}

/// A request and the connection that it goes over, until the head of its answer is there.
pub(crate) struct Sending {
    link: Option<Box<Link>>,
    awaited: Awaited,
}

impl Future for Sending {
    type Output = Result<(Head, Box<Link>), SendError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { link: place, awaited } = self.get_mut();
        // Polled again after the end, which the contract of `Future` leaves open.
        let Some(link) = place else { return Poll::Pending };
        let head = ready!(link.poll_head(awaited, cx));
        let Some(link) = place.take() else { return Poll::Pending };
        Poll::Ready(head.map(|head| (head, link)))
    }
}

/// The head that is waited for.
struct Awaited {
    reader: HeadReader,
    to_head: bool,
    interim: usize,
    /// Whether all interim answers ended where they seem to end.
    interim_keeps: bool,
}

impl Awaited {
    /// The head of the answer, without those of the interim answers before it (RFC 9110 section 15.2).
    fn take(&mut self, inbox: &mut BytesMut) -> Result<Option<Head>, Malformed> {
        loop {
            let Some(mut head) = self.reader.take(inbox, self.to_head)? else { return Ok(None) };
            if !head.status.is_informational() || head.status == StatusCode::SWITCHING_PROTOCOLS {
                head.keeps &= self.interim_keeps;
                return Ok(Some(head));
            }
            self.interim_keeps &= head.keeps;
            self.interim += 1;
            if self.interim > MAX_INTERIM {
                return Err(Malformed::TooManyInterim);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is read of an answer that comes in pieces of this size: its status, its body, and whether all of it came.
    fn read(text: &[u8], piece: usize) -> Result<Option<(u16, Vec<u8>, bool)>, Malformed> {
        let mut awaited = Awaited { reader: HeadReader::default(), to_head: false, interim: 0, interim_keeps: true };
        let (mut inbox, mut answer) = (BytesMut::new(), None);
        for bytes in text.chunks(piece) {
            inbox.extend_from_slice(bytes);
            if answer.is_none() {
                let head = awaited.take(&mut inbox)?;
                answer = head.map(|head| (head.status, Rest::from(head.framing), Vec::new()));
            }
            if let Some((_, rest, data)) = &mut answer {
                while let Some(taken) = rest.take(&mut inbox)? {
                    assert!(!taken.is_empty());
                    data.extend_from_slice(&taken);
                }
            }
        }
        Ok(answer.map(|(status, rest, data)| (status.as_u16(), data, rest.is_nothing())))
    }

    fn answers() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            Just("content-length: 3\r\n"),
            Just("content-length: 3, 3\r\n"),
            Just("content-length: x\r\n"),
            Just("transfer-encoding: chunked\r\n"),
            Just("transfer-encoding: gzip\r\n"),
            Just("connection: close\r\n"),
            Just("x: y\n"),
            Just("x\r\n"),
        ];
        let status = prop_oneof![
            Just("HTTP/1.1 200 OK\r\n"),
            Just("HTTP/1.0 200 OK\r\n"),
            Just("HTTP/1.1 204 None\r\n"),
            Just("HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 500\r\n"),
            Just("HTTP/1.2 200\r\n"),
        ];
        let body =
            prop_oneof![Just("abc"), Just("ab"), Just("3\r\nabc\r\n0\r\n\r\n"), Just("3\r\nabcd\r\n"), Just("\r\n")];
        (status, prop::collection::vec(line, 0..3), body)
            .prop_map(|(status, lines, body)| format!("{status}{}\r\n{body}", lines.concat()))
    }

    proptest! {
        /// L1: an answer is read the same in one piece and in many.
        #[test]
        fn pieces_make_no_difference(answer in answers(), piece in 1_usize..9) {
            prop_assert_eq!(read(answer.as_bytes(), piece), read(answer.as_bytes(), answer.len()));
        }

        /// L1: no bytes make the reader panic.
        #[test]
        fn no_answer_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), piece in 1_usize..9) {
            let answer = [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".as_slice(), &bytes].concat();
            let _ = read(&answer, piece);
            let _ = read(&bytes, piece);
        }
    }
}
