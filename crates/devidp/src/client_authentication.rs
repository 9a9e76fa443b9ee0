use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, header::AUTHORIZATION};
use portcullis_metadata::Secret;
use url::form_urlencoded;
use zeroize::Zeroizing;

use crate::{
    app::App,
    client_assertion::{self, ClientAssertion},
    clients::{Client, Credential},
    form::Params,
    oauth_error::{ErrorName, OAuthRefusal},
};

/// The client that calls, after it proved itself.
pub(crate) struct Caller {
    pub(crate) id: Box<str>,
    pub(crate) client: Arc<Client>,
}

/// Finds out which client calls the token or the revocation endpoint (RFC 6749 section 2.3).
///
/// A client must use the method that it registered, and no other beside it.
pub(crate) async fn authenticate(app: &App, headers: &HeaderMap, form: &Params) -> Result<Caller, OAuthRefusal> {
    let presented = Presented::read(headers, form)?;
    let client = app.client(presented.id()).await.map_err(failed)?;
    match (&client.credential, &presented) {
        (Credential::None, Presented::Id(_)) => {}
        (Credential::SecretBasic(secret), Presented::Basic(basic)) => prove(*secret == basic.secret)?,
        (Credential::SecretPost(secret), Presented::Post { secret: given, .. }) => prove(secret == given)?,
        (Credential::Keys(keys), Presented::Assertion(assertion)) => assertion.verify(app, keys)?,
        _ => return Err(failed("the client did not authenticate by the method that it registered")),
    }
    Ok(Caller { id: presented.id().into(), client })
}

/// Finds out which protected resource calls the introspection endpoint, and returns its client identifier. A secret may come
/// in the header or in the form.
pub(crate) fn authenticate_resource(app: &App, headers: &HeaderMap, form: &Params) -> Result<Box<str>, OAuthRefusal> {
    let unknown = failed("no such client may introspect, or its secret is wrong");
    let presented = Presented::read(headers, form)?;
    let client = app.configured.get(presented.id()).filter(|client| client.may_introspect).ok_or(unknown)?;
    match (&client.credential, &presented) {
        (Credential::Keys(keys), Presented::Assertion(assertion)) => assertion.verify(app, keys)?,
        (
            Credential::SecretBasic(secret) | Credential::SecretPost(secret),
            Presented::Basic(Basic { secret: given, .. }),
        )
        | (Credential::SecretBasic(secret) | Credential::SecretPost(secret), Presented::Post { secret: given, .. })
            if secret == given => {}
        _ => return Err(unknown),
    }
    Ok(presented.id().into())
}

/// What a request brings to tell who sends it.
enum Presented<'a> {
    Id(&'a str),
    Basic(Basic),
    Post { id: &'a str, secret: Secret },
    Assertion(ClientAssertion<'a>),
}

impl<'a> Presented<'a> {
    fn read(headers: &HeaderMap, form: &'a Params) -> Result<Self, OAuthRefusal> {
        let invalid = |description| OAuthRefusal::new(ErrorName::InvalidRequest, description);
        let (id, secret) = (form.one("client_id")?, form.one("client_secret")?);
        let assertion = assertion_of(form)?;
        let basic = basic_of(headers)?;
        let ways = [basic.is_some(), secret.is_some(), assertion.is_some()];
        if ways.into_iter().filter(|way| *way).count() > 1 {
            return Err(invalid("the request authenticates the client in several ways"));
        }
        let presented = match (basic, secret, assertion, id) {
            (Some(basic), ..) => Self::Basic(basic),
            (_, _, Some(assertion), _) => Self::Assertion(assertion),
            (_, Some(secret), _, Some(id)) => Self::Post { id, secret: Secret::new(secret) },
            (_, None, _, Some(id)) => Self::Id(id),
            _ => return Err(failed("no client is named")),
        };
        if id.is_some_and(|id| id != presented.id()) {
            return Err(invalid("the request names two clients"));
        }
        Ok(presented)
    }

    fn id(&self) -> &str {
        match self {
            Self::Id(id) | Self::Post { id, .. } => id,
            Self::Basic(basic) => &basic.id,
            Self::Assertion(assertion) => assertion.client_id(),
        }
    }
}

fn assertion_of(form: &Params) -> Result<Option<ClientAssertion<'_>>, OAuthRefusal> {
    match (form.one("client_assertion_type")?, form.one("client_assertion")?) {
        (None, None) => Ok(None),
        (Some(client_assertion::TYPE), Some(assertion)) => ClientAssertion::parse(assertion).map(Some),
        _ => Err(failed("client_assertion and its client_assertion_type, which ends in :jwt-bearer, go together")),
    }
}

fn prove(proven: bool) -> Result<(), OAuthRefusal> {
    if proven { Ok(()) } else { Err(failed("the client secret is wrong")) }
}

const fn failed(description: &'static str) -> OAuthRefusal {
    OAuthRefusal::new(ErrorName::InvalidClient, description)
}

struct Basic {
    id: String,
    secret: Secret,
}

/// Reads `Authorization: Basic` with both parts form-encoded (RFC 6749 section 2.3.1).
fn basic_of(headers: &HeaderMap) -> Result<Option<Basic>, OAuthRefusal> {
    let malformed =
        OAuthRefusal::new(ErrorName::InvalidClient, "Authorization is not one well-formed Basic credential");
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let (scheme, credentials) = value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or(malformed)?;
    if values.next().is_some() || !scheme.eq_ignore_ascii_case("basic") {
        return Err(malformed);
    }
    let decoded = Zeroizing::new(STANDARD.decode(credentials.trim()).map_err(|_| malformed)?);
    let text = std::str::from_utf8(&decoded).map_err(|_| malformed)?;
    let (id, secret) = text.split_once(':').ok_or(malformed)?;
    Ok(Some(Basic {
        id: form_decoded(id).ok_or(malformed)?,
        secret: Secret::new(form_decoded(secret).ok_or(malformed)?),
    }))
}

fn form_decoded(text: &str) -> Option<String> {
    if text.contains(['&', '=']) {
        return None;
    }
    form_urlencoded::parse(text.as_bytes()).next().map(|(decoded, _)| decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(value: &str) -> Option<(String, String)> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        basic_of(&headers).ok().flatten().map(|basic| (basic.id, basic.secret.secret().to_owned()))
    }

    #[test]
    fn both_parts_are_form_encoded() {
        let value = format!("basic {}", STANDARD.encode("a%3Ab:c+d%25"));
        assert_eq!(read(&value), Some(("a:b".to_owned(), "c d%".to_owned())));
    }

    #[test]
    fn anything_else_is_refused() {
        for bad in ["Basic", "Basic !!", "Bearer abc", &format!("Basic {}", STANDARD.encode("no colon"))] {
            assert_eq!(read(bad), None, "{bad}");
        }
        let mut twice = HeaderMap::new();
        let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode("a:b"))).unwrap();
        twice.append(AUTHORIZATION, value.clone());
        twice.append(AUTHORIZATION, value);
        assert!(basic_of(&twice).is_err());
    }
}
