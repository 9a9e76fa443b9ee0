use http::HeaderValue;
use url::Url;

use crate::Scopes;

/// Builds the `WWW-Authenticate` value of a bearer challenge (RFC 6750 section 3, RFC 9728 section 5.1).
///
/// Every parameter is a quoted string. Quotes and backslashes are escaped, and each character outside
/// printable ASCII becomes `?`, so that no input can add a parameter or a line, and every client can read
/// the value as text.
#[derive(Clone, Debug)]
pub struct BearerChallengeBuilder {
    value: String,
}

/// The error codes of RFC 6750 section 3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BearerError {
    /// The request is malformed.
    InvalidRequest,
    /// The token is expired, revoked, malformed, or meant for somebody else.
    InvalidToken,
    /// The token is good and does not allow this.
    InsufficientScope,
}

impl BearerError {
    /// The value of the `error` parameter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidToken => "invalid_token",
            Self::InsufficientScope => "insufficient_scope",
        }
    }
}

impl BearerChallengeBuilder {
    /// A challenge with the two parameters that each one has.
    pub fn new(realm: &str, resource_metadata: &Url) -> Self {
        let mut builder = Self { value: String::from("Bearer ") };
        builder.add("realm", realm);
        builder.add("resource_metadata", resource_metadata.as_str());
        builder
    }

    /// Names the scopes that are needed. Without a scope no parameter is added. Call it once.
    pub fn scope(mut self, scopes: &Scopes) -> Self {
        if !scopes.is_empty() {
            self.add("scope", &scopes.to_string());
        }
        self
    }

    /// Says what was wrong, with a text for developers. Call it once.
    pub fn error(mut self, error: BearerError, description: &str) -> Self {
        self.add("error", error.as_str());
        self.add("error_description", description);
        self
    }

    /// The header value.
    pub fn build(self) -> HeaderValue {
        // The value is printable ASCII, so that the fallback is never taken; a challenge without
        // parameters would still be a refusal.
        HeaderValue::try_from(self.value).unwrap_or(HeaderValue::from_static("Bearer"))
    }

    fn add(&mut self, name: &str, text: &str) {
        if self.value.ends_with('"') {
            self.value.push_str(", ");
        }
        self.value.push_str(name);
        self.value.push_str("=\"");
        for character in text.chars() {
            match character {
                '"' | '\\' => self.value.extend(['\\', character]),
                ' '..='~' => self.value.push(character),
                _ => self.value.push('?'),
            }
        }
        self.value.push('"');
    }
}
