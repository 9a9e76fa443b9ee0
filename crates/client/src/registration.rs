use portcullis_discovery::{Fetch, FetchRequest};
use portcullis_metadata::{
    ClientIdMetadataDocument, ClientIdUrl, ClientMetadata, ClientRegistrationRequest, ClientRegistrationResponse,
    RegistrationError, Scopes,
};
use url::Url;

use crate::{ClientError, credentials::Registered, server::Server};

/// What a client says about itself when it registers.
pub(crate) struct Registration<'a> {
    pub(crate) client_name: &'a str,
    pub(crate) redirect_uri: &'a Url,
    /// What the client is going to ask for now.
    pub(crate) needed: &'a Scopes,
    /// What the client may ask for, this time or another.
    pub(crate) scopes: &'a Scopes,
}

/// Registers a client (RFC 7591 section 3).
pub(crate) async fn register(
    fetch: &dyn Fetch,
    server: &Server,
    endpoint: &Url,
    registration: &Registration<'_>,
) -> Result<Registered, ClientError> {
    let request = FetchRequest::post_json(endpoint.clone(), body(server, registration), server.policy);
    let answer = fetch.fetch(request).await.map_err(|error| ClientError::Endpoint { endpoint: ENDPOINT, error })?;
    if !answer.status.is_success() {
        return Err(match RegistrationError::parse(&answer.body) {
            Ok(error) => ClientError::Registration(error),
            Err(_) => ClientError::Status { endpoint: ENDPOINT, status: answer.status },
        });
    }
    let response = ClientRegistrationResponse::parse(&answer.body)
        .map_err(|error| ClientError::Document { endpoint: ENDPOINT, error })?;
    Ok(Registered {
        issuer: server.issuer.clone(),
        redirect_uri: Some(registration.redirect_uri.as_str().to_owned()),
        asked: registration.scopes.clone(),
        response,
    })
}

/// The document to serve at `client_id`, an https URL, so that authorization servers know this client without a
/// registration (client ID metadata document). It describes a public client with these redirect URIs; one on loopback
/// stands for every port (RFC 8252 section 7.3).
///
/// Nothing is fetched or compared: whether the document is served there is not checked.
pub fn client_document<'a>(
    client_id: ClientIdUrl,
    client_name: &str,
    redirect_uris: impl IntoIterator<Item = &'a Url>,
) -> ClientIdMetadataDocument {
    let metadata =
        ClientMetadata { token_endpoint_auth_method: Some("none".into()), ..metadata(client_name, redirect_uris) };
    ClientIdMetadataDocument { client_id, metadata }
}

const ENDPOINT: &str = "registration";

fn metadata<'a>(client_name: &str, redirect_uris: impl IntoIterator<Item = &'a Url>) -> ClientMetadata {
    let redirect_uris: Vec<_> = redirect_uris.into_iter().map(|uri| uri.as_str().to_owned()).collect();
    // A page on the web gets its answer by https, an application on this machine by loopback or a scheme of its own.
    let is_web = !redirect_uris.is_empty() && redirect_uris.iter().all(|uri| uri.starts_with("https:"));
    ClientMetadata {
        client_name: Some(client_name.to_owned()),
        redirect_uris,
        grant_types: vec!["authorization_code".into(), "refresh_token".into()],
        response_types: vec!["code".into()],
        application_type: Some(if is_web { "web" } else { "native" }.into()),
        ..ClientMetadata::default()
    }
}

fn body(server: &Server, registration: &Registration<'_>) -> Vec<u8> {
    let metadata = ClientMetadata {
        token_endpoint_auth_method: Some(authentication_method(server).to_owned()),
        scope: (!registration.scopes.is_empty()).then(|| registration.scopes.to_string()),
        ..metadata(registration.client_name, [registration.redirect_uri])
    };
    ClientRegistrationRequest { metadata, software_statement: None }.to_json()
}

/// The first method, of those that a client without keys has, that the server lists; `none` when it lists none of
/// them, since servers accept it that do not list it.
fn authentication_method(server: &Server) -> &'static str {
    let listed = server.authentication_methods.as_deref().unwrap_or_default();
    ["none", "client_secret_basic", "client_secret_post"]
        .into_iter()
        .find(|method| listed.iter().any(|listed| listed == method))
        .unwrap_or("none")
}
