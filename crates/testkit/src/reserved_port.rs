//! [`ReservedPort`]: a loopback port that no other socket is given.

use std::net::SocketAddr;

use tokio::net::TcpSocket;

/// A loopback port that is bound, but not listened on. It refuses connections, and the system gives
/// it to no other socket. A program can listen on it by its number, at any address of IPv4.
#[derive(Debug)]
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
        // At all addresses: a program that listens there would conflict with a connection that uses
        // the port at another address.
        socket
            .bind(SocketAddr::from(([0, 0, 0, 0], 0)))
            .expect("a free port");
        let port = socket.local_addr().expect("an address").port();
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], port)),
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

        for address in ["127.0.0.1", "0.0.0.0"] {
            let _listener = TcpListener::bind((address, reserved.port())).unwrap();
            TcpStream::connect(reserved.address()).unwrap();
        }
    }

    #[test]
    fn no_client_gets_a_reserved_port_at_another_address() {
        let reserved = ReservedPort::new();
        let client = TcpSocket::new_v4().unwrap();
        let other = SocketAddr::from(([127, 0, 0, 2], reserved.port()));
        let error = client.bind(other).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
    }
}
