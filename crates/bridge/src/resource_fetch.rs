//! [`ResourceFetch`]: requests to the resource's origin, with its cookies and compressed responses.

mod cookies;
mod gzip;

use std::sync::Arc;

use http::{HeaderValue, header};
use portcullis_discovery::{Fetch, FetchError, FetchRequest, OpenResponse};
use url::Url;

use cookies::CookieJar;

/// Sends requests to one origin. It keeps the origin's cookies in memory, and accepts gzip.
pub(crate) struct ResourceFetch {
    fetch: Arc<dyn Fetch>,
    cookies: CookieJar,
}

impl ResourceFetch {
    /// Keeps the cookies of `start`'s origin only.
    pub(crate) fn new(fetch: Arc<dyn Fetch>, start: &Url) -> Self {
        Self { fetch, cookies: CookieJar::new(start) }
    }

    /// Sends a request and returns the response as soon as its head has arrived. The body is decompressed.
    pub(crate) async fn open(&self, mut request: FetchRequest) -> Result<OpenResponse, FetchError> {
        self.cookies.add_to(&request.url, &mut request.headers);
        request.headers.entry(header::ACCEPT_ENCODING).or_insert(const { HeaderValue::from_static("gzip") });
        let url = request.url.clone();
        let response = self.fetch.open(request).await?;
        self.cookies.receive(&url, &response.headers);
        Ok(gzip::decoded(response))
    }
}
