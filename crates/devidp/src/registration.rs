use std::sync::Arc;

use http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use portcullis_metadata::{
    ClientMetadata, ClientRegistrationRequest, ClientRegistrationResponse, JwkSet, Secret, UnixTime,
};
use serde_json::Value;

use crate::{
    GrantType, Registration,
    app::App,
    clients::{Client, Credential, Registered},
    handle::random_text,
    oauth_error::{ErrorName, OAuthRefusal},
    redirect::{RedirectUri, RedirectUriError},
    respond::{Reply, json_refusal, json_reply},
    tables::Full,
};

const RESPONSE_TYPE: &str = "code";
const MAX_REDIRECT_URIS: usize = 10;
const MAX_NAME_CHARS: usize = 100;

/// Answers the registration endpoint (RFC 7591 section 3).
pub(crate) fn register(app: &App, headers: &HeaderMap, body: &[u8]) -> Reply {
    may_register(app, headers).and_then(|()| registered(app, body)).unwrap_or_else(|refusal| {
        tracing::info!(
            registration.error = refusal.error.as_str(),
            registration.refused = refusal.description,
            "refused a registration"
        );
        json_refusal(refusal)
    })
}

/// Holds the request against what the settings say of who may register.
fn may_register(app: &App, headers: &HeaderMap) -> Result<(), OAuthRefusal> {
    let expected = match &app.settings.registration {
        Registration::Open => return Ok(()),
        Registration::Closed => {
            return Err(OAuthRefusal::new(ErrorName::AccessDenied, "nobody can register a client here"));
        }
        Registration::WithToken(expected) => expected,
    };
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let given = values.next().filter(|_| values.next().is_none()).and_then(|value| value.to_str().ok());
    let given =
        given.and_then(|value| value.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    if given.is_some_and(|(_, token)| Secret::new(token) == *expected) {
        return Ok(());
    }
    let description = "registration needs the initial access token of this server as a bearer token";
    Err(OAuthRefusal::new(ErrorName::InvalidToken, description))
}

/// Reads what matters here. Other members are ignored and not returned, which tells the client that they were not
/// taken (RFC 7591 section 3.2.1).
fn registered(app: &App, body: &[u8]) -> Result<Reply, OAuthRefusal> {
    let request = ClientRegistrationRequest::parse(body)
        .map_err(|_| invalid("the body is not a JSON object with members of the types that RFC 7591 names"))?
        .metadata;
    let redirect_uris = redirect_uris_of(&request)?;
    let name = name_of(&request)?;
    let grant_types = grant_types_of(&request)?;
    let Proof { method, credential, secret, jwks } = Proof::of(&request)?;

    let id = random_text(16)?;
    let response = ClientRegistrationResponse {
        client_id: id.to_string(),
        client_secret: secret,
        client_id_issued_at: Some(UnixTime::from_secs(app.settings.clock.unix().as_secs())),
        client_secret_expires_at: None,
        registration_access_token: None,
        registration_client_uri: None,
        metadata: ClientMetadata {
            redirect_uris: request.redirect_uris,
            client_name: name.as_deref().map(str::to_owned),
            grant_types: grant_types.iter().map(|grant_type| grant_type.as_str().to_owned()).collect(),
            response_types: vec![RESPONSE_TYPE.to_owned()],
            token_endpoint_auth_method: Some(method.to_owned()),
            jwks,
            ..ClientMetadata::default()
        },
    };
    let client = Client {
        name,
        redirect_uris,
        credential,
        grant_types,
        scopes: None,
        may_introspect: false,
        is_document: false,
    };
    let client = Arc::new(client);
    let row = Registered { client: Arc::clone(&client), used: false };
    app.clients.insert(&id, row, |row| !row.used).map_err(|Full| {
        let description = "no room for another client: all that are registered are in use";
        OAuthRefusal::new(ErrorName::TemporarilyUnavailable, description)
    })?;
    tracing::info!(
        client.id = id.as_str(),
        client.name = client.name.as_deref(),
        client.redirects = ?client.redirect_uris.iter().map(RedirectUri::authority).collect::<Vec<_>>(),
        "registered a client"
    );
    Ok(json_reply(StatusCode::CREATED, response.to_json()))
}

/// How a client is going to prove itself.
struct Proof {
    method: &'static str,
    credential: Credential,
    secret: Option<Secret>,
    jwks: Option<Value>,
}

impl Proof {
    fn of(request: &ClientMetadata) -> Result<Self, OAuthRefusal> {
        let secret = || Ok::<_, OAuthRefusal>(Secret::new(random_text(32)?.as_str()));
        // RFC 7591 section 2: the default is client_secret_basic.
        match request.token_endpoint_auth_method.as_deref().unwrap_or("client_secret_basic") {
            "none" => Ok(Self { method: "none", credential: Credential::None, secret: None, jwks: None }),
            "client_secret_basic" => {
                let secret = secret()?;
                let credential = Credential::SecretBasic(secret.clone());
                Ok(Self { method: "client_secret_basic", credential, secret: Some(secret), jwks: None })
            }
            "client_secret_post" => {
                let secret = secret()?;
                let credential = Credential::SecretPost(secret.clone());
                Ok(Self { method: "client_secret_post", credential, secret: Some(secret), jwks: None })
            }
            Credential::PRIVATE_KEY_JWT => {
                let credential = keys_of(request)?;
                Ok(Self { method: Credential::PRIVATE_KEY_JWT, credential, secret: None, jwks: request.jwks.clone() })
            }
            _ => Err(invalid(
                "token_endpoint_auth_method is none, client_secret_basic, client_secret_post or private_key_jwt",
            )),
        }
    }
}

/// The keys that a client's metadata holds. Those that it only points at are not fetched.
pub(crate) fn keys_of(request: &ClientMetadata) -> Result<Credential, OAuthRefusal> {
    if request.jwks_uri.is_some() {
        return Err(invalid("jwks_uri is not read here: send the public keys themselves, as a JWK set in jwks"));
    }
    let jwks = request.jwks.as_ref().ok_or(invalid("private_key_jwt needs the public keys, as a JWK set in jwks"))?;
    let keys = JwkSet::parse(jwks.to_string().as_bytes()).ok().and_then(|keys| Credential::keys(&keys));
    keys.ok_or(invalid("jwks holds no usable public key"))
}

/// Those of the grant types asked for that a client which anybody can make may have (RFC 7591 section 2).
pub(crate) fn grant_types_of(request: &ClientMetadata) -> Result<Vec<GrantType>, OAuthRefusal> {
    if !names_or_leaves_out(&request.grant_types, GrantType::AuthorizationCode.as_str()) {
        return Err(invalid("grant_types without authorization_code: other clients are named in the settings"));
    }
    if !names_or_leaves_out(&request.response_types, RESPONSE_TYPE) {
        return Err(invalid("response_types without code: there is no other response type here"));
    }
    let refresh = request.grant_types.iter().any(|name| name == GrantType::RefreshToken.as_str());
    Ok([GrantType::AuthorizationCode].into_iter().chain(refresh.then_some(GrantType::RefreshToken)).collect())
}

fn names_or_leaves_out(names: &[String], needed: &str) -> bool {
    names.is_empty() || names.iter().any(|name| name == needed)
}

const fn invalid(description: &'static str) -> OAuthRefusal {
    OAuthRefusal::new(ErrorName::InvalidClientMetadata, description)
}

pub(crate) fn redirect_uris_of(request: &ClientMetadata) -> Result<Vec<RedirectUri>, OAuthRefusal> {
    let refuse = |description| OAuthRefusal::new(ErrorName::InvalidRedirectUri, description);
    let texts = &request.redirect_uris;
    if texts.is_empty() || texts.len() > MAX_REDIRECT_URIS {
        return Err(refuse("redirect_uris has 1 to 10 entries"));
    }
    let parsed: Result<_, RedirectUriError> = texts.iter().map(|text| RedirectUri::parse(text)).collect();
    parsed.map_err(|error| refuse(error.description()))
}

pub(crate) fn name_of(request: &ClientMetadata) -> Result<Option<Box<str>>, OAuthRefusal> {
    let Some(name) = request.client_name.as_deref().map(str::trim).filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    if name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        return Err(invalid("client_name has at most 100 characters and no control characters"));
    }
    Ok(Some(name.into()))
}
