//! CORS: preflight responses, and the headers that let web pages read responses.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS,
        ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
        ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD,
        ORIGIN, VARY, WWW_AUTHENTICATE,
    },
};

use crate::{origin::OriginPolicy, request_id::X_REQUEST_ID};

/// How long browsers may keep the answer to a preflight: two hours, the maximum of Chromium.
const MAX_AGE_SECONDS: HeaderValue = HeaderValue::from_static("7200");
/// The maximum length of the header names that a preflight requests and that are returned to it.
const MAX_REQUESTED_HEADERS_BYTES: usize = 4096;

const VARY_ORIGIN: HeaderValue = HeaderValue::from_static("Origin");
const VARY_PREFLIGHT: HeaderValue =
    HeaderValue::from_static("Access-Control-Request-Method, Access-Control-Request-Headers");
const ANY: HeaderValue = HeaderValue::from_static("*");

/// What web pages of other origins may send and read (the CORS protocol of the Fetch standard).
///
/// Every request header is allowed. Credentials are never allowed: pages send tokens in a header
/// that they set themselves.
///
/// Which origins may read responses is decided by the [`OriginPolicy`]. A preflight is answered
/// without a token.
///
/// ```
/// use http::{HeaderName, Method};
/// use portcullis_guard::CorsSettings;
///
/// let cors = CorsSettings::new([Method::GET], [HeaderName::from_static("x-total-count")]);
/// assert_eq!(cors.exposed_headers, ["x-total-count"]);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CorsSettings {
    /// The methods that a preflight allows. Default: GET, HEAD, POST, PUT, PATCH, DELETE.
    pub methods: Vec<Method>,
    /// The response headers that pages may read in addition to `WWW-Authenticate` and
    /// `X-Request-Id`. Default: none.
    pub exposed_headers: Vec<HeaderName>,
}

impl CorsSettings {
    /// Allows these methods and exposes these response headers.
    pub fn new(
        methods: impl IntoIterator<Item = Method>,
        exposed_headers: impl IntoIterator<Item = HeaderName>,
    ) -> Self {
        Self {
            methods: methods.into_iter().collect(),
            exposed_headers: exposed_headers.into_iter().collect(),
        }
    }
}

impl Default for CorsSettings {
    fn default() -> Self {
        Self {
            methods: vec![
                Method::GET,
                Method::HEAD,
                Method::POST,
                Method::PUT,
                Method::PATCH,
                Method::DELETE,
            ],
            exposed_headers: Vec::new(),
        }
    }
}

/// The CORS response headers that do not depend on the request.
pub(crate) struct Cors {
    any_origin: bool,
    methods: HeaderValue,
    exposed: HeaderValue,
}

/// Which origin may read a response.
#[derive(Clone, Debug)]
pub(crate) enum AllowedOrigin {
    /// Every origin.
    Any,
    /// The origin of the request.
    Origin(HeaderValue),
    /// No origin.
    None,
}

impl Cors {
    /// Prepares the header values. If the policy accepts any origin, any origin may read responses.
    pub(crate) fn new(settings: &CorsSettings, origins: &OriginPolicy) -> Self {
        let exposed = [WWW_AUTHENTICATE, X_REQUEST_ID];
        Self {
            any_origin: origins.allows_any_origin(),
            methods: list(settings.methods.iter().map(Method::as_str)),
            exposed: list(
                exposed
                    .iter()
                    .chain(&settings.exposed_headers)
                    .map(HeaderName::as_str),
            ),
        }
    }

    /// Returns the origin that may read the response, if the origin policy accepts the request.
    pub(crate) fn allowed_origin(&self, headers: &HeaderMap) -> AllowedOrigin {
        if self.any_origin {
            return AllowedOrigin::Any;
        }
        headers.get(ORIGIN).map_or(AllowedOrigin::None, |origin| {
            AllowedOrigin::Origin(origin.clone())
        })
    }

    /// Returns the response to a preflight for the resource.
    pub(crate) fn preflight(&self, headers: &HeaderMap) -> Response<Option<Bytes>> {
        preflight_response(headers, self.methods.clone())
    }

    /// Adds the CORS headers that every response has. Those of the inner service must have been
    /// [removed](strip).
    pub(crate) fn add_headers(&self, allowed: &AllowedOrigin, headers: &mut HeaderMap) {
        match allowed {
            AllowedOrigin::Any => drop(headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY)),
            AllowedOrigin::Origin(origin) => {
                drop(headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone()))
            }
            AllowedOrigin::None => {}
        }
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, self.exposed.clone());
        if !self.any_origin {
            headers.append(VARY, VARY_ORIGIN);
        }
    }
}

/// Removes the CORS headers of an inner service, except for the one that [`Cors::add_headers`]
/// always replaces.
pub(crate) fn strip(headers: &mut HeaderMap) {
    const PRIVATE_NETWORK: HeaderName =
        HeaderName::from_static("access-control-allow-private-network");
    // One pass over the few header names is cheaper than six lookups, and few responses have any of
    // these headers.
    if !headers
        .keys()
        .any(|name| name.as_str().starts_with("access-control-"))
    {
        return;
    }
    for name in [
        ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_ALLOW_CREDENTIALS,
        ACCESS_CONTROL_ALLOW_METHODS,
        ACCESS_CONTROL_ALLOW_HEADERS,
        ACCESS_CONTROL_MAX_AGE,
        PRIVATE_NETWORK,
    ] {
        headers.remove(name);
    }
}

/// Returns whether a request is a CORS preflight. Any other OPTIONS request is treated like other
/// requests.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Returns the response to a preflight, without the headers that [`Cors::add_headers`] adds.
pub(crate) fn preflight_response(
    request: &HeaderMap,
    methods: HeaderValue,
) -> Response<Option<Bytes>> {
    let mut response = Response::new(None);
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE_SECONDS);
    headers.insert(VARY, VARY_PREFLIGHT);
    if let Some(requested) = requested_headers(request) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, requested.clone());
    }
    response
}

/// Returns the header names that a preflight requests, if they are a list of names of bounded
/// length.
fn requested_headers(request: &HeaderMap) -> Option<&HeaderValue> {
    let mut values = request.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let value = values.next()?;
    let is_list_byte =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~, ".contains(byte);
    let acceptable = values.next().is_none()
        && value.len() <= MAX_REQUESTED_HEADERS_BYTES
        && value.as_bytes().iter().all(is_list_byte);
    acceptable.then_some(value)
}

/// Returns a comma-separated list.
fn list<'a>(names: impl Iterator<Item = &'a str>) -> HeaderValue {
    let text = names.collect::<Vec<_>>().join(", ");
    // Method and header names are tokens (RFC 9110 section 5.6.2), so the list is a valid header
    // value.
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}
