//! [`BearerChallengeBuilder`]: builds the `WWW-Authenticate` value of a bearer challenge.

use http::HeaderValue;
use url::Url;

use crate::identifier::Scopes;

/// Builds the `WWW-Authenticate` value of a bearer challenge (RFC 6750 section 3, RFC 9728 section
/// 5.1).
///
/// Every parameter is a quoted string. Quotes and backslashes are escaped, and each character
/// outside printable ASCII becomes `?`. Therefore no input can add a parameter or a field line.
#[derive(Clone, Debug)]
pub struct BearerChallengeBuilder {
    value: String,
}

/// The error codes of RFC 6750 section 3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BearerError {
    /// The request is malformed.
    InvalidRequest,
    /// The token is expired, revoked, malformed, or issued for another resource.
    InvalidToken,
    /// The token is valid but its scopes do not allow the request.
    InsufficientScope,
}

impl BearerError {
    /// Returns the value of the `error` parameter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidToken => "invalid_token",
            Self::InsufficientScope => "insufficient_scope",
        }
    }
}

impl BearerChallengeBuilder {
    /// Creates a challenge with the two parameters that are always present.
    pub fn new(realm: &str, resource_metadata: &Url) -> Self {
        let mut builder = Self {
            value: String::from("Bearer "),
        };
        builder.add("realm", realm);
        builder.add("resource_metadata", resource_metadata.as_str());
        builder
    }

    /// Adds the required scopes. Adds no parameter if `scopes` is empty. Call it at most once.
    pub fn scope(mut self, scopes: &Scopes) -> Self {
        if !scopes.is_empty() {
            self.add("scope", &scopes.to_string());
        }
        self
    }

    /// Adds the error and a description for developers. Call it at most once.
    pub fn error(mut self, error: BearerError, description: &str) -> Self {
        self.add("error", error.as_str());
        self.add("error_description", description);
        self
    }

    /// Returns the field value.
    pub fn build(self) -> HeaderValue {
        // The value is printable ASCII, so the fallback is never used.
        HeaderValue::try_from(self.value).unwrap_or(HeaderValue::from_static("Bearer"))
    }

    fn add(&mut self, name: &str, value: &str) {
        if self.value.ends_with('"') {
            self.value.push_str(", ");
        }
        self.value.push_str(name);
        self.value.push_str("=\"");
        for character in value.chars() {
            match character {
                '"' | '\\' => self.value.extend(['\\', character]),
                ' '..='~' => self.value.push(character),
                _ => self.value.push('?'),
            }
        }
        self.value.push('"');
    }
}
