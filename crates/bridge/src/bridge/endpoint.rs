//! [`Endpoint`]: HTTP requests to the MCP endpoint, with the token and with retries.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, Method, StatusCode, header};
use portcullis_discovery::{BodyStream, Fetch, FetchError, FetchRequest, NetworkFailure, OpenResponse, UrlPolicy};
use portcullis_mcp::ErrorCode;
use tokio::time::sleep;
use url::Url;

use portcullis_client::{ResourceRedirects, TokenManager};

use crate::{
    bridge::{message_budget::Reservation, settings::BridgeSettings},
    error::McpError,
    resource_fetch::ResourceFetch,
    response::{Content, Limits, insufficient_scope, is_unknown_session, read_body},
};

/// The way to the server: requests with the token, and again where that helps.
pub(crate) struct Endpoint {
    token_manager: Arc<TokenManager>,
    fetch: ResourceFetch,
    settings: Arc<BridgeSettings>,
}

/// What a refusal of the token leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenRenewal {
    /// A new one, which a person may be asked for.
    Allowed,
    /// Nothing: nobody is asked for the sake of this request.
    Disabled,
}

/// Waits before a connection is tried again that was refused: nothing was sent.
const CONNECT_AGAIN: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_millis(500), Duration::from_millis(800)];
/// How often, and how long, a server that asks for patience gets it.
const MAX_WAITS: u32 = 2;
const MAX_WAIT: u64 = 30;
/// The maximum size of an error response that is read.
const MAX_ERROR: usize = 1024 * 1024;

impl Endpoint {
    pub(crate) fn new(token_manager: Arc<TokenManager>, fetch: Arc<dyn Fetch>, settings: Arc<BridgeSettings>) -> Self {
        let fetch = ResourceFetch::new(fetch, token_manager.start_url().url());
        Self { token_manager, fetch, settings }
    }

    /// The endpoint that a person named.
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

    /// Sends a request. A refusal of its token is answered as [`RequestAuthorization`](portcullis_client::RequestAuthorization) says, where that is wanted,
    /// and may take as long as a person does then; a refused connection is tried again, and so is a server that is too
    /// busy and says when. A redirect within the resource is followed, as [`ResourceRedirects`] says.
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
                Err(error) if is_refused(&error) && connects < CONNECT_AGAIN.len() => {
                    sleep(CONNECT_AGAIN[connects]).await;
                    connects += 1;
                    continue;
                }
                Err(error) => return Err(McpError::Fetch(error)),
            };
            // A 401 with this header says that the token could not be judged now, and not that it is bad.
            let asks_patience = status == StatusCode::TOO_MANY_REQUESTS
                || status == StatusCode::SERVICE_UNAVAILABLE
                || (status == StatusCode::UNAUTHORIZED && bears_token);
            if asks_patience
                && waits < MAX_WAITS
                && let Some(wait) = retry_after(&headers)
            {
                drop(body);
                sleep(wait).await;
                waits += 1;
                continue;
            }
            // Asking a person may take minutes; the connection is not kept that long.
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

    /// The whole of a body.
    pub(crate) async fn read(
        &self,
        body: Box<dyn BodyStream>,
        reservation: &mut Reservation,
    ) -> Result<Vec<u8>, McpError> {
        let limits = Limits { timeout: self.settings.timeout, max_message: self.settings.max_message };
        read_body(body, &limits, reservation).await
    }

    /// The body of an error response, which is small.
    async fn read_error(&self, body: Box<dyn BodyStream>) -> Result<Vec<u8>, McpError> {
        let max_message = self.settings.max_message.min(MAX_ERROR);
        let limits = Limits { timeout: self.settings.timeout, max_message };
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

/// An answer with a status that is no success.
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    /// What it says in JSON-RPC, where it does.
    pub(crate) error: Option<RpcErrorBody>,
    error_to_tell: McpError,
}

/// The error of a refusal.
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
        let error_to_tell = insufficient_scope(status, &response.headers).unwrap_or(McpError::Status { status });
        let body = match Content::of(&response.headers) {
            Content::Json => endpoint.read_error(response.body).await.ok(),
            Content::Stream | Content::Other => None,
        };
        let error = body.and_then(|body| {
            let raw = serde_json::from_slice::<Body>(&body).ok()?.error;
            let Code { code } = serde_json::from_str(raw.get()).ok()?;
            Some(RpcErrorBody { code, raw })
        });
        Self { status, error, error_to_tell }
    }

    /// A server answers so that has no such session (any more).
    pub(crate) fn is_unknown_session(&self) -> bool {
        is_unknown_session(self.status, self.error.as_ref().map(|error| error.code))
    }

    /// A server of 2024-11-05 refuses a POST to its stream's address so, and no server of today: that one says why, with
    /// a code that 2026-07-28 has for it.
    pub(crate) fn suggests_http_sse(&self) -> bool {
        const MODERN: [ErrorCode; 4] = [
            ErrorCode::MethodNotFound,
            ErrorCode::HeaderMismatch,
            ErrorCode::MissingRequiredClientCapability,
            ErrorCode::UnsupportedProtocolVersion,
        ];
        let is_modern = |error: &RpcErrorBody| MODERN.iter().any(|code| code.value() == error.code);
        matches!(self.status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
            && !self.error.as_ref().is_some_and(is_modern)
    }

    pub(crate) fn into_error(self) -> McpError {
        self.error_to_tell
    }
}
