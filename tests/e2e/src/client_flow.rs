//! The flow of the shipped client with any authorization server.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, ensure};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::StatusCode;
use portcullis_discovery::{Fetch as _, FetchRequest, FetchResponse, UrlPolicy};
use portcullis_metadata::{AuthorizationServerMetadata, Issuer, authorization_server_urls};
use serde_json::Value;
use tokio::time::sleep;
use url::Url;

use super::{
    client::{Client, StoredToken, UserAction},
    expect,
    pages::{self, Page},
    progress::Progress,
    recorder::Recorder,
    request::tool_list,
    server::Server,
};

/// The time limit of a step. One step waits for the expiry of a token, and others open a browser.
const STEP: Duration = Duration::from_secs(90);
const PERIOD: Duration = Duration::from_millis(250);

/// A client, its user and the deployment that it uses.
pub(crate) struct ClientFlow<'a> {
    pub(crate) client: &'a Client,
    pub(crate) recorder: &'a Recorder,
    pub(crate) server: &'a Server,
    pub(crate) issuer: &'a Issuer,
    /// The resource. It requires `mcp:tools`, and `mcp:admin` for its tool `multiply`.
    pub(crate) resource: &'a Url,
    /// Another resource of the same server, which must reject tokens of the first one.
    pub(crate) other: Option<&'a Url>,
    /// The arguments of `login` that select a client with a consent page. Empty if the server shows
    /// one to dynamically registered clients.
    pub(crate) consent_arguments: &'a [&'a str],
    /// A resource whose tokens expire after seconds.
    pub(crate) brief: &'a Url,
}

impl ClientFlow<'_> {
    /// Runs all steps, or up to the first one that fails.
    pub(crate) async fn run(&self, progress: &mut Progress) -> anyhow::Result<()> {
        let step = self.denied_consent();
        progress
            .step_within(
                STEP,
                "login, denied by the user: page and terminal name the reason",
                step,
            )
            .await?;
        let step = self.forged_redirect();
        progress
            .step_within(
                STEP,
                "a redirect with another issuer: rejected, and not displayed",
                step,
            )
            .await?;
        progress
            .step_within(
                STEP,
                "login through the pages, with dynamic registration",
                self.login(),
            )
            .await?;
        progress
            .step_within(STEP, "call uses the token of the login", self.call())
            .await?;
        if let Some(other) = self.other {
            progress
                .step_within(
                    STEP,
                    "another resource rejects this token: 401",
                    self.other_resource(other),
                )
                .await?;
        }
        progress
            .step_within(
                STEP,
                "step-up: 403, then consent to the union of scopes",
                self.step_up(),
            )
            .await?;
        progress
            .step_within(STEP, "logout revokes the refresh token", self.logout())
            .await?;
        progress
            .step_within(
                STEP,
                "a refresh before the expiry rotates the refresh token",
                self.refresh(),
            )
            .await?;
        progress
            .step_within(
                STEP,
                "the old refresh token is rejected and ends the sign-in",
                self.reuse(),
            )
            .await
    }

    /// If the user denies consent, page and terminal name the reason.
    async fn denied_consent(&self) -> anyhow::Result<()> {
        let run = self
            .client
            .run_with(
                UserAction::Deny,
                "login",
                self.resource,
                self.consent_arguments,
            )
            .await?;
        let run = run.failed("access_denied")?;
        let (_, visit) = run.authorization()?;
        expect::that(
            visit.end.contains("No access"),
            "the last page",
            "No access",
            &visit.end,
        )?;
        expect::that(
            visit.end.contains("access_denied"),
            "the last page",
            "the reason",
            &visit.end,
        )
    }

    /// A mix-up attack: the correct state with the code and `iss` of another server (RFC 9207).
    async fn forged_redirect(&self) -> anyhow::Result<()> {
        for redirect in [
            &[
                ("code", "of-another-server"),
                ("state", "{state}"),
                ("iss", "https://evil.example"),
            ][..],
            &[
                ("error", "x"),
                ("error_description", "described-by-another-server"),
                ("state", "{state}"),
                ("iss", "https://evil.example"),
            ],
        ] {
            let run = self
                .client
                .run_with(
                    UserAction::OpenForgedRedirect(redirect),
                    "login",
                    self.resource,
                    &[],
                )
                .await?;
            let run = run.failed("comes from another issuer")?;
            let page = &run.authorization()?.1.end;
            expect::that(
                page.contains("was not accepted"),
                "the page",
                "was not accepted",
                page,
            )?;
            // The log of the client has random values, in which shorter texts can occur.
            let shown = ["of-another-server", "evil.example", "described-by"]
                .iter()
                .any(|text| page.contains(text) || run.output.contains(text));
            expect::that(
                !shown,
                "the page and the output",
                "no code, description or issuer of the redirect",
                page,
            )?;
        }
        Ok(())
    }

    /// A redirect with another state arrives first and does not affect the login.
    async fn login(&self) -> anyhow::Result<()> {
        let action = UserAction::Consent(&[("forged", &[("code", "forged"), ("state", "forged")])]);
        let run = self
            .client
            .run_with(action, "login", self.resource, &[])
            .await?
            .succeeded()?;
        let granted_by = format!("granted by  {}\n", self.issuer);
        let reports = [
            "signed in to",
            &granted_by,
            "mcp:tools",
            "it is refreshed automatically",
        ];
        let is_reported = reports.iter().all(|text| run.output.contains(text));
        expect::that(
            is_reported,
            "the output of login",
            "the issuer, the scopes and the refresh token",
            &run.output,
        )?;
        let (request, visit) = run.authorization()?;
        let rejection = "does not belong to the current sign-in";
        let is_rejected = matches!(&*visit.before, [page] if page.contains(rejection));
        expect::that(
            is_rejected,
            "the page of the forged response",
            rejection,
            &visit.before,
        )?;
        if self.consent_arguments.is_empty() {
            expect::that(
                visit.pages.contains(&Page::Consent),
                "pages",
                "a consent page",
                &visit.pages,
            )?;
        }
        expect::that(
            visit.end.contains("Access granted"),
            "the last page",
            "Access granted",
            &visit.end,
        )?;
        let request = pages::parameters(request);
        expect::equal(
            "scope",
            Some("mcp:tools offline_access"),
            request.get("scope").map(String::as_str),
        )?;
        expect::equal(
            "resource",
            Some(self.resource.as_str()),
            request.get("resource").map(String::as_str),
        )?;
        expect::equal(
            "PKCE",
            Some("S256"),
            request.get("code_challenge_method").map(String::as_str),
        )?;
        let stored = self.client.stored_token(self.resource)?;
        self.check_token(self.resource, &stored, &["mcp:tools"])
    }

    /// A call uses the token of the login.
    async fn call(&self) -> anyhow::Result<()> {
        let before = self.client.stored_token(self.resource)?;
        let parameters = r#"{"name":"add","arguments":{"a":2,"b":3}}"#;
        let run = self
            .client
            .run("call", self.resource, &["tools/call", parameters])
            .await?;
        let run = run.succeeded()?;
        ensure!(
            run.authorization.is_none(),
            "expected no second consent page"
        );
        expect::that(run.output.contains("\"5\""), "the result", "5", &run.output)?;
        let stored = self.client.stored_token(self.resource)?;
        ensure!(
            stored.access_token == before.access_token,
            "expected the token of the login, got another one"
        );
        Ok(())
    }

    /// Another resource rejects this token: 401.
    async fn other_resource(&self, other: &Url) -> anyhow::Result<()> {
        let token = self.client.stored_token(self.resource)?.access_token;
        let mut request = tool_list(self.server.address, &token)?;
        request.url = other.clone();
        let response = self.recorder.fetch(request).await?;
        expect::equal("status", StatusCode::UNAUTHORIZED, response.status)?;
        expect::equal(
            "reason",
            "token.audience_mismatch",
            self.server.deny_code_of(&response.headers).await?.as_str(),
        )
    }

    /// A call that needs another scope gets 403, and then the user's consent to the union of
    /// scopes.
    async fn step_up(&self) -> anyhow::Result<()> {
        let before = self.client.stored_token(self.resource)?;
        let parameters = r#"{"name":"multiply","arguments":{"a":6,"b":7}}"#;
        let run = self
            .client
            .run("call", self.resource, &["tools/call", parameters])
            .await?;
        let run = run.succeeded()?;
        expect::that(
            run.output.contains("\"42\""),
            "the result",
            "42",
            &run.output,
        )?;
        let request = pages::parameters(&run.authorization()?.0);
        let scope = request.get("scope").map(String::as_str);
        expect::equal(
            "requested scope",
            Some("mcp:admin mcp:tools offline_access"),
            scope,
        )?;
        let stored = self.client.stored_token(self.resource)?;
        expect::equal("client", before.client_id, stored.client_id.as_str())?;
        self.check_token(self.resource, &stored, &["mcp:tools", "mcp:admin"])
    }

    /// `logout` revokes the refresh token.
    async fn logout(&self) -> anyhow::Result<()> {
        let stored = self.client.stored_token(self.resource)?;
        let run = self
            .client
            .run("logout", self.resource, &[])
            .await?
            .succeeded()?;
        expect::that(
            run.output.contains("revoked"),
            "the output of logout",
            "revoked",
            &run.output,
        )?;
        self.client
            .run("token", self.resource, &[])
            .await?
            .failed("run `portcullis login")?;
        self.check_revoked(&stored).await
    }

    /// Calls `portcullis token` until the token is refreshed, and then uses the old refresh token
    /// once more.
    async fn refresh(&self) -> anyhow::Result<()> {
        self.client
            .run("login", self.brief, &[])
            .await?
            .succeeded()?;
        let first = self.client.stored_token(self.brief)?;
        ensure!(
            first.refresh_token.is_some(),
            "expected a refresh token, got none"
        );
        loop {
            let run = self
                .client
                .run("token", self.brief, &[])
                .await?
                .succeeded()?;
            ensure!(run.authorization.is_none(), "expected no consent");
            let stored = self.client.stored_token(self.brief)?;
            // The trace of the requests, on standard error, is in the output, too.
            let is_printed = run.output.lines().any(|line| line == stored.access_token);
            ensure!(is_printed, "expected the stored token on a line of its own");
            if stored.access_token != first.access_token {
                let is_rotated =
                    stored.refresh_token.is_some() && stored.refresh_token != first.refresh_token;
                ensure!(is_rotated, "expected another refresh token");
                let expires = claims(&first)?["exp"].as_u64().context("expected exp")?;
                let issued = claims(&stored)?["iat"].as_u64().context("expected iat")?;
                ensure!(
                    issued <= expires,
                    "expected a refresh before the expiry at {expires}, got one at {issued}"
                );
                return self.check_revoked(&first).await;
            }
            sleep(PERIOD).await;
        }
    }

    /// The reuse of the old refresh token, in [`refresh`](Self::refresh), has revoked the new one.
    async fn reuse(&self) -> anyhow::Result<()> {
        loop {
            let run = self.client.run("token", self.brief, &[]).await?;
            if run.code != Some(0) {
                return run.failed("run `portcullis login").map(drop);
            }
            sleep(PERIOD).await;
        }
    }

    /// Expects that the authorization server rejects the refresh token.
    async fn check_revoked(&self, stored: &StoredToken) -> anyhow::Result<()> {
        let response = self.request_refresh(stored).await?;
        let body = expect::json(
            "the response to a revoked refresh token",
            StatusCode::BAD_REQUEST,
            &response,
        )?;
        expect::equal("error", "invalid_grant", &body["error"])
    }

    async fn request_refresh(&self, stored: &StoredToken) -> anyhow::Result<FetchResponse> {
        let refresh_token = stored
            .refresh_token
            .as_deref()
            .context("expected a refresh token, got none")?;
        let metadata = authorization_server_urls(self.issuer).remove(0);
        let metadata = self
            .recorder
            .fetch(FetchRequest::get(metadata, UrlPolicy::Operator))
            .await?;
        let endpoint = AuthorizationServerMetadata::parse(&metadata.body)?
            .token_endpoint
            .context("no token endpoint")?;
        let mut fields = vec![
            ("grant_type", "refresh_token"),
            ("client_id", &stored.client_id),
            ("refresh_token", refresh_token),
        ];
        // Keycloak issues a secret and requires the registered method, which is the first that the
        // client supports.
        fields.extend(
            stored
                .client_secret
                .as_deref()
                .map(|secret| ("client_secret", secret)),
        );
        let request = FetchRequest::post_form(endpoint, fields, UrlPolicy::Operator);
        Ok(self.recorder.fetch(request).await?)
    }

    /// Checks the claims of a token, but not its signature.
    fn check_token(
        &self,
        resource: &Url,
        stored: &StoredToken,
        scopes: &[&str],
    ) -> anyhow::Result<()> {
        let claims = claims(stored)?;
        let audience = claims["aud"]
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![claims["aud"].clone()]);
        expect::equal("aud", vec![Value::from(resource.as_str())], audience)?;
        expect::equal("iss", self.issuer.as_str(), &claims["iss"])?;
        let granted: BTreeSet<_> = claims["scope"]
            .as_str()
            .unwrap_or_default()
            .split(' ')
            .collect();
        let has_all = scopes.iter().all(|scope| granted.contains(scope));
        expect::that(has_all, "scope", &scopes.join(" and "), &granted)
    }
}

/// Returns the claims of a token. Its signature is not checked.
fn claims(stored: &StoredToken) -> anyhow::Result<Value> {
    let payload = stored
        .access_token
        .split('.')
        .nth(1)
        .context("expected a JSON Web Token")?;
    Ok(serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload)?)?)
}
