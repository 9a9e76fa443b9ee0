//! The tower middleware for HTTP clients.

use std::{
    future::poll_fn,
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use portcullis_discovery::BoxFuture;
use tower_layer::Layer;
use tower_service::Service;
use url::Url;

use crate::{ClientError, TokenManager};

/// Authorizes the requests of any HTTP client that is a tower service. See [`AuthorizeService`].
#[derive(Clone, Debug)]
pub struct AuthorizeLayer {
    token_manager: Arc<TokenManager>,
}

impl AuthorizeLayer {
    /// Creates a layer for clients of the token manager's resource.
    pub fn new(token_manager: Arc<TokenManager>) -> Self {
        Self { token_manager }
    }
}

impl<S> Layer<S> for AuthorizeLayer {
    type Service = AuthorizeService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        AuthorizeService {
            token_manager: self.token_manager.clone(),
            inner,
        }
    }
}

/// Sends each request with the resource's token, and retries it after a 401 or a 403 if another
/// token can help, as [`RequestAuthorization`](crate::RequestAuthorization) defines.
///
/// A request's URL must be absolute. The token is sent only to the token manager's start URL and to
/// the URL of the token's resource; a request to any other URL is sent without a token, and its
/// response is returned unchanged. Bodies are cloned, because a request can be sent several times;
/// cloning `Bytes` in `http_body_util::Full` is cheap.
#[derive(Clone, Debug)]
pub struct AuthorizeService<S> {
    token_manager: Arc<TokenManager>,
    inner: S,
}

/// Why a request has no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorizeError<E> {
    /// The request's URL is not absolute; nothing was sent.
    #[error("the request's URL is not absolute")]
    Url,
    /// The resource requires authorization, and the authorization failed.
    #[error("cannot get a token")]
    Authorization(#[source] ClientError),
    /// The HTTP client failed.
    #[error(transparent)]
    Inner(E),
}

impl<E> AuthorizeError<E> {
    /// The stable code, for logs and tests. All errors of the HTTP client have the same.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Url => "authorize.url",
            Self::Authorization(error) => error.code(),
            Self::Inner(_) => "authorize.inner",
        }
    }
}

impl<S, B, R> Service<Request<B>> for AuthorizeService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    B: Clone + Send + Sync + 'static,
    R: Send,
{
    type Response = Response<R>;
    type Error = AuthorizeError<S::Error>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner
            .poll_ready(context)
            .map_err(AuthorizeError::Inner)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // `inner` is ready, its clone may not be: use `inner` and keep the clone for the next call.
        let fresh = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, fresh);
        let mut authorization = self.token_manager.request_authorization();
        Box::pin(async move {
            let url = Url::parse(&request.uri().to_string()).map_err(|_| AuthorizeError::Url)?;
            loop {
                let mut attempt = request.clone();
                let method = attempt.method().clone();
                let set = authorization
                    .authorize(&method, &url, attempt.headers_mut())
                    .await;
                set.map_err(AuthorizeError::Authorization)?;
                let response = inner.call(attempt).await.map_err(AuthorizeError::Inner)?;
                let again = authorization
                    .should_retry(response.status(), response.headers())
                    .await;
                if !again.map_err(AuthorizeError::Authorization)? {
                    return Ok(response);
                }
                poll_fn(|context| inner.poll_ready(context))
                    .await
                    .map_err(AuthorizeError::Inner)?;
            }
        })
    }
}

#[cfg(test)]
mod tests;
