//! From the first 401 to the authorization server's metadata.

use http::{HeaderMap, Method, StatusCode, header};
use portcullis_discovery::FetchResponse;
use portcullis_metadata::{
    AuthorizationServerMetadata, BearerChallenge, ProtectedResourceMetadata,
    authorization_server_urls, parse_challenges, protected_resource_urls,
};

use super::{deployment::SCOPE, expect, test_client::TestClient};

/// Checks the 401 to a POST without a token and returns the challenge.
pub(crate) async fn challenge(test_client: &TestClient) -> anyhow::Result<BearerChallenge> {
    let response = test_client.send(Method::POST, None, None).await?;
    expect::equal(
        "status without a token",
        StatusCode::UNAUTHORIZED,
        response.status,
    )?;
    let challenge = bearer_challenge(&response.headers)?;
    expect::that(
        challenge.realm.is_some(),
        "realm of the challenge",
        "one",
        &challenge,
    )?;
    let metadata = protected_resource_urls(&test_client.endpoint)
        .first()
        .map(ToString::to_string);
    expect::equal(
        "resource_metadata of the challenge",
        metadata,
        challenge.resource_metadata.clone(),
    )?;
    let scope = challenge.scope.as_ref().map(ToString::to_string);
    expect::equal("scope of the challenge", Some(SCOPE), scope.as_deref())?;
    expect::equal(
        "error of the challenge",
        None::<String>,
        challenge.error.clone(),
    )?;
    Ok(challenge)
}

/// Checks that the URL of the challenge, the path form and the root form serve the same document.
pub(crate) async fn resource_metadata(
    test_client: &TestClient,
    challenge: &BearerChallenge,
) -> anyhow::Result<()> {
    let url = challenge
        .resource_metadata
        .as_deref()
        .unwrap_or_default()
        .parse()?;
    let named = test_client.get(url).await?;
    expect::json("the resource's metadata", StatusCode::OK, &named)?;
    for url in protected_resource_urls(&test_client.endpoint) {
        let other = test_client.get(url.clone()).await?;
        expect::equal(
            &format!("document at {}", url.path()),
            &named.body,
            &other.body,
        )?;
    }
    let document = ProtectedResourceMetadata::parse(&named.body)?;
    expect::equal(
        "resource",
        test_client.endpoint.as_str(),
        document.resource.as_str(),
    )?;
    expect::equal(
        "authorization_servers",
        vec![test_client.issuer.clone()],
        document.authorization_servers,
    )?;
    expect::that(
        document.scopes_supported.iter().any(|name| name == SCOPE),
        "scopes_supported",
        SCOPE,
        document.scopes_supported,
    )
}

/// Checks the authorization server's metadata at both URLs.
pub(crate) async fn server_metadata(test_client: &TestClient) -> anyhow::Result<()> {
    for url in authorization_server_urls(&test_client.issuer) {
        let response = test_client.get(url.clone()).await?;
        check_server_metadata(
            test_client,
            &format!("metadata at {}", url.path()),
            &response,
        )?;
    }
    Ok(())
}

/// Checks that a response is the issuer's metadata with the members that a client needs.
pub(crate) fn check_server_metadata(
    test_client: &TestClient,
    what: &str,
    response: &FetchResponse,
) -> anyhow::Result<()> {
    let document = expect::json(what, StatusCode::OK, response)?;
    expect::equal("issuer", test_client.issuer.as_str(), &document["issuer"])?;
    let metadata = AuthorizationServerMetadata::parse(&response.body)?;
    let is_complete = metadata.authorization_endpoint.is_some()
        && metadata.token_endpoint.is_some()
        && metadata.registration_endpoint.is_some();
    expect::that(
        is_complete,
        "endpoints",
        "authorization, token and registration",
        &metadata,
    )?;
    let offers_code = metadata
        .response_types_supported
        .iter()
        .any(|response_type| response_type == "code");
    expect::that(
        offers_code,
        "response_types_supported",
        "code",
        &metadata.response_types_supported,
    )?;
    Ok(())
}

/// Returns the Bearer challenge of a response.
pub(crate) fn bearer_challenge(headers: &HeaderMap) -> anyhow::Result<BearerChallenge> {
    let values: Vec<_> = headers.get_all(header::WWW_AUTHENTICATE).iter().collect();
    let challenges = parse_challenges(values.iter().map(|value| value.as_bytes()))?;
    BearerChallenge::from_challenges(&challenges).ok_or_else(|| {
        anyhow::anyhow!("WWW-Authenticate: expected a Bearer challenge, got {values:?}")
    })
}
