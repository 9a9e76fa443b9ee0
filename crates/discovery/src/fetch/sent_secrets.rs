//! [`SentSecrets`]: the secrets of requests, which errors must not repeat.

mod base64_search;
mod decoded;
mod recording_fetch;
mod redaction;

use std::{borrow::Cow, fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, header};
use parking_lot::Mutex;
use portcullis_metadata::Secret;
use url::form_urlencoded;

pub use recording_fetch::RecordingFetch;
pub(super) use redaction::REMOVED;

use super::FetchRequest;

/// The secrets that a client has sent. A server can repeat them in its responses;
/// [`redact`](Self::redact) removes them from a text that an error or a log line shows.
///
/// Clones share the secrets. At most 32 values are kept, each with at most 16 KiB; the one that was
/// not sent for the longest time is dropped first. Values with fewer than 4 characters are ignored.
/// The default value keeps nothing.
///
/// [`RecordingFetch`] records the secrets of all its requests, and attaches them to the responses.
///
/// ```
/// use http::{HeaderValue, Method, header};
/// use portcullis_discovery::{FetchRequest, SentSecrets, UrlPolicy};
/// use url::Url;
///
/// let sent = SentSecrets::new();
/// let request = FetchRequest::new(Method::GET, Url::parse("https://mcp.example.com/")?, UrlPolicy::StartOrigin);
/// sent.record(&request.header(header::AUTHORIZATION, HeaderValue::from_static("Bearer t/secret")));
/// assert_eq!(sent.redact("the token t%2Fsecret is invalid"), "the token [removed] is invalid");
/// # Ok::<(), url::ParseError>(())
/// ```
#[derive(Clone, Default)]
pub struct SentSecrets(Option<Arc<Mutex<Vec<Secret>>>>);

/// The maximum number of values.
const MAX_VALUES: usize = 32;
/// The maximum length of a value in bytes: the rest of a longer one is not recorded.
const MAX_VALUE: usize = 16 * 1024;
/// The length of the shortest value in bytes. A shorter one occurs in texts by chance.
const MIN_VALUE: usize = 4;
/// The form fields whose values are secrets.
const SECRET_FIELDS: [&str; 10] = [
    "actor_token",
    "assertion",
    "client_assertion",
    "client_secret",
    "code",
    "code_verifier",
    "device_code",
    "refresh_token",
    "subject_token",
    "token",
];

impl SentSecrets {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self(Some(Arc::default()))
    }

    /// Records the secrets of a request: the values of `Authorization` and of headers that are
    /// marked as sensitive, and those of form fields such as `client_secret` and `code`. Headers
    /// that the transport adds later are not recorded.
    pub fn record(&self, request: &FetchRequest) {
        for (name, value) in &request.headers {
            if name == header::AUTHORIZATION || value.is_sensitive() {
                self.add_header(value);
            }
        }
        if is_form(&request.headers) {
            for (name, value) in form_urlencoded::parse(&request.body) {
                if SECRET_FIELDS.contains(&&*name) {
                    self.add(&value);
                }
            }
        }
    }

    /// Returns a text in which each secret is replaced by `[removed]`: unchanged, or encoded for a
    /// URL, a form, JSON or HTML, up to three times, and in base64, alone or as a part of a longer
    /// text. The beginning of a secret at the end of the text or before `…` is removed too.
    ///
    /// Does not recognize secrets with added or missing characters, and no other encodings.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(values) = &self.0 else {
            return Cow::Borrowed(text);
        };
        let values = values.lock();
        redaction::redacted(text, values.iter().map(|value| value.secret().as_bytes()))
    }

    /// Adds the whole value of a header, what follows its first word, such as `Bearer`, and the
    /// secret of Basic credentials (RFC 6749 section 2.3.1).
    fn add_header(&self, value: &HeaderValue) {
        let value = String::from_utf8_lossy(value.as_bytes());
        self.add(&value);
        let Some((scheme, credentials)) = value.split_once(' ') else {
            return;
        };
        self.add(credentials.trim());
        if !scheme.eq_ignore_ascii_case("basic") {
            return;
        }
        let decoded = STANDARD
            .decode(credentials.trim())
            .ok()
            .and_then(|decoded| String::from_utf8(decoded).ok());
        if let Some((_, password)) = decoded.as_deref().and_then(|pair| pair.split_once(':')) {
            self.add(password);
            // Only the secret is form-encoded, so a literal `=` or `&` is not a separator.
            let whole = password.replace('=', "%3D").replace('&', "%26");
            form_urlencoded::parse(whole.as_bytes()).for_each(|(secret, _)| self.add(&secret));
        }
    }

    /// Adds a value, or marks it as sent last.
    fn add(&self, value: &str) {
        let Some(values) = &self.0 else { return };
        let value = value
            .get(..value.floor_char_boundary(MAX_VALUE))
            .unwrap_or(value);
        if value.len() < MIN_VALUE {
            return;
        }
        let mut values = values.lock();
        if values.last().is_some_and(|last| last.secret() == value) {
            return;
        }
        let known = values.iter().position(|known| known.secret() == value);
        let value = known.map_or_else(|| Secret::new(value), |known| values.remove(known));
        if values.len() == MAX_VALUES {
            values.remove(0);
        }
        values.push(value);
    }
}

/// Whether the body is a form.
fn is_form(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value == "application/x-www-form-urlencoded")
}

impl fmt::Debug for SentSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SentSecrets([redacted])")
    }
}

#[cfg(test)]
mod tests;
