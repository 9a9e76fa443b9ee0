//! Tokens of every type at a server that verifies signatures.

use anyhow::Context as _;
use http::StatusCode;
use serde_json::json;

use crate::{
    discovery::bearer_challenge,
    expect,
    keycloak::{fixture::Fixture, servers::Setup, tokens},
    progress::Progress,
    request,
};

const JWT: Setup = Setup::Jwt;

pub(in crate::keycloak) async fn run(
    fixture: &Fixture,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    progress
        .step("audience as a string", audience_text(fixture))
        .await?;
    progress
        .step("audience as a list", audience_list(fixture))
        .await?;
    progress
        .step("audience absent: 401", audience_absent(fixture))
        .await?;
    progress
        .step("audience of another resource: 401", audience_wrong(fixture))
        .await?;
    progress
        .step("issuer of another realm: 401", other_realm(fixture))
        .await?;
    progress.step("ES256 and at+jwt", es256(fixture)).await?;
    progress
        .step("ID token and refresh token: 401", other_types(fixture))
        .await?;
    progress
        .step(
            "too few scopes: 403 with all required scopes",
            scopes(fixture),
        )
        .await?;
    progress
        .step("the token does not reach the upstream", forwarded(fixture))
        .await
}

/// A token whose audience is a string is accepted.
async fn audience_text(fixture: &Fixture) -> anyhow::Result<()> {
    let token = fixture.access("mcp:tools").await?;
    expect::equal(
        "aud",
        json!(fixture.endpoint()?.as_str()),
        tokens::claims(&token)?["aud"].clone(),
    )?;
    fixture.admitted(JWT, &token).await
}

/// A token whose audience is a list is accepted.
async fn audience_list(fixture: &Fixture) -> anyhow::Result<()> {
    let token = fixture.access("mcp:tools introspection").await?;
    let audience = tokens::claims(&token)?["aud"].clone();
    let mut entries: Vec<_> = audience.as_array().context("aud: expected a list")?.clone();
    entries.sort_by_key(ToString::to_string);
    expect::equal(
        "aud",
        vec![json!(fixture.endpoint()?.as_str()), json!("portcullis")],
        entries,
    )?;
    fixture.admitted(JWT, &token).await
}

/// A token without an audience is rejected.
async fn audience_absent(fixture: &Fixture) -> anyhow::Result<()> {
    let token = fixture.access("").await?;
    expect::equal("aud", None, tokens::claims(&token)?.get("aud"))?;
    fixture
        .rejected(JWT, &token, "token.audience_missing")
        .await
}

/// A token for another resource is rejected.
async fn audience_wrong(fixture: &Fixture) -> anyhow::Result<()> {
    let token = fixture.access("mcp:elsewhere").await?;
    fixture
        .rejected(JWT, &token, "token.audience_mismatch")
        .await
}

/// Checks a token of another realm: the same server, client, audience and scope.
async fn other_realm(fixture: &Fixture) -> anyhow::Result<()> {
    let token = fixture
        .client_of("other", "mcp-cli")?
        .tokens("mcp:tools", "alice")
        .await?
        .access;
    expect::equal(
        "aud",
        json!(fixture.endpoint()?.as_str()),
        tokens::claims(&token)?["aud"].clone(),
    )?;
    fixture.rejected(JWT, &token, "token.issuer_unknown").await
}

/// A token with ES256 and `at+jwt` is accepted.
async fn es256(fixture: &Fixture) -> anyhow::Result<()> {
    let token = fixture
        .client("mcp-cli-es256")?
        .tokens("mcp:tools", "alice")
        .await?
        .access;
    let header = tokens::header(&token)?;
    expect::equal("alg", json!("ES256"), header["alg"].clone())?;
    expect::equal("typ", json!("at+jwt"), header["typ"].clone())?;
    fixture.admitted(JWT, &token).await
}

/// An ID token and a refresh token are rejected.
async fn other_types(fixture: &Fixture) -> anyhow::Result<()> {
    let tokens = fixture.tokens("openid mcp:tools").await?;
    fixture.admitted(JWT, &tokens.access).await?;
    let id = tokens.id.context("expected an ID token, got none")?;
    fixture
        .rejected(JWT, &id, "token.not_an_access_token")
        .await?;
    // The token is signed with a valid key of Keycloak.
    fixture
        .rejected(JWT, &tokens.refresh, "token.algorithm_unsupported")
        .await
}

/// Checks that the challenge names the missing scope and the scopes of the token.
async fn scopes(fixture: &Fixture) -> anyhow::Result<()> {
    let address = fixture.servers.of(JWT)?.address;
    let tools = fixture.access("mcp:tools").await?;
    let admin = fixture.access("mcp:admin").await?;
    for (token, tool, needed) in [
        (&tools, "add", None),
        (&admin, "add", Some("mcp:admin mcp:tools")),
        (&tools, "multiply", Some("mcp:admin mcp:tools")),
        (
            &fixture.access("mcp:tools mcp:admin").await?,
            "multiply",
            None,
        ),
    ] {
        let response = fixture
            .send(request::tool_call(address, token, tool)?)
            .await?;
        let Some(needed) = needed else {
            expect::equal(
                &format!("status of {tool}"),
                StatusCode::OK,
                response.status,
            )?;
            continue;
        };
        expect::equal(
            &format!("status of {tool}"),
            StatusCode::FORBIDDEN,
            response.status,
        )?;
        let challenge = bearer_challenge(&response.headers)?;
        expect::equal(
            "error of the challenge",
            Some("insufficient_scope"),
            challenge.error.as_deref(),
        )?;
        let mut scope: Vec<_> = challenge
            .scope
            .iter()
            .flat_map(|scope| scope.iter())
            .collect();
        scope.sort_unstable();
        expect::equal("scope of the challenge", needed.to_owned(), scope.join(" "))?;
    }
    Ok(())
}

/// The token does not reach the upstream.
async fn forwarded(fixture: &Fixture) -> anyhow::Result<()> {
    let token = fixture.access("mcp:tools").await?;
    let mut request =
        request::tool_call(fixture.servers.of(Setup::Forwarded)?.address, &token, "any")?;
    request = request.header(
        http::header::COOKIE,
        http::HeaderValue::from_static("cookie=crumbs"),
    );
    request.headers.insert(
        "x-portcullis-subject",
        http::HeaderValue::from_static("mallory"),
    );
    drop(fixture.upstream.take());
    let response = fixture.send(request).await?;
    expect::equal("status", StatusCode::OK, response.status)?;
    let received = fixture.upstream.take();
    expect::equal("requests at the upstream", 1, received.len())?;
    for received in received {
        for name in ["authorization", "dpop", "cookie"] {
            expect::that(
                !received.headers.contains_key(name),
                name,
                "none at the upstream",
                "one",
            )?;
        }
        let signature = token.rsplit('.').next().unwrap_or_default();
        expect::that(
            !received.all.contains(signature),
            "the token",
            "nowhere at the upstream",
            "it",
        )?;
        let subjects: Vec<_> = received
            .headers
            .get_all("x-portcullis-subject")
            .iter()
            .collect();
        expect::equal(
            "X-Portcullis-Subject",
            vec![tokens::claims(&token)?["sub"].as_str().unwrap_or_default()],
            subjects,
        )?;
    }
    Ok(())
}
