//! The tower layer.

use std::sync::Arc;

use tower_layer::Layer;

use crate::{
    service::Endpoint,
    settings::{EndpointSettings, EndpointSettingsError},
    state::EndpointState,
};

/// Wraps a service of [`Admitted`](crate::Admitted) requests in an [`Endpoint`].
///
/// The endpoint must be inside a [`Guard`](portcullis_guard::Guard) of the same resource. A request that no guard has
/// authenticated is answered with 500.
#[derive(Clone)]
pub struct EndpointLayer {
    state: Arc<EndpointState>,
}

impl EndpointLayer {
    /// Returns a layer with these settings.
    ///
    /// # Errors
    /// Fails if no revision is served, or `offline_access` is a required scope.
    pub fn new(settings: EndpointSettings) -> Result<Self, EndpointSettingsError> {
        settings.check()?;
        Ok(Self { state: Arc::new(EndpointState::new(settings)) })
    }
}

impl<S> Layer<S> for EndpointLayer {
    type Service = Endpoint<S>;

    fn layer(&self, inner: S) -> Endpoint<S> {
        Endpoint::new(Arc::clone(&self.state), inner)
    }
}
