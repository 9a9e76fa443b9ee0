use std::sync::Arc;

use portcullis_endpoint::{Endpoint, EndpointBody, EndpointLayer};
use portcullis_guard::{Guard, GuardBody, ProtectedResource, limit::RateLimiter};
use portcullis_telemetry::metrics::ResourceMetrics;
use portcullis_verifier::Verifier;

use super::upstream::ResourceUpstream;
use portcullis_config::plan::Fingerprint;

use crate::backend::{Backend, body::BackendBody};

/// The service stack of a resource: guard, endpoint, upstream.
pub(crate) type Stack = Guard<Endpoint<Backend>>;
/// The response body of a [`Stack`].
pub(crate) type StackBody = GuardBody<EndpointBody<BackendBody>>;

/// The RFC 9728 metadata path without an endpoint's path.
const ROOT_METADATA: &str = "/.well-known/oauth-protected-resource";

/// One protected endpoint.
pub(super) struct Resource {
    pub(super) endpoint: String,
    pub(super) metadata_path: String,
    /// Whether the metadata is also served at the root path.
    pub(super) root_metadata: bool,
    /// What the guards of all workers share.
    pub(super) protected: Arc<ProtectedResource>,
    /// `None` without authorization.
    pub(super) verifier: Option<Arc<Verifier>>,
    /// One stack per worker, so that upstream connections stay on one thread.
    pub(super) stacks: Vec<Stack>,
    pub(super) layer: EndpointLayer,
    pub(super) upstream: Arc<ResourceUpstream>,
    /// The rate limits of those rules that have one.
    pub(super) rule_limits: Vec<RuleLimit>,
    /// `None` without a listener for administrators.
    pub(super) metrics: Option<Arc<ResourceMetrics>>,
    pub(super) inputs: ResourceInputs,
}

/// The fingerprints of everything that a resource is built from. A resource with equal ones is used
/// again.
#[derive(PartialEq, Eq)]
pub(super) struct ResourceInputs {
    /// That of the settings that all resources share.
    pub(super) shared: Fingerprint,
    /// That of its own settings.
    pub(super) own: Fingerprint,
    pub(super) issuers: Vec<Fingerprint>,
}

/// The rate limit of a rule.
#[derive(Clone)]
pub(super) struct RuleLimit {
    /// That of the rule. A rule of the next configuration with the same one takes over the limiter,
    /// with its counts.
    pub(super) fingerprint: Fingerprint,
    pub(super) limiter: Arc<RateLimiter>,
}

impl Resource {
    /// Returns whether a path is that of the endpoint or of its metadata, byte for byte.
    pub(super) fn answers(&self, path: &str) -> bool {
        path == self.endpoint
            || path == self.metadata_path
            || (self.root_metadata && path == ROOT_METADATA)
    }
}
