//! [`ProtectedEndpoint`]: requests with the token.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use portcullis_discovery::{Fetch, FetchRequest, OpenResponse};
use url::Url;

use portcullis_client::{ResourceRedirects, TokenManager};

use crate::{error::McpError, resource_fetch::ResourceFetch};

/// An endpoint and the token for it.
pub(super) struct ProtectedEndpoint {
    token_manager: Arc<TokenManager>,
    fetch: ResourceFetch,
    timeout: Duration,
}

impl ProtectedEndpoint {
    pub(super) fn new(token_manager: Arc<TokenManager>, fetch: Arc<dyn Fetch>, timeout: Duration) -> Self {
        let fetch = ResourceFetch::new(fetch, token_manager.start_url().url());
        Self { token_manager, fetch, timeout }
    }

    pub(super) fn url(&self) -> &Url {
        self.token_manager.start_url().url()
    }

    pub(super) fn token_manager(&self) -> &Arc<TokenManager> {
        &self.token_manager
    }

    /// Sends a request with the token there is, and again where a new one may help.
    pub(super) async fn send(&self, build: impl Fn() -> FetchRequest) -> Result<OpenResponse, McpError> {
        self.send_to(build, false).await
    }

    /// As [`send`](Self::send), to another URL of the resource, which the caller has checked.
    pub(super) async fn send_same_origin(&self, build: impl Fn() -> FetchRequest) -> Result<OpenResponse, McpError> {
        self.send_to(build, true).await
    }

    async fn send_to(&self, build: impl Fn() -> FetchRequest, is_same_origin: bool) -> Result<OpenResponse, McpError> {
        let mut authorization = self.token_manager.request_authorization();
        let (mut redirects, mut target) = (ResourceRedirects::default(), None::<Url>);
        loop {
            let mut request = build();
            let is_checked = is_same_origin || target.is_some();
            if let Some(target) = &target {
                request.url.clone_from(target);
            }
            let sent_to = request.url.clone();
            request.timeout = self.timeout;
            let FetchRequest { method, url, headers, .. } = &mut request;
            match is_checked {
                true => authorization.authorize_same_origin(method, url, headers).await,
                false => authorization.authorize(method, url, headers).await,
            }
            .map_err(McpError::Authorization)?;
            let OpenResponse { status, headers, body } = self.fetch.open(request).await.map_err(McpError::Fetch)?;
            if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                authorization.should_retry(status, &headers).await.map_err(McpError::Authorization)?;
                if status.is_redirection() {
                    let resource = self.token_manager.resource();
                    target = Some(redirects.follow(status, &headers, &sent_to, resource.as_ref())?);
                    continue;
                }
                return Ok(OpenResponse { status, headers, body });
            }
            // Asking a person may take minutes; the connection is not kept that long.
            let body = if status == StatusCode::UNAUTHORIZED { None } else { Some(body) };
            if authorization.should_retry(status, &headers).await.map_err(McpError::Authorization)? {
                continue;
            }
            match body {
                None => return Err(McpError::Unauthorized),
                Some(body) => return Ok(OpenResponse { status, headers, body }),
            }
        }
    }
}
