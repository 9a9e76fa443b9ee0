//! Dynamic client registration (RFC 7591), and the client ID metadata document.

use portcullis_discovery::{Fetch, FetchRequest, ResponseExcerpt};
use portcullis_metadata::{
    Scopes,
    client::{
        ClientIdMetadataDocument, ClientIdUrl, ClientMetadata, ClientRegistrationRequest,
        ClientRegistrationResponse, RegistrationError,
    },
    syntax::url_without_secrets,
};
use serde::Deserialize;
use url::Url;

use crate::{
    ClientError, StartUrl, TokenAuthMethod, oauth_error::redacted,
    registration::registered::Registered, server::Server,
};

/// The name of the endpoint, for errors.
const ENDPOINT: &str = "registration";

pub(crate) struct Registration<'a> {
    pub(crate) client_name: &'a str,
    /// The only redirect URI of the client.
    pub(crate) redirect_uri: &'a Url,
    /// The scopes that the client requests now.
    pub(crate) needed: &'a Scopes,
    /// The scopes that the client may request, now or later.
    pub(crate) scopes: &'a Scopes,
    /// The URL to sign in for.
    pub(crate) start: &'a StartUrl,
    /// Whether a client that is signed in, and may have a session, needs more scopes.
    pub(crate) is_step_up: bool,
    /// The only start URL that the registration is used for. None if it is used for every resource
    /// of its issuer.
    pub(crate) only_for: Option<&'a Url>,
    /// How the user wants the client to authenticate. By default, the server's list decides.
    pub(crate) method: Option<TokenAuthMethod>,
    /// A grant type beside the authorization code and the refresh token.
    pub(crate) grant_type: Option<&'a str>,
}

/// Registers a client (RFC 7591 section 3). Fails when the server cannot be reached, rejects the
/// registration, or responds without a valid registration for the redirect URI.
pub(crate) async fn register(
    fetch: &dyn Fetch,
    server: &Server,
    endpoint: &Url,
    registration: &Registration<'_>,
) -> Result<Registered, ClientError> {
    let request = FetchRequest::post_json(
        endpoint.clone(),
        body(server, registration),
        server.policy.of(endpoint),
    );
    let answer = fetch
        .fetch(request)
        .await
        .map_err(|error| ClientError::Endpoint {
            endpoint: ENDPOINT,
            url: url_without_secrets(endpoint).into(),
            error,
        })?;
    if !answer.status.is_success() {
        return Err(match RegistrationError::parse(&answer.body) {
            Ok(RegistrationError(error)) => {
                ClientError::Registration(RegistrationError(redacted(error, &answer.sent)))
            }
            Err(_) => {
                let response = Box::new(ResponseExcerpt::new(
                    &answer.headers,
                    &answer.body,
                    &answer.sent,
                ));
                ClientError::Status {
                    endpoint: ENDPOINT,
                    status: answer.status,
                    response,
                }
            }
        });
    }
    let response = ClientRegistrationResponse::parse(&answer.body).map_err(|error| {
        // The body may contain a secret.
        let response = Box::new(ResponseExcerpt::without_body(&answer.headers, &answer.sent));
        ClientError::InvalidResponse {
            endpoint: ENDPOINT,
            response,
            error,
        }
    })?;
    let redirect_uri = registration.redirect_uri.as_str();
    if !serves_redirect(&answer.body, redirect_uri) {
        let issuer = server.issuer.clone();
        let redirect_uri = redirect_uri.to_owned();
        return Err(ClientError::RedirectNotRegistered {
            issuer,
            redirect_uri,
        });
    }
    Ok(Registered {
        issuer: server.issuer.clone(),
        redirect_uri: Some(redirect_uri.to_owned()),
        asked: registration.scopes.clone(),
        response,
    })
}

/// Creates the document to serve at `client_id`, an https URL, so that authorization servers know
/// this client without a registration (client ID metadata document). It describes a public client
/// with these redirect URIs; one on loopback matches every port (RFC 8252 section 7.3).
///
/// It does not check that the document is served at that URL.
pub fn client_id_metadata_document<'a>(
    client_id: ClientIdUrl,
    client_name: &str,
    redirect_uris: impl IntoIterator<Item = &'a Url>,
) -> ClientIdMetadataDocument {
    let metadata = ClientMetadata {
        token_endpoint_auth_method: Some("none".into()),
        ..metadata(client_name, redirect_uris)
    };
    ClientIdMetadataDocument {
        client_id,
        metadata,
    }
}

/// Whether a registration response, which has been parsed, allows this redirect URI. URIs are
/// compared as strings.
///
/// RFC 7591 section 3.2.1 requires the server to return what it registered. A response without the
/// member is accepted, because some servers return only the client identifier, and reject the
/// authorization request if they registered another URI. An empty list means that none is
/// registered.
fn serves_redirect(response: &[u8], redirect_uri: &str) -> bool {
    #[derive(Deserialize)]
    struct Registered {
        redirect_uris: Option<Vec<String>>,
    }
    serde_json::from_slice::<Registered>(response).is_ok_and(|registered| {
        registered
            .redirect_uris
            .is_none_or(|uris| uris.iter().any(|uri| uri == redirect_uri))
    })
}

/// The metadata that every client has, registered or documented.
fn metadata<'a>(
    client_name: &str,
    redirect_uris: impl IntoIterator<Item = &'a Url>,
) -> ClientMetadata {
    let redirect_uris: Vec<_> = redirect_uris
        .into_iter()
        .map(|uri| uri.as_str().to_owned())
        .collect();
    // A web client is redirected to https, a native one to loopback or a private-use scheme.
    let is_web =
        !redirect_uris.is_empty() && redirect_uris.iter().all(|uri| uri.starts_with("https:"));
    ClientMetadata {
        client_name: Some(client_name.to_owned()),
        redirect_uris,
        grant_types: vec!["authorization_code".into(), "refresh_token".into()],
        response_types: vec!["code".into()],
        application_type: Some(if is_web { "web" } else { "native" }.into()),
        ..ClientMetadata::default()
    }
}

/// The body of a registration request.
fn body(server: &Server, registration: &Registration<'_>) -> Vec<u8> {
    let mut metadata = ClientMetadata {
        token_endpoint_auth_method: Some(
            authentication_method(server, registration.method)
                .name()
                .to_owned(),
        ),
        scope: (!registration.scopes.is_empty()).then(|| registration.scopes.to_string()),
        ..metadata(registration.client_name, [registration.redirect_uri])
    };
    metadata
        .grant_types
        .extend(registration.grant_type.map(str::to_owned));
    ClientRegistrationRequest {
        metadata,
        software_statement: None,
    }
    .to_json()
}

/// The chosen method, otherwise the first that the server lists: `none`, post, basic. `none` if it
/// lists none of them or has no list, because servers that do not list `none` may accept it.
fn authentication_method(server: &Server, chosen: Option<TokenAuthMethod>) -> TokenAuthMethod {
    let listed = server.authentication_methods.as_deref().unwrap_or_default();
    let first = || {
        TokenAuthMethod::ALL
            .into_iter()
            .find(|method| method.is_listed(Some(listed)))
    };
    chosen.or_else(first).unwrap_or(TokenAuthMethod::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H4: the requested redirect URI is compared as a string; a response without the member is
    /// accepted.
    #[test]
    fn a_registration_has_the_requested_redirect_uri() {
        const ASKED: &str = "http://127.0.0.1:7777/callback";
        for (list, expected) in [
            (r#"["http://127.0.0.1:7777/callback"]"#, true),
            (
                r#"["https://other.example/", "http://127.0.0.1:7777/callback"]"#,
                true,
            ),
            ("null", true),
            ("[]", false),
            (r#"["http://127.0.0.1/callback"]"#, false),
            (r#"["http://127.0.0.1:7777/callback/"]"#, false),
            (r#"["http://localhost:7777/callback"]"#, false),
            (r#"["https://evil.example/callback"]"#, false),
            ("\"http://127.0.0.1:7777/callback\"", false),
        ] {
            let response = format!(r#"{{"client_id":"c","redirect_uris":{list}}}"#);
            assert_eq!(
                serves_redirect(response.as_bytes(), ASKED),
                expected,
                "{list}"
            );
        }
        assert!(serves_redirect(br#"{"client_id":"c"}"#, ASKED));
    }
}
