use std::mem::MaybeUninit;

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING},
};
use httparse::{ParserConfig, Response, Status};
use portcullis_mcp::header;

use super::{
    framing::{Framed, Framing, is_bodiless},
    malformed::Malformed,
};
use crate::hop_by_hop::is_hop_by_hop;

/// The longest head that is read, in bytes.
const MAX_HEAD: usize = 64 * 1024;
const MAX_HEADERS: usize = 128;
const BEGINNING: &[u8] = b"HTTP/1.";

/// The head of an answer (RFC 9112 section 4).
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    /// Without those that concern the connection alone (RFC 9110 section 7.6.1), and without a length that is not the
    /// body's.
    pub(crate) headers: HeaderMap,
    pub(crate) framing: Framing,
    /// Whether the upstream keeps the connection for another request (RFC 9112 section 9.3).
    pub(crate) keeps: bool,
}

/// Finds the end of a head in what comes piece by piece.
#[derive(Default)]
pub(crate) struct HeadReader {
    /// So much was searched for it in vain.
    searched: usize,
    /// Whether a line ended without its CR.
    has_bare_lf: bool,
}

impl HeadReader {
    /// Takes a head from the front of what came, once it is there whole. `to_head` says that the request was a HEAD.
    pub(crate) fn take(&mut self, inbox: &mut BytesMut, to_head: bool) -> Result<Option<Head>, Malformed> {
        let beginning = BEGINNING.len().min(inbox.len());
        if inbox[..beginning] != BEGINNING[..beginning] {
            return Err(Malformed::Head);
        }
        let Some(end) = self.end(inbox) else {
            return if inbox.len() < MAX_HEAD { Ok(None) } else { Err(Malformed::HeadTooLong) };
        };
        let Self { has_bare_lf, .. } = std::mem::take(self);
        let mut head = parse(&inbox.split_to(end).freeze(), to_head)?;
        // A reader that wants the CR would look for the end elsewhere.
        head.keeps &= !has_bare_lf;
        Ok(Some(head))
    }

    /// Where the first empty line ends. A line may end without its CR (RFC 9112 section 2.2).
    fn end(&mut self, inbox: &[u8]) -> Option<usize> {
        for position in memchr::memchr_iter(b'\n', &inbox[self.searched..]) {
            let next = self.searched + position + 1;
            self.has_bare_lf |= !inbox[..next].ends_with(b"\r\n");
            match &inbox[next..] {
                [b'\n', ..] => {
                    self.has_bare_lf = true;
                    return Some(next + 1);
                }
                [b'\r', b'\n', ..] => return Some(next + 2),
                _ => {}
            }
        }
        // An end of line of which the next one is still to come is looked at again.
        self.searched = inbox.len().saturating_sub(2);
        None
    }
}

fn parse(head: &Bytes, to_head: bool) -> Result<Head, Malformed> {
    let mut room = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut parsed = Response::new(&mut []);
    match ParserConfig::default().parse_response_with_uninit_headers(&mut parsed, head, &mut room) {
        Ok(Status::Complete(length)) if length == head.len() => {}
        _ => return Err(Malformed::Head),
    }
    let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(Malformed::Head)?;
    let is_http_11 = parsed.version == Some(1);

    let mut headers = HeaderMap::with_capacity(parsed.headers.len());
    let mut framed = Framed::default();
    let mut connection = Connection::default();
    for httparse::Header { name, value } in parsed.headers.iter() {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Malformed::Head)?;
        // The value shares the memory of the head.
        let value = HeaderValue::from_maybe_shared(head.slice_ref(value)).map_err(|_| Malformed::Head)?;
        match name {
            CONTENT_LENGTH => framed.content_length(&value)?,
            TRANSFER_ENCODING => framed.transfer_encoding(&value)?,
            CONNECTION => connection.read(&value),
            _ => {}
        }
        if name == CONNECTION || !is_hop_by_hop(name.as_str()) {
            headers.append(name, value);
        }
    }
    if connection.came {
        header::remove_connection_options(&mut headers);
    }
    // Neither goes with a coding, nor with an answer that never has a body (RFC 9110 section 8.6).
    if framed.is_chunked() || (is_bodiless(status) && status != StatusCode::NOT_MODIFIED) {
        headers.remove(CONTENT_LENGTH);
    } else if let Some(length) = framed.odd_length() {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    let is_sound = framed.is_unambiguous(status, to_head)
        && (is_http_11 || !framed.is_chunked())
        && status != StatusCode::SWITCHING_PROTOCOLS;
    let keeps = is_sound && !connection.closes && (is_http_11 || connection.keeps);
    Ok(Head { status, headers, framing: framed.framing(status, to_head), keeps })
}

/// What `Connection` says of the connection itself.
#[derive(Default)]
struct Connection {
    came: bool,
    closes: bool,
    keeps: bool,
}

impl Connection {
    fn read(&mut self, value: &HeaderValue) {
        self.came = true;
        for option in value.as_bytes().split(|&b| b == b',').map(<[u8]>::trim_ascii) {
            self.closes |= option.eq_ignore_ascii_case(b"close");
            self.keeps |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Head>, Malformed> {
        HeadReader::default().take(&mut BytesMut::from(text), false)
    }

    fn head(text: &str) -> Head {
        read(text).unwrap().unwrap()
    }

    /// L1: a head is the same, however it comes.
    #[test]
    fn heads_come_in_pieces() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-A: 1\r\nX-A:  2 \r\nContent-Length: 2\r\n\r\n{}";
        for piece in 1..text.len() {
            let (mut reader, mut inbox) = (HeadReader::default(), BytesMut::new());
            let mut read = None;
            for bytes in text.chunks(piece) {
                inbox.extend_from_slice(bytes);
                if read.is_none() {
                    read = reader.take(&mut inbox, false).unwrap();
                }
            }
            let head = read.unwrap();
            assert_eq!((head.status, head.framing, head.keeps), (StatusCode::OK, Framing::Length(2), true), "{piece}");
            assert_eq!(head.headers["content-type"], "text/plain");
            assert_eq!(head.headers.get_all("x-a").iter().collect::<Vec<_>>(), ["1", "2"]);
            assert_eq!(inbox, "{}");
        }
    }

    /// L1: a server that ends its lines with LF alone is understood.
    #[test]
    fn bare_line_feeds() {
        let head = head("HTTP/1.1 404 Not Found\nContent-Length: 0\n\n");
        assert_eq!((head.status, head.framing), (StatusCode::NOT_FOUND, Framing::Length(0)));
    }

    /// L1: what is not HTTP/1 is told from its first bytes on, what never ends by its size.
    #[test]
    fn what_is_no_head() {
        for text in [
            "SSH-2.0-OpenSSH_9.2\r\n",
            "\r\n",
            "HTTP/2 200\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/1.1 099 Low\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx y: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx : 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx: 1\r\n folded\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx: a\rb\r\n\r\n",
        ] {
            assert_eq!(read(text).unwrap_err(), Malformed::Head, "{text}");
        }
        assert!(read("").unwrap().is_none());
        assert!(read("HTT").unwrap().is_none());
        let many = "x: 1\r\n".repeat(MAX_HEADERS + 1);
        assert_eq!(read(&format!("HTTP/1.1 200 OK\r\n{many}\r\n")).unwrap_err(), Malformed::Head);
        let long = format!("HTTP/1.1 200 OK\r\nx: {}", "a".repeat(MAX_HEAD));
        assert_eq!(read(&long).unwrap_err(), Malformed::HeadTooLong);
    }

    /// L1: headers of one connection, and those that `Connection` names, stay behind.
    #[test]
    fn hop_by_hop_headers_are_removed() {
        let head = head(
            "HTTP/1.1 200 OK\r\nconnection: close, X-Internal\r\nconnection:  x-other \r\nx-internal: 1\r\n\
             x-other: 1\r\nkeep-alive: timeout=5\r\nproxy-connection: close\r\nte: trailers\r\ntrailer: expires\r\n\
             transfer-encoding: chunked\r\nupgrade: h2c\r\ncontent-type: application/json\r\nmcp-session-id: s\r\n\
             content-length: 7\r\n\r\n",
        );
        let mut left: Vec<_> = head.headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-type", "mcp-session-id"]);
    }

    /// L10: the client gets a length that is one plain number, and none where there is no body.
    #[test]
    fn lengths_for_the_client() {
        for (text, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", Some("5")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n", Some("5")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n", Some("5")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 005\r\n", Some("5")),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 005\r\n", Some("5")),
            ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n", None),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n", None),
        ] {
            let head = head(&format!("{text}\r\n"));
            let lengths: Vec<_> =
                head.headers.get_all(CONTENT_LENGTH).iter().map(|value| value.to_str().unwrap()).collect();
            assert_eq!(lengths, Vec::from_iter(expected), "{text}");
        }
    }

    /// L1, L10: connections are kept as RFC 9112 section 9.3 says, and never after an answer whose end readers could see
    /// in different places.
    #[test]
    fn which_connections_are_kept() {
        for (line, expected) in [
            ("HTTP/1.1 200 OK\r\n", true),
            ("HTTP/1.1 200 OK\r\nConnection: x, Close\r\n", false),
            ("HTTP/1.1 200 OK\r\nConnection: keep-alive, close\r\n", false),
            ("HTTP/1.1 101 Switching Protocols\r\n", false),
            ("HTTP/1.0 200 OK\r\n", false),
            ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n", true),
            ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n", false),
            ("HTTP/1.1 204 No Content\r\n", true),
            ("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n", true),
            ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n", false),
            ("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n", false),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n", true),
            ("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n", false),
            ("HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n", false),
            ("HTTP/1.1 200 OK\nContent-Length: 0\r\n", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\n", false),
        ] {
            assert_eq!(head(&format!("{line}\r\n")).keeps, expected, "{line}");
        }
    }
}
