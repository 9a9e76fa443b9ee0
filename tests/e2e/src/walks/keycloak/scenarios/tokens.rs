//! Tokens of every kind at a server that verifies their signature.

use anyhow::Context as _;
use http::StatusCode;
use serde_json::json;

use crate::walks::{
    discovery::bearer_challenge,
    expect,
    keycloak::{servers::Setup, stage::Stage, tokens::part},
    progress::Progress,
    request,
};

const JWT: Setup = Setup::Jwt;

pub(in crate::walks::keycloak) async fn run(stage: &Stage, progress: &mut Progress) -> anyhow::Result<()> {
    progress.step("audience as a text", audience_text(stage)).await?;
    progress.step("audience as a list", audience_list(stage)).await?;
    progress.step("audience absent: 401", audience_absent(stage)).await?;
    progress.step("audience of another resource: 401", audience_wrong(stage)).await?;
    progress.step("issuer of another realm: 401", other_realm(stage)).await?;
    progress.step("ES256 and at+jwt", es256(stage)).await?;
    progress.step("ID token and refresh token: 401", other_kinds(stage)).await?;
    progress.step("too few scopes: 403 that names all", scopes(stage)).await?;
    progress.step("nothing of the token reaches the upstream", forwarded(stage)).await
}

async fn audience_text(stage: &Stage) -> anyhow::Result<()> {
    let token = stage.access("mcp:tools").await?;
    expect::equal("aud", json!(stage.endpoint()?.as_str()), part(&token, 1)?["aud"].clone())?;
    stage.admitted(JWT, &token).await
}

async fn audience_list(stage: &Stage) -> anyhow::Result<()> {
    let token = stage.access("mcp:tools introspection").await?;
    let audience = part(&token, 1)?["aud"].clone();
    let mut entries: Vec<_> = audience.as_array().context("aud: expected a list")?.clone();
    entries.sort_by_key(ToString::to_string);
    expect::equal("aud", vec![json!(stage.endpoint()?.as_str()), json!("portcullis")], entries)?;
    stage.admitted(JWT, &token).await
}

async fn audience_absent(stage: &Stage) -> anyhow::Result<()> {
    let token = stage.access("").await?;
    expect::equal("aud", None, part(&token, 1)?.get("aud"))?;
    stage.refused(JWT, &token, "token.audience_missing").await
}

async fn audience_wrong(stage: &Stage) -> anyhow::Result<()> {
    let token = stage.access("mcp:elsewhere").await?;
    stage.refused(JWT, &token, "token.audience_mismatch").await
}

/// The same server, the same client, the same audience and scope.
async fn other_realm(stage: &Stage) -> anyhow::Result<()> {
    let token = stage.client_of("other", "mcp-cli")?.tokens("mcp:tools", "alice").await?.access;
    expect::equal("aud", json!(stage.endpoint()?.as_str()), part(&token, 1)?["aud"].clone())?;
    stage.refused(JWT, &token, "token.issuer_unknown").await
}

async fn es256(stage: &Stage) -> anyhow::Result<()> {
    let token = stage.client("mcp-cli-es256")?.tokens("mcp:tools", "alice").await?.access;
    let header = part(&token, 0)?;
    expect::equal("alg", json!("ES256"), header["alg"].clone())?;
    expect::equal("typ", json!("at+jwt"), header["typ"].clone())?;
    stage.admitted(JWT, &token).await
}

async fn other_kinds(stage: &Stage) -> anyhow::Result<()> {
    let tokens = stage.tokens("openid mcp:tools").await?;
    stage.admitted(JWT, &tokens.access).await?;
    let id = tokens.id.context("expected an ID token, got none")?;
    stage.refused(JWT, &id, "token.not_an_access_token").await?;
    // It is signed with a key of Keycloak's own.
    stage.refused(JWT, &tokens.refresh, "token.algorithm_unsupported").await
}

/// The challenge names what is needed and what the token has already.
async fn scopes(stage: &Stage) -> anyhow::Result<()> {
    let address = stage.servers.of(JWT)?.address;
    let (tools, admin) = (stage.access("mcp:tools").await?, stage.access("mcp:admin").await?);
    for (token, tool, needed) in [
        (&tools, "add", None),
        (&admin, "add", Some("mcp:admin mcp:tools")),
        (&tools, "multiply", Some("mcp:admin mcp:tools")),
        (&stage.access("mcp:tools mcp:admin").await?, "multiply", None),
    ] {
        let answer = stage.send(request::tool_call(address, token, tool)?).await?;
        let Some(needed) = needed else {
            expect::equal(&format!("status of {tool}"), StatusCode::OK, answer.status)?;
            continue;
        };
        expect::equal(&format!("status of {tool}"), StatusCode::FORBIDDEN, answer.status)?;
        let challenge = bearer_challenge(&answer.headers)?;
        expect::equal("error of the challenge", Some("insufficient_scope"), challenge.error.as_deref())?;
        let mut scope: Vec<_> = challenge.scope.iter().flat_map(|scope| scope.iter()).collect();
        scope.sort_unstable();
        expect::equal("scope of the challenge", needed.to_owned(), scope.join(" "))?;
    }
    Ok(())
}

async fn forwarded(stage: &Stage) -> anyhow::Result<()> {
    let token = stage.access("mcp:tools").await?;
    let mut request = request::tool_call(stage.servers.of(Setup::Forwarded)?.address, &token, "any")?;
    request = request.header(http::header::COOKIE, http::HeaderValue::from_static("cookie=crumbs"));
    request.headers.insert("x-portcullis-subject", http::HeaderValue::from_static("mallory"));
    drop(stage.upstream.take());
    let answer = stage.send(request).await?;
    expect::equal("status", StatusCode::OK, answer.status)?;
    let received = stage.upstream.take();
    expect::equal("requests at the upstream", 1, received.len())?;
    for received in received {
        for name in ["authorization", "dpop", "cookie"] {
            expect::that(!received.headers.contains_key(name), name, "none at the upstream", "one")?;
        }
        let signature = token.rsplit('.').next().unwrap_or_default();
        expect::that(!received.all.contains(signature), "the token", "nowhere at the upstream", "it")?;
        let subjects: Vec<_> = received.headers.get_all("x-portcullis-subject").iter().collect();
        expect::equal("X-Portcullis-Subject", vec![part(&token, 1)?["sub"].as_str().unwrap_or_default()], subjects)?;
    }
    Ok(())
}
