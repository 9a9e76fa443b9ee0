use std::sync::Arc;

use http::Method;
use portcullis_metadata::{ProtectedResourceMetadata, Scopes, ScopesError};
use portcullis_verifier::Verifier;

use crate::{
    authorize::{ClaimRule, PathGlob, PathGlobError, RouteRule},
    client_address::TrustedProxies,
    cors::CorsSettings,
    decision::DecisionSink,
    layer::{Guard, GuardLayer},
    limit::{ConcurrencyLimiter, GuardLimits},
    origin::OriginPolicyError,
    resource::ProtectedResource,
    settings::{Authentication, GuardSettings, GuardSettingsError},
};

impl Guard<()> {
    /// As [`GuardLayer::builder`].
    pub fn builder(verifier: Arc<Verifier>) -> GuardBuilder {
        GuardLayer::builder(verifier)
    }
}

impl GuardLayer {
    /// Starts a builder for a guard that requires a token which `verifier` accepts. The verifier's
    /// resource is the protected resource.
    ///
    /// See the [crate documentation](crate) for an example.
    pub fn builder(verifier: Arc<Verifier>) -> GuardBuilder {
        let issuers = verifier
            .issuers()
            .iter()
            .map(|issuer| issuer.issuer().clone())
            .collect();
        let metadata = ProtectedResourceMetadata::new(verifier.resource().clone(), issuers);
        let settings =
            GuardSettings::new(metadata, Authentication::Required(verifier)).map(|mut settings| {
                settings.limits.in_flight = Some(ConcurrencyLimiter::new(
                    ConcurrencyLimiter::DEFAULT_REQUESTS,
                    ConcurrencyLimiter::DEFAULT_STREAMS,
                ));
                settings
            });
        GuardBuilder {
            settings: settings.map_err(GuardBuilderError::from),
        }
    }
}

/// Builds a [`GuardLayer`]. [`GuardLayer::builder`] creates it.
///
/// Without further settings the guard behaves as in `portcullis serve`: every request needs a valid
/// token, no scope is required, each principal may have [100
/// requests](ConcurrencyLimiter::DEFAULT_REQUESTS) and as many event streams in progress, other
/// rates are not limited, and decisions are logged with `tracing`.
///
/// The guard does not limit the size of a request body, and does not speak TLS.
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct GuardBuilder {
    /// The first error is kept until `build`.
    settings: Result<GuardSettings, GuardBuilderError>,
}

impl GuardBuilder {
    /// Sets the scopes that every request needs, separated by spaces. Default: none.
    ///
    /// They are also the metadata's `scopes_supported` unless
    /// [`scopes_supported`](Self::scopes_supported) names some.
    pub fn required_scopes(self, scopes: &str) -> Self {
        self.try_set(|settings| {
            settings.required_scopes = parse_scopes("required_scopes", scopes)?;
            Ok(())
        })
    }

    /// Sets the scopes that the metadata lists for clients, separated by spaces. Default: the
    /// [required scopes](Self::required_scopes).
    pub fn scopes_supported(self, scopes: &str) -> Self {
        self.try_set(|settings| {
            let scopes = parse_scopes("scopes_supported", scopes)?;
            settings.metadata.scopes_supported = scopes.iter().map(str::to_owned).collect();
            Ok(())
        })
    }

    /// Adds a [route rule](RouteRule): requests with one of these methods (any method if the list
    /// is empty) to paths that match the [pattern](PathGlob) need these scopes too.
    pub fn route(
        self,
        methods: impl IntoIterator<Item = Method>,
        path: &str,
        scopes: &str,
    ) -> Self {
        self.try_set(|settings| {
            let pattern = PathGlob::parse(path);
            let path = pattern.map_err(|reason| GuardBuilderError::Route {
                path: path.to_owned(),
                reason,
            })?;
            settings
                .routes
                .push(RouteRule::new(path, parse_scopes("route", scopes)?).methods(methods));
            Ok(())
        })
    }

    /// Adds a claim rule. Every rule must be met.
    pub fn claim(self, rule: ClaimRule) -> Self {
        self.configure(|settings| settings.claims.push(rule))
    }

    /// Leaves one path open: its requests need no token. The path is compared byte for byte and is
    /// not a pattern. See [`GuardSettings::public_paths`].
    pub fn public_path(self, path: impl Into<String>) -> Self {
        self.configure(|settings| settings.public_paths.push(path.into()))
    }

    /// Sets the `realm` of the challenges, a name for the API within its origin. Default: the
    /// resource's host.
    pub fn realm(self, realm: impl Into<String>) -> Self {
        self.configure(|settings| settings.realm = realm.into())
    }

    /// Accepts one more host; see [`OriginPolicy::allow_host`](crate::OriginPolicy::allow_host).
    /// Default: any host, or any loopback host if the resource is on loopback.
    pub fn allow_host(self, host: &str) -> Self {
        self.try_set(|settings| {
            settings.origins = settings.origins.clone().allow_host(host)?;
            Ok(())
        })
    }

    /// Accepts one more origin; see
    /// [`OriginPolicy::allow_origin`](crate::OriginPolicy::allow_origin). Default: any origin, or
    /// any loopback origin if the resource is on loopback.
    pub fn allow_origin(self, origin: &str) -> Self {
        self.try_set(|settings| {
            settings.origins = settings.origins.clone().allow_origin(origin)?;
            Ok(())
        })
    }

    /// Sets what web pages of other origins may send and read.
    pub fn cors(self, cors: CorsSettings) -> Self {
        self.configure(|settings| settings.cors = cors)
    }

    /// Replaces the limits, also the default one on requests in progress.
    pub fn limits(self, limits: GuardLimits) -> Self {
        self.configure(|settings| settings.limits = limits)
    }

    /// Sets the proxies whose forwarding header is trusted. Default: none.
    pub fn trusted_proxies(self, proxies: TrustedProxies) -> Self {
        self.configure(|settings| settings.trusted_proxies = proxies)
    }

    /// Sets the receiver of the decisions. Default: [`TracingSink`](crate::TracingSink).
    pub fn decision_sink(self, sink: impl DecisionSink) -> Self {
        self.configure(|settings| settings.sink = Arc::new(sink))
    }

    /// Changes any of the settings, for those that have no method here.
    pub fn configure(self, change: impl FnOnce(&mut GuardSettings)) -> Self {
        self.try_set(|settings| {
            change(settings);
            Ok(())
        })
    }

    /// Builds the layer.
    ///
    /// # Errors
    /// Fails if an argument cannot be used, or [`ProtectedResource::new`] fails.
    pub fn build(self) -> Result<GuardLayer, GuardBuilderError> {
        let mut settings = self.settings?;
        if settings.metadata.scopes_supported.is_empty() {
            settings.metadata.scopes_supported =
                settings.required_scopes.iter().map(str::to_owned).collect();
        }
        Ok(GuardLayer::new(ProtectedResource::new(settings)?))
    }

    fn try_set(
        mut self,
        set: impl FnOnce(&mut GuardSettings) -> Result<(), GuardBuilderError>,
    ) -> Self {
        if let Ok(settings) = &mut self.settings
            && let Err(error) = set(settings)
        {
            self.settings = Err(error);
        }
        self
    }
}

/// Why a [`GuardBuilder`] cannot build a guard. The message names the argument or setting to
/// correct.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuardBuilderError {
    /// A list of scopes is malformed (RFC 6749 section 3.3).
    #[error("{method}({scopes:?}): {reason}; separate the scopes by spaces")]
    Scopes {
        /// The builder's method.
        method: &'static str,
        /// The string that was passed.
        scopes: String,
        /// The reason why the scopes are malformed.
        reason: ScopesError,
    },
    /// The path pattern of a route rule is malformed.
    #[error("route({path:?}): {reason}")]
    Route {
        /// The string that was passed.
        path: String,
        /// The reason why the pattern is malformed.
        reason: PathGlobError,
    },
    /// An allowed host or origin is malformed.
    #[error(transparent)]
    Origin(#[from] OriginPolicyError),
    /// The settings cannot be used together.
    #[error(transparent)]
    Settings(#[from] GuardSettingsError),
}

impl GuardBuilderError {
    /// Returns a stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Scopes { reason, .. } => reason.code(),
            Self::Route { .. } => "settings.route_path",
            Self::Origin(error) => error.code(),
            Self::Settings(error) => error.code(),
        }
    }
}

/// Parses the scopes that were passed to a method of the builder.
fn parse_scopes(method: &'static str, scopes: &str) -> Result<Scopes, GuardBuilderError> {
    Scopes::parse(scopes).map_err(|reason| GuardBuilderError::Scopes {
        method,
        scopes: scopes.to_owned(),
        reason,
    })
}
