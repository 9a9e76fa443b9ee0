//! Tokens from Keycloak, through its pages, for a configured client of the realm.

use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::StatusCode;
use portcullis_discovery::{Fetch as _, FetchRequest, FetchResponse, UrlPolicy};
use portcullis_metadata::authorization::PkceVerifier;
use serde_json::Value;
use url::Url;

use crate::{
    expect,
    pages::{self, Arrival, UserInput},
    recorder::Recorder,
};

const REDIRECT_URI: &str = "http://127.0.0.1/callback";

/// A client of a realm.
pub(super) struct Client<'a> {
    pub(super) recorder: &'a Recorder,
    /// The issuer with a trailing slash.
    pub(super) realm: Url,
    pub(super) id: &'a str,
}

/// The tokens of a sign-in.
pub(super) struct Tokens {
    pub(super) access: String,
    pub(super) refresh: String,
    /// Present if `openid` was requested.
    pub(super) id: Option<String>,
}

impl Client<'_> {
    /// Signs a user in and exchanges the code.
    pub(super) async fn tokens(&self, scope: &str, user: &str) -> anyhow::Result<Tokens> {
        let verifier = PkceVerifier::generate()?;
        let arrival = self.sign_in(scope, user, &verifier).await?;
        self.exchange(&arrival, &verifier).await
    }

    /// Signs in at an identity provider of the realm, which shows no page, and exchanges the code.
    pub(super) async fn tokens_through(
        &self,
        scope: &str,
        identity_provider: &str,
    ) -> anyhow::Result<Tokens> {
        let verifier = PkceVerifier::generate()?;
        let mut url = self.authorization_url(scope, &verifier)?;
        url.query_pairs_mut()
            .append_pair("kc_idp_hint", identity_provider);
        let arrival = pages::visit(
            self.recorder,
            &url,
            REDIRECT_URI,
            &UserInput::consents("", ""),
        )
        .await?;
        self.exchange(&arrival, &verifier).await
    }

    async fn exchange(&self, arrival: &Arrival, verifier: &PkceVerifier) -> anyhow::Result<Tokens> {
        let returned = pages::parameters(&arrival.location);
        let code = returned
            .get("code")
            .with_context(|| format!("expected a code, got {:?}", returned.keys()))?;
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", self.id),
            ("code", code),
            ("redirect_uri", REDIRECT_URI),
            ("code_verifier", verifier.secret()),
        ];
        let response = expect::json(
            "the token response",
            StatusCode::OK,
            &self.post("token", &fields).await?,
        )?;
        let text = |name: &str| response[name].as_str().map(str::to_owned);
        Ok(Tokens {
            access: text("access_token").context("expected an access token, got none")?,
            refresh: text("refresh_token").context("expected a refresh token, got none")?,
            id: text("id_token"),
        })
    }

    /// Signs in through the pages and returns the redirect, which has the code.
    pub(super) async fn sign_in(
        &self,
        scope: &str,
        user: &str,
        verifier: &PkceVerifier,
    ) -> anyhow::Result<Arrival> {
        let url = self.authorization_url(scope, verifier)?;
        pages::visit(
            self.recorder,
            &url,
            REDIRECT_URI,
            &UserInput::consents(user, &pages::password(user)),
        )
        .await
    }

    fn authorization_url(&self, scope: &str, verifier: &PkceVerifier) -> anyhow::Result<Url> {
        let mut url = self.endpoint("auth")?;
        url.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", self.id),
            ("redirect_uri", REDIRECT_URI),
            ("state", "the-state-of-this-test"),
            ("code_challenge", verifier.challenge().as_str()),
            ("code_challenge_method", "S256"),
        ]);
        if !scope.is_empty() {
            url.query_pairs_mut().append_pair("scope", scope);
        }
        Ok(url)
    }

    /// Refreshes the tokens.
    pub(super) async fn refresh(&self, refresh: &str) -> anyhow::Result<FetchResponse> {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", self.id),
            ("refresh_token", refresh),
        ];
        self.post("token", &fields).await
    }

    /// Revokes an access token.
    pub(super) async fn revoke(&self, access: &str) -> anyhow::Result<()> {
        let response = self
            .post("revoke", &[("client_id", self.id), ("token", access)])
            .await?;
        expect::equal("status of the revocation", StatusCode::OK, response.status)
    }

    /// Ends the session of the tokens.
    pub(super) async fn log_out(&self, tokens: &Tokens) -> anyhow::Result<()> {
        let response = self
            .post(
                "logout",
                &[("client_id", self.id), ("refresh_token", &tokens.refresh)],
            )
            .await?;
        expect::equal(
            "status of the logout",
            StatusCode::NO_CONTENT,
            response.status,
        )
    }

    async fn post(&self, endpoint: &str, fields: &[(&str, &str)]) -> anyhow::Result<FetchResponse> {
        let fields = fields.iter().copied();
        let request =
            FetchRequest::post_form(self.endpoint(endpoint)?, fields, UrlPolicy::Operator);
        Ok(self.recorder.fetch(request).await?)
    }

    fn endpoint(&self, name: &str) -> anyhow::Result<Url> {
        Ok(self.realm.join("protocol/openid-connect/")?.join(name)?)
    }
}

/// Returns the header of a token without verification.
pub(super) fn header(token: &str) -> anyhow::Result<Value> {
    part(token, 0)
}

/// Returns the claims of a token without verification.
pub(super) fn claims(token: &str) -> anyhow::Result<Value> {
    part(token, 1)
}

/// Decodes a part of a token, counted from 0.
fn part(token: &str, index: usize) -> anyhow::Result<Value> {
    let part = token
        .split('.')
        .nth(index)
        .context("expected a JSON Web Token, got something else")?;
    Ok(serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part)?)?)
}
