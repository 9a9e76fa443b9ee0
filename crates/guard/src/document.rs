use std::fmt::Write;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
};
use portcullis_metadata::ProtectedResourceMetadata;
use sha2::{Digest, Sha256};

use crate::cors;

/// The root form of the path (RFC 9728 section 3.1).
const ROOT: &str = "/.well-known/oauth-protected-resource";

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Long enough to spare repeated fetches, short enough for a changed scope to be seen soon.
const FIVE_MINUTES: HeaderValue = HeaderValue::from_static("public, max-age=300");
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD");

/// The document of a protected resource (RFC 9728), ready to send.
pub(crate) struct Document {
    path: Box<str>,
    at_root: bool,
    body: Bytes,
    length: HeaderValue,
    etag: HeaderValue,
}

/// What to do with a request for the document.
pub(crate) enum Outcome {
    Answer(Response<Option<Bytes>>),
    MethodNotAllowed { allow: HeaderValue },
}

impl Document {
    pub(crate) fn new(metadata: &ProtectedResourceMetadata, path: &str, at_root: bool) -> Self {
        let body = Bytes::from(metadata.to_json());
        let mut etag = String::from("\"");
        for byte in &Sha256::digest(&body)[..16] {
            // Writing to a String cannot fail.
            let _ = write!(etag, "{byte:02x}");
        }
        etag.push('"');
        Self {
            path: path.into(),
            at_root,
            length: HeaderValue::from(body.len()),
            etag: HeaderValue::try_from(etag).unwrap_or(HeaderValue::from_static("\"\"")),
            body,
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn is_at(&self, path: &str) -> bool {
        path == &*self.path || (self.at_root && path == ROOT)
    }

    pub(crate) fn answer(&self, method: &Method, headers: &HeaderMap) -> Outcome {
        if cors::is_preflight(method, headers) {
            return Outcome::Answer(cors::answer(headers, METHODS));
        }
        if *method != Method::GET && *method != Method::HEAD {
            return Outcome::MethodNotAllowed { allow: METHODS };
        }
        let mut response = Response::new(None);
        response.headers_mut().insert(CACHE_CONTROL, FIVE_MINUTES);
        response.headers_mut().insert(ETAG, self.etag.clone());
        if self.is_known_to(headers) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return Outcome::Answer(response);
        }
        response.headers_mut().insert(CONTENT_TYPE, JSON);
        response.headers_mut().insert(CONTENT_LENGTH, self.length.clone());
        if *method == Method::GET {
            *response.body_mut() = Some(self.body.clone());
        }
        Outcome::Answer(response)
    }

    /// Whether `If-None-Match` has our tag, by weak comparison (RFC 9110 section 13.1.2).
    fn is_known_to(&self, headers: &HeaderMap) -> bool {
        let is_ours = |tag: &[u8]| {
            let tag = tag.trim_ascii();
            tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == self.etag.as_bytes()
        };
        headers.get_all(IF_NONE_MATCH).iter().any(|value| value.as_bytes().split(|byte| *byte == b',').any(is_ours))
    }
}
