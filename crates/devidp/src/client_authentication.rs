use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, header::AUTHORIZATION};
use portcullis_metadata::Secret;
use url::form_urlencoded;
use zeroize::Zeroizing;

use crate::{
    app::App,
    clients::ClientAuthentication,
    form::Params,
    oauth_error::{ErrorName, OAuthRefusal},
};

/// Finds out which client calls the token or the revocation endpoint, and returns its identifier (RFC 6749 section 2.3).
///
/// A client must use the method that it registered, and no other beside it.
pub(crate) fn authenticate(app: &App, headers: &HeaderMap, form: &Params) -> Result<Box<str>, OAuthRefusal> {
    let in_form = form.one("client_id")?;
    let secret_in_form = form.one("client_secret")?;
    let basic = basic_of(headers)?;
    let failed = |description| OAuthRefusal::new(ErrorName::InvalidClient, description);

    let client_id = match (&basic, in_form) {
        (Some(basic), Some(id)) if basic.id != id => {
            return Err(OAuthRefusal::new(ErrorName::InvalidRequest, "the request names two clients"));
        }
        (Some(basic), _) => basic.id.as_str(),
        (None, Some(id)) => id,
        (None, None) => return Err(failed("no client is named")),
    };
    let client = app.client(client_id).ok_or(failed("the client is not registered here"))?;
    let proven = match (&client.authentication, &basic, secret_in_form) {
        (_, Some(_), Some(_)) => {
            let description = "the request authenticates the client in two ways";
            return Err(OAuthRefusal::new(ErrorName::InvalidRequest, description));
        }
        (ClientAuthentication::None, None, None) => true,
        (ClientAuthentication::SecretBasic(secret), Some(basic), None) => *secret == basic.secret,
        (ClientAuthentication::SecretPost(secret), None, Some(given)) => *secret == Secret::new(given),
        _ => return Err(failed("the client did not authenticate by the method that it registered")),
    };
    if proven { Ok(client_id.into()) } else { Err(failed("the client secret is wrong")) }
}

/// Finds out which protected resource calls the introspection endpoint, by either method, and returns its client
/// identifier.
pub(crate) fn authenticate_resource<'a>(
    app: &'a App,
    headers: &HeaderMap,
    form: &Params,
) -> Result<&'a str, OAuthRefusal> {
    let refused = |description| OAuthRefusal::new(ErrorName::InvalidClient, description);
    let (in_form, secret_in_form) = (form.one("client_id")?, form.one("client_secret")?);
    let basic = basic_of(headers)?;
    let (id, secret) = match (&basic, in_form, secret_in_form) {
        (Some(_), _, Some(_)) => {
            let description = "the request authenticates the client in two ways";
            return Err(OAuthRefusal::new(ErrorName::InvalidRequest, description));
        }
        (Some(basic), Some(id), None) if basic.id != id => {
            return Err(OAuthRefusal::new(ErrorName::InvalidRequest, "the request names two clients"));
        }
        (Some(basic), _, None) => (basic.id.as_str(), basic.secret.clone()),
        (None, Some(id), Some(secret)) => (id, Secret::new(secret)),
        (None, _, _) => return Err(refused("the introspection endpoint is for clients that authenticate")),
    };
    let known = app.settings.introspection_clients.iter().find(|(known, _)| known == id);
    match known {
        Some((id, known)) if *known == secret => Ok(id),
        _ => Err(refused("no such client may introspect, or its secret is wrong")),
    }
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
