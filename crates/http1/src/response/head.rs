use std::mem::MaybeUninit;

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING},
};

use httparse::ParserConfig;

use super::framing::{BodyLength, FramingHeaders, is_bodiless};
use crate::ProtocolError;

/// The maximum length of a head, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// The maximum number of headers.
const MAX_HEADERS: usize = 128;
/// The capacity for headers that a proxy adds to the response, so that the map does not grow then.
const ADDED_HEADERS: usize = 6;
const VERSION_PREFIX: &[u8] = b"HTTP/1.";

/// The head of a response (RFC 9112 section 4).
#[derive(Debug)]
pub(crate) struct ResponseHead {
    pub(crate) status: StatusCode,
    /// The headers as received, except `Content-Length`: it is canonical, or removed if it is not
    /// that of the body.
    pub(crate) headers: HeaderMap,
    pub(crate) body_length: BodyLength,
    /// Whether the connection persists after this response (RFC 9112 section 9.3) and its end is
    /// unambiguous.
    pub(crate) keep_alive: bool,
}

/// Finds the end of a head and parses it.
#[derive(Default)]
pub(super) struct HeadReader {
    /// The length of the prefix that contains no end of a head.
    searched: usize,
    /// Whether a line ends with a bare LF.
    has_bare_lf: bool,
}

impl HeadReader {
    /// Takes a head from the front of `buffer`. Returns `None` if the head is incomplete.
    pub(super) fn read(
        &mut self,
        buffer: &mut BytesMut,
        is_response_to_head: bool,
    ) -> Result<Option<ResponseHead>, ProtocolError> {
        let prefix = VERSION_PREFIX.len().min(buffer.len());
        if buffer[..prefix] != VERSION_PREFIX[..prefix] {
            return Err(ProtocolError::Head);
        }
        let Some(end) = self.find_end(buffer) else {
            return if buffer.len() < MAX_HEAD {
                Ok(None)
            } else {
                Err(ProtocolError::HeadTooLong)
            };
        };
        if end > MAX_HEAD {
            return Err(ProtocolError::HeadTooLong);
        }
        let Self { has_bare_lf, .. } = std::mem::take(self);
        let mut head = parse(&buffer.split_to(end).freeze(), is_response_to_head)?;
        // A parser that requires CRLF finds another end.
        head.keep_alive &= !has_bare_lf;
        Ok(Some(head))
    }

    /// The position after the first empty line. A line may end with a bare LF (RFC 9112 section
    /// 2.2).
    fn find_end(&mut self, buffer: &[u8]) -> Option<usize> {
        for position in memchr::memchr_iter(b'\n', &buffer[self.searched..]) {
            let next = self.searched + position + 1;
            self.has_bare_lf |= !buffer[..next].ends_with(b"\r\n");
            match &buffer[next..] {
                [b'\n', ..] => {
                    self.has_bare_lf = true;
                    return Some(next + 1);
                }
                [b'\r', b'\n', ..] => return Some(next + 2),
                _ => {}
            }
        }
        // The last two bytes can be a line end whose next line is incomplete.
        self.searched = buffer.len().saturating_sub(2);
        None
    }
}

fn parse(head: &Bytes, is_response_to_head: bool) -> Result<ResponseHead, ProtocolError> {
    let mut parsed_headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    match ParserConfig::default().parse_response_with_uninit_headers(
        &mut parsed,
        head,
        &mut parsed_headers,
    ) {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        _ => return Err(ProtocolError::Head),
    }
    let status = parsed
        .code
        .and_then(|code| StatusCode::from_u16(code).ok())
        .ok_or(ProtocolError::Head)?;
    let is_http_11 = parsed.version == Some(1);

    let mut headers = HeaderMap::with_capacity(parsed.headers.len() + ADDED_HEADERS);
    let mut framing = FramingHeaders::default();
    let mut connection = ConnectionOptions::default();
    for header in parsed.headers.iter() {
        let name =
            HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| ProtocolError::Head)?;
        // The value shares the memory of the head.
        let value = HeaderValue::from_maybe_shared(head.slice_ref(header.value))
            .map_err(|_| ProtocolError::Head)?;
        match name {
            CONTENT_LENGTH => framing.add_content_length(&value)?,
            TRANSFER_ENCODING => framing.add_transfer_encoding(&value)?,
            CONNECTION => connection.add(&value),
            _ => {}
        }
        headers.append(name, value);
    }
    // Content-Length is not allowed with Transfer-Encoding (RFC 9112 section 6.2), nor with 1xx and
    // 204 (RFC 9110 section 8.6).
    if framing.is_chunked() || (is_bodiless(status) && status != StatusCode::NOT_MODIFIED) {
        headers.remove(CONTENT_LENGTH);
    } else if let Some(length) = framing.noncanonical_length() {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    let is_unambiguous = framing.is_unambiguous(status, is_response_to_head)
        && (is_http_11 || !framing.is_chunked())
        && status != StatusCode::SWITCHING_PROTOCOLS;
    let persists = !connection.close && (is_http_11 || connection.keep_alive);
    let body_length = framing.body_length(status, is_response_to_head);
    Ok(ResponseHead {
        status,
        headers,
        body_length,
        keep_alive: is_unambiguous && persists,
    })
}

/// The options of `Connection` that concern its persistence (RFC 9112 section 9.3).
#[derive(Default)]
struct ConnectionOptions {
    close: bool,
    keep_alive: bool,
}

impl ConnectionOptions {
    fn add(&mut self, value: &HeaderValue) {
        for option in value
            .as_bytes()
            .split(|&b| b == b',')
            .map(<[u8]>::trim_ascii)
        {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<ResponseHead>, ProtocolError> {
        HeadReader::default().read(&mut BytesMut::from(text), false)
    }

    fn head(text: &str) -> ResponseHead {
        read(text).unwrap().unwrap()
    }

    /// L1: a head can be split at any byte.
    #[test]
    fn heads_can_be_split_anywhere() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-A: 1\r\nX-A:  2 \r\nContent-Length: 2\r\n\r\n{}";
        for piece in 1..text.len() {
            let mut reader = HeadReader::default();
            let mut buffer = BytesMut::new();
            let mut read = None;
            for bytes in text.chunks(piece) {
                buffer.extend_from_slice(bytes);
                if read.is_none() {
                    read = reader.read(&mut buffer, false).unwrap();
                }
            }
            let head = read.unwrap();
            assert_eq!(head.status, StatusCode::OK, "{piece}");
            assert_eq!(head.body_length, BodyLength::Known(2), "{piece}");
            assert!(head.keep_alive, "{piece}");
            assert_eq!(head.headers["content-type"], "text/plain");
            assert_eq!(
                head.headers.get_all("x-a").iter().collect::<Vec<_>>(),
                ["1", "2"]
            );
            assert_eq!(buffer, "{}");
        }
    }

    /// L1: a head whose lines end with a bare LF is valid.
    #[test]
    fn bare_line_feeds_are_valid() {
        let head = head("HTTP/1.1 404 Not Found\nContent-Length: 0\n\n");
        assert_eq!(head.status, StatusCode::NOT_FOUND);
        assert_eq!(head.body_length, BodyLength::Known(0));
    }

    /// L1: bytes that are not HTTP/1 are rejected at once, a head without an end at its maximum
    /// length.
    #[test]
    fn invalid_heads_are_rejected() {
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
            assert_eq!(read(text).unwrap_err(), ProtocolError::Head, "{text}");
        }
        assert!(read("").unwrap().is_none());
        assert!(read("HTT").unwrap().is_none());

        let many = "x: 1\r\n".repeat(MAX_HEADERS + 1);
        assert_eq!(
            read(&format!("HTTP/1.1 200 OK\r\n{many}\r\n")).unwrap_err(),
            ProtocolError::Head
        );
        let long = format!("HTTP/1.1 200 OK\r\nx: {}", "a".repeat(MAX_HEAD));
        assert_eq!(read(&long).unwrap_err(), ProtocolError::HeadTooLong);
    }

    /// L10: `Content-Length` is one canonical number, and absent if it is not that of the body.
    #[test]
    fn content_length_is_canonical() {
        for (text, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", Some("5")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n", Some("5")),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n",
                Some("5"),
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: 005\r\n", Some("5")),
            (
                "HTTP/1.1 304 Not Modified\r\nContent-Length: 005\r\n",
                Some("5"),
            ),
            ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n", None),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                None,
            ),
        ] {
            let head = head(&format!("{text}\r\n"));
            let lengths: Vec<_> = head
                .headers
                .get_all(CONTENT_LENGTH)
                .iter()
                .map(|value| value.to_str().unwrap())
                .collect();
            assert_eq!(lengths, Vec::from_iter(expected), "{text}");
        }
    }

    /// L1, L10: a connection persists as RFC 9112 section 9.3 specifies, and never after a response
    /// whose end is ambiguous.
    #[test]
    fn persistence() {
        for (line, expected) in [
            ("HTTP/1.1 200 OK\r\n", true),
            ("HTTP/1.1 200 OK\r\nConnection: x, Close\r\n", false),
            (
                "HTTP/1.1 200 OK\r\nConnection: keep-alive, close\r\n",
                false,
            ),
            ("HTTP/1.1 101 Switching Protocols\r\n", false),
            ("HTTP/1.0 200 OK\r\n", false),
            ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n", true),
            (
                "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n",
                false,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n",
                false,
            ),
            ("HTTP/1.1 204 No Content\r\n", true),
            ("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n", true),
            ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n", false),
            (
                "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n",
                false,
            ),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n", true),
            (
                "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n",
                false,
            ),
            ("HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n", false),
            ("HTTP/1.1 200 OK\nContent-Length: 0\r\n", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\n", false),
        ] {
            assert_eq!(head(&format!("{line}\r\n")).keep_alive, expected, "{line}");
        }
    }
}
