use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context as _, bail};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{Method, StatusCode, header};
use portcullis_client::{
    AuthorizationRequest, Authorizer, AuthorizerSettings, ClientError, Interaction,
    InteractionError, RedirectParameters, ResourceToken,
};
use portcullis_discovery::{BoxFuture, FetchResponse};
use portcullis_metadata::{AccessTokenClaims, BearerChallenge, authorization::TokenResponse};
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use url::{Url, form_urlencoded};

use super::{
    deployment::SCOPE,
    expect,
    pages::{self, UserInput},
    recorder::{Exchange, Recorder},
    test_client::{SignIn, TestClient},
};

const CLIENT_NAME: &str = "Portcullis end-to-end test";
/// The requested scopes: that of the challenge, and `offline_access`, which all authorization
/// servers support.
const REQUESTED_SCOPES: &str = "mcp:tools offline_access";
const REDIRECT_URI: &str = "http://127.0.0.1/callback";

/// An authorization of `portcullis-client` in progress, with checks of each request.
pub(crate) struct Authorization<'a> {
    test_client: &'a TestClient,
    user: &'static str,
    /// The position of the first exchange.
    start: usize,
    task: JoinHandle<Result<ResourceToken, ClientError>>,
    prompts: mpsc::Receiver<Prompt>,
}

/// A registered client that needs consent.
pub(crate) struct Registered {
    client_id: String,
    prompt: Prompt,
}

/// The claims of an access token that authorization servers choose differently.
struct ExpectedClaims {
    /// The name of the claim with the user.
    user: &'static str,
    scope: &'static str,
    /// The names of claims with numbers.
    numbers: &'static [&'static str],
    /// The names of claims with strings.
    texts: &'static [&'static str],
}

/// The URL that the client opens in a browser, and the sender of the redirect's parameters.
struct Prompt {
    url: Url,
    redirect: oneshot::Sender<RedirectParameters>,
}

impl<'a> Authorization<'a> {
    /// Starts with the challenge of a 401.
    pub(crate) fn begin(
        test_client: &'a TestClient,
        challenge: BearerChallenge,
        user: &'static str,
    ) -> anyhow::Result<Self> {
        let (sender, prompts) = mpsc::channel(1);
        let interaction = ChannelInteraction {
            redirect_uri: REDIRECT_URI.parse()?,
            sender,
        };
        let mut settings = AuthorizerSettings::default();
        settings.client_name = CLIENT_NAME.to_owned();
        let recorder: Arc<Recorder> = Arc::clone(&test_client.recorder);
        let authorizer = Authorizer::builder(Arc::new(interaction))
            .fetch(recorder)
            .settings(settings)
            .build()?;
        let start = test_client.recorder.position();
        let url = test_client.start.clone();
        let task =
            tokio::spawn(async move { authorizer.answer_challenge(&url, Some(&challenge)).await });
        Ok(Self {
            test_client,
            user,
            start,
            task,
            prompts,
        })
    }

    /// Waits for the registration and the authorization request, and checks the registration.
    pub(crate) async fn registration(&mut self) -> anyhow::Result<Registered> {
        let Some(prompt) = self.prompts.recv().await else {
            // The authorization ended without a prompt.
            match (&mut self.task).await? {
                Ok(_) => bail!("expected an authorization request, got a token"),
                Err(error) => return Err(error).context("expected an authorization request"),
            }
        };
        let exchange = self.exchange(|exchange| {
            exchange.method == Method::POST && is_json_with(&exchange.request_body, "redirect_uris")
        })?;
        let request: Value = serde_json::from_slice(&exchange.request_body)?;
        expect::equal("client_name", CLIENT_NAME, &request["client_name"])?;
        expect::equal(
            "redirect_uris",
            vec![Value::from(REDIRECT_URI)],
            list(&request["redirect_uris"]),
        )?;
        let has_code_grant = list(&request["grant_types"]).contains(&"authorization_code".into());
        expect::that(
            has_code_grant,
            "grant_types",
            "authorization_code",
            &request["grant_types"],
        )?;
        expect::equal(
            "response_types",
            vec![Value::from("code")],
            list(&request["response_types"]),
        )?;

        let response = expect::json(
            "the registration",
            StatusCode::CREATED,
            &response(&exchange),
        )?;
        let client_id = response["client_id"]
            .as_str()
            .context("client_id: expected one, got none")?
            .to_owned();
        Ok(Registered { client_id, prompt })
    }

    /// Checks the authorization request, signs in, and checks the redirect.
    pub(crate) async fn consent(&self, registered: Registered) -> anyhow::Result<()> {
        let Registered {
            client_id,
            prompt: Prompt { url, redirect },
        } = registered;
        let request = parameters(url.query());
        let endpoint = self.test_client.endpoint.as_str();
        for (name, expected) in [
            ("response_type", "code"),
            ("client_id", &client_id),
            ("redirect_uri", REDIRECT_URI),
            ("code_challenge_method", "S256"),
            ("resource", endpoint),
            ("scope", REQUESTED_SCOPES),
        ] {
            expect::equal(name, Some(expected), request.get(name).map(String::as_str))?;
        }

        // The base64url form of a SHA-256 hash (RFC 7636 section 4.2).
        expect::equal(
            "length of code_challenge",
            Some(43),
            request.get("code_challenge").map(String::len),
        )?;
        let state = request.get("state").filter(|state| state.len() >= 16);
        expect::that(state.is_some(), "state", "at least 16 characters", state)?;

        let location = self.sign_in(url).await?;
        let redirect_uri = location.as_str().split('?').next();
        expect::equal("URI of the redirect", Some(REDIRECT_URI), redirect_uri)?;
        let returned = parameters(location.query());
        expect::equal("state of the redirect", state, returned.get("state"))?;
        let issuer = self.test_client.issuer.as_str();
        expect::equal(
            "iss of the redirect",
            Some(issuer),
            returned.get("iss").map(String::as_str),
        )?;
        expect::that(
            returned.contains_key("code"),
            "code of the redirect",
            "one",
            returned.keys(),
        )?;

        let parameters = RedirectParameters::parse(location.query().unwrap_or_default())?;
        redirect
            .send(parameters)
            .ok()
            .context("expected a client that waits for the code, got none")
    }

    /// Opens the authorization endpoint as the user and returns the redirect.
    async fn sign_in(&self, mut url: Url) -> anyhow::Result<Url> {
        match self.test_client.sign_in {
            SignIn::Hint => {
                url.query_pairs_mut().append_pair("login_hint", self.user);
                let response = self.test_client.get(url).await?;
                expect::equal(
                    "status of the authorization endpoint",
                    StatusCode::FOUND,
                    response.status,
                )?;
                Ok(Url::parse(expect::header(
                    &response.headers,
                    header::LOCATION.as_str(),
                )?)?)
            }
            SignIn::Keycloak | SignIn::OidcProvider => {
                let password = pages::password(self.user);
                let user_input = UserInput::consents(self.user, &password);
                Ok(
                    pages::visit(&self.test_client.recorder, &url, REDIRECT_URI, &user_input)
                        .await?
                        .location,
                )
            }
        }
    }

    /// Checks the token request, the response and the claims of the token.
    pub(crate) async fn token(mut self) -> anyhow::Result<Arc<ResourceToken>> {
        let token = (&mut self.task).await?.context("expected a token")?;
        let exchange = self.exchange(|exchange| {
            std::str::from_utf8(&exchange.request_body)
                .is_ok_and(|body| body.contains("code_verifier="))
        })?;
        let request = parameters(std::str::from_utf8(&exchange.request_body).ok());
        let granted = request.get("grant_type").map(String::as_str);
        expect::equal("grant_type", Some("authorization_code"), granted)?;
        let resource = request.get("resource").map(String::as_str);
        expect::equal(
            "resource of the token request",
            Some(self.test_client.endpoint.as_str()),
            resource,
        )?;

        let response = expect::json("the token response", StatusCode::OK, &response(&exchange))?;
        expect::equal("token_type", "Bearer", &response["token_type"])?;
        let lasts = TokenResponse::parse(&exchange.body)?.expires_in;
        expect::that(
            lasts.is_some_and(|lasts| lasts > 0),
            "expires_in",
            "a positive number",
            lasts,
        )?;
        self.check_claims(token.access_token().secret())?;
        Ok(Arc::new(token))
    }

    /// Checks the header and the claims of a token, but not its signature.
    fn check_claims(&self, token: &str) -> anyhow::Result<()> {
        let mut parts = token.split('.').map(|part| URL_SAFE_NO_PAD.decode(part));
        let mut part = || {
            parts
                .next()
                .context("token: expected three parts, got fewer")
        };
        let header = part()??;
        let payload = part()??;
        let header: Value = serde_json::from_slice(&header)?;
        expect::equal("alg", "RS256", &header["alg"])?;
        let token_type = if matches!(self.test_client.sign_in, SignIn::OidcProvider) {
            "at+jwt"
        } else {
            "JWT"
        };
        expect::equal("typ of the header", token_type, &header["typ"])?;
        expect::that(header["kid"].is_string(), "kid", "a string", &header["kid"])?;

        let claims = AccessTokenClaims::parse(&payload)?;
        let audience: Vec<_> = claims
            .aud
            .iter()
            .flat_map(|audience| audience.iter())
            .collect();
        expect::equal("aud", vec![self.test_client.endpoint.as_str()], audience)?;
        expect::equal(
            "iss",
            Some(self.test_client.issuer.as_str()),
            claims.iss.as_deref(),
        )?;
        expect::that(claims.sub.is_some(), "sub", "one", &claims.sub)?;
        let payload: Value = serde_json::from_slice(&payload)?;

        // oidc-provider does not include `offline_access` in the scope of tokens for a resource.
        let common = ExpectedClaims {
            user: "sub",
            scope: REQUESTED_SCOPES,
            numbers: &["exp", "iat", "auth_time"],
            texts: &["jti", "typ", "azp", "sid"],
        };
        let ExpectedClaims {
            user,
            scope,
            numbers,
            texts,
        } = match self.test_client.sign_in {
            SignIn::Hint => common,
            SignIn::Keycloak => ExpectedClaims {
                user: "preferred_username",
                ..common
            },
            SignIn::OidcProvider => ExpectedClaims {
                scope: SCOPE,
                numbers: &["exp", "iat"],
                texts: &["jti", "client_id"],
                ..common
            },
        };
        expect::equal("scope", scope, claims.scope.to_string())?;
        expect::equal(user, self.user, &payload[user])?;
        for name in numbers {
            expect::that(
                payload[*name].is_number(),
                name,
                "a number",
                &payload[*name],
            )?;
        }
        for name in texts {
            expect::that(
                payload[*name].is_string(),
                name,
                "a string",
                &payload[*name],
            )?;
        }
        Ok(())
    }

    /// Returns the first exchange of this authorization that satisfies a predicate.
    fn exchange(&self, is_wanted: impl Fn(&Exchange) -> bool) -> anyhow::Result<Exchange> {
        let exchanges = self.test_client.recorder.since(self.start);
        exchanges
            .into_iter()
            .find(is_wanted)
            .context("expected a request, got none")
    }
}

impl Drop for Authorization<'_> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Sends each authorization request to the test and waits for the parameters of the redirect.
struct ChannelInteraction {
    redirect_uri: Url,
    sender: mpsc::Sender<Prompt>,
}

impl Interaction for ChannelInteraction {
    fn redirect_uri(&self) -> &Url {
        &self.redirect_uri
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<RedirectParameters, InteractionError>> {
        Box::pin(async move {
            let (redirect, parameters) = oneshot::channel();
            let prompt = Prompt {
                url: request.url().clone(),
                redirect,
            };
            self.sender
                .send(prompt)
                .await
                .map_err(|_| InteractionError::TimedOut)?;
            parameters.await.map_err(|_| InteractionError::TimedOut)
        })
    }
}

fn response(exchange: &Exchange) -> FetchResponse {
    let Exchange {
        status,
        headers,
        body,
        ..
    } = exchange.clone();
    FetchResponse {
        status,
        headers,
        body,
        sent: Default::default(),
    }
}

fn is_json_with(body: &[u8], member: &str) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|document| document.get(member).is_some())
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn parameters(form: Option<&str>) -> BTreeMap<String, String> {
    form_urlencoded::parse(form.unwrap_or_default().as_bytes())
        .into_owned()
        .collect()
}
