//! [`Endpoint`]: HTTP requests to the MCP endpoint, with the token and with retries.

mod retries;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use portcullis_client::{ResourceRedirects, TokenManager};
use portcullis_discovery::{BodyStream, Fetch, FetchRequest, OpenResponse, SentSecrets, UrlPolicy};
use tokio::time::sleep;
use url::Url;

use self::retries::Retries;
use crate::settings::BridgeSettings;
use portcullis_mcp_client::{
    McpError, RetryAfter,
    transport::{BodyLimits, MAX_ERROR_SIZE, Reservation, ResourceFetch, read_body},
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

impl Endpoint {
    /// Creates an endpoint at the token manager's start URL. It sends nothing yet.
    pub(crate) fn new(
        token_manager: Arc<TokenManager>,
        fetch: Arc<dyn Fetch>,
        settings: Arc<BridgeSettings>,
    ) -> Self {
        let fetch = ResourceFetch::new(fetch, &token_manager);
        Self {
            token_manager,
            fetch,
            settings,
        }
    }

    /// The start URL.
    pub(crate) fn url(&self) -> &Url {
        self.token_manager.start_url().url()
    }

    /// What was sent to the resource and to authorization servers.
    pub(crate) fn sent(&self) -> &SentSecrets {
        self.fetch.sent()
    }

    /// Creates a request with a JSON message to a URL of the start URL's origin.
    pub(crate) fn post(&self, url: &Url, message: Bytes, headers: HeaderMap) -> FetchRequest {
        let mut request = FetchRequest::post_json(url.clone(), message, UrlPolicy::StartOrigin);
        request.headers.extend(headers);
        request.header(
            header::ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        )
    }

    /// Creates a request for an event stream from the start URL.
    pub(crate) fn get(&self, headers: HeaderMap) -> FetchRequest {
        let mut request =
            FetchRequest::new(Method::GET, self.url().clone(), UrlPolicy::StartOrigin);
        request.headers.extend(headers);
        request.header(
            header::ACCEPT,
            HeaderValue::from_static("text/event-stream"),
        )
    }

    /// Sends a request and returns the response as soon as its head has arrived.
    ///
    /// If the token is rejected, it is renewed as
    /// [`RequestAuthorization`](portcullis_client::RequestAuthorization) defines, unless
    /// `token_renewal` disables that; this can wait for the user. A refused connection is retried,
    /// and so is a busy server that sends `Retry-After`. Redirects within the resource are followed
    /// as [`ResourceRedirects`] defines. Every other status is returned. Fails when there is no
    /// response, no token can be obtained, a redirect is refused, or a 401 is final: for a renewed
    /// token, or still with `Retry-After` after the retries.
    pub(crate) async fn send(
        &self,
        mut request: FetchRequest,
        token_renewal: TokenRenewal,
    ) -> Result<OpenResponse, McpError> {
        let mut authorization = self.token_manager.request_authorization();
        let mut retries = Retries::default();
        let mut redirects = ResourceRedirects::default();
        let can_renew =
            token_renewal == TokenRenewal::Allowed && self.settings.authorization().is_none();
        loop {
            let mut attempt = request.clone();
            attempt.timeout = self.settings.timeout;
            let FetchRequest {
                method,
                url,
                headers,
                ..
            } = &mut attempt;
            authorization
                .authorize_same_origin(method, url, headers)
                .await
                .map_err(McpError::Authorization)?;
            headers.extend(self.settings.headers.clone());
            let had_token = headers.contains_key(header::AUTHORIZATION);
            let sent_to = attempt.url.clone();
            let OpenResponse {
                status,
                headers,
                body,
                sent,
            } = match self.fetch.open(attempt).await {
                Ok(response) => response,
                Err(error) => {
                    let Some(delay) = retries.delay_after_error(&error) else {
                        return Err(McpError::unreachable(&sent_to, error));
                    };
                    sleep(delay).await;
                    continue;
                }
            };
            if let Some(delay) = retries.delay_after_response(status, &headers, had_token) {
                drop(body);
                sleep(delay).await;
                continue;
            }
            let retry_after = RetryAfter::of(&headers);
            // The token still cannot be validated. Another one could not be either.
            if status == StatusCode::UNAUTHORIZED
                && had_token
                && retry_after != RetryAfter::default()
            {
                return Err(McpError::Unauthorized { retry_after });
            }
            // Asking the user can take minutes; the connection is not kept that long.
            let body = Some(body).filter(|_| status != StatusCode::UNAUTHORIZED);
            if can_renew
                && authorization
                    .should_retry(status, &headers)
                    .await
                    .map_err(McpError::Authorization)?
            {
                continue;
            }
            if status.is_redirection() {
                let resource = self.token_manager.resource();
                request.url =
                    redirects.follow(status, &headers, &request.url, resource.as_ref())?;
                continue;
            }
            return match body {
                None => Err(McpError::Unauthorized { retry_after }),
                Some(body) => Ok(OpenResponse {
                    status,
                    headers,
                    body,
                    sent,
                }),
            };
        }
    }

    /// Reads the whole body of a response, up to the size and time limits of the settings. Fails as
    /// [`read_body`] does.
    pub(crate) async fn read(
        &self,
        body: Box<dyn BodyStream>,
        reservation: &mut Reservation,
    ) -> Result<Vec<u8>, McpError> {
        let limits = BodyLimits {
            timeout: self.settings.timeout,
            max_message: self.settings.max_message,
        };
        read_body(body, &limits, reservation).await
    }

    /// Reads the body of an error response, up to [`MAX_ERROR_SIZE`], which the budget does not
    /// count. Fails as [`read_body`] does.
    pub(crate) async fn read_error(&self, body: Box<dyn BodyStream>) -> Result<Vec<u8>, McpError> {
        let max_message = self.settings.max_message.min(MAX_ERROR_SIZE);
        let limits = BodyLimits {
            timeout: self.settings.timeout,
            max_message,
        };
        read_body(body, &limits, &mut Reservation::uncounted()).await
    }
}
