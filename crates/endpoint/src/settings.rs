use std::sync::Arc;

use http::{HeaderName, Method};
use portcullis_guard::{CorsSettings, ProtectedResource};
use portcullis_mcp::{Revisions, header};
use portcullis_metadata::{Scopes, SystemClock};
use portcullis_session::SessionStore;

use crate::{BodyBudget, EndedSessionStatus, MessageRule, StreamRegistry};

/// What an [`EndpointLayer`](crate::EndpointLayer) is made of.
///
/// [`new`](Self::new) fills in the defaults; change single fields afterwards.
#[derive(Clone)]
#[non_exhaustive]
pub struct EndpointSettings {
    /// The resource that the guard in front of the endpoint protects.
    pub resource: Arc<ProtectedResource>,
    /// The scopes that every request needs. Default: none. Set the guard's to the same, and its
    /// [`scopes_enforced_by`](portcullis_guard::GuardSettings::scopes_enforced_by) to
    /// [`Inner`](portcullis_guard::ScopeEnforcer::Inner), so that one answer names these and what the rules add.
    pub required_scopes: Scopes,
    /// The scopes that some messages need beside them. Default: none.
    pub rules: Vec<MessageRule>,
    /// Which revisions are served. Default: all.
    pub revisions: Revisions,
    /// The header that carries the session identifier, to the client and to the inner service. Default:
    /// `Mcp-Session-Id`.
    pub session_header: HeaderName,
    /// The largest body in bytes. Default: 4 MiB.
    pub max_body: usize,
    /// How deep a message may nest. Default: 64.
    pub max_depth: usize,
    /// What all bodies that are held at once may take, over all endpoints that share it. Default: 256 MiB for
    /// this endpoint alone.
    pub budget: Arc<BodyBudget>,
    /// Where open event streams are kept, over all endpoints that share it. Default: one by the system's clock for this
    /// endpoint alone; streams end with their authorization only if it is [swept](StreamRegistry::sweep).
    pub streams: StreamRegistry,
    /// Where sessions are kept.
    pub sessions: SessionStore,
    /// What the owner of an ended session is answered. Default: 400.
    pub ended_status: EndedSessionStatus,
}

impl EndpointSettings {
    /// The defaults, for this resource.
    pub fn new(resource: Arc<ProtectedResource>, sessions: SessionStore) -> Self {
        Self {
            resource,
            required_scopes: Scopes::empty(),
            rules: Vec::new(),
            revisions: Revisions::ALL,
            session_header: header::SESSION,
            max_body: 4 * 1024 * 1024,
            max_depth: 64,
            budget: BodyBudget::new(256 * 1024 * 1024),
            streams: StreamRegistry::new(Arc::new(SystemClock::new()), Arc::new(())),
            sessions,
            ended_status: EndedSessionStatus::default(),
        }
    }

    /// What the guard has to allow and expose to pages of other origins, so that browsers can use the endpoint:
    /// the three methods, the session header and `MCP-Protocol-Version`.
    pub fn cors(session_header: &HeaderName) -> CorsSettings {
        let methods = [Method::GET, Method::POST, Method::DELETE];
        CorsSettings::new(methods, [session_header.clone(), header::PROTOCOL_VERSION])
    }

    pub(crate) fn check(&self) -> Result<(), EndpointSettingsError> {
        if self.revisions.is_empty() {
            return Err(EndpointSettingsError::NoRevision);
        }
        if self.resource.is_public(self.resource.resource().url().path()) {
            return Err(EndpointSettingsError::PublicEndpoint);
        }
        let scopes = self.rules.iter().map(|rule| &rule.scopes).chain([&self.required_scopes]);
        if scopes.into_iter().any(|scopes| scopes.contains("offline_access")) {
            return Err(EndpointSettingsError::OfflineAccess);
        }
        Ok(())
    }
}

/// Why settings make no endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointSettingsError {
    /// No revision is served.
    #[error("an endpoint serves at least one revision of the protocol; name one in `revisions`")]
    NoRevision,
    /// The endpoint's own path is one of the guard's
    /// [public paths](portcullis_guard::GuardSettings::public_paths).
    #[error("the path of the endpoint is a public path; remove it from the guard's public paths")]
    PublicEndpoint,
    /// `offline_access` is among the scopes (MCP 2026-07-28 forbids it): it asks for a refresh token and is no
    /// permission at a resource.
    #[error("`offline_access` is no scope of a resource; remove it from required scopes and rules")]
    OfflineAccess,
}

impl EndpointSettingsError {
    /// The stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoRevision => "settings.no_revision",
            Self::PublicEndpoint => "settings.public_endpoint",
            Self::OfflineAccess => "settings.offline_access",
        }
    }
}
