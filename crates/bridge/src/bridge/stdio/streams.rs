//! Opens files, pipes and sockets as asynchronous streams.

use std::{fs::File, io};

use tokio::io::{AsyncRead, AsyncWrite};

/// The stream of the client's messages.
pub(crate) type Input = Box<dyn AsyncRead + Send + Unpin>;
/// The stream of the server's messages.
pub(crate) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Opens both streams. Sockets and pipes, which clients usually use, become non-blocking and are registered with the
/// runtime; terminals and files are read and written on threads.
///
/// # Errors
/// When the type of a file cannot be determined, or the runtime does not accept it.
#[cfg(unix)]
pub(crate) fn open(input: File, output: File) -> io::Result<(Input, Output)> {
    use std::os::{
        fd::OwnedFd,
        unix::{fs::FileTypeExt as _, net::UnixStream as Socket},
    };

    use tokio::net::{UnixStream, unix::pipe};

    fn socket(file: File) -> io::Result<UnixStream> {
        let socket = Socket::from(OwnedFd::from(file));
        socket.set_nonblocking(true)?;
        UnixStream::from_std(socket)
    }

    let input_type = input.metadata()?.file_type();
    let output_type = output.metadata()?.file_type();
    let input: Input = if input_type.is_socket() {
        Box::new(socket(input)?)
    } else if input_type.is_fifo() {
        Box::new(pipe::Receiver::from_owned_fd(input.into())?)
    } else {
        Box::new(tokio::fs::File::from_std(input))
    };
    let output: Output = if output_type.is_socket() {
        Box::new(socket(output)?)
    } else if output_type.is_fifo() {
        Box::new(pipe::Sender::from_owned_fd(output.into())?)
    } else {
        Box::new(tokio::fs::File::from_std(output))
    };
    Ok((input, output))
}

/// Opens both streams, to be read and written on threads.
#[cfg(not(unix))]
pub(crate) fn open(input: File, output: File) -> io::Result<(Input, Output)> {
    Ok((Box::new(tokio::fs::File::from_std(input)), Box::new(tokio::fs::File::from_std(output))))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{
        io::{Read as _, Seek as _, Write as _},
        os::{fd::OwnedFd, unix::net::UnixStream},
    };

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

    #[tokio::test]
    async fn a_pipe_is_copied_to_a_socket() {
        let (pipe, mut pipe_writer) = std::io::pipe().unwrap();
        let (socket_reader, socket) = UnixStream::pair().unwrap();
        pipe_writer.write_all(b"text").unwrap();
        drop(pipe_writer);
        copy(pipe, socket).await;
        assert_eq!(read(socket_reader), "text");
    }

    #[tokio::test]
    async fn a_socket_is_copied_to_a_file_and_the_file_to_a_pipe() {
        let scratch = ScratchDirectory::new();
        std::fs::create_dir_all(scratch.path()).unwrap();
        let path = scratch.path().join("log");
        let mut file = File::options().create_new(true).read(true).write(true).open(path).unwrap();
        let (mut socket_writer, socket) = UnixStream::pair().unwrap();
        socket_writer.write_all(b"text").unwrap();
        drop(socket_writer);
        copy(socket, file.try_clone().unwrap()).await;
        file.rewind().unwrap();
        let (pipe_reader, pipe) = std::io::pipe().unwrap();
        copy(file, pipe).await;
        assert_eq!(read(pipe_reader), "text");
    }
}
