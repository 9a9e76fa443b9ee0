//! [`PresentedCredential`]: the credential that a request presents, before it is verified.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, header::AUTHORIZATION};
use portcullis_authorization_server::{ErrorCode, ErrorResponse, Params};
use portcullis_metadata::Secret;
use url::form_urlencoded;
use zeroize::Zeroizing;

use crate::authentication::{
    client_assertion::{self, ClientAssertion},
    mode::SecretMethod,
};

/// The credential in a request, before it is verified.
pub(super) enum PresentedCredential<'a> {
    /// Only an identifier, as public clients send it.
    Id(&'a str),
    /// `client_secret_basic`.
    Basic(BasicCredential),
    /// `client_secret_post`.
    Post { id: &'a str, secret: Secret },
    /// `private_key_jwt`.
    Assertion(ClientAssertion<'a>),
}

impl<'a> PresentedCredential<'a> {
    /// Parses the credential, without verifying it. Fails when the request identifies no client or
    /// two, or has more than one credential or a malformed one.
    pub(super) fn parse(headers: &HeaderMap, form: &'a Params) -> Result<Self, ErrorResponse> {
        let invalid = |description| ErrorResponse::new(ErrorCode::InvalidRequest, description);
        let id = form.get("client_id")?;
        let secret = form.get("client_secret")?;
        let assertion = parse_assertion(form)?;
        let basic = parse_basic(headers)?;
        let methods = [basic.is_some(), secret.is_some(), assertion.is_some()];
        if methods.into_iter().filter(|is_used| *is_used).count() > 1 {
            return Err(invalid(
                "the request uses more than one authentication method",
            ));
        }
        let presented = match (basic, secret, assertion, id) {
            (Some(basic), ..) => Self::Basic(basic),
            (_, _, Some(assertion), _) => Self::Assertion(assertion),
            (_, Some(secret), _, Some(id)) => Self::Post {
                id,
                secret: Secret::new(secret),
            },
            (_, None, _, Some(id)) => Self::Id(id),
            _ => return Err(failed("the request does not identify a client")),
        };
        if id.is_some_and(|id| id != presented.id()) {
            return Err(invalid("the request identifies two clients"));
        }
        Ok(presented)
    }

    /// Returns the secret, if there is one.
    pub(super) const fn secret(&self) -> Option<&Secret> {
        match self {
            Self::Basic(BasicCredential { secret, .. }) | Self::Post { secret, .. } => Some(secret),
            Self::Id(_) | Self::Assertion(_) => None,
        }
    }

    /// Returns how the secret is presented, if there is one.
    pub(super) const fn secret_method(&self) -> Option<SecretMethod> {
        match self {
            Self::Basic(_) => Some(SecretMethod::Basic),
            Self::Post { .. } => Some(SecretMethod::Post),
            Self::Id(_) | Self::Assertion(_) => None,
        }
    }

    /// Returns the identifier of the client.
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Id(id) | Self::Post { id, .. } => id,
            Self::Basic(basic) => &basic.id,
            Self::Assertion(assertion) => assertion.client_id(),
        }
    }
}

/// Parses the client assertion, if there is one (RFC 7523 section 2.2).
fn parse_assertion(form: &Params) -> Result<Option<ClientAssertion<'_>>, ErrorResponse> {
    match (
        form.get("client_assertion_type")?,
        form.get("client_assertion")?,
    ) {
        (None, None) => Ok(None),
        (Some(client_assertion::TYPE), Some(assertion)) => {
            ClientAssertion::parse(assertion).map(Some)
        }
        _ => Err(failed(
            "client_assertion and a client_assertion_type that ends in :jwt-bearer must be used together",
        )),
    }
}

/// The credential of `Authorization: Basic`.
pub(super) struct BasicCredential {
    pub(super) id: String,
    pub(super) secret: Secret,
}

/// Parses `Authorization: Basic`. Both parts are form-encoded (RFC 6749 section 2.3.1).
fn parse_basic(headers: &HeaderMap) -> Result<Option<BasicCredential>, ErrorResponse> {
    let malformed = ErrorResponse::new(
        ErrorCode::InvalidClient,
        "Authorization is not a single well-formed Basic credential",
    );
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let (scheme, credentials) = value
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .ok_or(malformed)?;
    if values.next().is_some() || !scheme.eq_ignore_ascii_case("basic") {
        return Err(malformed);
    }
    let decoded = Zeroizing::new(STANDARD.decode(credentials.trim()).map_err(|_| malformed)?);
    let credentials = std::str::from_utf8(&decoded).map_err(|_| malformed)?;
    let (id, secret) = credentials.split_once(':').ok_or(malformed)?;
    Ok(Some(BasicCredential {
        id: form_decode(id).ok_or(malformed)?,
        secret: Secret::new(form_decode(secret).ok_or(malformed)?),
    }))
}

/// Decodes a form-encoded value. Returns `None` if it is empty, or a list of parameters.
fn form_decode(encoded: &str) -> Option<String> {
    if encoded.contains(['&', '=']) {
        return None;
    }
    form_urlencoded::parse(encoded.as_bytes())
        .next()
        .map(|(decoded, _)| decoded.into_owned())
}

const fn failed(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidClient, description)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn parse(value: &str) -> Option<(String, String)> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        parse_basic(&headers)
            .ok()
            .flatten()
            .map(|basic| (basic.id, basic.secret.secret().to_owned()))
    }

    #[test]
    fn both_parts_are_form_encoded() {
        let value = format!("basic {}", STANDARD.encode("a%3Ab:c+d%25"));
        assert_eq!(parse(&value), Some(("a:b".to_owned(), "c d%".to_owned())));
    }

    #[test]
    fn other_values_are_rejected() {
        for invalid in [
            "Basic",
            "Basic !!",
            "Bearer abc",
            &format!("Basic {}", STANDARD.encode("no colon")),
        ] {
            assert_eq!(parse(invalid), None, "{invalid}");
        }
        let mut twice = HeaderMap::new();
        let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode("a:b"))).unwrap();
        twice.append(AUTHORIZATION, value.clone());
        twice.append(AUTHORIZATION, value);
        assert!(parse_basic(&twice).is_err());
    }
}
