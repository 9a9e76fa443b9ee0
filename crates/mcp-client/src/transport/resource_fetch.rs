//! [`ResourceFetch`]: requests to the resource's origin, with its cookies and compressed responses.

mod cookies;
mod gzip;

use std::sync::Arc;

use http::{HeaderValue, header};
use portcullis_client::TokenManager;
use portcullis_discovery::{Fetch, FetchError, FetchRequest, OpenResponse, SentSecrets};

use cookies::CookieJar;

/// Sends requests to one origin. It keeps the origin's cookies in memory, and accepts gzip.
pub struct ResourceFetch {
    fetch: Arc<dyn Fetch>,
    cookies: CookieJar,
    sent: SentSecrets,
}

impl ResourceFetch {
    /// Keeps the cookies of the start URL's origin only. Records the secrets of requests with those
    /// of the token manager.
    pub fn new(fetch: Arc<dyn Fetch>, token_manager: &TokenManager) -> Self {
        let cookies = CookieJar::new(token_manager.start_url().url());
        Self {
            fetch,
            cookies,
            sent: token_manager.sent_secrets().clone(),
        }
    }

    /// What was sent to the resource and to authorization servers.
    pub fn sent(&self) -> &SentSecrets {
        &self.sent
    }

    /// Sends a request and returns the response as soon as its head has arrived. The body is
    /// decompressed.
    ///
    /// # Errors
    /// Fails as [`Fetch::open`] does.
    pub async fn open(&self, mut request: FetchRequest) -> Result<OpenResponse, FetchError> {
        // Cookies are the server's own.
        self.sent.record(&request);
        self.cookies.add_to(&request.url, &mut request.headers);
        request
            .headers
            .entry(header::ACCEPT_ENCODING)
            .or_insert(const { HeaderValue::from_static("gzip") });
        let url = request.url.clone();
        let response = OpenResponse {
            sent: self.sent.clone(),
            ..self.fetch.open(request).await?
        };
        self.cookies.receive(&url, &response.headers);
        Ok(gzip::decoded(response))
    }
}
