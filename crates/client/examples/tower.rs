//! An HTTP client, as a tower service, that obtains a token when the resource requires one.
//!
//! ```sh
//! portcullis demo                                                       # in another terminal
//! cargo run -p portcullis-client --example tower -- http://127.0.0.1:3000/mcp
//! ```
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool"
)]

use std::{env, error::Error, sync::Arc};

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use portcullis_client::{
    Authorizer, LoopbackRedirect, StartUrl, TokenManager, service::AuthorizeLayer,
};
use tower::{ServiceBuilder, ServiceExt as _};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let start = StartUrl::parse(
        &env::args()
            .nth(1)
            .ok_or("give the URL of a protected resource")?,
    )?;
    let browser = LoopbackRedirect::bind_for(&start, |url| eprintln!("please visit {url}")).await?;
    let authorizer = Authorizer::builder(Arc::new(browser)).build()?;
    let token_manager = Arc::new(TokenManager::new(start.clone(), Arc::new(authorizer)));

    // Any HTTP client that is a tower service can be used. This one supports only http, which the
    // demo uses.
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let client = ServiceBuilder::new()
        .layer(AuthorizeLayer::new(token_manager))
        .service(client);

    let message = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
        "capabilities":{},"clientInfo":{"name":"example","version":"1"}}}"#;
    let request = Request::post(start.url().as_str())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, text/event-stream")
        .body(Full::from(message))?;
    let response = client.oneshot(request).await?;
    println!("{}", response.status());
    println!(
        "{}",
        String::from_utf8_lossy(&response.into_body().collect().await?.to_bytes())
    );
    Ok(())
}
