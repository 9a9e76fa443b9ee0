use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use portcullis_metadata::{
    Clock, ProtectedResourceMetadata, ResourceUri, Scopes, is_https_or_loopback_http, protected_resource_urls,
};
use url::Url;

use crate::{
    Authentication, Challenges, DecisionSink, GuardLimits, GuardSettings, GuardSettingsError, OriginPolicy,
    ScopeImplications, TrustedProxies, authorize::Rules, cors::Cors, document::Document,
};

/// A resource and all that the guard answers for it, prepared once: documents, challenges, header values.
///
/// It is shared by every [`GuardLayer`](crate::GuardLayer) made from it.
pub struct ProtectedResource {
    resource: ResourceUri,
    challenges: Challenges,
    pub(crate) document: Document,
    pub(crate) authentication: Authentication,
    pub(crate) rules: Rules,
    public_paths: Vec<String>,
    pub(crate) limits: GuardLimits,
    pub(crate) trusted_proxies: TrustedProxies,
    pub(crate) origins: OriginPolicy,
    pub(crate) cors: Cors,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sink: Arc<dyn DecisionSink>,
    shutting_down: AtomicBool,
}

impl ProtectedResource {
    /// Judges the settings and prepares everything that repeats.
    ///
    /// Where authentication is off, a warning is logged, and required scopes, routes and claim rules count for nothing.
    ///
    /// # Errors
    /// When the resource is plain `http` outside loopback; metadata or verifier are for another resource; the
    /// document lists no authorization server, speaks of `offline_access`, or announces what the guard does
    /// not enforce; the realm cannot stand in a header.
    pub fn new(settings: GuardSettings) -> Result<Arc<Self>, GuardSettingsError> {
        let named = check(&settings)?;
        let metadata_url = metadata_url(&settings.resource);
        let mut metadata = settings.metadata;
        metadata.bearer_methods_supported = vec!["header".to_owned()];
        if matches!(settings.authentication, Authentication::Off) {
            tracing::warn!(resource = settings.resource.as_str(), "authentication is off: anybody may do anything");
        }
        Ok(Arc::new(Self {
            document: Document::new(&metadata, metadata_url.path(), settings.root_metadata),
            challenges: Challenges::new(&settings.realm, metadata_url, &settings.required_scopes, named),
            rules: Rules {
                required: settings.required_scopes,
                judged_by: settings.scopes_enforced_by,
                implications: settings.scope_implications,
                claims: settings.claims,
                routes: settings.routes,
            },
            cors: Cors::new(&settings.cors, &settings.origins),
            resource: settings.resource,
            authentication: settings.authentication,
            public_paths: settings.public_paths,
            limits: settings.limits,
            trusted_proxies: settings.trusted_proxies,
            origins: settings.origins,
            clock: settings.clock,
            sink: settings.sink,
            shutting_down: AtomicBool::new(false),
        }))
    }

    /// The URL that clients know the resource by.
    pub fn resource(&self) -> &ResourceUri {
        &self.resource
    }

    /// Says that the server no longer waits for answers. Requests that are dropped from now on are reported as
    /// `server.shutdown` with status 503; it is not their clients that went away.
    pub fn mark_shutting_down(&self) {
        self.shutting_down.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::Relaxed)
    }

    /// The resource's challenges, for a service behind the guard that judges scopes itself.
    pub fn challenges(&self) -> &Challenges {
        &self.challenges
    }

    /// Which scopes stand for others at this resource, for a service behind the guard that judges scopes itself.
    pub fn scope_implications(&self) -> &ScopeImplications {
        &self.rules.implications
    }

    /// Returns whether requests for this path need no token, because it is one of the
    /// [public paths](GuardSettings::public_paths).
    pub fn is_public(&self, path: &str) -> bool {
        self.public_paths.iter().any(|public| public == path)
    }

    /// The path that the metadata document is served at (RFC 9728 section 3.1); every challenge names it.
    pub fn metadata_path(&self) -> &str {
        self.document.path()
    }
}

impl fmt::Debug for ProtectedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtectedResource").field("resource", &self.resource).finish_non_exhaustive()
    }
}

/// All scopes that the resource names, if the settings can be used.
fn check(settings: &GuardSettings) -> Result<Scopes, GuardSettingsError> {
    let GuardSettings { resource, metadata, .. } = settings;
    if !is_https_or_loopback_http(resource.url()) {
        return Err(GuardSettingsError::InsecureResource(resource.clone()));
    }
    let same = |part, found: &ResourceUri| {
        if found == resource {
            return Ok(());
        }
        Err(GuardSettingsError::ResourceMismatch { part, expected: resource.clone(), found: found.clone() })
    };
    same("metadata", &metadata.resource)?;
    if let Authentication::Required(verifier) = &settings.authentication {
        same("verifier", verifier.resource())?;
        if metadata.authorization_servers.is_empty() {
            return Err(GuardSettingsError::NoAuthorizationServer);
        }
    }
    if let Some(member) = not_enforced(metadata) {
        return Err(GuardSettingsError::NotEnforced(member));
    }
    let printable = settings.realm.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if !printable || !(1..=256).contains(&settings.realm.len()) {
        return Err(GuardSettingsError::Realm);
    }
    if let Some(path) = settings.public_paths.iter().find(|path| !is_request_path(path)) {
        return Err(GuardSettingsError::PublicPath(path.clone()));
    }
    let mut supported = Scopes::empty();
    for name in &metadata.scopes_supported {
        let scope = Scopes::from_names([name.as_str()]).map_err(|_| GuardSettingsError::ScopeName(name.clone()))?;
        supported = supported.union(&scope);
    }
    let routes = settings.routes.iter().fold(Scopes::empty(), |all, rule| all.union(&rule.scopes));
    let implied = settings.scope_implications.names();
    for (place, scopes) in [
        ("required_scopes", &settings.required_scopes),
        ("scopes_supported", &supported),
        ("a route", &routes),
        ("the implied scopes", implied),
    ] {
        if scopes.contains("offline_access") {
            return Err(GuardSettingsError::OfflineAccess(place));
        }
    }
    Ok(supported.union(&settings.required_scopes).union(&routes).union(implied))
}

/// A member by which the document promises that tokens are bound to their sender.
fn not_enforced(metadata: &ProtectedResourceMetadata) -> Option<&'static str> {
    [
        ("dpop_signing_alg_values_supported", !metadata.dpop_signing_alg_values_supported.is_empty()),
        ("dpop_bound_access_tokens_required", metadata.dpop_bound_access_tokens_required == Some(true)),
        (
            "tls_client_certificate_bound_access_tokens",
            metadata.tls_client_certificate_bound_access_tokens == Some(true),
        ),
    ]
    .into_iter()
    .find_map(|(member, announced)| announced.then_some(member))
}

fn is_request_path(path: &str) -> bool {
    path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'*' | b'?' | b'#'))
}

/// The path form of the document's address, for a resource at `/` the root form.
fn metadata_url(resource: &ResourceUri) -> Url {
    let forms = protected_resource_urls(resource.url());
    forms.into_iter().next().unwrap_or_else(|| resource.url().clone())
}
