//! [`Endpoint`]: HTTP requests to the MCP endpoint, with the token and with retries.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, Method, StatusCode, header};
use portcullis_discovery::{
    BodyStream, Fetch, FetchError, FetchRequest, NetworkFailure, OpenResponse, ResponseExcerpt, UrlPolicy,
};
use tokio::time::sleep;
use url::Url;

use portcullis_client::{ResourceRedirects, TokenManager};

use crate::{
    bridge::settings::BridgeSettings,
    error::McpError,
    http_sse::suggests_http_sse,
    message_budget::Reservation,
    resource_fetch::ResourceFetch,
    response::{BodyLimits, MediaType, insufficient_scope, is_unknown_session, read_body},
};

/// Sends requests with the token, and retries them.
pub(crate) struct Endpoint {
    token_manager: Arc<TokenManager>,
    fetch: ResourceFetch,
    settings: Arc<BridgeSettings>,
}

/// What to do when the server rejects the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenRenewal {
    /// Obtain a new one, which can require the user.
    Allowed,
    /// Nothing: this request must not prompt the user.
    Disabled,
}

/// The delays before a refused connection is retried: nothing was sent.
const CONNECT_RETRY_DELAYS: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_millis(500), Duration::from_millis(800)];
/// The maximum number and duration of waits that a busy server can request.
const MAX_WAITS: u32 = 2;
const MAX_WAIT: u64 = 30;
/// The maximum size of an error response that is read.
const MAX_ERROR: usize = 1024 * 1024;

impl Endpoint {
    pub(crate) fn new(token_manager: Arc<TokenManager>, fetch: Arc<dyn Fetch>, settings: Arc<BridgeSettings>) -> Self {
        let fetch = ResourceFetch::new(fetch, token_manager.start_url().url());
        Self { token_manager, fetch, settings }
    }

    /// The start URL.
    pub(crate) fn url(&self) -> &Url {
        self.token_manager.start_url().url()
    }

    pub(crate) fn post(&self, url: &Url, body: bytes::Bytes, headers: HeaderMap) -> FetchRequest {
        let mut request = FetchRequest::post_json(url.clone(), body, UrlPolicy::StartOrigin);
        request.headers.extend(headers);
        let accept = http::HeaderValue::from_static("application/json, text/event-stream");
        request.header(header::ACCEPT, accept)
    }

    pub(crate) fn get(&self, headers: HeaderMap) -> FetchRequest {
        let mut request = FetchRequest::new(Method::GET, self.url().clone(), UrlPolicy::StartOrigin);
        request.headers.extend(headers);
        request.header(header::ACCEPT, http::HeaderValue::from_static("text/event-stream"))
    }

    /// Sends a request. If the token is rejected, it is renewed as
    /// [`RequestAuthorization`](portcullis_client::RequestAuthorization) defines, unless `token_renewal` disables that;
    /// this can wait for the user. A refused connection is retried, and so is a busy server that sends `Retry-After`.
    /// Redirects within the resource are followed as [`ResourceRedirects`] defines.
    pub(crate) async fn send(
        &self,
        mut request: FetchRequest,
        token_renewal: TokenRenewal,
    ) -> Result<OpenResponse, McpError> {
        let mut authorization = self.token_manager.request_authorization();
        let (mut connects, mut waits, mut redirects) = (0, 0, ResourceRedirects::default());
        loop {
            let mut attempt = request.clone();
            attempt.timeout = self.settings.timeout;
            let FetchRequest { method, url, headers, .. } = &mut attempt;
            authorization.authorize_same_origin(method, url, headers).await.map_err(McpError::Authorization)?;
            for (name, value) in &self.settings.headers {
                headers.insert(name, value.clone());
            }
            let bears_token = headers.contains_key(header::AUTHORIZATION);
            let OpenResponse { status, headers, body } = match self.fetch.open(attempt).await {
                Ok(answer) => answer,
                Err(error) if is_refused(&error) && connects < CONNECT_RETRY_DELAYS.len() => {
                    sleep(CONNECT_RETRY_DELAYS[connects]).await;
                    connects += 1;
                    continue;
                }
                Err(error) => return Err(McpError::Fetch(error)),
            };
            // A 401 with `Retry-After` means that the token could not be validated now, not that it is invalid.
            let is_busy = status == StatusCode::TOO_MANY_REQUESTS
                || status == StatusCode::SERVICE_UNAVAILABLE
                || (status == StatusCode::UNAUTHORIZED && bears_token);
            if is_busy
                && waits < MAX_WAITS
                && let Some(wait) = retry_after(&headers)
            {
                drop(body);
                sleep(wait).await;
                waits += 1;
                continue;
            }
            // Asking the user can take minutes; the connection is not kept that long.
            let body = if status == StatusCode::UNAUTHORIZED { None } else { Some(body) };
            let renews = token_renewal == TokenRenewal::Allowed && self.settings.authorization().is_none();
            if renews && authorization.should_retry(status, &headers).await.map_err(McpError::Authorization)? {
                continue;
            }
            if status.is_redirection() {
                let resource = self.token_manager.resource();
                request.url = redirects.follow(status, &headers, &request.url, resource.as_ref())?;
                continue;
            }
            return match body {
                None => Err(McpError::Unauthorized),
                Some(body) => Ok(OpenResponse { status, headers, body }),
            };
        }
    }

    /// Reads a whole body.
    pub(crate) async fn read(
        &self,
        body: Box<dyn BodyStream>,
        reservation: &mut Reservation,
    ) -> Result<Vec<u8>, McpError> {
        let limits = BodyLimits { timeout: self.settings.timeout, max_message: self.settings.max_message };
        read_body(body, &limits, reservation).await
    }

    /// The body of an error response, which is small.
    async fn read_error(&self, body: Box<dyn BodyStream>) -> Result<Vec<u8>, McpError> {
        let max_message = self.settings.max_message.min(MAX_ERROR);
        let limits = BodyLimits { timeout: self.settings.timeout, max_message };
        read_body(body, &limits, &mut Reservation::uncounted()).await
    }
}

fn is_refused(error: &FetchError) -> bool {
    matches!(error, FetchError::Network(error) if error.failure() == NetworkFailure::Connect)
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    (seconds <= MAX_WAIT).then(|| Duration::from_secs(seconds))
}

/// The JSON-RPC error of a body, if it has one.
fn rpc_error(body: &[u8]) -> Option<RpcErrorBody> {
    let raw = serde_json::from_slice::<Body>(body).ok()?.error;
    let Code { code } = serde_json::from_str(raw.get()).ok()?;
    Some(RpcErrorBody { code, raw })
}

/// A response without a success status.
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    /// Its JSON-RPC error, if it has one.
    pub(crate) error: Option<RpcErrorBody>,
    mcp_error: McpError,
}

/// The JSON-RPC error of a response.
pub(crate) struct RpcErrorBody {
    pub(crate) code: i64,
    pub(crate) raw: Box<serde_json::value::RawValue>,
}

#[derive(serde::Deserialize)]
struct Body {
    error: Box<serde_json::value::RawValue>,
}

#[derive(serde::Deserialize)]
struct Code {
    code: i64,
}

impl ErrorResponse {
    pub(crate) async fn read(endpoint: &Endpoint, response: OpenResponse) -> Self {
        let status = response.status;
        let insufficient_scope = insufficient_scope(status, &response.headers);
        if MediaType::of(&response.headers) != MediaType::Json {
            let mcp_error = match insufficient_scope {
                Some(error) => error,
                None => McpError::status(response).await,
            };
            return Self { status, error: None, mcp_error };
        }
        let body = endpoint.read_error(response.body).await.unwrap_or_default();
        let excerpt = || Box::new(ResponseExcerpt::new(&response.headers, &body));
        let mcp_error = insufficient_scope.unwrap_or_else(|| McpError::Status { status, response: excerpt() });
        Self { status, error: rpc_error(&body), mcp_error }
    }

    /// Whether the server does not know the session.
    pub(crate) fn is_unknown_session(&self) -> bool {
        is_unknown_session(self.status, self.code())
    }

    /// Whether the server uses HTTP with SSE, as far as its rejection of a POST shows that.
    pub(crate) fn suggests_http_sse(&self) -> bool {
        suggests_http_sse(self.status, self.code())
    }

    fn code(&self) -> Option<i64> {
        self.error.as_ref().map(|error| error.code)
    }

    pub(crate) fn into_error(self) -> McpError {
        self.mcp_error
    }
}
