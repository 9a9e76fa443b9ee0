//! Registration, consent and token of `portcullis-client`, held at each stage to be looked at.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context as _, bail};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{Method, StatusCode, header};
use portcullis_client::{
    AuthorizationRequest, Authorizer, AuthorizerSettings, ClientError, Interaction, InteractionError,
    RedirectParameters, ResourceToken,
};
use portcullis_discovery::{BoxFuture, FetchResponse};
use portcullis_metadata::{AccessTokenClaims, BearerChallenge, SystemClock, TokenResponse};
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use url::{Url, form_urlencoded};

use super::{
    deployment::SCOPE,
    expect,
    pages::{self, Answers},
    visitor::{SignIn, Visitor},
    wire::{Exchange, Wire},
};

const CLIENT_NAME: &str = "Portcullis end-to-end walk";
/// What the challenge names, and what gets a refresh token that lasts, since both authorization servers have that.
const ASKED: &str = "mcp:tools offline_access";
const REDIRECT_URI: &str = "http://127.0.0.1/callback";

/// One authorization, under way.
pub(super) struct Authorization<'a> {
    visitor: &'a Visitor,
    user: &'static str,
    /// Where this authorization's exchanges begin.
    mark: usize,
    under_way: JoinHandle<Result<ResourceToken, ClientError>>,
    asked: mpsc::Receiver<Asked>,
}

/// A client that is registered, and wants consent.
pub(super) struct Registered {
    client_id: String,
    asked: Asked,
}

/// What the client wants a browser to visit, and where it waits for the answer.
struct Asked {
    url: Url,
    answer: oneshot::Sender<RedirectParameters>,
}

impl<'a> Authorization<'a> {
    /// Begins with the challenge of a 401.
    pub(super) fn begin(visitor: &'a Visitor, challenge: BearerChallenge, user: &'static str) -> anyhow::Result<Self> {
        let (handed_over, asked) = mpsc::channel(1);
        let interaction = Handover { redirect_uri: REDIRECT_URI.parse()?, handed_over };
        let mut settings = AuthorizerSettings::default();
        settings.client_name = CLIENT_NAME.to_owned();
        let wire: Arc<Wire> = Arc::clone(&visitor.wire);
        let authorizer = Authorizer::new(wire, Arc::new(interaction), Arc::new(SystemClock::new()), settings);
        let (mark, start) = (visitor.wire.mark(), visitor.start.clone());
        let under_way = tokio::spawn(async move { authorizer.answer_challenge(&start, Some(&challenge)).await });
        Ok(Self { visitor, user, mark, under_way, asked })
    }

    /// The client registers itself, and asks for consent.
    pub(super) async fn registration(&mut self) -> anyhow::Result<Registered> {
        let Some(asked) = self.asked.recv().await else {
            // It ended without asking for consent.
            match (&mut self.under_way).await? {
                Ok(_) => bail!("consent: expected that it is asked for, got a token without"),
                Err(error) => return Err(error).context("expected a request for consent"),
            }
        };
        let exchange = self.exchange(|exchange| {
            exchange.method == Method::POST && is_json_with(&exchange.request_body, "redirect_uris")
        })?;
        let request: Value = serde_json::from_slice(&exchange.request_body)?;
        expect::equal("client_name", CLIENT_NAME, &request["client_name"])?;
        expect::equal("redirect_uris", vec![Value::from(REDIRECT_URI)], list(&request["redirect_uris"]))?;
        let asks_for_code = list(&request["grant_types"]).contains(&"authorization_code".into());
        expect::that(asks_for_code, "grant_types", "authorization_code", &request["grant_types"])?;
        expect::equal("response_types", vec![Value::from("code")], list(&request["response_types"]))?;

        let answer = expect::json("the registration", StatusCode::CREATED, &response(&exchange))?;
        let client_id = answer["client_id"].as_str().context("client_id: expected one, got none")?.to_owned();
        Ok(Registered { client_id, asked })
    }

    /// The authorization request has all that it needs, and so has the redirect that answers it.
    pub(super) async fn consent(&self, registered: Registered) -> anyhow::Result<()> {
        let Registered { client_id, asked: Asked { url, answer } } = registered;
        let request = parameters(url.query());
        let endpoint = self.visitor.endpoint.as_str();
        for (name, expected) in [
            ("response_type", "code"),
            ("client_id", &client_id),
            ("redirect_uri", REDIRECT_URI),
            ("code_challenge_method", "S256"),
            ("resource", endpoint),
            ("scope", ASKED),
        ] {
            expect::equal(name, Some(expected), request.get(name).map(String::as_str))?;
        }
        // The base64url form of a SHA-256 hash (RFC 7636 section 4.2).
        expect::equal("length of code_challenge", Some(43), request.get("code_challenge").map(String::len))?;
        let state = request.get("state").filter(|state| state.len() >= 16);
        expect::that(state.is_some(), "state", "at least 16 characters", state)?;

        let location = self.sign_in(url).await?;
        let place = location.as_str().split('?').next();
        expect::equal("place of the redirect", Some(REDIRECT_URI), place)?;
        let given = parameters(location.query());
        expect::equal("state of the redirect", state, given.get("state"))?;
        let issuer = self.visitor.issuer.as_str();
        expect::equal("iss of the redirect", Some(issuer), given.get("iss").map(String::as_str))?;
        expect::that(given.contains_key("code"), "code of the redirect", "one", given.keys())?;

        let given = RedirectParameters::parse(location.query().unwrap_or_default())?;
        answer.send(given).ok().context("expected a client that waits for the code, got none")
    }

    /// Visits the authorization endpoint as the user, and gives the redirect.
    async fn sign_in(&self, mut url: Url) -> anyhow::Result<Url> {
        match self.visitor.sign_in {
            SignIn::Hint => {
                url.query_pairs_mut().append_pair("login_hint", self.user);
                let redirect = self.visitor.get(url).await?;
                expect::equal("status of the authorization endpoint", StatusCode::FOUND, redirect.status)?;
                Ok(Url::parse(expect::header(&redirect.headers, header::LOCATION.as_str()))?)
            }
            SignIn::Keycloak | SignIn::OidcProvider => {
                let password = pages::password(self.user);
                let answers = Answers::consents(self.user, &password);
                Ok(pages::visit(&self.visitor.wire, &url, REDIRECT_URI, &answers).await?.location)
            }
        }
    }

    /// The client exchanges the code. The token is for the resource, and has the claims that it should.
    pub(super) async fn token(mut self) -> anyhow::Result<Arc<ResourceToken>> {
        let token = (&mut self.under_way).await?.context("expected a token")?;
        let exchange = self.exchange(|exchange| {
            std::str::from_utf8(&exchange.request_body).is_ok_and(|body| body.contains("code_verifier="))
        })?;
        let request = parameters(std::str::from_utf8(&exchange.request_body).ok());
        let granted = request.get("grant_type").map(String::as_str);
        expect::equal("grant_type", Some("authorization_code"), granted)?;
        let resource = request.get("resource").map(String::as_str);
        expect::equal("resource of the token request", Some(self.visitor.endpoint.as_str()), resource)?;

        let answer = expect::json("the token answer", StatusCode::OK, &response(&exchange))?;
        expect::equal("token_type", "Bearer", &answer["token_type"])?;
        let lasts = TokenResponse::parse(&exchange.body)?.expires_in;
        expect::that(lasts.is_some_and(|lasts| lasts > 0), "expires_in", "some seconds", lasts)?;
        self.claims(token.access_token().secret())?;
        Ok(Arc::new(token))
    }

    /// Reads the token without judging its signature, which is the server's business.
    fn claims(&self, token: &str) -> anyhow::Result<()> {
        let mut parts = token.split('.').map(|part| URL_SAFE_NO_PAD.decode(part));
        let mut part = || parts.next().context("token: expected three parts, got fewer");
        let (header, payload) = (part()??, part()??);
        let header: Value = serde_json::from_slice(&header)?;
        expect::equal("alg", "RS256", &header["alg"])?;
        let kind = if matches!(self.visitor.sign_in, SignIn::OidcProvider) { "at+jwt" } else { "JWT" };
        expect::equal("typ of the header", kind, &header["typ"])?;
        expect::that(header["kid"].is_string(), "kid", "a text", &header["kid"])?;

        let claims = AccessTokenClaims::parse(&payload)?;
        let audience: Vec<_> = claims.aud.iter().flat_map(|audience| audience.iter()).collect();
        expect::equal("aud", vec![self.visitor.endpoint.as_str()], audience)?;
        expect::equal("iss", Some(self.visitor.issuer.as_str()), claims.iss.as_deref())?;
        expect::that(claims.sub.is_some(), "sub", "one", &claims.sub)?;
        let payload: Value = serde_json::from_slice(&payload)?;
        // What lasts is between the client and the authorization server; oidc-provider tells no resource of it.
        let (user, scope, numbers, texts): (_, _, &[_], &[_]) = match self.visitor.sign_in {
            SignIn::Hint => ("sub", ASKED, &["exp", "iat", "auth_time"], &["jti", "typ", "azp", "sid"]),
            SignIn::Keycloak => {
                ("preferred_username", ASKED, &["exp", "iat", "auth_time"], &["jti", "typ", "azp", "sid"])
            }
            SignIn::OidcProvider => ("sub", SCOPE, &["exp", "iat"], &["jti", "client_id"]),
        };
        expect::equal("scope", scope, claims.scope.to_string())?;
        expect::equal(user, self.user, &payload[user])?;
        for name in numbers {
            expect::that(payload[*name].is_number(), name, "a number", &payload[*name])?;
        }
        for name in texts {
            expect::that(payload[*name].is_string(), name, "a text", &payload[*name])?;
        }
        Ok(())
    }

    /// The one exchange of this authorization that is wanted.
    fn exchange(&self, is_wanted: impl Fn(&Exchange) -> bool) -> anyhow::Result<Exchange> {
        let exchanges = self.visitor.wire.since(self.mark);
        exchanges.into_iter().find(is_wanted).context("expected a request, got none")
    }
}

impl Drop for Authorization<'_> {
    fn drop(&mut self) {
        self.under_way.abort();
    }
}

/// Hands each authorization request to the walk, and waits for its answer.
struct Handover {
    redirect_uri: Url,
    handed_over: mpsc::Sender<Asked>,
}

impl Interaction for Handover {
    fn redirect_uri(&self) -> &Url {
        &self.redirect_uri
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<RedirectParameters, InteractionError>> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let asked = Asked { url: request.url().clone(), answer };
            self.handed_over.send(asked).await.map_err(|_| InteractionError::TimedOut)?;
            answered.await.map_err(|_| InteractionError::TimedOut)
        })
    }
}

fn response(exchange: &Exchange) -> FetchResponse {
    let Exchange { status, headers, body, .. } = exchange.clone();
    FetchResponse { status, headers, body }
}

fn is_json_with(body: &[u8], member: &str) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|document| document.get(member).is_some())
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn parameters(form: Option<&str>) -> BTreeMap<String, String> {
    form_urlencoded::parse(form.unwrap_or_default().as_bytes()).into_owned().collect()
}
