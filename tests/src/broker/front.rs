//! [`Front`]: a load balancer that passes all connections on to one server.

use std::{net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

/// A load balancer that passes all new connections on to one server, which can be replaced. A
/// connection ends if the server does not accept it.
pub(super) struct Front {
    address: SocketAddr,
    server: Arc<Mutex<SocketAddr>>,
    task: AbortHandle,
}

impl Front {
    /// Starts to listen on a free port.
    pub(super) async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let server = Arc::new(Mutex::new(server));
        let task = tokio::spawn(accept(listener, Arc::clone(&server)));
        Self {
            address,
            server,
            task: task.abort_handle(),
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Passes new connections on to this server.
    pub(super) fn pass_to(&self, server: SocketAddr) {
        *self.server.lock() = server;
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, server: Arc<Mutex<SocketAddr>>) {
    loop {
        // A client can reset its connection before it is accepted.
        let Ok((mut client, _)) = listener.accept().await else {
            continue;
        };
        let server = *server.lock();
        tokio::spawn(async move {
            if let Ok(mut server) = TcpStream::connect(server).await {
                // A side that ends early ends the other one as well.
                let _ = copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}
