//! [`RequestAuthorization`]: authorizes one request and decides whether to retry it.

use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode, header};
use portcullis_metadata::AccessToken;
use url::Url;

use super::{Source, TokenManager};
use crate::{
    ClientError, ResourceToken, StartUrl,
    resource_challenge::ResourceChallenge,
    token::{dpop, resource_token::authorization},
};

/// Authorizes one request to the resource and decides whether to retry it.
///
/// Before each attempt, [`authorize`](Self::authorize) sets the request's headers. After each
/// response, [`should_retry`](Self::should_retry) obtains another token if that can help: once
/// after a 401, twice after a 403 with `insufficient_scope` (step-up), and once if the resource
/// requires a DPoP nonce (RFC 9449 section 9).
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
    /// The token of the caller's source.
    external: Option<AccessToken>,
    /// The URL of the latest attempt.
    url: Option<Url>,
    /// Whether the token must not be sent to that URL.
    is_excluded: bool,
    renewed: bool,
    nonce_sent: bool,
    step_ups: u32,
}

/// The maximum number of step-ups for one request.
const MAX_STEP_UPS: u32 = 2;

impl RequestAuthorization {
    pub(super) fn new(token_manager: Arc<TokenManager>) -> Self {
        Self {
            token_manager,
            used: None,
            external: None,
            url: None,
            is_excluded: false,
            renewed: false,
            nonce_sent: false,
            step_ups: 0,
        }
    }

    /// Sets the `Authorization` header, and the `DPoP` header if the token is bound to a key. Call
    /// it before each attempt.
    ///
    /// The token is sent only to the token manager's start URL, and to the URL of the token's
    /// resource ([`ResourceToken::is_for`]). For any other URL, and without a token, both headers
    /// are removed.
    ///
    /// # Errors
    /// As [`TokenManager::token`].
    pub async fn authorize(
        &mut self,
        method: &Method,
        url: &Url,
        headers: &mut HeaderMap,
    ) -> Result<(), ClientError> {
        self.select_token().await?;
        let is_bound = StartUrl::new(url.clone()).is_ok_and(|url| {
            url == *self.token_manager.start_url()
                || self.used.as_ref().is_some_and(|token| token.is_for(&url))
        });
        self.set_headers(method, url, is_bound, headers)
    }

    /// As [`authorize`](Self::authorize), for any URL of the resource's origin.
    ///
    /// It does not check that the URL belongs to the resource: the caller must. Use it only where a
    /// protocol defines further URLs of the resource, such as the message endpoint of HTTP with SSE
    /// (MCP 2024-11-05).
    ///
    /// # Errors
    /// As [`TokenManager::token`].
    pub async fn authorize_same_origin(
        &mut self,
        method: &Method,
        url: &Url,
        headers: &mut HeaderMap,
    ) -> Result<(), ClientError> {
        self.select_token().await?;
        let is_same_origin = url.origin() == self.token_manager.start_url().url().origin();
        self.set_headers(method, url, is_same_origin, headers)
    }

    /// Processes a response. Returns true if the caller must send the request again, with new
    /// headers; false if the response is final. It may wait for the user.
    ///
    /// A response from a URL to which the token is not sent is always final.
    ///
    /// # Errors
    /// When the response requires authorization and the authorization fails.
    pub async fn should_retry(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<bool, ClientError> {
        if self.is_excluded {
            return Ok(false);
        }
        let binding = self.used.as_ref().and_then(|used| used.binding());
        let nonce_is_new = match (&self.url, binding) {
            (Some(url), Some(binding)) => binding.store_nonce(url, headers),
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
                if let (Source::External(source), Some(token)) =
                    (&self.token_manager.source, &self.external)
                {
                    return source.replace(token).await;
                }
                self.token_manager
                    .renew(self.used.as_ref(), &challenge)
                    .await
            }
            StatusCode::FORBIDDEN if self.step_ups < MAX_STEP_UPS => {
                let challenge = ResourceChallenge::from_headers(headers);
                let Some(missing) = challenge.missing_scopes() else {
                    return Ok(false);
                };
                self.step_ups += 1;
                self.token_manager
                    .step_up(self.used.as_ref(), &challenge, missing)
                    .await
            }
            _ => {
                if status.is_success() && (self.renewed || self.step_ups > 0) {
                    self.token_manager.record_acceptance();
                }
                Ok(false)
            }
        }
    }

    /// Selects the token of the next attempt.
    async fn select_token(&mut self) -> Result<(), ClientError> {
        self.used = self.token_manager.token().await?;
        if let Source::External(source) = &self.token_manager.source {
            self.external = Some(source.token().await?);
        }
        Ok(())
    }

    /// Sets the headers for the selected token, or removes them if the token must not be sent to
    /// the URL.
    fn set_headers(
        &mut self,
        method: &Method,
        url: &Url,
        is_allowed: bool,
        headers: &mut HeaderMap,
    ) -> Result<(), ClientError> {
        headers.remove(header::AUTHORIZATION);
        headers.remove(dpop::PROOF);
        self.url = Some(url.clone());
        self.is_excluded = !is_allowed;
        if self.is_excluded {
            return Ok(());
        }
        let given = match &self.token_manager.source {
            Source::Given(token) => Some(token),
            _ => self.external.as_ref(),
        };
        if let Some(token) = given {
            headers
                .extend(authorization("Bearer", token).map(|value| (header::AUTHORIZATION, value)));
            return Ok(());
        }
        match &self.used {
            Some(token) => token.authorize(method, url, self.token_manager.clock().now(), headers),
            None => Ok(()),
        }
    }
}
