//! Client authentication (RFC 6749 section 2.3).

pub(crate) mod assertion;
pub(crate) mod client_assertion;
pub(crate) mod dpop;
pub(crate) mod mode;

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, header::AUTHORIZATION};
use portcullis_metadata::Secret;
use url::form_urlencoded;
use zeroize::Zeroizing;

use crate::{
    app::App,
    authentication::{client_assertion::ClientAssertion, mode::SecretMethod},
    clients::{Client, Credential},
    providers::profile::{Profile, PublicClientRule},
    server::{
        form::Params,
        oauth_error::{ErrorCode, ErrorResponse},
    },
};

/// An authenticated client.
pub(crate) struct AuthenticatedClient {
    pub(crate) id: Box<str>,
    pub(crate) client: Arc<Client>,
}

/// Authenticates the client at the token or revocation endpoint (RFC 6749 section 2.3).
///
/// The client must use the method that it registered, and no other one, unless the settings have another mode.
pub(crate) async fn authenticate(
    app: &App,
    headers: &HeaderMap,
    form: &Params,
) -> Result<AuthenticatedClient, ErrorResponse> {
    let presented = PresentedCredential::parse(headers, form)?;
    let mode = app.config.settings.client_authentication_mode;
    let method = presented.secret_method();
    mode.check(method, form.get("client_id")?.is_some()).map_err(failed)?;
    let client = app.clients.find(presented.id()).await.map_err(failed)?;
    if client.credential.is_public() {
        check_public_client(app.config.profile)?;
    }
    match (&client.credential, &presented) {
        (Credential::None, PresentedCredential::Id(_)) => {}
        (
            Credential::SecretBasic(secret) | Credential::SecretPost(secret),
            PresentedCredential::Basic(BasicCredential { secret: given, .. })
            | PresentedCredential::Post { secret: given, .. },
        ) if mode.accepts_any_method() => check_secret(secret == given)?,
        (Credential::SecretBasic(secret), PresentedCredential::Basic(basic)) => check_secret(*secret == basic.secret)?,
        (Credential::SecretPost(secret), PresentedCredential::Post { secret: given, .. }) => {
            check_secret(secret == given)?
        }
        (Credential::Keys(keys), PresentedCredential::Assertion(assertion)) => {
            assertion.verify(&app.assertions, keys, app.config.issuer.as_str())?
        }
        _ => return Err(failed("the client did not authenticate with its registered method")),
    }
    Ok(AuthenticatedClient { id: presented.id().into(), client })
}

/// Rejects public clients if the imitated provider does.
fn check_public_client(profile: &Profile) -> Result<(), ErrorResponse> {
    match profile.public_clients {
        PublicClientRule::Allowed => Ok(()),
        PublicClientRule::InvalidClient => Err(failed("The client_id and/or client_secret passed are incorrect.")),
        PublicClientRule::MissingSecret => {
            Err(ErrorResponse::new(ErrorCode::InvalidRequest, "client_secret is missing."))
        }
    }
}

/// Authenticates the protected resource at the introspection endpoint and returns its client identifier. A secret may
/// be in the header or in the form.
pub(crate) fn authenticate_resource(app: &App, headers: &HeaderMap, form: &Params) -> Result<Box<str>, ErrorResponse> {
    let rejected = failed("the client is unknown, may not introspect, or has another secret");
    let presented = PresentedCredential::parse(headers, form)?;
    let client = app.clients.find_resource(presented.id()).ok_or(rejected)?;
    match (&client.credential, &presented) {
        (Credential::Keys(keys), PresentedCredential::Assertion(assertion)) => {
            assertion.verify(&app.assertions, keys, app.config.issuer.as_str())?
        }
        (
            Credential::SecretBasic(secret) | Credential::SecretPost(secret),
            PresentedCredential::Basic(BasicCredential { secret: given, .. }),
        )
        | (
            Credential::SecretBasic(secret) | Credential::SecretPost(secret),
            PresentedCredential::Post { secret: given, .. },
        ) if secret == given => {}
        _ => return Err(rejected),
    }
    Ok(presented.id().into())
}

/// The credential in a request.
enum PresentedCredential<'a> {
    Id(&'a str),
    Basic(BasicCredential),
    Post { id: &'a str, secret: Secret },
    Assertion(ClientAssertion<'a>),
}

impl<'a> PresentedCredential<'a> {
    fn parse(headers: &HeaderMap, form: &'a Params) -> Result<Self, ErrorResponse> {
        let invalid = |description| ErrorResponse::new(ErrorCode::InvalidRequest, description);
        let (id, secret) = (form.get("client_id")?, form.get("client_secret")?);
        let assertion = parse_assertion(form)?;
        let basic = parse_basic(headers)?;
        let methods = [basic.is_some(), secret.is_some(), assertion.is_some()];
        if methods.into_iter().filter(|is_used| *is_used).count() > 1 {
            return Err(invalid("the request uses more than one authentication method"));
        }
        let presented = match (basic, secret, assertion, id) {
            (Some(basic), ..) => Self::Basic(basic),
            (_, _, Some(assertion), _) => Self::Assertion(assertion),
            (_, Some(secret), _, Some(id)) => Self::Post { id, secret: Secret::new(secret) },
            (_, None, _, Some(id)) => Self::Id(id),
            _ => return Err(failed("the request does not identify a client")),
        };
        if id.is_some_and(|id| id != presented.id()) {
            return Err(invalid("the request identifies two clients"));
        }
        Ok(presented)
    }

    /// Returns how the secret is presented, if there is one.
    const fn secret_method(&self) -> Option<SecretMethod> {
        match self {
            Self::Basic(_) => Some(SecretMethod::Basic),
            Self::Post { .. } => Some(SecretMethod::Post),
            Self::Id(_) | Self::Assertion(_) => None,
        }
    }

    fn id(&self) -> &str {
        match self {
            Self::Id(id) | Self::Post { id, .. } => id,
            Self::Basic(basic) => &basic.id,
            Self::Assertion(assertion) => assertion.client_id(),
        }
    }
}

fn parse_assertion(form: &Params) -> Result<Option<ClientAssertion<'_>>, ErrorResponse> {
    match (form.get("client_assertion_type")?, form.get("client_assertion")?) {
        (None, None) => Ok(None),
        (Some(client_assertion::TYPE), Some(assertion)) => ClientAssertion::parse(assertion).map(Some),
        _ => Err(failed("client_assertion and a client_assertion_type that ends in :jwt-bearer must be used together")),
    }
}

fn check_secret(is_correct: bool) -> Result<(), ErrorResponse> {
    if is_correct { Ok(()) } else { Err(failed("the client secret is wrong")) }
}

const fn failed(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidClient, description)
}

struct BasicCredential {
    id: String,
    secret: Secret,
}

/// Parses `Authorization: Basic`. Both parts are form-encoded (RFC 6749 section 2.3.1).
fn parse_basic(headers: &HeaderMap) -> Result<Option<BasicCredential>, ErrorResponse> {
    let malformed =
        ErrorResponse::new(ErrorCode::InvalidClient, "Authorization is not a single well-formed Basic credential");
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let (scheme, credentials) = value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or(malformed)?;
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

fn form_decode(encoded: &str) -> Option<String> {
    if encoded.contains(['&', '=']) {
        return None;
    }
    form_urlencoded::parse(encoded.as_bytes()).next().map(|(decoded, _)| decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn parse(value: &str) -> Option<(String, String)> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        parse_basic(&headers).ok().flatten().map(|basic| (basic.id, basic.secret.secret().to_owned()))
    }

    #[test]
    fn both_parts_are_form_encoded() {
        let value = format!("basic {}", STANDARD.encode("a%3Ab:c+d%25"));
        assert_eq!(parse(&value), Some(("a:b".to_owned(), "c d%".to_owned())));
    }

    #[test]
    fn other_values_are_rejected() {
        for invalid in ["Basic", "Basic !!", "Bearer abc", &format!("Basic {}", STANDARD.encode("no colon"))] {
            assert_eq!(parse(invalid), None, "{invalid}");
        }
        let mut twice = HeaderMap::new();
        let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode("a:b"))).unwrap();
        twice.append(AUTHORIZATION, value.clone());
        twice.append(AUTHORIZATION, value);
        assert!(parse_basic(&twice).is_err());
    }
}
