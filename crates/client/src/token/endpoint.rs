//! [`TokenEndpoint`]: requests to the token endpoint (RFC 6749 section 3.2).

use http::{HeaderValue, Method, StatusCode, header};
use portcullis_discovery::{Fetch, FetchRequest, FetchResponse, ResponseExcerpt, UrlPolicy};
use portcullis_metadata::{
    Clock, Issuer, Secret,
    authorization::{OAuthError, TokenResponse},
    syntax::url_without_secrets,
};
use url::Url;

use crate::{
    ClientAuthentication, ClientCredentials, ClientError, TokenAuthMethod,
    oauth_error::redacted,
    server::Server,
    token::dpop::{self, DpopBinding},
};

/// An endpoint of an authorization server at which a client authenticates, such as the token or the
/// revocation endpoint.
pub(crate) struct TokenEndpoint<'a> {
    pub(crate) fetch: &'a dyn Fetch,
    pub(crate) clock: &'a dyn Clock,
    /// The client authentication method that the user chose.
    pub(crate) method: Option<TokenAuthMethod>,
    /// The name of the endpoint, for errors.
    pub(crate) name: &'static str,
    pub(crate) url: &'a Url,
    pub(crate) policy: UrlPolicy,
    /// The authorization server: the audience of client assertions.
    pub(crate) issuer: &'a Issuer,
    /// The client authentication methods that the server lists for the endpoint.
    pub(crate) authentication_methods: Option<&'a [String]>,
}

/// The fields of a request, in order.
pub(crate) type Fields<'a> = Vec<(&'a str, &'a str)>;

/// The parameters that authenticate a client.
type AuthenticationParameters = Vec<(&'static str, Secret)>;

/// A client and one way to authenticate it.
struct Attempt {
    client: ClientCredentials,
    /// Whether `client_id` is in the body. Some servers read it only there, even with
    /// `client_secret_basic`; others reject it together with `client_secret_basic`.
    names_client: bool,
}

/// The type of a client assertion (RFC 7523 section 2.2).
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

impl<'a> TokenEndpoint<'a> {
    /// The token endpoint of an authorization server.
    pub(crate) fn of(
        fetch: &'a dyn Fetch,
        clock: &'a dyn Clock,
        server: &'a Server,
        method: Option<TokenAuthMethod>,
    ) -> Self {
        Self {
            fetch,
            clock,
            method,
            name: "token",
            url: &server.token_endpoint,
            policy: server.policy.of(&server.token_endpoint),
            issuer: &server.issuer,
            authentication_methods: server.authentication_methods.as_deref(),
        }
    }

    /// Requests a token (OAuth 2.1 section 3.2). With a binding, the token is DPoP-bound; if the
    /// server requires a nonce, the request is repeated once. Fails when the server cannot be
    /// reached, returns an error, or returns a response that is not valid.
    pub(crate) async fn token(
        &self,
        client: Option<&ClientCredentials>,
        fields: &Fields<'_>,
        binding: Option<&DpopBinding>,
    ) -> Result<TokenResponse, ClientError> {
        let mut answer = self.send(client, fields, binding).await?;
        if let Some(binding) = binding {
            let is_new = binding.store_nonce(self.url, &answer.headers);
            let is_required = OAuthError::parse(&answer.body)
                .is_ok_and(|error| error.error == dpop::USE_DPOP_NONCE);
            if answer.status != StatusCode::OK && is_new && is_required {
                answer = self.send(client, fields, Some(binding)).await?;
                binding.store_nonce(self.url, &answer.headers);
            }
        }
        if answer.status != StatusCode::OK {
            return Err(self.response_error(&answer));
        }
        // The body may contain a token.
        let response = || Box::new(ResponseExcerpt::without_body(&answer.headers, &answer.sent));
        TokenResponse::parse(&answer.body).map_err(|error| ClientError::InvalidResponse {
            endpoint: self.name,
            response: response(),
            error,
        })
    }

    /// Sends one request with the client's authentication. If the server rejects the client, the
    /// request has had no effect, and each alternative method is tried once. If the server rejects
    /// all, the first response is returned. Fails when the server cannot be reached, or an
    /// assertion or proof cannot be signed. Error responses are returned.
    pub(crate) async fn send(
        &self,
        client: Option<&ClientCredentials>,
        fields: &Fields<'_>,
        binding: Option<&DpopBinding>,
    ) -> Result<FetchResponse, ClientError> {
        let Some(client) = client else {
            return self.send_as(None, fields, binding).await;
        };
        let (first, further) = self.attempts(client);
        let first_answer = self.send_as(Some(&first), fields, binding).await?;
        if !rejects_client(&first_answer) {
            return Ok(first_answer);
        }
        for attempt in further {
            let answer = self.send_as(Some(&attempt), fields, binding).await?;
            if !rejects_client(&answer) {
                return Ok(answer);
            }
        }
        Ok(first_answer)
    }

    async fn send_as(
        &self,
        client: Option<&Attempt>,
        fields: &Fields<'_>,
        binding: Option<&DpopBinding>,
    ) -> Result<FetchResponse, ClientError> {
        let request = self.request(client, fields, binding)?;
        self.fetch
            .fetch(request)
            .await
            .map_err(|error| ClientError::Endpoint {
                endpoint: self.name,
                url: url_without_secrets(self.url).into(),
                error,
            })
    }

    /// The first way to authenticate, and the alternatives: the other method that the server lists,
    /// unless the user chose one, and `client_secret_basic` without `client_id` in the body.
    fn attempts(&self, client: &ClientCredentials) -> (Attempt, Vec<Attempt>) {
        let with = |authentication, names_client| {
            let client = ClientCredentials {
                authentication,
                ..client.clone()
            };
            Attempt {
                client,
                names_client,
            }
        };
        let chosen = self
            .method
            .map(|method| client.authentication.by_method(method));
        let first = chosen
            .as_ref()
            .unwrap_or(&client.authentication)
            .resolved(self.authentication_methods);
        let other = match self.method {
            None => first.alternative(self.authentication_methods),
            Some(_) => None,
        };
        let is_basic =
            |it: &&ClientAuthentication| matches!(it, ClientAuthentication::SecretBasic(_));
        let basic = [Some(&first), other.as_ref()]
            .into_iter()
            .flatten()
            .find(is_basic)
            .cloned();
        let further = other
            .map(|it| with(it, true))
            .into_iter()
            .chain(basic.map(|it| with(it, false)))
            .collect();
        (with(first, true), further)
    }

    /// Returns the error of a response. It shows nothing of what the client has sent.
    pub(crate) fn response_error(&self, answer: &FetchResponse) -> ClientError {
        let FetchResponse {
            status,
            headers,
            body,
            sent,
        } = answer;
        if let Ok(error) = OAuthError::parse(body) {
            return ClientError::TokenRequest(redacted(error, sent));
        }
        let response = if status.is_success() {
            // The body may contain a token.
            ResponseExcerpt::without_body(headers, sent)
        } else {
            ResponseExcerpt::new(headers, body, sent)
        };
        ClientError::Status {
            endpoint: self.name,
            status: *status,
            response: Box::new(response),
        }
    }

    fn request(
        &self,
        client: Option<&Attempt>,
        fields: &Fields<'_>,
        binding: Option<&DpopBinding>,
    ) -> Result<FetchRequest, ClientError> {
        let proof = binding
            .map(|binding| binding.proof(&Method::POST, self.url, None, self.clock.now()))
            .transpose()?;
        let (proven, basic) = match client {
            Some(attempt) => self.authenticate(attempt)?,
            None => (Vec::new(), None),
        };
        let proven = proven.iter().map(|(name, value)| (*name, value.secret()));
        let all = fields.iter().copied().chain(proven);
        let mut request = FetchRequest::post_form(self.url.clone(), all, self.policy);
        if let Some(basic) = basic {
            request = request.header(header::AUTHORIZATION, basic);
        }
        if let Some(proof) = proof {
            request = request.header(dpop::PROOF, proof);
        }
        Ok(request)
    }

    /// The parameters and the header that authenticate the client.
    fn authenticate(
        &self,
        attempt: &Attempt,
    ) -> Result<(AuthenticationParameters, Option<HeaderValue>), ClientError> {
        let Attempt {
            client,
            names_client,
        } = attempt;
        let mut fields = Vec::new();
        if *names_client {
            fields.push(("client_id", Secret::new(client.client_id.as_str())));
        }
        match &client.authentication {
            ClientAuthentication::SecretPost(secret) => {
                fields.push(("client_secret", secret.clone()))
            }
            ClientAuthentication::PrivateKey(key) => {
                let assertion = key.assertion(&client.client_id, self.issuer, self.clock.now())?;
                fields.push(("client_assertion_type", Secret::new(ASSERTION_TYPE)));
                fields.push(("client_assertion", assertion));
            }
            _ => {}
        }
        Ok((
            fields,
            client.authentication.basic_header(&client.client_id),
        ))
    }
}

/// Whether the server rejects the client's authentication (RFC 6749 section 5.2). Some servers
/// return another error code with 401.
fn rejects_client(answer: &FetchResponse) -> bool {
    let error = OAuthError::parse(&answer.body)
        .ok()
        .map(|error| error.error);
    match error.as_deref() {
        Some("invalid_client") => !answer.status.is_success(),
        Some(dpop::USE_DPOP_NONCE) => false,
        _ => answer.status == StatusCode::UNAUTHORIZED,
    }
}
