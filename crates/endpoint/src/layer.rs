//! [`EndpointLayer`]: the tower layer.

use std::sync::Arc;

use http::Method;
use tower_layer::Layer;

use crate::{
    service::Endpoint,
    settings::{EndpointSettings, EndpointSettingsError},
    state::EndpointState,
    stream::StreamRequest,
};

/// Wraps a service of [`Admitted`](crate::Admitted) requests in an [`Endpoint`].
///
/// The endpoint must be inside a [`Guard`](portcullis_guard::Guard) of the same resource. A request
/// that no guard has authenticated is answered with 500.
#[derive(Clone)]
pub struct EndpointLayer {
    state: Arc<EndpointState>,
}

impl EndpointLayer {
    /// Returns a layer with these settings.
    ///
    /// # Errors
    /// Fails if no revision is served, the guard's settings make the endpoint public, or
    /// `offline_access` is a required scope.
    pub fn new(settings: EndpointSettings) -> Result<Self, EndpointSettingsError> {
        settings.check()?;
        Ok(Self {
            state: Arc::new(EndpointState::new(settings)),
        })
    }

    /// Returns whether the guard's and the endpoint's rules admit a request that was admitted with
    /// other settings.
    ///
    /// Neither the token nor any limit is checked. A rule for names applies if the names are not
    /// known exactly: those of resources, and more or longer names than an
    /// [`Operation`](portcullis_guard::Operation) has.
    pub fn admits(&self, request: &StreamRequest<'_>) -> bool {
        let resource = &self.state.resource;
        if resource.verifier().is_none() {
            return true;
        }
        let Some(principal) = request.principal else {
            return false;
        };
        let method = if request.operation.is_some() {
            Method::POST
        } else {
            Method::GET
        };
        resource.admits(&method, resource.resource().url().path(), principal)
            && self.state.rules.admit(request.operation, principal)
    }
}

impl<S> Layer<S> for EndpointLayer {
    type Service = Endpoint<S>;

    fn layer(&self, inner: S) -> Endpoint<S> {
        Endpoint::new(Arc::clone(&self.state), inner)
    }
}
