//! What a person does with the shipped program, whichever authorization server there is.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, ensure};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{StatusCode, header};
use portcullis_discovery::{Fetch as _, FetchRequest, FetchResponse, UrlPolicy};
use portcullis_metadata::{
    AuthorizationServerMetadata, Issuer, Secret, authorization_server_urls, client_secret_basic,
};
use serde_json::Value;
use tokio::time::sleep;
use url::Url;

use super::{
    client::{Asked, Client, Held},
    expect,
    pages::{self, Page},
    progress::Progress,
    request::tool_list,
    server::Server,
    wire::Wire,
};

/// Of these steps, one waits until a token that lives for seconds is about to end, and others open a browser.
const STEP: Duration = Duration::from_secs(90);
const PERIOD: Duration = Duration::from_millis(250);

/// Where a client walks.
pub(super) struct Ground<'a> {
    pub(super) client: &'a Client,
    pub(super) wire: &'a Wire,
    pub(super) server: &'a Server,
    pub(super) issuer: &'a Issuer,
    /// The resource. It needs `mcp:tools`, and `mcp:admin` for its tool `multiply`.
    pub(super) resource: &'a Url,
    /// Another resource of the same server, which no token of the first may open; where there is one.
    pub(super) other: Option<&'a Url>,
    /// What a login needs so that there is a page for consent, if the server shows none to clients that registered
    /// themselves.
    pub(super) consent_for: &'a [&'a str],
    /// A resource whose tokens live for seconds.
    pub(super) brief: &'a Url,
}

impl Ground<'_> {
    /// Walks to the end, or to the first step that fails.
    pub(super) async fn walk(&self, progress: &mut Progress) -> anyhow::Result<()> {
        let step = self.refused_consent();
        progress.step_within(STEP, "login, refused by the person: told in the page and in the terminal", step).await?;
        let step = self.forged_answer();
        progress.step_within(STEP, "an answer of another issuer: refused, and nothing of it shown", step).await?;
        progress
            .step_within(STEP, "login through the pages, with a client that registered itself", self.login())
            .await?;
        progress.step_within(STEP, "call uses the token of the login", self.call()).await?;
        if let Some(other) = self.other {
            progress.step_within(STEP, "another resource refuses this token: 401", self.elsewhere(other)).await?;
        }
        progress.step_within(STEP, "step-up: 403, then consent to the union of scopes", self.step_up()).await?;
        progress.step_within(STEP, "logout revokes the refresh token", self.logout()).await?;
        progress.step_within(STEP, "refresh ahead of the end rotates the refresh token", self.refresh()).await?;
        progress.step_within(STEP, "the old refresh token is refused, and ends the sign-in", self.reuse()).await
    }

    async fn refused_consent(&self) -> anyhow::Result<()> {
        let run = self.client.run_with(Asked::Refuses, "login", self.resource, self.consent_for).await?;
        let run = run.failed("access_denied")?;
        let (_, visit) = run.asked()?;
        expect::that(visit.end.contains("No access"), "the last page", "that there is no access", &visit.end)?;
        expect::that(visit.end.contains("access_denied"), "the last page", "the reason", &visit.end)
    }

    /// As a mix-up does: the right state, and the code and `iss` of another server (RFC 9207).
    async fn forged_answer(&self) -> anyhow::Result<()> {
        for answer in [
            &[("code", "of-another-server"), ("state", "{state}"), ("iss", "https://evil.example")][..],
            &[("error", "x"), ("error_description", "hush"), ("state", "{state}"), ("iss", "https://evil.example")],
        ] {
            let run = self.client.run_with(Asked::IsFooled(answer), "login", self.resource, &[]).await?;
            let run = run.failed("iss")?;
            let page = &run.asked()?.1.end;
            expect::that(page.contains("was not accepted"), "the page", "that it was not accepted", page)?;
            let shown = ["evil", "hush"].iter().any(|text| page.contains(text) || run.written.contains(text));
            expect::that(!shown, "what is shown", "nothing of the answer", page)?;
        }
        Ok(())
    }

    /// An answer with another state comes first, which does not disturb the login.
    async fn login(&self) -> anyhow::Result<()> {
        let asked = Asked::Consents(&[("forged", &[("code", "forged"), ("state", "forged")])]);
        let run = self.client.run_with(asked, "login", self.resource, &[]).await?.succeeded()?;
        let told = ["signed in to", "mcp:tools", "it is refreshed automatically"]
            .iter()
            .all(|text| run.written.contains(text));
        expect::that(told, "what login says", "who granted what, with a refresh token", &run.written)?;
        let (request, visit) = run.asked()?;
        let forged = visit.before.iter().all(|page| page.contains("does not belong to the current sign-in"));
        expect::that(forged, "the page of the forged answer", "that it does not belong here", &visit.before)?;
        if self.consent_for.is_empty() {
            expect::that(visit.pages.contains(&Page::Consent), "pages", "one for consent", &visit.pages)?;
        }
        expect::that(visit.end.contains("Access granted"), "the last page", "that access is granted", &visit.end)?;
        let request = pages::parameters(request);
        expect::equal("scope", Some("mcp:tools offline_access"), request.get("scope").map(String::as_str))?;
        expect::equal("resource", Some(self.resource.as_str()), request.get("resource").map(String::as_str))?;
        expect::equal("PKCE", Some("S256"), request.get("code_challenge_method").map(String::as_str))?;
        let held = self.client.held(self.resource)?;
        self.is_for(self.resource, &held, &["mcp:tools"])
    }

    async fn call(&self) -> anyhow::Result<()> {
        let parameters = r#"{"name":"add","arguments":{"a":2,"b":3}}"#;
        let run = self.client.run("call", self.resource, &["tools/call", parameters]).await?;
        let run = run.succeeded()?;
        ensure!(run.asked.is_none(), "expected no second consent");
        expect::that(run.written.contains("\"5\""), "the answer", "5", &run.written)
    }

    async fn elsewhere(&self, other: &Url) -> anyhow::Result<()> {
        let token = self.client.held(self.resource)?.access_token;
        let mut request = tool_list(self.server.address, &token)?;
        request.url = other.clone();
        let answer = self.wire.fetch(request).await?;
        expect::equal("status", StatusCode::UNAUTHORIZED, answer.status)?;
        expect::equal("reason", "token.audience_mismatch", self.server.refusal(&answer.headers).await?.as_str())
    }

    async fn step_up(&self) -> anyhow::Result<()> {
        let before = self.client.held(self.resource)?;
        let parameters = r#"{"name":"multiply","arguments":{"a":6,"b":7}}"#;
        let run = self.client.run("call", self.resource, &["tools/call", parameters]).await?;
        let run = run.succeeded()?;
        expect::that(run.written.contains("\"42\""), "the answer", "42", &run.written)?;
        let request = pages::parameters(&run.asked()?.0);
        let scope = request.get("scope").map(String::as_str);
        expect::equal("scope asked for", Some("mcp:admin mcp:tools offline_access"), scope)?;
        let held = self.client.held(self.resource)?;
        expect::equal("client", before.client_id, held.client_id.as_str())?;
        self.is_for(self.resource, &held, &["mcp:tools", "mcp:admin"])
    }

    async fn logout(&self) -> anyhow::Result<()> {
        let held = self.client.held(self.resource)?;
        let run = self.client.run("logout", self.resource, &[]).await?.succeeded()?;
        expect::that(run.written.contains("revoked"), "what logout says", "that it revoked", &run.written)?;
        self.client.run("token", self.resource, &[]).await?.failed("run `portcullis login")?;
        self.is_dead(&held).await
    }

    /// Tokens are asked for as a script does, until the one there is about to end.
    async fn refresh(&self) -> anyhow::Result<()> {
        self.client.run("login", self.brief, &[]).await?.succeeded()?;
        let first = self.client.held(self.brief)?;
        ensure!(first.refresh_token.is_some(), "expected a refresh token, got none");
        loop {
            let run = self.client.run("token", self.brief, &[]).await?.succeeded()?;
            ensure!(run.asked.is_none(), "expected no consent");
            let held = self.client.held(self.brief)?;
            // The trace of the requests precedes it on standard error.
            let printed = run.written.lines().last().unwrap_or_default();
            expect::equal("the token that is printed", held.access_token.as_str(), printed)?;
            if held.access_token != first.access_token {
                expect::that(held.refresh_token != first.refresh_token, "refresh token", "another one", "the same")?;
                return self.is_dead(&first).await;
            }
            sleep(PERIOD).await;
        }
    }

    /// Whoever uses an old refresh token may have stolen it: the new one is worth nothing any more.
    async fn reuse(&self) -> anyhow::Result<()> {
        loop {
            let run = self.client.run("token", self.brief, &[]).await?;
            if run.code != Some(0) {
                return run.failed("run `portcullis login").map(drop);
            }
            sleep(PERIOD).await;
        }
    }

    /// The authorization server takes the refresh token no more.
    async fn is_dead(&self, held: &Held) -> anyhow::Result<()> {
        let refresh_token = held.refresh_token.as_deref().context("expected a refresh token, got none")?;
        let answer = self.refreshed(held, refresh_token).await?;
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        expect::equal(
            "what an old refresh token gets",
            ("invalid_grant", 400),
            (body["error"].as_str().unwrap_or_default(), answer.status.as_u16()),
        )
    }

    async fn refreshed(&self, held: &Held, refresh_token: &str) -> anyhow::Result<FetchResponse> {
        let metadata = authorization_server_urls(self.issuer).remove(0);
        let metadata = self.wire.fetch(FetchRequest::get(metadata, UrlPolicy::Operator)).await?;
        let endpoint =
            AuthorizationServerMetadata::parse(&metadata.body)?.token_endpoint.context("no token endpoint")?;
        let fields =
            [("grant_type", "refresh_token"), ("client_id", &held.client_id), ("refresh_token", refresh_token)];
        let mut request = FetchRequest::post_form(endpoint, fields, UrlPolicy::Operator);
        // Keycloak gives a secret, and holds the client to the method that it was registered with.
        let secret = held.client_secret.as_deref().map(Secret::new);
        if let Some(basic) = secret.and_then(|secret| client_secret_basic(&held.client_id, &secret)) {
            request = request.header(header::AUTHORIZATION, basic);
        }
        Ok(self.wire.fetch(request).await?)
    }

    /// Reads a token without judging its signature, which is the server's business.
    fn is_for(&self, resource: &Url, held: &Held, scopes: &[&str]) -> anyhow::Result<()> {
        let payload = held.access_token.split('.').nth(1).context("expected a JSON Web Token")?;
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload)?)?;
        let audience = claims["aud"].as_array().cloned().unwrap_or_else(|| vec![claims["aud"].clone()]);
        expect::equal("aud", vec![Value::from(resource.as_str())], audience)?;
        expect::equal("iss", self.issuer.as_str(), &claims["iss"])?;
        let given: BTreeSet<_> = claims["scope"].as_str().unwrap_or_default().split(' ').collect();
        let has_all = scopes.iter().all(|scope| given.contains(scope));
        expect::that(has_all, "scope", &scopes.join(" and "), &given)
    }
}
