//! Opens files, pipes and sockets as asynchronous streams.

#[cfg(unix)]
mod non_blocking;

use std::{fs::File, io};

use tokio::io::{AsyncRead, AsyncWrite};

/// The stream of the client's messages.
pub(crate) type Input = Box<dyn AsyncRead + Send + Unpin>;
/// The stream of the server's messages.
pub(crate) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Opens both streams. Sockets and pipes, which clients usually use, become non-blocking and are
/// registered with the runtime. When both streams are dropped, they block again. Terminals, files
/// and other devices are read and written on threads, and so is a socket or pipe that is also
/// standard error: log lines would be lost if it became non-blocking. Fails when the type or the
/// mode of a file cannot be read, when the runtime cannot register it, and when the end of a pipe
/// is not the right one. The message says whether it is the input or the output. Panics outside a
/// runtime with I/O.
#[cfg(unix)]
pub(crate) fn open(input: File, output: File) -> io::Result<(Input, Output)> {
    use std::os::fd::AsFd as _;

    open_beside(input, output, io::stderr().as_fd())
}

/// Opens both streams, to be read and written on threads. Never fails.
#[cfg(not(unix))]
pub(crate) fn open(input: File, output: File) -> io::Result<(Input, Output)> {
    Ok((
        Box::new(tokio::fs::File::from_std(input)),
        Box::new(tokio::fs::File::from_std(output)),
    ))
}

/// Opens both streams. Neither becomes non-blocking if it is the same as `errors`.
#[cfg(unix)]
fn open_beside(
    input: File,
    output: File,
    errors: std::os::fd::BorrowedFd<'_>,
) -> io::Result<(Input, Output)> {
    use std::{
        os::{
            fd::OwnedFd,
            unix::{fs::FileTypeExt as _, net::UnixStream as Socket},
        },
        sync::Arc,
    };

    use non_blocking::{NonBlocking, Registered};
    use tokio::net::{UnixStream, unix::pipe};

    /// How a file is read or written.
    enum Access {
        Socket,
        Pipe,
        Threads,
    }

    let mut mode = NonBlocking::default();
    let mut access_of = |file: &File| -> io::Result<Access> {
        let file_type = file.metadata()?.file_type();
        let access = if file_type.is_socket() {
            Access::Socket
        } else if file_type.is_fifo() {
            Access::Pipe
        } else {
            return Ok(Access::Threads);
        };
        Ok(if mode.set(file, errors)? {
            access
        } else {
            Access::Threads
        })
    };
    let input_access = access_of(&input).map_err(in_stream("input"))?;
    let output_access = access_of(&output).map_err(in_stream("output"))?;
    let mode = Arc::new(mode);
    // Reads and writes bytes only, so a stream socket of any domain can be used.
    let socket = |file: File| UnixStream::from_std(Socket::from(OwnedFd::from(file)));
    let open_input = || -> io::Result<Input> {
        Ok(match input_access {
            Access::Socket => Box::new(Registered::new(socket(input)?, &mode)),
            Access::Pipe => Box::new(Registered::new(
                pipe::Receiver::from_owned_fd(input.into())?,
                &mode,
            )),
            Access::Threads => Box::new(tokio::fs::File::from_std(input)),
        })
    };
    let open_output = || -> io::Result<Output> {
        Ok(match output_access {
            Access::Socket => Box::new(Registered::new(socket(output)?, &mode)),
            Access::Pipe => Box::new(Registered::new(
                pipe::Sender::from_owned_fd(output.into())?,
                &mode,
            )),
            Access::Threads => Box::new(tokio::fs::File::from_std(output)),
        })
    };
    Ok((
        open_input().map_err(in_stream("input"))?,
        open_output().map_err(in_stream("output"))?,
    ))
}

/// Returns a function that adds to an error in which stream it occurred.
#[cfg(unix)]
fn in_stream(name: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("the {name} cannot be used: {error}"))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{
        io::{Read as _, Seek as _, Write as _},
        os::{
            fd::{AsFd, OwnedFd},
            unix::net::UnixStream,
        },
    };

    use rustix::fs::{OFlags, fcntl_getfl};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::testing::ScratchDirectory;

    /// Copies everything from one file to another.
    async fn copy(input: impl Into<OwnedFd>, output: impl Into<OwnedFd>) {
        let (mut input, mut output) = open(input.into().into(), output.into().into()).unwrap();
        let mut text = String::new();
        input.read_to_string(&mut text).await.unwrap();
        output.write_all(text.as_bytes()).await.unwrap();
        output.flush().await.unwrap();
    }

    fn read(file: impl Into<OwnedFd>) -> String {
        let mut text = String::new();
        File::from(file.into()).read_to_string(&mut text).unwrap();
        text
    }

    fn is_non_blocking(file: impl AsFd) -> bool {
        fcntl_getfl(file).unwrap().contains(OFlags::NONBLOCK)
    }

    /// Returns a new file in a directory.
    fn file_in(scratch: &ScratchDirectory) -> File {
        File::options()
            .create_new(true)
            .read(true)
            .write(true)
            .open(scratch.path().join("file"))
            .unwrap()
    }

    #[tokio::test]
    async fn a_pipe_is_copied_to_a_socket() {
        let (pipe, mut pipe_writer) = io::pipe().unwrap();
        let (socket_reader, socket) = UnixStream::pair().unwrap();
        pipe_writer.write_all(b"text").unwrap();
        drop(pipe_writer);
        copy(pipe, socket).await;
        assert_eq!(read(socket_reader), "text");
    }

    #[tokio::test]
    async fn a_socket_is_copied_to_a_file() {
        let scratch = ScratchDirectory::created();
        let mut file = file_in(&scratch);
        let (mut socket_writer, socket) = UnixStream::pair().unwrap();
        socket_writer.write_all(b"text").unwrap();
        drop(socket_writer);
        copy(socket, file.try_clone().unwrap()).await;
        file.rewind().unwrap();
        assert_eq!(read(file), "text");
    }

    #[tokio::test]
    async fn a_file_is_copied_to_a_pipe() {
        let scratch = ScratchDirectory::created();
        let mut file = file_in(&scratch);
        file.write_all(b"text").unwrap();
        file.rewind().unwrap();
        let (pipe_reader, pipe) = io::pipe().unwrap();
        copy(file, pipe).await;
        assert_eq!(read(pipe_reader), "text");
    }

    /// A device is neither a pipe nor a socket, and need not be a file.
    #[tokio::test]
    async fn a_device_is_read_and_written() {
        let null = || {
            File::options()
                .read(true)
                .write(true)
                .open("/dev/null")
                .unwrap()
        };
        copy(null(), null()).await;
    }

    /// A TCP socket is a stream socket, too.
    #[tokio::test]
    async fn a_tcp_socket_is_read() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"text").unwrap();
        drop(client);
        let (pipe_reader, pipe) = io::pipe().unwrap();
        copy(listener.accept().unwrap().0, pipe).await;
        assert_eq!(read(pipe_reader), "text");
    }

    /// The error names the stream, and the other one is as before.
    #[tokio::test]
    async fn the_wrong_end_of_a_pipe_is_an_error() {
        let ((reader, writer), (other_reader, other_writer)) =
            (io::pipe().unwrap(), io::pipe().unwrap());
        let open = |input: OwnedFd, output: OwnedFd| {
            open(input.into(), output.into()).err().unwrap().to_string()
        };
        let error = open(
            writer.try_clone().unwrap().into(),
            other_writer.try_clone().unwrap().into(),
        );
        assert!(error.starts_with("the input cannot be used: "), "{error}");
        let error = open(
            reader.try_clone().unwrap().into(),
            other_reader.try_clone().unwrap().into(),
        );
        assert!(error.starts_with("the output cannot be used: "), "{error}");
        assert!(
            ![
                reader.as_fd(),
                writer.as_fd(),
                other_reader.as_fd(),
                other_writer.as_fd()
            ]
            .iter()
            .any(is_non_blocking)
        );
    }

    /// Other processes with the same pipe or socket, such as the next command of a script, get it
    /// back as it was.
    #[tokio::test]
    async fn streams_block_again_at_the_end() {
        let (one, other) = UnixStream::pair().unwrap();
        // One socket for both directions, as some clients have it.
        let (input, output) = open(
            OwnedFd::from(one.try_clone().unwrap()).into(),
            OwnedFd::from(one.try_clone().unwrap()).into(),
        )
        .unwrap();
        assert!(is_non_blocking(&one));
        drop(input);
        assert!(is_non_blocking(&one), "the output is in use");
        drop(output);
        assert!(!is_non_blocking(&one));
        assert!(!is_non_blocking(&other));
        let (pipe, _writer) = io::pipe().unwrap();
        rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK).unwrap();
        let kept = pipe.try_clone().unwrap();
        drop(open(OwnedFd::from(pipe).into(), OwnedFd::from(other).into()).unwrap());
        assert!(is_non_blocking(&kept), "it was non-blocking before");
    }

    /// With `2>&1`, standard error is the output. It stays blocking, so that no log line is lost.
    #[tokio::test]
    async fn the_pipe_of_standard_error_stays_blocking() {
        let (reader, writer) = io::pipe().unwrap();
        let (mut input_writer, input) = UnixStream::pair().unwrap();
        input_writer.write_all(b"text").unwrap();
        drop(input_writer);
        let output = OwnedFd::from(writer.try_clone().unwrap());
        let (mut input, mut output) =
            open_beside(OwnedFd::from(input).into(), output.into(), writer.as_fd()).unwrap();
        assert!(!is_non_blocking(&writer));
        let mut text = String::new();
        input.read_to_string(&mut text).await.unwrap();
        output.write_all(text.as_bytes()).await.unwrap();
        output.flush().await.unwrap();
        drop((output, writer));
        assert_eq!(read(reader), "text");
    }
}
