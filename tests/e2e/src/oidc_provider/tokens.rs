//! Tokens of `oidc-provider`: signed with ES256, and opaque.

use anyhow::{Context as _, ensure};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::StatusCode;
use portcullis_discovery::Fetch as _;
use serde_json::Value;

use super::deployment::OidcProviderDeployment;
use crate::{client::Client, expect, recorder::Recorder, request::tool_list};

/// Checks a token that is signed with ES256.
pub(super) async fn signed_es256(
    deployment: &OidcProviderDeployment,
    client: &Client,
) -> anyhow::Result<()> {
    let resource = deployment.resource("/signed-es256")?;
    client.run("login", &resource, &[]).await?.succeeded()?;
    let token = client.stored_token(&resource)?.access_token;
    let header = token
        .split('.')
        .next()
        .context("expected a JSON Web Token")?;
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header)?)?;
    expect::equal("alg", "ES256", &header["alg"])?;
    client
        .run("call", &resource, &["tools/list"])
        .await?
        .succeeded()
        .map(drop)
}

/// Checks an opaque token, one for another resource, and a revoked one.
pub(super) async fn opaque(
    deployment: &OidcProviderDeployment,
    recorder: &Recorder,
    client: &Client,
) -> anyhow::Result<()> {
    let resource = deployment.opaque()?;
    client.run("login", &resource, &[]).await?.succeeded()?;
    let token = client.stored_token(&resource)?.access_token;
    ensure!(
        !token.contains('.'),
        "expected a token that is not a JSON Web Token"
    );
    client
        .run("call", &resource, &["tools/list"])
        .await?
        .succeeded()?;

    // The first token can be cached. This one has not been introspected.
    client.run("login", &resource, &[]).await?.succeeded()?;
    let token = client.stored_token(&resource)?.access_token;
    let signed = client
        .stored_token(&deployment.resource("/signed-es256")?)?
        .access_token;
    let refused = [("of another resource", signed), ("revoked", token)];
    client.run("logout", &resource, &[]).await?.succeeded()?;
    for (what, token) in refused {
        let mut request = tool_list(deployment.introspecting.address, &token)?;
        request.url = resource.clone();
        let response = recorder.fetch(request).await?;
        expect::equal(
            &format!("status with a token {what}"),
            StatusCode::UNAUTHORIZED,
            response.status,
        )?;
    }
    Ok(())
}
