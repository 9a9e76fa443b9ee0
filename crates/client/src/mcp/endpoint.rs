use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use http::{StatusCode, header};
use portcullis_discovery::{Fetch, FetchRequest, OpenResponse};
use portcullis_metadata::BearerChallenge;
use tokio::sync::Mutex;
use url::Url;

use super::McpError;
use crate::{Authorizer, ResourceToken, StartUrl, authorizer::bearer_challenge};

/// An endpoint and the token for it.
pub(super) struct ProtectedEndpoint {
    start: StartUrl,
    fetch: Arc<dyn Fetch>,
    authorizer: Option<Arc<Authorizer>>,
    timeout: Duration,
    token: RwLock<Option<Arc<ResourceToken>>>,
    authorizing: Mutex<()>,
}

impl ProtectedEndpoint {
    pub(super) fn new(
        start: StartUrl,
        fetch: Arc<dyn Fetch>,
        authorizer: Option<Arc<Authorizer>>,
        timeout: Duration,
    ) -> Self {
        Self { start, fetch, authorizer, timeout, token: RwLock::default(), authorizing: Mutex::default() }
    }

    pub(super) fn url(&self) -> &Url {
        self.start.url()
    }

    pub(super) fn token(&self) -> Option<Arc<ResourceToken>> {
        self.token.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_token(&self, token: Arc<ResourceToken>) {
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = Some(token);
    }

    /// Sends a request with the token there is, and after a 401 once more with a new one.
    pub(super) async fn send(&self, build: impl Fn() -> FetchRequest) -> Result<OpenResponse, McpError> {
        let used = self.token();
        let answer = self.send_with(build(), used.as_deref()).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return refuse_redirect(answer);
        }
        let Some(authorizer) = &self.authorizer else { return Err(McpError::Unauthorized) };
        let challenge = bearer_challenge(&answer.headers);
        // A person may take minutes; the connection is not kept that long.
        drop(answer);
        let token = self.authorize(authorizer, challenge.as_ref(), used).await?;
        let answer = self.send_with(build(), Some(&token)).await?;
        if answer.status == StatusCode::UNAUTHORIZED {
            self.forget(&token);
            return Err(McpError::Unauthorized);
        }
        refuse_redirect(answer)
    }

    async fn send_with(
        &self,
        mut request: FetchRequest,
        token: Option<&ResourceToken>,
    ) -> Result<OpenResponse, McpError> {
        request.timeout = self.timeout;
        if let Some(value) = token.and_then(|token| token.authorization_for(&request.url)) {
            request = request.header(header::AUTHORIZATION, value);
        }
        self.fetch.open(request).await.map_err(McpError::Fetch)
    }

    /// One authorization at a time; who waited for another's takes its token.
    async fn authorize(
        &self,
        authorizer: &Authorizer,
        challenge: Option<&BearerChallenge>,
        used: Option<Arc<ResourceToken>>,
    ) -> Result<Arc<ResourceToken>, McpError> {
        let _one_at_a_time = self.authorizing.lock().await;
        match (self.token(), &used) {
            (Some(newer), Some(used)) if !Arc::ptr_eq(&newer, used) => return Ok(newer),
            (Some(newer), None) => return Ok(newer),
            _ => {}
        }
        if let Some(used) = used {
            self.forget(&used);
        }
        let token = authorizer.answer_challenge(&self.start, challenge).await.map_err(McpError::Authorization)?;
        let token = Arc::new(token);
        self.set_token(token.clone());
        Ok(token)
    }

    fn forget(&self, token: &Arc<ResourceToken>) {
        let mut held = self.token.write().unwrap_or_else(PoisonError::into_inner);
        if held.as_ref().is_some_and(|held| Arc::ptr_eq(held, token)) {
            *held = None;
        }
    }
}

fn refuse_redirect(answer: OpenResponse) -> Result<OpenResponse, McpError> {
    if answer.status.is_redirection() { Err(McpError::Redirected { status: answer.status }) } else { Ok(answer) }
}
