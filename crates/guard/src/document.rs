use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
};
use portcullis_metadata::{ProtectedResourceMetadata, syntax::hexadecimal};
use sha2::{Digest, Sha256};

use crate::cors;

/// The path of the document for a resource at `/` (RFC 9728 section 3.1).
const ROOT: &str = "/.well-known/oauth-protected-resource";

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Long enough to avoid repeated fetches, and short enough for changed scopes to be visible soon.
const FIVE_MINUTES: HeaderValue = HeaderValue::from_static("public, max-age=300");
/// The methods of requests for the document.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD");

/// The serialized metadata document of a resource (RFC 9728).
pub(crate) struct Document {
    path: Box<str>,
    /// Whether it is also served at [`ROOT`].
    at_root: bool,
    body: Bytes,
    length: HeaderValue,
    etag: HeaderValue,
}

/// The result of a request for the document.
pub(crate) enum DocumentResponse {
    /// The document, the answer to a preflight, or 304.
    Response(Response<Option<Bytes>>),
    /// The method is neither GET nor HEAD.
    MethodNotAllowed { allow: HeaderValue },
}

impl Document {
    /// Serializes the metadata for a path, and for [`ROOT`] if `at_root` is set.
    pub(crate) fn new(metadata: &ProtectedResourceMetadata, path: &str, at_root: bool) -> Self {
        let body = Bytes::from(metadata.to_json());
        let etag = format!("\"{}\"", hexadecimal(&Sha256::digest(&body)[..16]));
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

    /// Returns whether the document is served at this path.
    pub(crate) fn is_at(&self, path: &str) -> bool {
        path == &*self.path || (self.at_root && path == ROOT)
    }

    /// Responds to a request for the document. It needs no token.
    pub(crate) fn respond(&self, method: &Method, headers: &HeaderMap) -> DocumentResponse {
        if cors::is_preflight(method, headers) {
            return DocumentResponse::Response(cors::preflight_response(headers, METHODS));
        }
        if *method != Method::GET && *method != Method::HEAD {
            return DocumentResponse::MethodNotAllowed { allow: METHODS };
        }
        let mut response = Response::new(None);
        response.headers_mut().insert(CACHE_CONTROL, FIVE_MINUTES);
        response.headers_mut().insert(ETAG, self.etag.clone());
        if self.is_not_modified(headers) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return DocumentResponse::Response(response);
        }
        response.headers_mut().insert(CONTENT_TYPE, JSON);
        response
            .headers_mut()
            .insert(CONTENT_LENGTH, self.length.clone());
        if *method == Method::GET {
            *response.body_mut() = Some(self.body.clone());
        }
        DocumentResponse::Response(response)
    }

    /// Returns whether `If-None-Match` contains the entity tag, by weak comparison (RFC 9110
    /// section 13.1.2).
    fn is_not_modified(&self, headers: &HeaderMap) -> bool {
        let matches = |tag: &[u8]| {
            let tag = tag.trim_ascii();
            tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == self.etag.as_bytes()
        };
        headers
            .get_all(IF_NONE_MATCH)
            .iter()
            .any(|value| value.as_bytes().split(|byte| *byte == b',').any(matches))
    }
}
