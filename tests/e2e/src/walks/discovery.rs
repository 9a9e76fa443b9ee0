//! From the first 401 to the authorization server's metadata.

use http::{HeaderMap, Method, StatusCode, header};
use portcullis_discovery::FetchResponse;
use portcullis_metadata::{
    AuthorizationServerMetadata, BearerChallenge, ProtectedResourceMetadata, authorization_server_urls,
    parse_challenges, protected_resource_urls,
};

use super::{deployment::SCOPE, expect, visitor::Visitor};

/// A POST without a token is refused, and the challenge says where to go on.
pub(super) async fn challenge(visitor: &Visitor) -> anyhow::Result<BearerChallenge> {
    let answer = visitor.ask(Method::POST, None, None).await?;
    expect::equal("status without a token", StatusCode::UNAUTHORIZED, answer.status)?;
    let challenge = bearer_challenge(&answer.headers)?;
    expect::that(challenge.realm.is_some(), "realm of the challenge", "one", &challenge)?;
    let metadata = protected_resource_urls(&visitor.endpoint).first().map(ToString::to_string);
    expect::equal("resource_metadata of the challenge", metadata, challenge.resource_metadata.clone())?;
    let scope = challenge.scope.as_ref().map(ToString::to_string);
    expect::equal("scope of the challenge", Some(SCOPE), scope.as_deref())?;
    expect::equal("error of the challenge", None::<String>, challenge.error.clone())?;
    Ok(challenge)
}

/// The metadata that the challenge names, the path form and the root form are one document.
pub(super) async fn resource_metadata(visitor: &Visitor, challenge: &BearerChallenge) -> anyhow::Result<()> {
    let named = challenge.resource_metadata.as_deref().unwrap_or_default().parse()?;
    let named = visitor.get(named).await?;
    expect::json("the resource's metadata", StatusCode::OK, &named)?;
    for url in protected_resource_urls(&visitor.endpoint) {
        let other = visitor.get(url.clone()).await?;
        expect::equal(&format!("document at {}", url.path()), &named.body, &other.body)?;
    }
    let document = ProtectedResourceMetadata::parse(&named.body)?;
    expect::equal("resource", visitor.endpoint.as_str(), document.resource.as_str())?;
    expect::equal("authorization_servers", vec![visitor.issuer.clone()], document.authorization_servers)?;
    expect::that(
        document.scopes_supported.iter().any(|name| name == SCOPE),
        "scopes_supported",
        SCOPE,
        document.scopes_supported,
    )
}

/// The authorization server's metadata is there under both names, and the issuer is identical.
pub(super) async fn server_metadata(visitor: &Visitor) -> anyhow::Result<()> {
    for url in authorization_server_urls(&visitor.issuer) {
        let answer = visitor.get(url.clone()).await?;
        is_server_metadata(visitor, &format!("metadata at {}", url.path()), &answer)?;
    }
    Ok(())
}

/// The answer is the metadata of the visitor's issuer, with all that a client needs.
pub(super) fn is_server_metadata(visitor: &Visitor, what: &str, answer: &FetchResponse) -> anyhow::Result<()> {
    let document = expect::json(what, StatusCode::OK, answer)?;
    expect::equal("issuer", visitor.issuer.as_str(), &document["issuer"])?;
    let metadata = AuthorizationServerMetadata::parse(&answer.body)?;
    let is_complete = metadata.authorization_endpoint.is_some()
        && metadata.token_endpoint.is_some()
        && metadata.registration_endpoint.is_some();
    expect::that(is_complete, "endpoints", "authorization, token and registration", &metadata)?;
    let offers_code = metadata.response_types_supported.iter().any(|kind| kind == "code");
    expect::that(offers_code, "response_types_supported", "code", &metadata.response_types_supported)?;
    Ok(())
}

/// The Bearer challenge of an answer.
pub(super) fn bearer_challenge(headers: &HeaderMap) -> anyhow::Result<BearerChallenge> {
    let values: Vec<_> = headers.get_all(header::WWW_AUTHENTICATE).iter().collect();
    let challenges = parse_challenges(values.iter().map(|value| value.as_bytes()))?;
    BearerChallenge::from_challenges(&challenges)
        .ok_or_else(|| anyhow::anyhow!("WWW-Authenticate: expected a Bearer challenge, got {values:?}"))
}
