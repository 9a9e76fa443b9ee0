//! The upstream of the streams: GET opens one, with one event, and everything else opens a session.

use anyhow::Context as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

const SESSION: &[u8] = b"HTTP/1.1 200 OK\r\nMcp-Session-Id: 0e3b5d5c-6a1f-4a0e-8d57-2f6c9b7e1a43\r\n\
    Content-Type: application/json\r\nContent-Length: 80\r\n\r\n\
    {\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":\"2025-11-25\",\"x\":\"0123456\"}}";
const STREAM: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
    a\r\ndata: {}\n\n\r\n";

/// Serves until the process is killed. Prints its address first.
pub(crate) fn run() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("no free port")?;
        println!("{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(serve(stream));
        }
    })
}

/// Each request arrives in one piece.
async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut received = vec![0; 4096];
    loop {
        let length = stream.read(&mut received).await?;
        if length == 0 {
            return Ok(());
        }
        stream
            .write_all(if received.starts_with(b"GET ") {
                STREAM
            } else {
                SESSION
            })
            .await?;
    }
}
