use std::sync::Arc;

use http::{HeaderName, Method};
use portcullis_metadata::{Clock, ProtectedResourceMetadata, ResourceUri, Scopes, SystemClock};
use portcullis_verifier::Verifier;

use crate::{
    ClaimRule, DecisionSink, GuardLimits, OriginPolicy, OriginPolicyError, PathGlob, ScopeImplications, TracingSink,
    TrustedProxies,
};

/// What a [`ProtectedResource`](crate::ProtectedResource) is made of.
///
/// [`new`](Self::new) fills in the defaults; change single fields afterwards.
#[derive(Clone)]
#[non_exhaustive]
pub struct GuardSettings {
    /// The URL that clients know the resource by. It comes from configuration, never from a request.
    pub resource: ResourceUri,
    /// The `realm` of every challenge. Default: the resource's host.
    pub realm: String,
    /// The document to serve (RFC 9728). Its `bearer_methods_supported` is always sent as `["header"]`.
    pub metadata: ProtectedResourceMetadata,
    /// Whether the document is also served at the root form of its path. Default: yes. Where several
    /// resources share a host, one of them may.
    pub root_metadata: bool,
    /// Whether a token is required. Default: yes.
    pub authentication: Authentication,
    /// The scopes that every request needs; every 401 names them. Default: none.
    pub required_scopes: Scopes,
    /// Who judges `required_scopes`. Default: the guard.
    pub scopes_enforced_by: ScopeEnforcer,
    /// Which scopes stand for others, wherever scopes are judged. Default: none.
    pub scope_implications: ScopeImplications,
    /// What a token's claims have to say, all of it. Default: nothing.
    pub claims: Vec<ClaimRule>,
    /// Scopes that single routes need beside them. Default: none.
    pub routes: Vec<RouteRule>,
    /// Paths that need no token, such as `/healthz`. Default: none.
    ///
    /// The path of a request is compared with each byte for byte: there are no patterns, and letter case, a trailing
    /// slash and percent-encoding all count. All methods of the path are open. A public path takes precedence over scopes,
    /// routes and claims; its requests still have their `Authorization` removed, and their [`Caller`](crate::Caller) has no
    /// principal.
    pub public_paths: Vec<String>,
    /// How many requests may come. Default: any number.
    pub limits: GuardLimits,
    /// Whose word on the client's address is taken. Default: nobody's, so that it is the [`Peer`](crate::Peer)'s.
    pub trusted_proxies: TrustedProxies,
    /// Which `Host` and `Origin` values are answered. Default: the policy of the resource's URL.
    pub origins: OriginPolicy,
    /// What pages of other origins may do and read.
    pub cors: CorsSettings,
    /// Where the time comes from. Default: the machine.
    pub clock: Arc<dyn Clock>,
    /// Who is told what became of each request. Default: [`TracingSink`].
    pub sink: Arc<dyn DecisionSink>,
}

impl GuardSettings {
    /// The defaults for the resource that `metadata` describes.
    ///
    /// # Errors
    /// When the resource's URL has no host.
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
        })
    }
}

/// Whether requests need a token.
#[derive(Clone)]
#[non_exhaustive]
pub enum Authentication {
    /// Every request but preflights and metadata needs a token that this verifier accepts.
    Required(Arc<Verifier>),
    /// Anybody may do anything: no token is read, no scope judged and no metadata served. `Authorization` and
    /// `DPoP` are still taken off. For development, or behind something that authenticates.
    Off,
}

/// Who judges [`GuardSettings::required_scopes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScopeEnforcer {
    /// The guard.
    Guard,
    /// The service behind it, which knows more about what the request needs and so can name all of it in one
    /// 403. The guard still names the scopes in its 401s, and still judges the route rules.
    Inner,
}

/// Scopes that requests to some paths need. All rules that match count together.
///
/// The path is judged as the guard sees it, decoded. Where there are rules, a path that servers read in
/// different ways is refused with 400: with dot segments, empty segments, `;`, backslashes, control characters, encoded
/// slashes, double encoding or broken UTF-8. Headers that override the method are not looked at.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RouteRule {
    /// The methods it counts for, in any letter case; none means all. `HEAD` is judged by the rules for `GET`, too.
    pub methods: Vec<Method>,
    /// The paths it counts for.
    pub path: PathGlob,
    /// What those requests need.
    pub scopes: Scopes,
}

impl RouteRule {
    /// A rule for all methods on these paths.
    pub fn new(path: PathGlob, scopes: Scopes) -> Self {
        Self { methods: Vec::new(), path, scopes }
    }

    /// The same rule for these methods only.
    #[must_use]
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.methods = methods.into_iter().collect();
        self
    }
}

/// Cross-origin access (the CORS protocol of the Fetch standard). Credentials are never allowed: tokens
/// travel in a header that the page sets itself.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CorsSettings {
    /// The methods a preflight allows. Default: GET, HEAD, POST, PUT, PATCH, DELETE.
    pub methods: Vec<Method>,
    /// Response headers that pages may read, beside `WWW-Authenticate` and `X-Request-Id`, which they always
    /// may. Default: none.
    pub exposed_headers: Vec<HeaderName>,
}

impl CorsSettings {
    /// Allows these methods and exposes these response headers.
    pub fn new(
        methods: impl IntoIterator<Item = Method>,
        exposed_headers: impl IntoIterator<Item = HeaderName>,
    ) -> Self {
        Self { methods: methods.into_iter().collect(), exposed_headers: exposed_headers.into_iter().collect() }
    }
}

impl Default for CorsSettings {
    fn default() -> Self {
        Self {
            methods: vec![Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE],
            exposed_headers: Vec::new(),
        }
    }
}

/// Why settings make no protected resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuardSettingsError {
    /// The resource is neither `https` nor `http` on loopback (RFC 9728 section 1.2).
    #[error("the resource `{0}` is neither https nor http on a loopback host")]
    InsecureResource(ResourceUri),
    /// The document, or the verifier, is for another resource.
    #[error("the settings are for `{expected}`, and the {part} is for `{found}`")]
    ResourceMismatch {
        /// `metadata` or `verifier`.
        part: &'static str,
        /// The resource of the settings.
        expected: ResourceUri,
        /// The resource of that part.
        found: ResourceUri,
    },
    /// The document lists no authorization server.
    #[error("the metadata of a protected resource lists at least one authorization server")]
    NoAuthorizationServer,
    /// `offline_access` is among the scopes (MCP 2026-07-28 forbids it): it asks for a refresh token and is no
    /// permission at a resource.
    #[error("`offline_access` in {0} is no scope of a resource; remove it")]
    OfflineAccess(&'static str),
    /// A name in `scopes_supported` is no scope name.
    #[error("`{0}` in scopes_supported is no scope name")]
    ScopeName(String),
    /// The document announces something that the guard does not enforce.
    #[error("the metadata announces `{0}`, which the guard does not enforce")]
    NotEnforced(&'static str),
    /// The realm cannot stand in a header.
    #[error("the realm is not 1 to 256 printable ASCII characters")]
    Realm,
    /// A public path is not the path of a request.
    #[error("the public path `{0}` must start with `/` and have no `*`, `?`, `#` or space; list each path by itself")]
    PublicPath(String),
    /// A host or origin setting is malformed.
    #[error(transparent)]
    Origin(#[from] OriginPolicyError),
}

impl GuardSettingsError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InsecureResource(_) => "settings.insecure_resource",
            Self::ResourceMismatch { .. } => "settings.resource_mismatch",
            Self::NoAuthorizationServer => "settings.no_authorization_server",
            Self::OfflineAccess(_) => "settings.offline_access",
            Self::ScopeName(_) => "settings.scope_name",
            Self::NotEnforced(_) => "settings.not_enforced",
            Self::Realm => "settings.realm",
            Self::PublicPath(_) => "settings.public_path",
            Self::Origin(error) => error.code(),
        }
    }
}
