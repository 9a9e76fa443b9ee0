//! The headers for a protected resource, for any HTTP library.
//!
//! ```sh
//! portcullis demo                                                       # in another terminal
//! cargo run -p portcullis-client --example header -- http://127.0.0.1:3000/mcp
//! ```
//!
//! If `PORTCULLIS_TOKEN` is set, the example uses this token and needs no sign-in.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool"
)]

use std::{env, error::Error, sync::Arc};

use http::{HeaderMap, Method};
use portcullis_client::{
    AccessToken, Authorizer, AuthorizerSettings, LoopbackRedirect, StartUrl, TokenManager,
    store::CredentialStore,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let start = StartUrl::parse(
        &env::args()
            .nth(1)
            .ok_or("give the URL of a protected resource")?,
    )?;
    let token_manager = Arc::new(match env::var("PORTCULLIS_TOKEN") {
        Ok(token) => TokenManager::with_access_token(start.clone(), AccessToken::new(token)),
        Err(_) => TokenManager::new(start.clone(), Arc::new(authorizer(&start).await?)),
    });

    // A stored token is used, and refreshed if it expires soon. Without one, the user signs in.
    let mut headers = HeaderMap::new();
    token_manager
        .request_authorization()
        .authorize(&Method::POST, start.url(), &mut headers)
        .await?;
    if headers.is_empty() {
        token_manager.sign_in().await?;
        token_manager
            .request_authorization()
            .authorize(&Method::POST, start.url(), &mut headers)
            .await?;
    }
    for (name, value) in &headers {
        println!("{name}: {}", value.to_str()?);
    }
    Ok(())
}

/// Creates an authorizer that stores tokens in the user's directory and opens the browser to sign
/// in.
async fn authorizer(start: &StartUrl) -> Result<Authorizer, Box<dyn Error>> {
    let directory = CredentialStore::user_directory().ok_or("there is no home directory")?;
    let mut settings = AuthorizerSettings::default();
    settings.store = CredentialStore::in_directory(directory);
    let browser = LoopbackRedirect::bind_for(start, |url| eprintln!("please visit {url}")).await?;
    Ok(Authorizer::builder(Arc::new(browser))
        .settings(settings)
        .build()?)
}
