//! [`ProtectedEndpoint`]: HTTP requests to the MCP endpoint, with the token.

use std::{sync::Arc, time::Duration};

use http::{StatusCode, header};
use portcullis_client::{ResourceRedirects, TokenManager};
use portcullis_discovery::{Fetch, FetchRequest, OpenResponse, SentSecrets};
use url::Url;

use crate::{error::McpError, retry_after::RetryAfter, transport::ResourceFetch};

/// An endpoint and the token for it.
pub(super) struct ProtectedEndpoint {
    token_manager: Arc<TokenManager>,
    fetch: ResourceFetch,
    timeout: Duration,
}

impl ProtectedEndpoint {
    /// Creates the endpoint at the token manager's start URL. `timeout` limits the wait for the
    /// head of a response.
    pub(super) fn new(
        token_manager: Arc<TokenManager>,
        fetch: Arc<dyn Fetch>,
        timeout: Duration,
    ) -> Self {
        let fetch = ResourceFetch::new(fetch, &token_manager);
        Self {
            token_manager,
            fetch,
            timeout,
        }
    }

    /// The start URL.
    pub(super) fn url(&self) -> &Url {
        self.token_manager.start_url().url()
    }

    /// What was sent to the resource and to authorization servers.
    pub(super) fn sent(&self) -> &SentSecrets {
        self.fetch.sent()
    }

    /// The source of the tokens.
    pub(super) fn token_manager(&self) -> &Arc<TokenManager> {
        &self.token_manager
    }

    /// Sends a request to a URL of the start URL's origin. If the token is rejected, it is renewed
    /// as [`RequestAuthorization`](portcullis_client::RequestAuthorization) defines, which can wait
    /// for the user. Redirects within the resource are followed. `build` creates the request for
    /// each attempt.
    ///
    /// The caller must make sure that the URL belongs to the resource: the start URL does, and so
    /// does a validated message URL ([`SseStream`](super::transport::http_sse::SseStream)). Fails
    /// when there is no response, no token can be obtained, a redirect is refused, or a 401 is
    /// final: for a renewed token, or with `Retry-After`. Any other status is returned.
    pub(super) async fn send(
        &self,
        build: impl Fn() -> FetchRequest,
    ) -> Result<OpenResponse, McpError> {
        let mut authorization = self.token_manager.request_authorization();
        let mut redirects = ResourceRedirects::default();
        let mut redirected_to = None::<Url>;
        loop {
            let mut request = build();
            request.timeout = self.timeout;
            if let Some(target) = &redirected_to {
                request.url.clone_from(target);
            }
            let sent_to = request.url.clone();
            let FetchRequest {
                method,
                url,
                headers,
                ..
            } = &mut request;
            authorization
                .authorize_same_origin(method, url, headers)
                .await
                .map_err(McpError::Authorization)?;
            let had_token = headers.contains_key(header::AUTHORIZATION);
            let OpenResponse {
                status,
                headers,
                body,
                sent,
            } = self
                .fetch
                .open(request)
                .await
                .map_err(|error| McpError::unreachable(&sent_to, error))?;
            let retry_after = RetryAfter::of(&headers);
            // The token could not be validated now. Another one could not be either.
            if status == StatusCode::UNAUTHORIZED
                && had_token
                && retry_after != RetryAfter::default()
            {
                return Err(McpError::Unauthorized { retry_after });
            }
            // Asking the user can take minutes; the connection is not kept that long.
            let body = Some(body).filter(|_| status != StatusCode::UNAUTHORIZED);
            if authorization
                .should_retry(status, &headers)
                .await
                .map_err(McpError::Authorization)?
            {
                continue;
            }
            if status.is_redirection() {
                let resource = self.token_manager.resource();
                redirected_to =
                    Some(redirects.follow(status, &headers, &sent_to, resource.as_ref())?);
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
}
