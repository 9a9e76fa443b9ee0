//! A REST API behind the guard:
//! `cargo run -p portcullis-examples --example axum -- https://issuer.example`
//!
//! Without a token, `curl -i http://127.0.0.1:3001/reports` shows the challenge. A token of the
//! issuer for `http://127.0.0.1:3001/` needs the scope `reports:read`, and `reports:write` as well
//! to post.

use std::error::Error;

use axum::{Router, http::Method, routing::get};
use portcullis_guard::{Caller, GuardLayer, Verifier};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let issuer = std::env::args().nth(1).ok_or("usage: axum ISSUER")?;
    let app = app("http://127.0.0.1:3001/", &issuer)?;
    Ok(axum::serve(TcpListener::bind("127.0.0.1:3001").await?, app).await?)
}

/// The API, known as `resource`, for tokens of `issuer`.
pub(crate) fn app(resource: &str, issuer: &str) -> Result<Router, Box<dyn Error>> {
    let verifier = Verifier::builder(resource).issuer(issuer).build()?;
    let guard = GuardLayer::builder(verifier)
        .required_scopes("reports:read")
        .route([Method::POST], "/reports/**", "reports:write")
        .public_path("/healthz")
        .build()?;
    let app = Router::new()
        .route("/reports", get(whoami).post(whoami))
        .route("/healthz", get(async || "ok"));
    Ok(app.layer(guard))
}

async fn whoami(caller: Caller) -> String {
    caller.subject().unwrap_or("unknown").to_owned()
}
