use std::{sync::Arc, time::Duration};

use http::{HeaderName, Method};
use portcullis_guard::{CorsSettings, ProtectedResource};
use portcullis_mcp::{Revisions, header};
use portcullis_metadata::{Scopes, SystemClock};
use portcullis_session::SessionStore;

use crate::{
    message::BodyBudget,
    rules::MessageRule,
    session::{EndedSessionStatus, SessionMode},
    stream::StreamRegistry,
};

/// The settings of an [`EndpointLayer`](crate::EndpointLayer).
///
/// [`new`](Self::new) sets the defaults. Set single fields afterwards.
#[derive(Clone)]
#[non_exhaustive]
pub struct EndpointSettings {
    /// The resource that the guard around the endpoint protects.
    pub resource: Arc<ProtectedResource>,
    /// The scopes that every request needs. Default: none. Set the same scopes in the guard's
    /// settings, and the guard's
    /// [`scopes_enforced_by`](portcullis_guard::GuardSettings::scopes_enforced_by) to
    /// [`Inner`](portcullis_guard::authorize::ScopeEnforcer::Inner), so that one challenge names
    /// these scopes and those of the rules.
    pub required_scopes: Scopes,
    /// The requirements for some messages, in addition to `required_scopes`. Default: none.
    pub rules: Vec<MessageRule>,
    /// The served revisions. Default: all.
    pub revisions: Revisions,
    /// The header with the session identifier, for the client and for the inner service. Default:
    /// `Mcp-Session-Id`.
    pub session_header: HeaderName,
    /// The maximum size of a body, in bytes. Default: 4 MiB.
    pub max_body: usize,
    /// The maximum nesting depth of a message. Default: 64.
    pub max_depth: usize,
    /// The budget of all held bodies. Endpoints can share it. Default: 256 MiB for this endpoint
    /// alone.
    pub budget: Arc<BodyBudget>,
    /// The registry of open event streams. Endpoints can share it. Default: a registry with the
    /// system's clock for this endpoint alone. Streams end with their authorization only if the
    /// registry is [swept](StreamRegistry::sweep).
    pub streams: StreamRegistry,
    /// The session store.
    pub sessions: SessionStore,
    /// Whether the resource has sessions. Default: it has.
    pub session_mode: SessionMode,
    /// The identity of the inner service, such as the URL of an upstream. The sessions of another
    /// one do not continue with it. Default: an empty text.
    pub upstream: Box<str>,
    /// The time from an `initialize` until its response names the negotiated revision. The response
    /// is held until then; after this time, the client gets 504. It does not limit the wait for the
    /// inner service's head. Default: 5 min, and at most 24 h.
    pub head_timeout: Duration,
    /// For how long the response to a request continues after its token has expired, if it is an
    /// event stream: the request was authorized when it was made. The response ends at once when
    /// its session ends, an issuer reports the token as revoked, or the registry
    /// [ends](StreamRegistry::end) it. Streams on which a client only listens, the responses to GET
    /// and to `subscriptions/listen`, end with the token. Default: 15 min. With zero, responses end
    /// with the token, too.
    pub response_grace: Duration,
    /// The status of the response to the owner of an ended session. Default:
    /// [`Auto`](EndedSessionStatus::Auto), 404 unless the owner ended it.
    pub ended_status: EndedSessionStatus,
}

impl EndpointSettings {
    /// The default maximum size of a body, in bytes: 4 MiB.
    pub const DEFAULT_MAX_BODY: usize = 4 << 20;
    /// The default maximum nesting depth of a message.
    pub const DEFAULT_MAX_DEPTH: usize = 64;
    /// The default time for the head of a response to `initialize`.
    pub const DEFAULT_HEAD_TIMEOUT: Duration = Duration::from_secs(300);
    /// The default time for which a response continues after its token has expired.
    pub const DEFAULT_RESPONSE_GRACE: Duration = Duration::from_secs(15 * 60);
    /// The default budget of all held bodies, in bytes: 256 MiB.
    pub const DEFAULT_BODY_BUDGET: usize = 256 << 20;

    /// Returns the default settings for this resource.
    pub fn new(resource: Arc<ProtectedResource>, sessions: SessionStore) -> Self {
        Self {
            resource,
            required_scopes: Scopes::empty(),
            rules: Vec::new(),
            revisions: Revisions::ALL,
            session_header: header::SESSION,
            max_body: Self::DEFAULT_MAX_BODY,
            max_depth: Self::DEFAULT_MAX_DEPTH,
            budget: BodyBudget::new(Self::DEFAULT_BODY_BUDGET),
            streams: StreamRegistry::new(Arc::new(SystemClock::new()), Arc::new(())),
            sessions,
            session_mode: SessionMode::default(),
            upstream: Box::default(),
            head_timeout: Self::DEFAULT_HEAD_TIMEOUT,
            response_grace: Self::DEFAULT_RESPONSE_GRACE,
            ended_status: EndedSessionStatus::default(),
        }
    }

    /// Returns the guard's CORS settings with which browsers can use the endpoint: GET, POST and
    /// DELETE, the session header and `MCP-Protocol-Version`.
    pub fn cors(session_header: &HeaderName) -> CorsSettings {
        let methods = [Method::GET, Method::POST, Method::DELETE];
        CorsSettings::new(methods, [session_header.clone(), header::PROTOCOL_VERSION])
    }

    /// Checks the settings. Fails if no revision is served, the endpoint is public, or a required
    /// scope is not a permission at a resource.
    pub(crate) fn check(&self) -> Result<(), EndpointSettingsError> {
        if self.revisions.is_empty() {
            return Err(EndpointSettingsError::NoRevision);
        }
        if self
            .resource
            .is_public(self.resource.resource().url().path())
        {
            return Err(EndpointSettingsError::PublicEndpoint);
        }
        let scopes = self
            .rules
            .iter()
            .map(|rule| &rule.scopes)
            .chain([&self.required_scopes]);
        if scopes
            .into_iter()
            .any(|scopes| scopes.contains("offline_access"))
        {
            return Err(EndpointSettingsError::OfflineAccess);
        }
        Ok(())
    }
}

/// The reason why settings are not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointSettingsError {
    /// No revision is served.
    #[error(
        "an endpoint must serve at least one revision of the protocol; name one in `revisions`"
    )]
    NoRevision,
    /// The endpoint's own path is one of the guard's
    /// [public paths](portcullis_guard::GuardSettings::public_paths).
    #[error("the path of the endpoint is a public path; remove it from the guard's public paths")]
    PublicEndpoint,
    /// `offline_access` is a required scope. It requests a refresh token and is not a permission at
    /// a resource; MCP 2026-07-28 forbids it.
    #[error(
        "`offline_access` is not a scope of a resource; remove it from required scopes and rules"
    )]
    OfflineAccess,
}

impl EndpointSettingsError {
    /// Returns the stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoRevision => "settings.no_revision",
            Self::PublicEndpoint => "settings.public_endpoint",
            Self::OfflineAccess => "settings.offline_access",
        }
    }
}
