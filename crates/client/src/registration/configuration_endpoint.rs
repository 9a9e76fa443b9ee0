//! [`ConfigurationEndpoint`]: the client configuration endpoint of a registration (RFC 7592).

use http::{HeaderValue, header};
use portcullis_discovery::{FetchRequest, UrlPolicy};
use url::Url;

use crate::{registration::registered::Registered, server::Server};

/// Where a client reads and updates its registration.
pub(crate) struct ConfigurationEndpoint {
    url: Url,
    policy: UrlPolicy,
    authorization: HeaderValue,
}

impl ConfigurationEndpoint {
    /// Returns the endpoint of a registration. `None` if the server gave none, or one of another
    /// origin than its registration endpoint's: the requests contain the registration access token.
    pub(crate) fn of(registered: &Registered, server: &Server) -> Option<Self> {
        let url = Url::parse(registered.response.registration_client_uri.as_deref()?).ok()?;
        if url.origin() != server.registration_endpoint.as_ref()?.origin() {
            return None;
        }
        let token = registered.response.registration_access_token.as_ref()?;
        let mut authorization =
            HeaderValue::from_str(&format!("Bearer {}", token.secret())).ok()?;
        authorization.set_sensitive(true);
        Some(Self {
            policy: server.policy.of(&url),
            url,
            authorization,
        })
    }

    /// The request that reads the registration (RFC 7592 section 2.1).
    pub(crate) fn read(self) -> FetchRequest {
        FetchRequest::get(self.url, self.policy).header(header::AUTHORIZATION, self.authorization)
    }

    /// The request that replaces the registration by this JSON document (RFC 7592 section 2.2).
    pub(crate) fn update(self, document: Vec<u8>) -> FetchRequest {
        let mut request = FetchRequest::post_json(self.url, document, self.policy);
        request.method = http::Method::PUT;
        request.header(header::AUTHORIZATION, self.authorization)
    }
}
