use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode, header};
use url::Url;

use super::{Source, TokenManager};
use crate::{ClientError, ResourceToken, resource_challenge::ResourceChallenge, token::authorization};

/// One request to the resource, until it is answered for good.
///
/// Before the request is sent, [`authorize`](Self::authorize) sets its headers; with its answer
/// [`should_retry`](Self::should_retry) says whether to send it once more. That is so after a 401 once, after a 403 with
/// `insufficient_scope` twice, and once more where the resource wants a DPoP nonce.
///
/// ```
/// use http::{HeaderMap, Method, StatusCode};
/// # use std::sync::Arc;
/// # use portcullis_client::{ClientError, StartUrl, TokenManager};
/// # async fn send(_: &HeaderMap) -> (StatusCode, HeaderMap) { (StatusCode::OK, HeaderMap::new()) }
///
/// async fn get(token_manager: &Arc<TokenManager>) -> Result<StatusCode, ClientError> {
///     let url = token_manager.start_url().url().clone();
///     let mut authorization = token_manager.request_authorization();
///     loop {
///         let mut headers = HeaderMap::new();
///         authorization.authorize(&Method::GET, &url, &mut headers).await?;
///         let (status, answer) = send(&headers).await;
///         if !authorization.should_retry(status, &answer).await? {
///             return Ok(status);
///         }
///     }
/// }
/// # let token = portcullis_client::AccessToken::new("hush");
/// # let token_manager = Arc::new(TokenManager::with_access_token(StartUrl::parse("https://mcp.example.com/mcp").unwrap(), token));
/// # assert_eq!(tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(get(&token_manager)).unwrap(), 200);
/// ```
#[derive(Debug)]
pub struct RequestAuthorization {
    token_manager: Arc<TokenManager>,
    used: Option<Arc<ResourceToken>>,
    url: Option<Url>,
    renewed: bool,
    nonce_sent: bool,
    steps: u32,
}

/// A request is sent at most three times for its scopes: once as it is, and after each of two step-ups.
const MAX_STEPS: u32 = 2;

impl RequestAuthorization {
    pub(super) fn new(token_manager: Arc<TokenManager>) -> Self {
        Self { token_manager, used: None, url: None, renewed: false, nonce_sent: false, steps: 0 }
    }

    /// Sets the `Authorization` header for a request to `url`, and the `DPoP` header where the token is bound to a key.
    /// Both are removed where there is no token, and where `url` is not of the resource's origin.
    ///
    /// Call it again before the request is sent again.
    ///
    /// # Errors
    /// As [`TokenManager::token`].
    pub async fn authorize(&mut self, method: &Method, url: &Url, headers: &mut HeaderMap) -> Result<(), ClientError> {
        self.url = Some(url.clone());
        headers.remove(header::AUTHORIZATION);
        if let Source::Given(token) = &self.token_manager.source {
            if url.origin() == self.token_manager.start.url().origin() {
                headers.extend(authorization("Bearer", token).map(|value| (header::AUTHORIZATION, value)));
            }
            return Ok(());
        }
        self.used = self.token_manager.token().await?;
        match &self.used {
            Some(token) => token.authorize(method, url, self.token_manager.clock().now(), headers),
            None => Ok(()),
        }
    }

    /// Takes an answer's status and headers. True when the request is to be sent once more, with new headers; false
    /// when the answer stands, refusals included. It may take as long as a person does.
    ///
    /// # Errors
    /// When the answer asks for authorization, and that fails.
    pub async fn should_retry(&mut self, status: StatusCode, headers: &HeaderMap) -> Result<bool, ClientError> {
        let binding = self.used.as_ref().and_then(|used| used.binding());
        let nonce_is_new = match (&self.url, binding) {
            (Some(url), Some(binding)) => binding.learn(url, headers),
            _ => false,
        };
        match status {
            StatusCode::UNAUTHORIZED => {
                let challenge = ResourceChallenge::from_headers(headers);
                if nonce_is_new && challenge.requires_dpop_nonce() && !self.nonce_sent {
                    self.nonce_sent = true;
                    return Ok(true);
                }
                if self.renewed {
                    if let Some(used) = &self.used {
                        self.token_manager.forget(used);
                    }
                    return Ok(false);
                }
                self.renewed = true;
                self.token_manager.renew(self.used.as_ref(), &challenge).await
            }
            StatusCode::FORBIDDEN if self.steps < MAX_STEPS => {
                let challenge = ResourceChallenge::from_headers(headers);
                let Some(missing) = challenge.missing_scopes() else { return Ok(false) };
                self.steps += 1;
                self.token_manager.step_up(self.used.as_ref(), &challenge, missing).await
            }
            _ => Ok(false),
        }
    }
}
