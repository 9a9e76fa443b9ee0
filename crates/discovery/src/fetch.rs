use std::{fmt, future::Future, pin::Pin, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use url::{Url, form_urlencoded};
use zeroize::Zeroizing;

use crate::{FetchError, UrlPolicy};

/// A boxed future, as the object-safe traits here return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The one way in which this workspace reaches authorization servers and metadata documents.
///
/// An implementation applies the request's [`UrlPolicy`], never follows a redirect, keeps no cookies, and
/// decodes no content coding. `HttpFetch` is the real one; tests script their own.
pub trait Fetch: Send + Sync + 'static {
    /// Sends the request and reads the whole answer within the request's `timeout` and `max_body`.
    ///
    /// Every status, 3xx and 5xx included, is an answer and not an error.
    ///
    /// # Errors
    /// When the policy refuses the URL or an address it resolves to, the network fails, the deadline passes or
    /// the body is too large.
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>>;

    /// Sends the request and hands the answer over as soon as its head is there, for bodies that have no end.
    ///
    /// The request's `timeout` covers the head alone and `max_body` is not applied: the reader bounds what it
    /// keeps. By default this is [`fetch`](Self::fetch) with the body in one piece, which suits scripted fetchers.
    ///
    /// # Errors
    /// As for [`fetch`](Self::fetch).
    fn open(&self, request: FetchRequest) -> BoxFuture<'_, Result<OpenResponse, FetchError>> {
        Box::pin(async move {
            let FetchResponse { status, headers, body } = self.fetch(request).await?;
            Ok(OpenResponse { status, headers, body: Box::new(Whole(Some(body))) })
        })
    }
}

/// One request. `Debug` shows neither header values, nor the body, nor the query.
#[derive(Clone)]
pub struct FetchRequest {
    /// The method.
    pub method: Method,
    /// Where it goes. A fragment is not sent.
    pub url: Url,
    /// Headers beyond those that the transport adds.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
    /// Which addresses are acceptable.
    pub policy: UrlPolicy,
    /// How many bytes of body are read at most. 256 KiB by default; a longer body is an error, not a prefix.
    pub max_body: usize,
    /// One deadline for resolution, connection, TLS, head and body together. 10 s by default.
    pub timeout: Duration,
}

impl FetchRequest {
    /// The default of [`max_body`](Self::max_body): 256 KiB.
    pub const MAX_BODY: usize = 256 * 1024;
    /// The default of [`timeout`](Self::timeout): 10 s.
    pub const TIMEOUT: Duration = Duration::from_secs(10);

    /// A request without headers and body.
    pub fn new(method: Method, url: Url, policy: UrlPolicy) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            policy,
            max_body: Self::MAX_BODY,
            timeout: Self::TIMEOUT,
        }
    }

    /// A GET that asks for JSON.
    pub fn get(url: Url, policy: UrlPolicy) -> Self {
        Self::new(Method::GET, url, policy).header(header::ACCEPT, JSON)
    }

    /// A POST of form fields (`application/x-www-form-urlencoded`) that asks for JSON.
    ///
    /// Forms carry tokens and secrets: the body is wiped from memory with its last copy. What the connection's own
    /// buffers hold of it while it is sent is not.
    pub fn post_form<'a>(url: Url, fields: impl IntoIterator<Item = (&'a str, &'a str)>, policy: UrlPolicy) -> Self {
        let fields: Vec<(&str, &str)> = fields.into_iter().collect();
        // A byte takes three at most. A text that never grows leaves no copy behind.
        let longest = fields.iter().map(|(name, value)| 3 * (name.len() + value.len()) + "=&".len()).sum();
        let mut body = form_urlencoded::Serializer::new(String::with_capacity(longest));
        body.extend_pairs(fields);
        let mut request = Self::new(Method::POST, url, policy)
            .header(header::ACCEPT, JSON)
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        request.body = Bytes::from_owner(Zeroizing::new(body.finish().into_bytes()));
        request
    }

    /// A POST of a JSON document that asks for JSON.
    pub fn post_json(url: Url, body: impl Into<Bytes>, policy: UrlPolicy) -> Self {
        let mut request =
            Self::new(Method::POST, url, policy).header(header::ACCEPT, JSON).header(header::CONTENT_TYPE, JSON);
        request.body = body.into();
        request
    }

    /// Sets a header, in place of one of the same name.
    #[must_use]
    pub fn header(mut self, name: http::HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

impl fmt::Debug for FetchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchRequest")
            .field("method", &self.method)
            .field("url", &crate::without_query(&self.url))
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// A whole answer. `Debug` shows the status and the body's length.
#[derive(Clone)]
pub struct FetchResponse {
    /// The status. A redirect comes back as such.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as it came, no content coding undone.
    pub body: Bytes,
}

impl fmt::Debug for FetchResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchResponse").field("status", &self.status).field("body", &self.body.len()).finish()
    }
}

/// An answer whose body is still coming.
pub struct OpenResponse {
    /// The status. A redirect comes back as such.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; dropping it ends the exchange.
    pub body: Box<dyn BodyStream>,
}

impl fmt::Debug for OpenResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// A body that comes piece by piece.
pub trait BodyStream: Send {
    /// The next piece, or none at the end. Pieces have the network's borders, not the message's.
    ///
    /// It may be dropped before it is ready and called again without losing a piece.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, FetchError>>>;
}

/// A body that is there already, in one piece.
struct Whole(Option<Bytes>);

impl BodyStream for Whole {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, FetchError>>> {
        Box::pin(async { self.0.take().map(Ok) })
    }
}
