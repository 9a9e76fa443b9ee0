//! `portcullis health`: asks the running server whether it is healthy.

pub(super) mod tls;

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};

use crate::{
    cli,
    config::{self, Overrides},
    plan::{HEALTH, READY, all_errors},
};

/// The time limit for the connection and for the response.
const TIMEOUT: Duration = Duration::from_secs(4);
/// The maximum length of the status line of the response.
const MAX_STATUS_LINE: usize = 256;

pub(crate) fn run(arguments: &cli::Health) -> anyhow::Result<()> {
    let config = config::load(&arguments.config, Overrides { listen: arguments.listen }).map_err(all_errors)?.config;
    let path = if arguments.ready { READY } else { HEALTH };
    let address = config::reachable_address(config.listen);
    let status = request(address, path, config.tls.is_some());
    let status = status.with_context(|| format!("no response from {address}{path}; is the server running?"))?;
    ensure!(status == 200, "{address}{path} answered {status}{}", hint(arguments.ready));
    Ok(super::print(format_args!("{address}{path} answered {status}"))?)
}

/// Where to find the reason.
const fn hint(is_ready: bool) -> &'static str {
    if is_ready { "; its body and the log of the server have the reason" } else { "" }
}

/// Sends a GET request and returns the status.
fn request(address: SocketAddr, path: &str, is_tls: bool) -> anyhow::Result<u16> {
    let deadline = Instant::now() + TIMEOUT;
    let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let line = if is_tls {
        exchange(tls::connect(stream, address)?, &head, deadline)
    } else {
        exchange(stream, &head, deadline)
    };
    status(&line?).context("the response is not HTTP/1.1")
}

/// Sends the head of a request and returns the beginning of the response, with at least the status line.
fn exchange(mut stream: impl Read + Write, head: &str, deadline: Instant) -> io::Result<Vec<u8>> {
    stream.write_all(head.as_bytes())?;
    let mut received = Vec::new();
    let mut buffer = [0; MAX_STATUS_LINE];
    while !received.contains(&b'\n') && received.len() < MAX_STATUS_LINE {
        if Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => received.extend(buffer.iter().take(length)),
        }
    }
    Ok(received)
}

/// Reads the status of a response (RFC 9112 section 4).
fn status(response: &[u8]) -> Option<u16> {
    let line = str::from_utf8(response.split(|byte| *byte == b'\n').next()?).ok()?;
    line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_read() {
        assert_eq!(status(b"HTTP/1.1 503 Service Unavailable\r\nDate: x"), Some(503));
        for invalid in [&b"HTTP/1.0 200 OK\r\n"[..], b"HTTP/1.1 20", b"HTTP/1.1 2x0\r\n", b"\xff\n", b""] {
            assert_eq!(status(invalid), None);
        }
    }

    /// A stream that returns the parts of a response one by one.
    struct Parts(Vec<&'static [u8]>);

    impl Read for Parts {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let part = if self.0.is_empty() { &b""[..] } else { self.0.remove(0) };
            buffer[..part.len()].copy_from_slice(part);
            Ok(part.len())
        }
    }

    impl Write for Parts {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The length and the time of a response are bounded, and an incomplete status line is an error.
    #[test]
    fn a_response_is_bounded() {
        let later = Instant::now() + TIMEOUT;
        let line = exchange(Parts(vec![b"HTTP/1.1 2", b"00 OK\r\n", b"more"]), "", later).unwrap();
        assert_eq!(status(&line), Some(200));
        let endless = exchange(Parts(vec![&[b'x'; MAX_STATUS_LINE]; 9]), "", later).unwrap();
        assert_eq!(endless.len(), MAX_STATUS_LINE);
        assert_eq!(exchange(Parts(vec![b"HTTP"]), "", later).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let late = exchange(Parts(vec![b"HTTP/1.1 200 OK\r\n"]), "", Instant::now() - Duration::from_millis(1));
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
