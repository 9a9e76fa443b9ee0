//! Standard input and output, for the protocol alone.

use std::{
    fs::File,
    io,
    os::fd::{AsFd as _, OwnedFd},
    os::unix::net::UnixStream as Socket,
};

use rustix::fs::{FileType, fstat};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{UnixStream, unix::pipe},
};

/// What carries the protocol.
pub(super) struct Streams {
    input: OwnedFd,
    output: OwnedFd,
}

impl Streams {
    /// Takes standard input and output away from everything else in this process: whatever reads or prints from here on,
    /// a browser that was started for instance, meets nothing and standard error in their places.
    pub(super) fn take() -> io::Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        rustix::stdio::dup2_stdout(io::stderr())?;
        Ok(Self { input, output })
    }

    /// Both ends, to be used in a runtime. Sockets and pipes, which clients start programs with, are waited for by the
    /// runtime itself; a terminal or a file is read on a thread.
    pub(super) fn open(self) -> io::Result<(Input, Output)> {
        let input: Input = match kind(&self.input)? {
            FileType::Socket => Box::new(socket(self.input)?),
            FileType::Fifo => Box::new(pipe::Receiver::from_owned_fd(self.input)?),
            _ => Box::new(tokio::fs::File::from_std(self.input.into())),
        };
        let output: Output = match kind(&self.output)? {
            FileType::Socket => Box::new(socket(self.output)?),
            FileType::Fifo => Box::new(pipe::Sender::from_owned_fd(self.output)?),
            _ => Box::new(tokio::fs::File::from_std(self.output.into())),
        };
        Ok((input, output))
    }
}

/// Where the client's messages come from.
pub(super) type Input = Box<dyn AsyncRead + Send + Unpin>;
/// Where the server's go.
pub(super) type Output = Box<dyn AsyncWrite + Send + Unpin>;

fn kind(stream: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(fstat(stream)?.st_mode))
}

fn socket(stream: OwnedFd) -> io::Result<UnixStream> {
    let stream = Socket::from(stream);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
