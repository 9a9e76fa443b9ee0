//! [`ProtectedResource`]: a resource and the prepared parts of its responses.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http::Method;
use portcullis_metadata::{Clock, ResourceUri, protected_resource_path};
use portcullis_verifier::{Principal, Verifier};
use url::Url;

use crate::{
    authorize::{Rules, ScopeImplications},
    client_address::TrustedProxies,
    cors::Cors,
    decision::DecisionSink,
    document::Document,
    limit::GuardLimits,
    origin::OriginPolicy,
    respond::Challenges,
    settings::{Authentication, GuardSettings, GuardSettingsError},
    trace::TraceSettings,
};

/// A protected resource: checked settings, the metadata document, challenges and header values.
///
/// All [`GuardLayer`](crate::GuardLayer)s that are created from it share it.
///
/// [`Guard::builder`](crate::Guard::builder) creates one for most services. With
/// [`new`](Self::new), every setting can be chosen, and several services can share the resource:
///
/// ```
/// use std::sync::Arc;
///
/// use portcullis_guard::{
///     Authentication, GuardLayer, GuardSettings, GuardSettingsError, ProtectedResource, Verifier,
///     metadata::ProtectedResourceMetadata,
/// };
///
/// fn layers(verifier: Arc<Verifier>) -> Result<[GuardLayer; 2], GuardSettingsError> {
///     let issuers = verifier.issuers().iter().map(|issuer| issuer.issuer().clone()).collect();
///     let metadata = ProtectedResourceMetadata::new(verifier.resource().clone(), issuers);
///     let mut settings = GuardSettings::new(metadata, Authentication::Required(verifier))?;
///     settings.root_metadata = false;
///     let resource = ProtectedResource::new(settings)?;
///     Ok([GuardLayer::new(resource.clone()), GuardLayer::new(resource)])
/// }
/// ```
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
    pub(crate) traces: Option<TraceSettings>,
    shutting_down: AtomicBool,
    superseded: AtomicBool,
}

impl ProtectedResource {
    /// Checks the settings and prepares the responses.
    ///
    /// If authentication is off, a warning is logged, and required scopes, routes and claim rules
    /// have no effect.
    ///
    /// # Errors
    /// Fails if
    ///
    /// - the resource is plain `http` on a host other than loopback,
    /// - the metadata or the verifier belongs to another resource,
    /// - the metadata lists no authorization server or announces something that the guard does not
    ///   enforce,
    /// - the scopes contain `offline_access` or `scopes_supported` contains an invalid name,
    /// - the realm is not 1 to 256 printable ASCII characters, or a public path is not the path of
    ///   a request.
    pub fn new(settings: GuardSettings) -> Result<Arc<Self>, GuardSettingsError> {
        let named_scopes = settings.check()?;
        let metadata_url = metadata_url(&settings.resource);
        let mut metadata = settings.metadata;
        metadata.bearer_methods_supported = Some(vec!["header".to_owned()]);
        if matches!(settings.authentication, Authentication::Off) {
            tracing::warn!(
                resource = settings.resource.as_str(),
                "authentication is off: requests need no token"
            );
        }
        Ok(Arc::new(Self {
            document: Document::new(&metadata, metadata_url.path(), settings.root_metadata),
            challenges: Challenges::new(
                &settings.realm,
                metadata_url,
                &settings.required_scopes,
                named_scopes,
                metadata.scopes_supported,
            ),
            rules: Rules {
                required: settings.required_scopes,
                enforced_by: settings.scopes_enforced_by,
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
            traces: settings.traces,
            shutting_down: AtomicBool::new(false),
            superseded: AtomicBool::new(false),
        }))
    }

    /// Returns the URL that clients know the resource by.
    pub fn resource(&self) -> &ResourceUri {
        &self.resource
    }

    /// Marks the server as shutting down. Requests whose future is dropped from now on are reported
    /// as `server.shutdown` with status 503, and not as `client.gone`.
    pub fn mark_shutting_down(&self) {
        self.shutting_down.store(true, Ordering::Relaxed);
    }

    /// Returns whether the server was [marked](Self::mark_shutting_down) as shutting down.
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::Relaxed)
    }

    /// Marks these settings as replaced by others, which new requests get already. A request whose
    /// body is still arriving is then not passed on by these settings: the inner service returns it
    /// as a [`SupersededRequest`](crate::SupersededRequest).
    pub fn mark_superseded(&self) {
        self.superseded.store(true, Ordering::Relaxed);
    }

    /// Returns whether these settings were [marked](Self::mark_superseded) as replaced.
    pub(crate) fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Relaxed)
    }

    /// Returns the verifier of the resource's tokens; `None` if authentication is off.
    pub fn verifier(&self) -> Option<&Arc<Verifier>> {
        match &self.authentication {
            Authentication::Required(verifier) => Some(verifier),
            Authentication::Off => None,
        }
    }

    /// Returns whether the claim rules, route rules and, if the guard enforces them, required
    /// scopes admit this principal.
    ///
    /// Neither the token nor any limit is checked. Use it for a request that was admitted with
    /// other settings and is still in progress.
    pub fn admits(&self, method: &Method, path: &str, principal: &Principal) -> bool {
        self.rules.authorize(method, path, principal).is_ok()
    }

    /// Returns the challenges, for a service behind the guard that checks scopes itself.
    pub fn challenges(&self) -> &Challenges {
        &self.challenges
    }

    /// Returns the scope implications, for a service behind the guard that checks scopes itself.
    pub fn scope_implications(&self) -> &ScopeImplications {
        &self.rules.implications
    }

    /// Returns whether requests for this path need no token, because it is one of the
    /// [public paths](GuardSettings::public_paths).
    pub fn is_public(&self, path: &str) -> bool {
        self.public_paths.iter().any(|public| public == path)
    }

    /// Returns the path of the metadata document (RFC 9728 section 3.1), which every challenge
    /// refers to.
    pub fn metadata_path(&self) -> &str {
        self.document.path()
    }
}

impl fmt::Debug for ProtectedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtectedResource")
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}

/// Returns the URL of the metadata document (RFC 9728 section 3.1).
fn metadata_url(resource: &ResourceUri) -> Url {
    let mut url = resource.url().clone();
    url.set_path(&protected_resource_path(resource.url().path()));
    url
}
