use std::{
    io,
    net::{SocketAddr, TcpListener},
};

use anyhow::{Context as _, anyhow, ensure};
use listenfd::ListenFd;
use tokio::net::TcpSocket;

use crate::error::ServeError;

/// Opens the port. `setting` is the option or the key that names it.
///
/// # Errors
/// When the address cannot be listened on. The message contains the fix.
pub fn bind(address: SocketAddr, setting: &str) -> Result<TcpListener, ServeError> {
    listen(address, setting).map_err(ServeError::of)
}

pub(crate) fn listen(address: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).map_err(|error| {
        let fix = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "stop the program that uses the port, or choose another with"
            }
            io::ErrorKind::AddrNotAvailable => "name an address of this machine with",
            io::ErrorKind::PermissionDenied => {
                "allow this process to use the port, or choose one from 1024 on with"
            }
            _ => "choose another address with",
        };
        anyhow!(error).context(format!("cannot listen on {address}; {fix} {setting}"))
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Returns whether a process listens on the address. The test binds a socket and does not listen,
/// so that no client can connect to it, and another process can bind the port at the same time.
pub(crate) fn is_in_use(address: SocketAddr) -> bool {
    let bind = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        socket.bind(address)
    };
    bind().is_err_and(|error: io::Error| error.kind() == io::ErrorKind::AddrInUse)
}

/// As [`listen`], while the server listens on `running`, which the address replaces.
pub(crate) fn bind_beside(
    address: SocketAddr,
    running: SocketAddr,
    setting: &str,
) -> anyhow::Result<TcpListener> {
    listen(address, setting).map_err(|error| {
        let is_in_use = error
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::AddrInUse);
        if is_in_use && address.port() == running.port() {
            anyhow!(
                "cannot listen on {address} while the server listens on {running}, which has the same port; restart the \
                 server, or choose another port with {setting}"
            )
        } else {
            error
        }
    })
}

/// A listening socket that a service manager opened and passes to this process. It outlives the
/// process: between two processes, clients wait in its queue.
pub struct PassedListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl PassedListener {
    /// Returns the socket of `LISTEN_FDS`; `None` if there is none for this process (`LISTEN_PID`).
    ///
    /// # Errors
    /// When there are several, or it is not a listening TCP socket. The message contains the fix.
    pub fn from_environment() -> Result<Option<Self>, ServeError> {
        Self::passed().map_err(ServeError::of)
    }

    fn passed() -> anyhow::Result<Option<Self>> {
        // `listenfd` also takes sockets whose `LISTEN_PID` is missing. They could be meant for
        // another process.
        if std::env::var_os("LISTEN_PID").is_none_or(|process| process.is_empty()) {
            return Ok(None);
        }
        let mut passed = ListenFd::from_env();
        if passed.len() == 0 {
            return Ok(None);
        }
        ensure!(
            passed.len() == 1,
            "LISTEN_FDS passes {} sockets, and the server listens on one; keep one ListenStream= in the socket unit",
            passed.len()
        );
        let listener = passed.take_tcp_listener(0).context(
            "LISTEN_FDS does not pass a TCP socket; use an address and a port, such as ListenStream=127.0.0.1:3000, in the \
             socket unit",
        )?;
        let listener = listener.context("LISTEN_FDS passes no socket")?;
        ensure!(
            is_listening(&listener)?,
            "LISTEN_FDS passes a TCP socket that does not listen; remove Accept=yes from the socket unit"
        );
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Some(Self { listener, address }))
    }

    /// Returns the address that the socket listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Checks that the socket listens on the configured address. Port 0 stands for any port.
    ///
    /// # Errors
    /// When it does not. The message contains the fix.
    pub fn check_address(&self, configured: SocketAddr) -> Result<(), ServeError> {
        let is_same_port = configured.port() == 0 || configured.port() == self.address.port();
        if configured.ip() == self.address.ip() && is_same_port {
            return Ok(());
        }
        Err(ServeError::of(anyhow!(
            "LISTEN_FDS passes a socket on {}, and `listen` is {configured}; remove `listen` or make it the same as \
             ListenStream= in the socket unit",
            self.address
        )))
    }

    /// Returns the socket.
    pub fn into_listener(self) -> TcpListener {
        self.listener
    }
}

/// Returns whether a socket listens. macOS has no such option; a socket that does not listen fails
/// in `accept` there.
fn is_listening(socket: &TcpListener) -> io::Result<bool> {
    #[cfg(not(target_vendor = "apple"))]
    return Ok(rustix::net::sockopt::socket_acceptconn(socket)?);
    #[cfg(target_vendor = "apple")]
    return Ok(socket.local_addr().is_ok());
}

#[cfg(test)]
mod tests {
    use portcullis_testkit::ReservedPort;

    use super::*;

    /// J9: the fix depends on the cause.
    #[test]
    fn the_fix_depends_on_the_cause() {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0)), "--listen").unwrap();
        // RFC 5737: no machine has this address.
        let foreign = SocketAddr::from(([192, 0, 2, 1], 0));
        for (address, fix) in [
            (
                listener.local_addr().unwrap(),
                "stop the program that uses the port, or choose another with --listen",
            ),
            (foreign, "name an address of this machine with --listen"),
        ] {
            let error = bind(address, "--listen").unwrap_err().to_string();
            assert_eq!(error, format!("cannot listen on {address}; {fix}"));
        }
    }

    /// N4: a test of the address finds a listener on it or on all addresses, and disturbs no other
    /// process.
    #[test]
    fn an_address_in_use_is_found() {
        let port = ReservedPort::new();
        let address = port.address();
        let listener = bind(address, "listen").unwrap();
        assert!(is_in_use(address));
        assert!(is_in_use(SocketAddr::from(([0, 0, 0, 0], address.port()))));
        assert!(!is_in_use(SocketAddr::from(([127, 0, 0, 1], 0))));
        let foreign = SocketAddr::from(([192, 0, 2, 1], 1));
        assert!(!is_in_use(foreign), "another error is that of `bind`");

        // A connection that the listener has closed does not keep the address in use.
        let client = std::net::TcpStream::connect(address).unwrap();
        listener.set_nonblocking(false).unwrap();
        drop(listener.accept().unwrap());
        drop((client, listener));
        assert!(!is_in_use(address));
        drop(bind(address, "listen").unwrap());
    }

    /// The configured address must be that of the passed socket.
    #[test]
    fn the_configured_address_must_match() {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0)), "--listen").unwrap();
        let address = listener.local_addr().unwrap();
        let passed = PassedListener { listener, address };
        for matching in [address, SocketAddr::from(([127, 0, 0, 1], 0))] {
            assert!(passed.check_address(matching).is_ok());
        }
        let other_port = SocketAddr::new(address.ip(), address.port() ^ 1);
        for other in [
            other_port,
            SocketAddr::from(([0, 0, 0, 0], address.port())),
            SocketAddr::from(([0; 16], 0)),
        ] {
            let error = passed.check_address(other).unwrap_err().to_string();
            assert!(error.contains(&address.to_string()), "{error}");
            assert!(error.contains("remove `listen`"), "{error}");
        }
    }
}
