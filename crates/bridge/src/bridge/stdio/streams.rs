//! Opens files, pipes and sockets as asynchronous streams.

use std::{fs::File, io};

use tokio::io::{AsyncRead, AsyncWrite};

/// The stream of the client's messages.
pub(crate) type Input = Box<dyn AsyncRead + Send + Unpin>;
/// The stream of the server's messages.
pub(crate) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Opens both streams. Sockets and pipes, which clients usually use, are registered with the runtime; terminals and
/// files are read on a thread.
#[cfg(unix)]
pub(crate) fn open(input: File, output: File) -> io::Result<(Input, Output)> {
    use std::os::{
        fd::OwnedFd,
        unix::{fs::FileTypeExt as _, net::UnixStream as Socket},
    };

    use tokio::net::{UnixStream, unix::pipe};

    fn socket(end: File) -> io::Result<UnixStream> {
        let socket = Socket::from(OwnedFd::from(end));
        socket.set_nonblocking(true)?;
        UnixStream::from_std(socket)
    }

    let (read, written) = (input.metadata()?.file_type(), output.metadata()?.file_type());
    let input: Input = if read.is_socket() {
        Box::new(socket(input)?)
    } else if read.is_fifo() {
        Box::new(pipe::Receiver::from_owned_fd(input.into())?)
    } else {
        Box::new(tokio::fs::File::from_std(input))
    };
    let output: Output = if written.is_socket() {
        Box::new(socket(output)?)
    } else if written.is_fifo() {
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

    async fn carried(input: File, output: File) -> String {
        let (mut input, mut output) = open(input, output).unwrap();
        let mut text = String::new();
        input.read_to_string(&mut text).await.unwrap();
        output.write_all(text.as_bytes()).await.unwrap();
        output.flush().await.unwrap();
        text
    }

    #[tokio::test]
    async fn pipes_sockets_and_files_carry_messages() {
        let (read, mut write) = std::io::pipe().unwrap();
        let (mut back, output) = UnixStream::pair().unwrap();
        write.write_all(b"by pipe").unwrap();
        drop(write);
        assert_eq!(carried(OwnedFd::from(read).into(), OwnedFd::from(output).into()).await, "by pipe");
        let mut text = String::new();
        back.read_to_string(&mut text).unwrap();
        assert_eq!(text, "by pipe");

        let scratch = ScratchDirectory::new();
        std::fs::create_dir_all(scratch.path()).unwrap();
        let path = scratch.path().join("log");
        let mut log = File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
        let (mut near, input) = UnixStream::pair().unwrap();
        near.write_all(b"by socket").unwrap();
        drop(near);
        assert_eq!(carried(OwnedFd::from(input).into(), log.try_clone().unwrap()).await, "by socket");
        log.rewind().unwrap();
        let (read, write) = std::io::pipe().unwrap();
        assert_eq!(carried(log, OwnedFd::from(write).into()).await, "by socket");
        let mut text = String::new();
        File::from(OwnedFd::from(read)).read_to_string(&mut text).unwrap();
        assert_eq!(text, "by socket");
    }
}
