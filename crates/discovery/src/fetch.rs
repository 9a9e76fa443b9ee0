//! Bounded HTTP fetches.

#[cfg(all(feature = "reqwest", unix, not(target_vendor = "apple")))]
mod certificate_variable;
mod error;
#[cfg(feature = "reqwest")]
mod http_fetch;
mod network_error;
#[cfg(feature = "reqwest")]
mod pool_key;
mod product;
#[cfg(feature = "reqwest")]
mod proxy;
mod request;
#[cfg(feature = "reqwest")]
mod resolver;
mod response;
mod response_excerpt;
mod sent_secrets;
mod settings_error;
#[cfg(feature = "reqwest")]
mod tls;
#[cfg(feature = "reqwest")]
mod trace;

pub use error::FetchError;
#[cfg(feature = "reqwest")]
pub use http_fetch::{FetchSettings, HttpFetch};
pub use network_error::{CertificateProblem, NetworkError, NetworkFailure};
pub use product::Product;
pub use request::FetchRequest;
pub use response::{BodyStream, FetchResponse, OpenResponse};
pub use response_excerpt::ResponseExcerpt;
pub use sent_secrets::{RecordingFetch, SentSecrets};
pub use settings_error::{CertificateVariableError, FetchSettingsError};

use std::{future::Future, pin::Pin};

use portcullis_metadata::syntax::url_without_secrets;

use response::CompleteBody;

/// A boxed future, as returned by the object-safe traits of this crate.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Sends HTTP requests to authorization servers and for metadata documents.
///
/// An implementation applies the [`UrlPolicy`](crate::UrlPolicy) of the request, follows no
/// redirects, keeps no cookies and decodes no content codings. `HttpFetch` sends requests over the
/// network; tests use implementations of their own.
pub trait Fetch: Send + Sync + 'static {
    /// Sends the request and reads the complete response within the request's `timeout` and
    /// `max_body`.
    ///
    /// A response with any status is a success, including 3xx and 5xx.
    ///
    /// # Errors
    /// Fails if the URL policy forbids the URL or an address to which it resolves, the network
    /// fails, the deadline passes or the body is too large.
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>>;

    /// Sends the request and returns the response once its head is complete, for bodies without an
    /// end.
    ///
    /// The request's `timeout` covers only the head, and `max_body` is ignored: the caller must
    /// limit what it keeps. The default does not do this: it calls [`fetch`](Self::fetch), where
    /// both cover the whole body, and returns the body as one chunk.
    ///
    /// # Errors
    /// Fails if the URL policy forbids the URL or an address to which it resolves, the network
    /// fails, or the deadline passes before the head is complete. An error after that is returned
    /// by [`BodyStream::next`]. The default fails as [`fetch`](Self::fetch).
    fn open(&self, request: FetchRequest) -> BoxFuture<'_, Result<OpenResponse, FetchError>> {
        Box::pin(async move {
            let FetchResponse {
                status,
                headers,
                body,
                sent,
            } = self.fetch(request).await?;
            Ok(OpenResponse {
                status,
                headers,
                body: Box::new(CompleteBody::new(body)),
                sent,
            })
        })
    }
}

/// Returns a URL for logs and errors ([`url_without_secrets`]).
pub(crate) fn shown_url(url: &url::Url) -> String {
    url_without_secrets(url).into()
}
