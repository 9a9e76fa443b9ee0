//! Dynamic client registration (RFC 7591).

use std::sync::Arc;

use http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use portcullis_metadata::{
    ClientMetadata, ClientRegistrationRequest, ClientRegistrationResponse, JwkSet, Secret, UnixTime,
};
use serde_json::{Value, json};

use crate::{
    app::App,
    authentication::mode::ClientAuthenticationMode,
    authorize::OFFLINE_ACCESS,
    clients::{
        Client, Credential, Registered,
        grant_type::GrantType,
        management::{self, TokenHash},
        redirect_uri::{RedirectUri, RedirectUriError},
    },
    handle::random_text,
    providers::profile::RegistrationRule,
    server::{
        oauth_error::{ErrorCode, ErrorResponse},
        respond::{Reply, json_error, json_reply},
    },
    settings::Registration,
    tables::TableFull,
};

const RESPONSE_TYPE: &str = "code";
const MAX_REDIRECT_URIS: usize = 10;
const MAX_NAME_CHARS: usize = 100;

/// Handles the registration endpoint (RFC 7591 section 3).
pub(crate) fn register(app: &App, headers: &HeaderMap, body: &[u8]) -> Reply {
    if app.profile.registration == RegistrationRule::ApiToken {
        // The provider's own error format.
        let body = json!({
            "errorCode": "E0000011", "errorSummary": "Invalid token provided", "errorLink": "E0000011", "errorCauses": [],
        });
        return json_reply(StatusCode::UNAUTHORIZED, body.to_string().into_bytes());
    }
    authorize_registration(app, headers).and_then(|()| register_client(app, body)).unwrap_or_else(|refusal| {
        tracing::info!(
            registration.error = refusal.error.as_str(),
            registration.description = refusal.description,
            "rejected a registration"
        );
        json_error(refusal)
    })
}

/// Checks that the sender may register clients according to the settings.
fn authorize_registration(app: &App, headers: &HeaderMap) -> Result<(), ErrorResponse> {
    let expected = match &app.settings.registration {
        Registration::Open => return Ok(()),
        Registration::Closed => {
            return Err(ErrorResponse::new(ErrorCode::AccessDenied, "registration is disabled on this server"));
        }
        Registration::WithToken(expected) => expected,
    };
    if bearer_token(headers).as_ref() == Some(expected) {
        return Ok(());
    }
    let description = "registration needs the initial access token of this server as a bearer token";
    Err(ErrorResponse::new(ErrorCode::InvalidToken, description))
}

/// Returns the bearer token of a request (RFC 6750 section 2.1).
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<Secret> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().filter(|_| values.next().is_none())?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| Secret::new(token))
}

/// Registers a client. Unsupported members are ignored and not returned, as RFC 7591 section 3.2.1 requires.
fn register_client(app: &App, body: &[u8]) -> Result<Reply, ErrorResponse> {
    let request = parse_request(body)?;
    if app.profile.registration == RegistrationRule::Strict
        && let Some(reply) = reject_unknown(app, &request)
    {
        return reply;
    }
    let id = random_text(16)?;
    let issued_at = UnixTime::from_secs(app.settings.clock.now().as_secs());
    let (client, mut information) = register_metadata(app, request, None)?;
    information.client_id = id.to_string();
    information.client_id_issued_at = Some(issued_at);
    information.registration_client_uri = Some(management::client_uri(app, &id));

    let (token, registration_token) = TokenHash::generate()?;
    let client = Arc::new(client);
    let row =
        Registered { client: Arc::clone(&client), used: false, information: information.clone(), registration_token };
    app.clients.insert(&id, row, |row| !row.used).map_err(|TableFull| {
        let description = "the maximum number of clients is reached, and all of them are in use";
        ErrorResponse::new(ErrorCode::TemporarilyUnavailable, description)
    })?;
    tracing::info!(
        client.id = id.as_str(),
        client.name = client.name.as_deref(),
        client.redirects = ?client.redirect_uris.iter().map(RedirectUri::authority).collect::<Vec<_>>(),
        "registered a client"
    );
    information.registration_access_token = Some(token);
    Ok(json_reply(StatusCode::CREATED, information.to_json()))
}

/// Parses the body of a registration or update request.
pub(super) fn parse_request(body: &[u8]) -> Result<ClientMetadata, ErrorResponse> {
    let request = ClientRegistrationRequest::parse(body);
    let request =
        request.map_err(|_| invalid("the body must be a JSON object whose members have the types of RFC 7591"))?;
    Ok(request.metadata)
}

/// Validates client metadata and returns the client and its information response, without its identifier and dates. An
/// updated client keeps its `current` secret if it keeps its authentication method.
pub(super) fn register_metadata(
    app: &App,
    request: ClientMetadata,
    current: Option<&Credential>,
) -> Result<(Client, ClientRegistrationResponse), ErrorResponse> {
    let name = parse_name(&request)?;
    let grant_types = parse_grant_types(&request)?;
    let needs_redirect = grant_types.contains(&GrantType::AuthorizationCode);
    let redirect_uris =
        if needs_redirect || !request.redirect_uris.is_empty() { parse_redirect_uris(&request)? } else { Vec::new() };
    let mode = app.settings.client_authentication_mode;
    let NewCredential { method, credential, secret, jwks } = NewCredential::from_request(&request, mode, current)?;
    let information = ClientRegistrationResponse {
        client_id: String::new(),
        client_secret: secret,
        client_id_issued_at: None,
        client_secret_expires_at: None,
        registration_access_token: None,
        registration_client_uri: None,
        metadata: ClientMetadata {
            redirect_uris: request.redirect_uris,
            client_name: name.as_deref().map(str::to_owned),
            grant_types: grant_types.iter().map(|grant_type| grant_type.as_str().to_owned()).collect(),
            response_types: if needs_redirect { vec![RESPONSE_TYPE.to_owned()] } else { Vec::new() },
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
    Ok((client, information))
}

/// Rejects unknown members and scopes, as Keycloak does.
fn reject_unknown(app: &App, request: &ClientMetadata) -> Option<Result<Reply, ErrorResponse>> {
    if !request.extra.is_empty() {
        let body = json!({ "error": "Invalid json representation for OIDCClientRepresentation. Unrecognized field" });
        return Some(Ok(json_reply(StatusCode::BAD_REQUEST, body.to_string().into_bytes())));
    }
    let is_known = |scope: &str| scope == OFFLINE_ACCESS || app.settings.scopes.contains(scope);
    let mut requested = request.scope.iter().flat_map(|scope| scope.split(' '));
    let description = "Policy 'Allowed Client Scopes' rejected request to client-registration service. Details: Not permitted to use specified clientScope";
    let error = ErrorResponse::new(ErrorCode::InsufficientScope, description);
    requested.any(|scope| !scope.is_empty() && !is_known(scope)).then_some(Err(error))
}

/// The credential of a new client.
struct NewCredential {
    method: &'static str,
    credential: Credential,
    secret: Option<Secret>,
    jwks: Option<Value>,
}

impl NewCredential {
    fn from_request(
        request: &ClientMetadata,
        mode: ClientAuthenticationMode,
        current: Option<&Credential>,
    ) -> Result<Self, ErrorResponse> {
        let method = request.token_endpoint_auth_method.as_deref();
        let method = match (mode, method) {
            (ClientAuthenticationMode::PythonSdk, None | Some("client_secret_basic")) => "client_secret_post",
            // RFC 7591 section 2: the default is client_secret_basic.
            (_, None) => "client_secret_basic",
            (_, Some(method)) => method,
        };
        let secret = |current: Option<&Secret>| match current {
            Some(current) => Ok(current.clone()),
            None => Ok::<_, ErrorResponse>(Secret::new(random_text(32)?.as_str())),
        };
        match method {
            "none" => Ok(Self { method: "none", credential: Credential::None, secret: None, jwks: None }),
            "client_secret_basic" => {
                let current = if let Some(Credential::SecretBasic(current)) = current { Some(current) } else { None };
                let secret = secret(current)?;
                let credential = Credential::SecretBasic(secret.clone());
                Ok(Self { method: "client_secret_basic", credential, secret: Some(secret), jwks: None })
            }
            "client_secret_post" => {
                let current = if let Some(Credential::SecretPost(current)) = current { Some(current) } else { None };
                let secret = secret(current)?;
                let credential = Credential::SecretPost(secret.clone());
                Ok(Self { method: "client_secret_post", credential, secret: Some(secret), jwks: None })
            }
            Credential::PRIVATE_KEY_JWT => {
                let credential = parse_keys(request)?;
                Ok(Self { method: Credential::PRIVATE_KEY_JWT, credential, secret: None, jwks: request.jwks.clone() })
            }
            _ => Err(invalid(
                "token_endpoint_auth_method must be none, client_secret_basic, client_secret_post or private_key_jwt",
            )),
        }
    }
}

/// Imports the keys in `jwks`. Keys at a `jwks_uri` are not fetched.
pub(crate) fn parse_keys(request: &ClientMetadata) -> Result<Credential, ErrorResponse> {
    if request.jwks_uri.is_some() {
        return Err(invalid("jwks_uri is not supported: send the public keys as a JWK set in jwks"));
    }
    let jwks = request.jwks.as_ref().ok_or(invalid("private_key_jwt requires the public keys as a JWK set in jwks"))?;
    let keys = JwkSet::parse(jwks.to_string().as_bytes()).ok().and_then(|keys| Credential::keys(&keys));
    keys.ok_or(invalid("jwks has no usable public key"))
}

/// Returns the requested grant types that dynamically registered clients may have (RFC 7591 section 2).
pub(crate) fn parse_grant_types(request: &ClientMetadata) -> Result<Vec<GrantType>, ErrorResponse> {
    let contains = |grant_type: GrantType| request.grant_types.iter().any(|name| name == grant_type.as_str());
    let uses_codes = request.grant_types.is_empty() || contains(GrantType::AuthorizationCode);
    if !uses_codes && !contains(GrantType::DeviceCode) {
        return Err(invalid(
            "grant_types must contain authorization_code or urn:ietf:params:oauth:grant-type:device_code; other clients must be configured in the settings",
        ));
    }
    if uses_codes && !is_empty_or_contains(&request.response_types, RESPONSE_TYPE) {
        return Err(invalid("response_types must contain code, the only supported response type"));
    }
    let others =
        [GrantType::RefreshToken, GrantType::DeviceCode].into_iter().filter(|grant_type| contains(*grant_type));
    Ok(uses_codes.then_some(GrantType::AuthorizationCode).into_iter().chain(others).collect())
}

fn is_empty_or_contains(names: &[String], required: &str) -> bool {
    names.is_empty() || names.iter().any(|name| name == required)
}

const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidClientMetadata, description)
}

pub(crate) fn parse_redirect_uris(request: &ClientMetadata) -> Result<Vec<RedirectUri>, ErrorResponse> {
    let reject = |description| ErrorResponse::new(ErrorCode::InvalidRedirectUri, description);
    let uris = &request.redirect_uris;
    if uris.is_empty() || uris.len() > MAX_REDIRECT_URIS {
        return Err(reject("redirect_uris must have 1 to 10 entries"));
    }
    let parsed: Result<_, RedirectUriError> = uris.iter().map(|uri| RedirectUri::parse(uri)).collect();
    parsed.map_err(|error| reject(error.description()))
}

pub(crate) fn parse_name(request: &ClientMetadata) -> Result<Option<Box<str>>, ErrorResponse> {
    let Some(name) = request.client_name.as_deref().map(str::trim).filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    if name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        return Err(invalid("client_name must have at most 100 characters and no control characters"));
    }
    Ok(Some(name.into()))
}
