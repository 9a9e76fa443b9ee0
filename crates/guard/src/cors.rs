use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
        ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
        ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY, WWW_AUTHENTICATE,
    },
};

use crate::{CorsSettings, OriginPolicy, request_id::X_REQUEST_ID};

/// What browsers keep at most: two hours.
const MAX_AGE_SECONDS: HeaderValue = HeaderValue::from_static("7200");
const MAX_REQUESTED_HEADERS_BYTES: usize = 4096;

const VARY_ORIGIN: HeaderValue = HeaderValue::from_static("Origin");
const VARY_PREFLIGHT: HeaderValue =
    HeaderValue::from_static("Access-Control-Request-Method, Access-Control-Request-Headers");
const ANY: HeaderValue = HeaderValue::from_static("*");

/// The response headers of CORS that do not depend on the request.
pub(crate) struct Cors {
    any_origin: bool,
    methods: HeaderValue,
    exposed: HeaderValue,
}

/// For whom an answer is readable.
#[derive(Clone, Debug)]
pub(crate) enum Reader {
    /// Every page.
    Any,
    /// The page that asked: its `Origin`.
    Page(HeaderValue),
    /// No page.
    Nobody,
}

impl Cors {
    pub(crate) fn new(settings: &CorsSettings, origins: &OriginPolicy) -> Self {
        let exposed = [WWW_AUTHENTICATE, X_REQUEST_ID];
        Self {
            any_origin: origins.admits_any_origin(),
            methods: list(settings.methods.iter().map(Method::as_str)),
            exposed: list(exposed.iter().chain(&settings.exposed_headers).map(HeaderName::as_str)),
        }
    }

    /// Who may read the answer to a request whose origin was admitted.
    pub(crate) fn reader(&self, headers: &HeaderMap) -> Reader {
        if self.any_origin {
            return Reader::Any;
        }
        headers.get(ORIGIN).map_or(Reader::Nobody, |origin| Reader::Page(origin.clone()))
    }

    /// The answer to a preflight for the resource.
    pub(crate) fn preflight(&self, headers: &HeaderMap) -> Response<Option<Bytes>> {
        answer(headers, self.methods.clone())
    }

    /// Gives an answer the CORS headers that every answer has. An inner service's has none of its own any more.
    pub(crate) fn decorate(&self, reader: &Reader, headers: &mut HeaderMap) {
        match reader {
            Reader::Any => drop(headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY)),
            Reader::Page(origin) => drop(headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone())),
            Reader::Nobody => {}
        }
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, self.exposed.clone());
        if !self.any_origin {
            headers.append(VARY, VARY_ORIGIN);
        }
    }
}

/// Takes the CORS headers off an inner service's answer, but for the one that [`Cors::decorate`] always replaces.
pub(crate) fn strip(headers: &mut HeaderMap) {
    const PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");
    // One look at the few names of an answer costs less than six look-ups, and hardly any answer has one of these.
    if !headers.keys().any(|name| name.as_str().starts_with("access-control-")) {
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

/// Whether a request is a CORS preflight; any other OPTIONS is a request like all others.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS && headers.contains_key(ORIGIN) && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// A preflight's answer, without the headers that [`Cors::decorate`] adds.
pub(crate) fn answer(request: &HeaderMap, methods: HeaderValue) -> Response<Option<Bytes>> {
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

/// The header names that a preflight asks for, when they are a bounded list of names.
fn requested_headers(request: &HeaderMap) -> Option<&HeaderValue> {
    let mut values = request.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let value = values.next()?;
    let is_list_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~, ".contains(byte);
    let acceptable = values.next().is_none()
        && value.len() <= MAX_REQUESTED_HEADERS_BYTES
        && value.as_bytes().iter().all(is_list_byte);
    acceptable.then_some(value)
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> HeaderValue {
    let text = names.collect::<Vec<_>>().join(", ");
    // Names of methods and headers are tokens (RFC 9110 section 5.6.2), so their list is a header value.
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}
