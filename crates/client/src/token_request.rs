use http::{StatusCode, header};
use portcullis_discovery::{Fetch, FetchRequest, UrlPolicy};
use portcullis_metadata::{OAuthError, PkceVerifier, ResourceUri, Secret, TokenResponse};
use url::Url;

use crate::{ClientAuthentication, ClientCredentials, ClientError, code_flow::CodeFlow};

/// A code and what must come with it. The verifier is used up.
pub(crate) struct Grant<'a> {
    pub(crate) code: &'a Secret,
    pub(crate) verifier: PkceVerifier,
    pub(crate) redirect_uri: &'a Url,
    pub(crate) resource: &'a ResourceUri,
}

/// Exchanges a code for a token (OAuth 2.1 section 4.1.3, RFC 8707 section 2.2).
pub(crate) async fn exchange(
    fetch: &dyn Fetch,
    server: &CodeFlow,
    credentials: &ClientCredentials,
    grant: Grant<'_>,
    policy: UrlPolicy,
) -> Result<TokenResponse, ClientError> {
    let request = request(server, credentials, &grant, policy);
    let answer = fetch.fetch(request).await.map_err(|error| ClientError::Endpoint { endpoint: ENDPOINT, error })?;
    if answer.status != StatusCode::OK {
        return Err(match OAuthError::parse(&answer.body) {
            Ok(error) => ClientError::Token(error),
            Err(_) => ClientError::Status { endpoint: ENDPOINT, status: answer.status },
        });
    }
    TokenResponse::parse(&answer.body).map_err(|error| ClientError::Document { endpoint: ENDPOINT, error })
}

const ENDPOINT: &str = "token";

fn request(server: &CodeFlow, credentials: &ClientCredentials, grant: &Grant<'_>, policy: UrlPolicy) -> FetchRequest {
    let mut fields = vec![
        ("grant_type", "authorization_code"),
        ("code", grant.code.secret()),
        ("redirect_uri", grant.redirect_uri.as_str()),
        ("code_verifier", grant.verifier.secret()),
        ("resource", grant.resource.as_str()),
    ];
    let basic = credentials.authentication.basic_header(&credentials.client_id);
    if basic.is_none() {
        fields.push(("client_id", &credentials.client_id));
    }
    if let ClientAuthentication::SecretPost(secret) = &credentials.authentication {
        fields.push(("client_secret", secret.secret()));
    }
    let request = FetchRequest::post_form(server.token_endpoint.clone(), fields, policy);
    match basic {
        Some(value) => request.header(header::AUTHORIZATION, value),
        None => request,
    }
}
