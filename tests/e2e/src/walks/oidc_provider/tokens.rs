//! The kinds of tokens that `oidc-provider` gives, at the resources that take them.

use anyhow::{Context as _, ensure};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::StatusCode;
use portcullis_discovery::Fetch as _;
use serde_json::Value;

use super::deployment::OidcProviderDeployment;
use crate::walks::{client::Client, expect, request::tool_list, wire::Wire};

/// A token that an elliptic curve signs.
pub(super) async fn signed_es256(deployment: &OidcProviderDeployment, client: &Client) -> anyhow::Result<()> {
    let resource = deployment.resource("/signed-es256")?;
    client.run("login", &resource, &[]).await?.succeeded()?;
    let token = client.held(&resource)?.access_token;
    let header = token.split('.').next().context("expected a JSON Web Token")?;
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header)?)?;
    expect::equal("alg", "ES256", &header["alg"])?;
    client.run("call", &resource, &["tools/list"]).await?.succeeded().map(drop)
}

/// A token that only its issuer can read; one for another resource; and one that was revoked.
pub(super) async fn opaque(deployment: &OidcProviderDeployment, wire: &Wire, client: &Client) -> anyhow::Result<()> {
    let resource = deployment.opaque()?;
    client.run("login", &resource, &[]).await?.succeeded()?;
    let token = client.held(&resource)?.access_token;
    ensure!(!token.contains('.'), "expected a token that is not a JSON Web Token");
    client.run("call", &resource, &["tools/list"]).await?.succeeded()?;

    // The answer about that one may be remembered. Of this one nothing is known yet.
    client.run("login", &resource, &[]).await?.succeeded()?;
    let token = client.held(&resource)?.access_token;
    let signed = client.held(&deployment.resource("/signed-es256")?)?.access_token;
    let refused = [("of another resource", signed), ("revoked", token)];
    client.run("logout", &resource, &[]).await?.succeeded()?;
    for (what, token) in refused {
        let mut request = tool_list(deployment.introspecting.address, &token)?;
        request.url = resource.clone();
        let answer = wire.fetch(request).await?;
        expect::equal(&format!("status with a token {what}"), StatusCode::UNAUTHORIZED, answer.status)?;
    }
    Ok(())
}
