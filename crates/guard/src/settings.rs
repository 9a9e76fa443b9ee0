//! [`GuardSettings`]: everything that a guard is configured with.

mod check;
mod error;

use std::sync::Arc;

use portcullis_metadata::{Clock, ProtectedResourceMetadata, ResourceUri, Scopes, SystemClock};
use portcullis_verifier::Verifier;

pub use self::error::GuardSettingsError;
use crate::{
    authorize::{ClaimRule, RouteRule, ScopeEnforcer, ScopeImplications},
    client_address::TrustedProxies,
    cors::CorsSettings,
    decision::{DecisionSink, TracingSink},
    limit::GuardLimits,
    origin::OriginPolicy,
    trace::TraceSettings,
};

/// The settings of a [`ProtectedResource`](crate::ProtectedResource).
///
/// [`new`](Self::new) sets the defaults; assign fields to change them.
/// [`Guard::builder`](crate::Guard::builder) is a shorter way for most services, and
/// [`GuardBuilder::configure`](crate::GuardBuilder::configure) changes any field.
/// [`ProtectedResource::new`](crate::ProtectedResource::new) checks the settings.
#[derive(Clone)]
#[non_exhaustive]
pub struct GuardSettings {
    /// The URL that clients know the resource by. It is never taken from a request.
    pub resource: ResourceUri,
    /// The `realm` of every challenge: a name for the protected API within its origin (RFC 9110
    /// section 11.5). Default: the resource's host, because the guard does not know the API.
    /// `portcullis serve` sets `mcp`.
    pub realm: String,
    /// The metadata document (RFC 9728). Its `bearer_methods_supported` is always served as
    /// `["header"]`.
    pub metadata: ProtectedResourceMetadata,
    /// Whether the document is also served at `/.well-known/oauth-protected-resource`. Default:
    /// yes. At most one of the resources on a host should do so.
    pub root_metadata: bool,
    /// Whether a token is required. Default: yes.
    pub authentication: Authentication,
    /// The scopes that every request needs. Every 401 names them. Default: none.
    pub required_scopes: Scopes,
    /// Which layer enforces `required_scopes`. Default: the guard.
    pub scopes_enforced_by: ScopeEnforcer,
    /// Which scopes imply others, for all scope checks. Default: none.
    pub scope_implications: ScopeImplications,
    /// The requirements on the claims of the token. All of them must be met. Default: none.
    pub claims: Vec<ClaimRule>,
    /// The scopes that some routes need in addition. Default: none.
    pub routes: Vec<RouteRule>,
    /// Paths that need no token, such as `/healthz`. Default: none.
    ///
    /// The path of a request is compared with each entry byte for byte: entries are not patterns,
    /// and letter case, a trailing slash and percent-encoding are significant. All methods are
    /// open. Scopes, routes and claim rules do not apply to a public path. Its requests have their
    /// `Authorization` removed, and their [`Caller`](crate::Caller) has no principal.
    pub public_paths: Vec<String>,
    /// The limits on requests. Default: none.
    pub limits: GuardLimits,
    /// The proxies whose forwarding header is trusted. Default: none, so the client's address is
    /// that of the [`Peer`](crate::Peer).
    pub trusted_proxies: TrustedProxies,
    /// Which `Host` and `Origin` values are accepted. Default: the policy for the resource's URL.
    pub origins: OriginPolicy,
    /// What web pages of other origins may send and read. Default: see [`CorsSettings`].
    pub cors: CorsSettings,
    /// The clock. Default: [`SystemClock`].
    pub clock: Arc<dyn Clock>,
    /// The receiver of the decision about each request. Default: [`TracingSink`].
    pub sink: Arc<dyn DecisionSink>,
    /// Which requests have a [trace context](crate::Decision::trace). Default: none.
    pub traces: Option<TraceSettings>,
}

impl GuardSettings {
    /// Creates the default settings for the resource that `metadata` describes.
    ///
    /// # Errors
    /// Fails if the resource's URL has no host.
    pub fn new(
        metadata: ProtectedResourceMetadata,
        authentication: Authentication,
    ) -> Result<Self, GuardSettingsError> {
        let resource = metadata.resource.clone();
        Ok(Self {
            realm: resource.url().host_str().unwrap_or_default().to_owned(),
            origins: OriginPolicy::for_base_url(resource.url())?,
            resource,
            metadata,
            root_metadata: true,
            authentication,
            required_scopes: Scopes::empty(),
            scopes_enforced_by: ScopeEnforcer::Guard,
            scope_implications: ScopeImplications::default(),
            claims: Vec::new(),
            routes: Vec::new(),
            public_paths: Vec::new(),
            limits: GuardLimits::default(),
            trusted_proxies: TrustedProxies::default(),
            cors: CorsSettings::default(),
            clock: Arc::new(SystemClock::new()),
            sink: Arc::new(TracingSink),
            traces: None,
        })
    }
}

/// Whether requests need a token.
#[derive(Clone)]
#[non_exhaustive]
pub enum Authentication {
    /// Every request needs a token that this verifier accepts, except for preflights, metadata
    /// requests and public paths.
    Required(Arc<Verifier>),
    /// No request needs a token: tokens, scopes and claims are not checked, and no metadata is
    /// served. Host, origin and the rate per address still are, a token in the query is rejected,
    /// and `Authorization` and `DPoP` are removed. Use it in development, or behind another service
    /// that authenticates.
    Off,
}
