//! The socket for administrators: a TCP port, or a unix socket that only the user of the server can
//! use.

use std::{
    fmt, fs, io,
    os::unix::{
        fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
        net::UnixStream as StdUnixStream,
    },
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use portcullis_audit::AdminPeer;
use portcullis_config::file::AdminListen;
use rustix::{
    io::{FdFlags, fcntl_setfd},
    net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket},
};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::{
    connection::listener::{self, bind_beside},
    error::ServeError,
};

/// The number of connections that wait to be accepted.
const BACKLOG: i32 = 64;

/// A bound listener.
pub struct AdminListener(Bound);

enum Bound {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener, SocketFile),
}

/// A listener of the current runtime.
pub(super) enum Listening {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// The file of a unix socket. It is removed with the listener, unless another file has replaced it.
pub(super) struct SocketFile {
    path: PathBuf,
    /// The device and the inode.
    identity: Option<(u64, u64)>,
}

/// An accepted connection.
pub(super) struct Accepted {
    pub(super) stream: AcceptedStream,
    pub(super) peer: AdminPeer,
}

/// The stream of an accepted connection.
pub(super) enum AcceptedStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl AdminListener {
    /// Opens the port, or creates the socket with mode 0600. The socket of a process that has ended
    /// is replaced.
    ///
    /// # Errors
    /// When the place cannot be listened on. The message says how to fix it.
    pub fn bind(listen: &AdminListen) -> Result<Self, ServeError> {
        Self::listen(listen).map_err(ServeError::of)
    }

    fn listen(listen: &AdminListen) -> anyhow::Result<Self> {
        let bound = match listen {
            AdminListen::Tcp(address) => Bound::Tcp(listener::listen(*address, "admin.listen")?),
            AdminListen::Unix(path) => {
                let place = || format!("cannot listen on the unix socket {}", path.display());
                let (listener, file) = bind_unix(path).with_context(place)?;
                Bound::Unix(listener, file)
            }
        };
        Ok(Self(bound))
    }

    /// As [`bind`](Self::bind), while the server listens on `running`.
    pub(super) fn bind_beside(listen: &AdminListen, running: &AdminListen) -> anyhow::Result<Self> {
        match (listen, running) {
            (AdminListen::Tcp(address), AdminListen::Tcp(running)) => {
                bind_beside(*address, *running, "admin.listen")
                    .map(Bound::Tcp)
                    .map(Self)
            }
            _ => Self::listen(listen),
        }
    }

    /// Moves the listener to the current runtime.
    pub(super) fn start(self) -> io::Result<Listening> {
        Ok(match self.0 {
            Bound::Tcp(listener) => Listening::Tcp(TcpListener::from_std(listener)?),
            Bound::Unix(listener, file) => Listening::Unix(UnixListener::from_std(listener)?, file),
        })
    }
}

impl Listening {
    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Accepted {
                    stream: AcceptedStream::Tcp(stream),
                    peer: AdminPeer::Address(address.ip()),
                })
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                let user = stream.peer_cred().map(|credentials| credentials.uid());
                let peer = user.map_or(AdminPeer::Unknown, AdminPeer::User);
                Ok(Accepted {
                    stream: AcceptedStream::Unix(stream),
                    peer,
                })
            }
        }
    }
}

impl fmt::Display for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(listener) => match listener.local_addr() {
                Ok(address) => address.fmt(f),
                Err(_) => f.write_str("an unknown address"),
            },
            Self::Unix(_, file) => write!(f, "unix:{}", file.path.display()),
        }
    }
}

/// Connections are refused until the socket listens, so that none is accepted before its mode is
/// set.
fn bind_unix(path: &Path) -> anyhow::Result<(std::os::unix::net::UnixListener, SocketFile)> {
    remove_stale(path)?;
    let address = SocketAddrUnix::new(path)
        .context("the path is too long; choose one of at most 107 bytes")?;
    let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    bind(&socket, &address).context("the directory must exist and be writable for this process")?;
    let mut file = SocketFile {
        path: path.to_owned(),
        identity: None,
    };
    file.identity = identity(path);
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    listen(&socket, BACKLOG)?;
    let listener = std::os::unix::net::UnixListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok((listener, file))
}

/// Removes a socket on which no process listens.
fn remove_stale(path: &Path) -> anyhow::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if !found.file_type().is_socket() {
        bail!("there is another file, which is not a socket; remove it or change admin.listen");
    }
    match StdUnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Ok(fs::remove_file(path)?)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => {
            Err(error).context("another process may listen there; stop it or change admin.listen")
        }
        Ok(_) => bail!("another process listens there; stop it or change admin.listen"),
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path)
        .ok()
        .map(|metadata| (metadata.dev(), metadata.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            // The next process replaces it if it cannot be removed.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener as StdUnixListener;

    use super::*;

    fn bind_at(path: &Path) -> Result<AdminListener, String> {
        AdminListener::listen(&AdminListen::Unix(path.to_owned()))
            .map_err(|error| format!("{error:#}"))
    }

    /// E12: the socket is for its user only, and is removed with the listener.
    #[test]
    fn the_socket_is_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("admin.sock");
        let listener = bind_at(&path).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(StdUnixStream::connect(&path).is_ok());
        let error = bind_at(&path).err().unwrap();
        assert!(error.contains("another process listens"), "{error}");
        drop(listener);
        assert!(!path.exists());
    }

    /// E12: the socket of a process that was killed is replaced. Other files are not.
    #[test]
    fn only_stale_sockets_are_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("admin.sock");
        drop(StdUnixListener::bind(&path).unwrap());
        assert!(path.exists());

        let listener = bind_at(&path).unwrap();
        assert!(StdUnixStream::connect(&path).is_ok());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "precious").unwrap();
        drop(listener);
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "precious",
            "a file that replaced the socket stays"
        );

        let error = bind_at(&path).err().unwrap();
        assert!(error.contains("not a socket"), "{error}");
        let error = bind_at(&directory.path().join("missing/admin.sock"))
            .err()
            .unwrap();
        assert!(error.contains("directory"), "{error}");

        let error = bind_at(&directory.path().join("x".repeat(200)))
            .err()
            .unwrap();
        assert!(error.contains("too long"), "{error}");
    }
}
