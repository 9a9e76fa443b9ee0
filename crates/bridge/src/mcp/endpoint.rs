use std::{sync::Arc, time::Duration};

use http::StatusCode;
use portcullis_discovery::{Fetch, FetchRequest, OpenResponse};
use url::Url;

use super::McpError;
use portcullis_client::TokenKeeper;

/// An endpoint and the token for it.
pub(super) struct ProtectedEndpoint {
    keeper: Arc<TokenKeeper>,
    fetch: Arc<dyn Fetch>,
    timeout: Duration,
}

impl ProtectedEndpoint {
    pub(super) fn new(keeper: Arc<TokenKeeper>, fetch: Arc<dyn Fetch>, timeout: Duration) -> Self {
        Self { keeper, fetch, timeout }
    }

    pub(super) fn url(&self) -> &Url {
        self.keeper.start().url()
    }

    pub(super) fn keeper(&self) -> &Arc<TokenKeeper> {
        &self.keeper
    }

    /// Sends a request with the token there is, and again where a new one may help.
    pub(super) async fn send(&self, build: impl Fn() -> FetchRequest) -> Result<OpenResponse, McpError> {
        let mut operation = self.keeper.operation();
        loop {
            let mut request = build();
            request.timeout = self.timeout;
            let FetchRequest { method, url, headers, .. } = &mut request;
            operation.authorize(method, url, headers).await.map_err(McpError::Authorization)?;
            let OpenResponse { status, headers, body } = self.fetch.open(request).await.map_err(McpError::Fetch)?;
            if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                operation.again(status, &headers).await.map_err(McpError::Authorization)?;
                return refuse_redirect(OpenResponse { status, headers, body });
            }
            // Asking a person may take minutes; the connection is not kept that long.
            let body = if status == StatusCode::UNAUTHORIZED { None } else { Some(body) };
            if operation.again(status, &headers).await.map_err(McpError::Authorization)? {
                continue;
            }
            match body {
                None => return Err(McpError::Unauthorized),
                Some(body) => return Ok(OpenResponse { status, headers, body }),
            }
        }
    }
}

fn refuse_redirect(answer: OpenResponse) -> Result<OpenResponse, McpError> {
    if answer.status.is_redirection() { Err(McpError::Redirected { status: answer.status }) } else { Ok(answer) }
}
