//! [`RedirectParameters`]: the authorization response (RFC 6749 section 4.1.2).

use std::fmt;

use portcullis_discovery::SentSecrets;
use portcullis_metadata::{
    Secret,
    authorization::{OAuthError, ResponseIssuerError},
};
use url::{Url, form_urlencoded};

use crate::oauth_error;

/// The parameters of an authorization response (RFC 6749 sections 4.1.2 and 4.1.2.1, RFC 9207).
///
/// They are untrusted until
/// [`AuthorizationRequest::validate_response`](crate::AuthorizationRequest::validate_response)
/// returns the code.
pub struct RedirectParameters {
    pub(crate) code: Option<Secret>,
    pub(crate) state: Option<Secret>,
    pub(crate) iss: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) error_description: Option<String>,
    pub(crate) error_uri: Option<String>,
}

impl RedirectParameters {
    /// Reads the query of a redirect. Unknown parameters are ignored.
    ///
    /// # Errors
    /// [`RedirectError::Repeated`] when a known parameter occurs twice (RFC 6749 section 3.1).
    pub fn parse(query: &str) -> Result<Self, RedirectError> {
        let mut found = Self {
            code: None,
            state: None,
            iss: None,
            error: None,
            error_description: None,
            error_uri: None,
        };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let repeated = match &*name {
                "code" => found.code.replace(Secret::new(&*value)).is_some(),
                "state" => found.state.replace(Secret::new(&*value)).is_some(),
                "iss" => found.iss.replace(value.into()).is_some(),
                "error" => found.error.replace(value.into()).is_some(),
                "error_description" => found.error_description.replace(value.into()).is_some(),
                "error_uri" => found.error_uri.replace(value.into()).is_some(),
                _ => false,
            };
            if repeated {
                return Err(RedirectError::Repeated);
            }
        }
        Ok(found)
    }

    /// Reads the final URL of the browser's address bar, as a user pastes it.
    ///
    /// # Errors
    /// [`RedirectError::Elsewhere`] when it is not the redirect URI with a query; otherwise as
    /// [`parse`](Self::parse).
    pub fn parse_pasted(text: &str, redirect_uri: &Url) -> Result<Self, RedirectError> {
        let mut pasted = Url::parse(text.trim()).map_err(|_| RedirectError::Elsewhere)?;
        let query = pasted
            .query()
            .map(str::to_owned)
            .ok_or(RedirectError::Elsewhere)?;
        pasted.set_query(None);
        pasted.set_fragment(None);
        if pasted == *redirect_uri {
            Self::parse(&query)
        } else {
            Err(RedirectError::Elsewhere)
        }
    }
}

impl fmt::Debug for RedirectParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedirectParameters([redacted])")
    }
}

/// Why an authorization response yields no code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedirectError {
    /// A parameter occurs twice.
    #[error("the authorization response repeats a parameter")]
    Repeated,
    /// `state` is missing or differs from the request's.
    #[error("the authorization response does not belong to this request")]
    State,
    /// `iss` is missing although the server advertises it, or names another issuer. Neither code
    /// nor error was read.
    #[error(transparent)]
    Issuer(ResponseIssuerError),
    /// The authorization server returned an error. Its `iss` was valid.
    #[error("the authorization server refused: {0}")]
    Denied(OAuthError),
    /// The pasted text is not the redirect URI with a query.
    #[error("this is not the URL to which the browser was redirected")]
    Elsewhere,
    /// The response has neither a code nor an error.
    #[error("the authorization response has no code")]
    NoCode,
}

impl RedirectError {
    /// The error without the secrets that it repeats.
    pub(crate) fn redacted(self, sent: &SentSecrets) -> Self {
        match self {
            Self::Denied(error) => Self::Denied(oauth_error::redacted(error, sent)),
            other => other,
        }
    }

    /// The stable code, for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Repeated => "redirect.repeated",
            Self::State => "redirect.state",
            Self::Issuer(error) => error.code(),
            Self::Denied(_) => "redirect.denied",
            Self::Elsewhere => "redirect.elsewhere",
            Self::NoCode => "redirect.no_code",
        }
    }
}
