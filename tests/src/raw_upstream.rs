use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

/// An upstream that answers every request with the same bytes, well formed or not, and closes.
pub struct RawUpstream {
    address: SocketAddr,
}

impl RawUpstream {
    /// Starts it on a free port.
    ///
    /// # Panics
    /// When no port can be had.
    pub async fn start(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let answer = answer.clone();
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
                        if !matches!(stream.read_buf(&mut head).await, Ok(count) if count > 0) {
                            return;
                        }
                    }
                    // Whether the other side still listens is its own affair.
                    let _ = stream.write_all(&answer).await;
                    let _ = stream.shutdown().await;
                    let mut rest = Vec::new();
                    let _ = stream.read_to_end(&mut rest).await;
                });
            }
        });
        Self { address }
    }

    /// Its endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/backend", self.address)
    }
}
