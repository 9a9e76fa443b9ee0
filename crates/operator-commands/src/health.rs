//! `portcullis health`: asks the running server whether it is healthy.

pub(super) mod tls;

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use http::StatusCode;
use portcullis_config::{
    Overrides,
    plan::{HEALTH, READY},
};
use portcullis_terminal::print;

use crate::cli;

/// The time limit from the start of the connection to the status line of the response.
const TIMEOUT: Duration = Duration::from_secs(4);
/// The maximum length of the status line of the response.
const MAX_STATUS_LINE: usize = 256;

pub(crate) fn run(arguments: &cli::Health) -> anyhow::Result<()> {
    let overrides = Overrides {
        listen: arguments.listen,
    };
    let config = crate::load(&arguments.config, overrides)?.config;
    let path = if arguments.ready { READY } else { HEALTH };
    let address = portcullis_config::reachable_address(config.listen);
    let status = request(address, path, config.tls.is_some());
    let status = status
        .with_context(|| format!("no response from {address}{path}; is the server running?"))?;
    ensure!(
        status == 200,
        "{address}{path} answered {status}{}",
        hint(arguments.ready)
    );
    Ok(print(format_args!("{address}{path} answered {status}"))?)
}

/// Where to find the reason.
const fn hint(is_ready: bool) -> &'static str {
    if is_ready {
        "; its body and the log of the server have the reason"
    } else {
        ""
    }
}

/// Sends a GET request and returns the status.
fn request(address: SocketAddr, path: &str, is_tls: bool) -> anyhow::Result<u16> {
    let deadline = Instant::now() + TIMEOUT;
    let stream = Timed {
        stream: TcpStream::connect_timeout(&address, TIMEOUT)?,
        deadline,
    };
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let line = if is_tls {
        exchange(tls::connect(stream, address)?, &head)
    } else {
        exchange(stream, &head)
    };
    status(&line?).context("the response is not HTTP/1.1")
}

/// Sends the head of a request and returns the beginning of the response, with at least the status
/// line.
fn exchange(mut stream: impl Read + Write, head: &str) -> io::Result<Vec<u8>> {
    stream.write_all(head.as_bytes())?;
    let mut received = Vec::new();
    let mut buffer = [0; MAX_STATUS_LINE];
    while !received.contains(&b'\n') && received.len() < MAX_STATUS_LINE {
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => received.extend(buffer.iter().take(length)),
        }
    }
    Ok(received)
}

/// A connection on which every read and write fails at the same deadline, also those of a TLS
/// handshake.
struct Timed {
    stream: TcpStream,
    deadline: Instant,
}

impl Timed {
    /// Returns the remaining time, which is not zero.
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            Ok(Some(left))
        }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer).map_err(timed_out)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Unix reports the timeout of a socket as [`io::ErrorKind::WouldBlock`].
fn timed_out(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock {
        io::ErrorKind::TimedOut.into()
    } else {
        error
    }
}

/// Reads the status of a response (RFC 9112 section 4).
fn status(response: &[u8]) -> Option<u16> {
    let line = str::from_utf8(response.split(|byte| *byte == b'\n').next()?).ok()?;
    let status =
        StatusCode::from_bytes(line.strip_prefix("HTTP/1.1 ")?.get(..3)?.as_bytes()).ok()?;
    Some(status.as_u16())
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    #[test]
    fn the_status_is_read() {
        assert_eq!(
            status(b"HTTP/1.1 503 Service Unavailable\r\nDate: x"),
            Some(503)
        );
        for invalid in [
            &b"HTTP/1.0 200 OK\r\n"[..],
            b"HTTP/1.1 20",
            b"HTTP/1.1 2x0\r\n",
            b"HTTP/1.1 +20 OK\r\n",
            b"\xff\n",
            b"",
        ] {
            assert_eq!(status(invalid), None);
        }
    }

    /// A stream that returns the parts of a response one by one.
    struct Parts(Vec<&'static [u8]>);

    impl Read for Parts {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let part = if self.0.is_empty() {
                &b""[..]
            } else {
                self.0.remove(0)
            };
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

    /// The length of a response is bounded, and an incomplete status line is an error.
    #[test]
    fn a_response_is_bounded() {
        let line = exchange(Parts(vec![b"HTTP/1.1 2", b"00 OK\r\n", b"more"]), "").unwrap();
        assert_eq!(status(&line), Some(200));
        let endless = exchange(Parts(vec![&[b'x'; MAX_STATUS_LINE]; 9]), "").unwrap();
        assert_eq!(endless.len(), MAX_STATUS_LINE);
        assert_eq!(
            exchange(Parts(vec![b"HTTP"]), "").unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }

    /// The time of a response is bounded, also if its bytes arrive one by one.
    #[test]
    fn a_slow_response_times_out() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let slow = thread::spawn(move || {
            while server.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        let started = Instant::now();
        let limit = Duration::from_millis(200);
        let error = exchange(
            Timed {
                stream,
                deadline: started + limit,
            },
            "",
        )
        .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(started.elapsed() >= limit, "{:?}", started.elapsed());
        slow.join().unwrap();
    }
}
