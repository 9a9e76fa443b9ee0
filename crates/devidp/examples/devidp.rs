//! Starts a development authorization server on port 9000 and stops at Ctrl-C:
//! `cargo run -p portcullis-devidp --example devidp`. It logs where it listens.

use std::net::SocketAddr;

use portcullis_devidp::{DevIdp, DevIdpError, DevIdpSettings};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), DevIdpError> {
    tracing_subscriber::fmt().init();
    let listen = SocketAddr::from(([127, 0, 0, 1], 9000));
    let server = DevIdp::bind(DevIdpSettings {
        listen,
        ..DevIdpSettings::default()
    })
    .await?;
    server
        .serve(async {
            let _ = tokio::signal::ctrl_c().await;
        })
        .await;
    Ok(())
}
