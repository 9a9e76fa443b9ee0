//! [`PresentedCredential`]: the credential that a request presents, before it is verified.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, header::AUTHORIZATION};
use portcullis_metadata::{Secret, UnixTime};
use url::form_urlencoded;
use zeroize::Zeroizing;

use crate::{
    authentication::client_assertion::{self, ClientAssertion},
    client::{Credential, SecretHash, SecretMethod},
    error::{ErrorCode, ErrorResponse},
    params::Params,
    store::Store,
};

/// The credential in a request, before it is verified (RFC 6749 section 2.3).
pub struct PresentedCredential<'a>(Presented<'a>);

enum Presented<'a> {
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
    /// Parses the credential, without verifying it.
    ///
    /// # Errors
    /// Fails when the request identifies no client or two, or has more than one credential or a
    /// malformed one.
    pub fn parse(headers: &HeaderMap, form: &'a Params) -> Result<Self, ErrorResponse> {
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
        let presented = Self(match (basic, secret, assertion, id) {
            (Some(basic), ..) => Presented::Basic(basic),
            (_, _, Some(assertion), _) => Presented::Assertion(assertion),
            (_, Some(secret), _, Some(id)) => Presented::Post {
                id,
                secret: Secret::new(secret),
            },
            (_, None, _, Some(id)) => Presented::Id(id),
            _ => return Err(failed("the request does not identify a client")),
        });
        if id.is_some_and(|id| id != presented.id()) {
            return Err(invalid("the request identifies two clients"));
        }
        Ok(presented)
    }

    /// Verifies the credential against the registered one. The client must use the method that it
    /// registered, and no other one. `audience` is the issuer identifier of the server, which a
    /// client assertion must name.
    ///
    /// # Errors
    /// Fails with `invalid_client` when the credential is wrong, missing, presented by another
    /// method, or a client assertion that was used before.
    pub async fn verify(
        &self,
        registered: &Credential,
        store: &impl Store,
        audience: &str,
        now: UnixTime,
    ) -> Result<(), ErrorResponse> {
        self.verify_for(registered, store, &[audience], now).await
    }

    /// Like [`verify`](Self::verify), but a client assertion must name one of `audiences`, and
    /// nothing else. Some clients name the URL of the token endpoint, as RFC 7523 section 3 allowed
    /// before its revision.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub async fn verify_for(
        &self,
        registered: &Credential,
        store: &impl Store,
        audiences: &[&str],
        now: UnixTime,
    ) -> Result<(), ErrorResponse> {
        match (registered, &self.0) {
            (Credential::None, Presented::Id(_)) => Ok(()),
            (Credential::SecretBasic(secret), Presented::Basic(basic)) => {
                check_secret(secret, &basic.secret)
            }
            (Credential::SecretPost(secret), Presented::Post { secret: given, .. }) => {
                check_secret(secret, given)
            }
            (Credential::HashedSecret(SecretMethod::Basic, hash), Presented::Basic(basic)) => {
                check_hashed_secret(hash, &basic.secret)
            }
            (
                Credential::HashedSecret(SecretMethod::Post, hash),
                Presented::Post { secret: given, .. },
            ) => check_hashed_secret(hash, given),
            (Credential::Keys(keys), Presented::Assertion(assertion)) => {
                assertion.verify(store, keys, audiences, now).await
            }
            _ => Err(failed(
                "the client did not authenticate with its registered method",
            )),
        }
    }

    /// Returns the identifier of the client, which is not verified yet.
    pub fn id(&self) -> &str {
        match &self.0 {
            Presented::Id(id) | Presented::Post { id, .. } => id,
            Presented::Basic(basic) => &basic.id,
            Presented::Assertion(assertion) => assertion.client_id(),
        }
    }

    /// Returns the secret, if there is one.
    pub const fn secret(&self) -> Option<&Secret> {
        match &self.0 {
            Presented::Basic(BasicCredential { secret, .. }) | Presented::Post { secret, .. } => {
                Some(secret)
            }
            Presented::Id(_) | Presented::Assertion(_) => None,
        }
    }

    /// Returns how the secret is presented, if there is one.
    pub const fn secret_method(&self) -> Option<SecretMethod> {
        match self.0 {
            Presented::Basic(_) => Some(SecretMethod::Basic),
            Presented::Post { .. } => Some(SecretMethod::Post),
            Presented::Id(_) | Presented::Assertion(_) => None,
        }
    }

    /// Returns whether the credential is a client assertion.
    pub const fn is_assertion(&self) -> bool {
        matches!(self.0, Presented::Assertion(_))
    }
}

const WRONG_SECRET: ErrorResponse = failed("the client secret is wrong");

/// Compares a presented secret with the registered one, in constant time.
///
/// # Errors
/// Fails with `invalid_client` when they differ.
pub fn check_secret(registered: &Secret, presented: &Secret) -> Result<(), ErrorResponse> {
    if registered == presented {
        Ok(())
    } else {
        Err(WRONG_SECRET)
    }
}

fn check_hashed_secret(registered: &SecretHash, presented: &Secret) -> Result<(), ErrorResponse> {
    if registered.matches(presented) {
        Ok(())
    } else {
        Err(WRONG_SECRET)
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
struct BasicCredential {
    id: String,
    secret: Secret,
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
