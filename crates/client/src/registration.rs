use portcullis_discovery::{Fetch, FetchRequest, UrlPolicy};
use portcullis_metadata::{
    ClientMetadata, ClientRegistrationRequest, ClientRegistrationResponse, RegistrationError, Scopes,
};
use url::Url;

use crate::{ClientError, code_flow::CodeFlow, credentials::Registered};

/// What a client says about itself when it registers.
pub(crate) struct Registration<'a> {
    pub(crate) client_name: &'a str,
    pub(crate) redirect_uri: &'a Url,
    pub(crate) scopes: &'a Scopes,
}

/// Registers a client (RFC 7591 section 3) where the server offers it.
pub(crate) async fn register(
    fetch: &dyn Fetch,
    server: &CodeFlow,
    registration: &Registration<'_>,
    policy: UrlPolicy,
) -> Result<Registered, ClientError> {
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(ClientError::NoRegistration { issuer: server.issuer.clone() });
    };
    let request = FetchRequest::post_json(endpoint.clone(), body(server, registration), policy);
    let answer = fetch.fetch(request).await.map_err(|error| ClientError::Endpoint { endpoint: ENDPOINT, error })?;
    if !answer.status.is_success() {
        return Err(match RegistrationError::parse(&answer.body) {
            Ok(error) => ClientError::Registration(error),
            Err(_) => ClientError::Status { endpoint: ENDPOINT, status: answer.status },
        });
    }
    let response = ClientRegistrationResponse::parse(&answer.body)
        .map_err(|error| ClientError::Document { endpoint: ENDPOINT, error })?;
    Registered::new(server.issuer.clone(), registration.redirect_uri.as_str().to_owned(), response)
}

const ENDPOINT: &str = "registration";

fn body(server: &CodeFlow, registration: &Registration<'_>) -> Vec<u8> {
    let metadata = ClientMetadata {
        client_name: Some(registration.client_name.to_owned()),
        redirect_uris: vec![registration.redirect_uri.as_str().to_owned()],
        grant_types: vec!["authorization_code".into(), "refresh_token".into()],
        response_types: vec!["code".into()],
        token_endpoint_auth_method: Some(authentication_method(server).to_owned()),
        application_type: Some("native".into()),
        scope: (!registration.scopes.is_empty()).then(|| registration.scopes.to_string()),
        ..ClientMetadata::default()
    };
    ClientRegistrationRequest { metadata, software_statement: None }.to_json()
}

/// The first method, of those that a client without keys has, that the server lists; `none` when it lists none of
/// them, since servers accept it that do not list it.
fn authentication_method(server: &CodeFlow) -> &'static str {
    let listed = server.token_endpoint_auth_methods.as_deref().unwrap_or_default();
    ["none", "client_secret_basic", "client_secret_post"]
        .into_iter()
        .find(|method| listed.iter().any(|listed| listed == method))
        .unwrap_or("none")
}
