//! [`ReservedPort`]: a loopback port that no other socket is given.

use std::net::SocketAddr;

use tokio::net::TcpSocket;

/// A loopback port that is bound, but not listened on. It refuses connections, and the system gives
/// it to no other socket. A program can listen on it by its number.
pub struct ReservedPort {
    address: SocketAddr,
    _socket: TcpSocket,
}

impl ReservedPort {
    /// Reserves a free port until the value is dropped.
    ///
    /// # Panics
    /// Panics if there is no free port.
    #[expect(clippy::new_without_default, reason = "each one is different")]
    pub fn new() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        // With this option on both sockets, the program under test can bind the port, too.
        socket.set_reuseaddr(true).expect("an option of the socket");
        socket
            .bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .expect("a free port");
        Self {
            address: socket.local_addr().expect("an address"),
            _socket: socket,
        }
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::ErrorKind,
        net::{TcpListener, TcpStream},
    };

    use super::*;

    #[test]
    fn a_reserved_port_refuses_connections_until_a_program_listens() {
        let reserved = ReservedPort::new();
        let refused = TcpStream::connect(reserved.address()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);

        let _listener = TcpListener::bind(reserved.address()).unwrap();
        TcpStream::connect(reserved.address()).unwrap();
    }
}
