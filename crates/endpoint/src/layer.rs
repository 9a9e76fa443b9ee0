use std::sync::Arc;

use http::Response;
use portcullis_guard::ProtectedResource;
use portcullis_mcp::{EnvelopeLimits, Revisions};
use tower_layer::Layer;

use crate::{
    BodyBudget, Endpoint, EndpointBody, EndpointSettings, EndpointSettingsError, StreamRegistry, respond::Refused,
    rules::Rules, session::Sessions, upstream_revisions::UpstreamRevisions,
};

/// Puts a service of [`Admitted`](crate::Admitted) requests behind the endpoint.
///
/// The endpoint itself has to stand behind a [`Guard`](portcullis_guard::Guard) of the same resource: a request
/// that no guard has judged is answered 500.
#[derive(Clone)]
pub struct EndpointLayer {
    shared: Arc<Shared>,
}

/// What all endpoints of one layer share, prepared once.
pub(crate) struct Shared {
    pub(crate) resource: Arc<ProtectedResource>,
    pub(crate) rules: Rules,
    pub(crate) revisions: Revisions,
    pub(crate) upstream_revisions: Arc<UpstreamRevisions>,
    pub(crate) sessions: Sessions,
    pub(crate) limits: EnvelopeLimits,
    pub(crate) max_body: usize,
    pub(crate) budget: Arc<BodyBudget>,
    pub(crate) streams: StreamRegistry,
}

impl Shared {
    /// The answer to a refused request.
    pub(crate) fn refuse<B>(&self, refused: &Refused) -> Response<EndpointBody<B>> {
        refused.response(self.resource.challenges())
    }
}

impl EndpointLayer {
    /// A layer with these settings.
    ///
    /// # Errors
    /// When no revision is served, or `offline_access` is among the scopes.
    pub fn new(settings: EndpointSettings) -> Result<Self, EndpointSettingsError> {
        settings.check()?;
        let sessions = Sessions {
            store: settings.sessions,
            resource: settings.resource.resource().clone(),
            header: settings.session_header,
            ended_status: settings.ended_status,
        };
        let shared = Shared {
            rules: Rules::new(settings.required_scopes, settings.resource.scope_implications().clone(), settings.rules),
            resource: settings.resource,
            revisions: settings.revisions,
            upstream_revisions: Arc::default(),
            sessions,
            limits: EnvelopeLimits::default().with_max_depth(settings.max_depth),
            max_body: settings.max_body,
            budget: settings.budget,
            streams: settings.streams,
        };
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl<S> Layer<S> for EndpointLayer {
    type Service = Endpoint<S>;

    fn layer(&self, inner: S) -> Endpoint<S> {
        Endpoint::new(Arc::clone(&self.shared), inner)
    }
}
