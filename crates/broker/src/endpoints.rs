//! The endpoints of the broker.

mod authorize;
mod callback;
mod consent;
mod introspect;
mod logout;
mod register;
mod respond;
mod revoke;
mod route;
mod token;

use std::net::IpAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use portcullis_authorization_server::Params;
use portcullis_metadata::syntax::has_media_type;

pub(crate) use self::{callback::SignInError, route::Route};
use crate::Broker;

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";
/// The maximum length of a query in bytes.
const MAX_QUERY: usize = 8 * 1024;

/// A request to the broker, whose body is complete.
pub(crate) struct BrokerRequest {
    headers: HeaderMap,
    query: String,
    body: Bytes,
    /// The address of the client, for limits.
    address: IpAddr,
}

impl Broker {
    /// The maximum size of a request's body in bytes: that of a form or of a registration.
    pub const MAX_BODY: usize = 32 * 1024;

    /// Returns whether the broker answers requests for this path: its endpoints, everything else
    /// below `/oauth/`, and its metadata.
    pub fn answers(&self, path: &str) -> bool {
        path.starts_with(Route::PREFIX) || self.metadata_paths.iter().any(|other| **other == *path)
    }

    /// Returns whether this is the path of its metadata or of its public keys, which depend on no
    /// record.
    pub fn is_document(&self, path: &str) -> bool {
        matches!(self.route(path), Some(Route::Metadata | Route::Keys))
    }

    /// Answers a request with a complete body of at most [`MAX_BODY`](Self::MAX_BODY) bytes.
    /// `address` is that of the client. The caller has checked `Host`.
    ///
    /// Run this on a task of its own: what it began must not end with the connection of the client.
    pub async fn handle(&self, request: Request<Bytes>, address: IpAddr) -> Response<Bytes> {
        let (head, body) = request.into_parts();
        let Some(route) = self.route(head.uri.path()) else {
            return respond::text(StatusCode::NOT_FOUND, "not found\n");
        };
        let mut response = if route.methods().contains(&head.method) {
            let query = head.uri.query().unwrap_or_default();
            if query.len() > MAX_QUERY {
                respond::text(StatusCode::URI_TOO_LONG, "the query is longer than 8 KiB\n")
            } else {
                let request = BrokerRequest {
                    query: query.to_owned(),
                    headers: head.headers,
                    body,
                    address,
                };
                self.handle_route(route, request).await
            }
        } else if head.method == Method::OPTIONS && route.allows_cross_origin() {
            respond::preflight(route)
        } else {
            respond::method_not_allowed(route)
        };
        if route.allows_cross_origin() {
            respond::allow_cross_origin(&mut response);
        }
        response
    }

    async fn handle_route(&self, route: Route, request: BrokerRequest) -> Response<Bytes> {
        match route {
            Route::Metadata => respond::document(self.metadata.clone()),
            Route::Keys => respond::document(self.jwks.clone()),
            Route::Authorize => self.authorize(&request).await,
            Route::Consent => self.consent(&request).await,
            Route::Callback(provider) => self.callback(provider, &request).await,
            Route::Token => self.token(&request).await,
            Route::Register => self.register(&request).await,
            Route::Revoke => self.revoke(&request).await,
            Route::Introspect => self.introspect(&request).await,
            Route::Logout(provider) => self.logout(provider, &request).await,
        }
    }
}

impl BrokerRequest {
    fn query(&self) -> Params {
        Params::parse(self.query.as_bytes())
    }

    /// Returns the form in the body. `None` if the body is not a form.
    fn form(&self) -> Option<Params> {
        self.has_type(FORM).then(|| Params::parse(&self.body))
    }

    fn has_type(&self, media_type: &str) -> bool {
        has_media_type(&self.headers, media_type)
    }
}
