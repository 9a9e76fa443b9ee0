//! Requests the challenge of a resource.

use http::{HeaderValue, Method, StatusCode, header};
use portcullis_discovery::{FetchRequest, OpenResponse, UrlPolicy};

use super::Authorizer;
use crate::{ClientError, ResourceRedirects, StartUrl, resource_challenge::ResourceChallenge};

/// A message without effect, for endpoints that accept only POST.
const PING: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;

impl Authorizer {
    /// Sends requests without a token to get the challenge. Redirects are followed as
    /// [`ResourceRedirects`] defines. Fails with [`ClientError::NotChallenged`] when the resource
    /// does not respond with 401; otherwise when it cannot be reached, or a redirect is refused.
    pub(crate) async fn probe(&self, start: &StartUrl) -> Result<ResourceChallenge, ClientError> {
        // The user entered this URL, so a private address is allowed.
        let get = FetchRequest::new(Method::GET, start.url().clone(), UrlPolicy::StartOrigin);
        match self.challenge(start, get).await {
            // GET alone may be without a token: it can have a page, redirect to one, or not be
            // supported.
            Err(ClientError::NotChallenged { .. } | ClientError::Redirected(_)) => {
                let ping =
                    FetchRequest::post_json(start.url().clone(), PING, UrlPolicy::StartOrigin);
                self.challenge(start, ping).await
            }
            result => result,
        }
    }

    /// Returns the challenge in the response to a request.
    async fn challenge(
        &self,
        start: &StartUrl,
        request: FetchRequest,
    ) -> Result<ResourceChallenge, ClientError> {
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        let response = self
            .open_resource(start, request.header(header::ACCEPT, accept))
            .await?;
        match response.status {
            StatusCode::UNAUTHORIZED => Ok(ResourceChallenge::from_headers(&response.headers)),
            status => Err(ClientError::NotChallenged {
                status,
                response: Some(Box::new(response.excerpt().await)),
            }),
        }
    }

    /// Sends a request to the resource, and follows redirects within the start URL.
    async fn open_resource(
        &self,
        start: &StartUrl,
        mut request: FetchRequest,
    ) -> Result<OpenResponse, ClientError> {
        let mut redirects = ResourceRedirects::default();
        let resource = start.resource();
        loop {
            let answer =
                self.fetch
                    .open(request.clone())
                    .await
                    .map_err(|error| ClientError::Resource {
                        url: start.to_string(),
                        error,
                    })?;
            if !answer.status.is_redirection() {
                return Ok(answer);
            }
            request.url = redirects.follow(
                answer.status,
                &answer.headers,
                &request.url,
                resource.as_ref(),
            )?;
        }
    }
}
