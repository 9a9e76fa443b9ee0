//! [`RedirectParameters`]: the authorization response (RFC 6749 section 4.1.2).

use std::fmt;

use portcullis_metadata::{OAuthError, ResponseIssuerError, Secret};
use url::{Url, form_urlencoded};

/// What an authorization server put into the redirect (RFC 6749 sections 4.1.2 and 4.1.2.1, RFC 9207).
///
/// Nothing in it is trusted before [`AuthorizationRequest::validate_response`](crate::AuthorizationRequest::validate_response).
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
    /// [`RedirectError::Repeated`] when a known parameter is there twice (RFC 6749 section 3.1).
    pub fn parse(query: &str) -> Result<Self, RedirectError> {
        let mut found =
            Self { code: None, state: None, iss: None, error: None, error_description: None, error_uri: None };
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

    /// Reads the whole address that a browser ended at, as a person pastes it.
    ///
    /// # Errors
    /// [`RedirectError::Elsewhere`] when it is not the redirect URI with a query; otherwise as [`parse`](Self::parse).
    pub fn parse_pasted(text: &str, redirect_uri: &Url) -> Result<Self, RedirectError> {
        let mut pasted = Url::parse(text.trim()).map_err(|_| RedirectError::Elsewhere)?;
        let query = pasted.query().map(str::to_owned).ok_or(RedirectError::Elsewhere)?;
        pasted.set_query(None);
        pasted.set_fragment(None);
        if pasted == *redirect_uri { Self::parse(&query) } else { Err(RedirectError::Elsewhere) }
    }
}

impl fmt::Debug for RedirectParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedirectParameters([redacted])")
    }
}

/// Why an authorization response gives no code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedirectError {
    /// A parameter is there twice.
    #[error("a parameter of the answer is there twice")]
    Repeated,
    /// `state` is missing or not the request's.
    #[error("the answer does not belong to the request that was made")]
    State,
    /// `iss` is missing where it was promised, or names another issuer. No other parameter was looked at.
    #[error(transparent)]
    Issuer(ResponseIssuerError),
    /// The authorization server, known by then to be the one asked, reports an error.
    #[error("the authorization server refused: {0}")]
    Denied(OAuthError),
    /// What was pasted is no answer to the redirect URI.
    #[error("this is not the address that the browser was sent to at the end")]
    Elsewhere,
    /// There is neither a code nor an error.
    #[error("the answer has no code")]
    NoCode,
}

impl RedirectError {
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
