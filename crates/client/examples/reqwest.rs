//! A reqwest client that obtains a token after a 401, and more scopes after a 403 (step-up).
//!
//! ```sh
//! cargo run -p portcullis-client --example reqwest -- https://api.example.com/reports
//! ```
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool"
)]

use std::{env, error::Error, sync::Arc};

use http::Method;
use portcullis_client::{Authorizer, Interaction, LoopbackRedirect, StartUrl, TokenManager};
use url::Url;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let start = StartUrl::parse(
        &env::args()
            .nth(1)
            .ok_or("give the URL of a protected resource")?,
    )?;
    let browser = LoopbackRedirect::bind_for(&start, |url| eprintln!("please visit {url}")).await?;
    let tokens = token_manager(start.clone(), Arc::new(browser))?;

    let response = get(&client()?, &tokens, start.url()).await?;
    println!("{}\n{}", response.status(), response.text().await?);
    Ok(())
}

/// Obtains and keeps the tokens for one resource.
pub(crate) fn token_manager(
    start: StartUrl,
    interaction: Arc<dyn Interaction>,
) -> Result<Arc<TokenManager>, Box<dyn Error>> {
    let authorizer = Authorizer::builder(interaction).build()?;
    Ok(Arc::new(TokenManager::new(start, Arc::new(authorizer))))
}

/// A client that does not follow redirects: the token is for this URL only.
pub(crate) fn client() -> Result<reqwest::Client, Box<dyn Error>> {
    // reqwest's default features do this. This workspace builds reqwest without a default TLS
    // provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()?)
}

/// Sends a GET request with the token, and again as often as another token can help.
pub(crate) async fn get(
    client: &reqwest::Client,
    tokens: &Arc<TokenManager>,
    url: &Url,
) -> Result<reqwest::Response, Box<dyn Error>> {
    let mut authorization = tokens.request_authorization();
    loop {
        let mut request = client.get(url.clone()).build()?;
        authorization
            .authorize(&Method::GET, url, request.headers_mut())
            .await?;
        let response = client.execute(request).await?;
        if !authorization
            .should_retry(response.status(), response.headers())
            .await?
        {
            return Ok(response);
        }
    }
}
