//! Building of the state from a plan, with the unchanged parts of the previous state.

use std::sync::Arc;

use portcullis_discovery::HttpFetch;
use portcullis_endpoint::{EndpointLayer, EndpointSettings};
use portcullis_guard::{
    Authentication, DecisionSink, GuardLayer, GuardSettings, ProtectedResource,
    authorize::ScopeEnforcer, limit::RateLimiter,
};
use portcullis_mcp::{ErrorCode, error_body};
use portcullis_metadata::ResourceUri;
use portcullis_telemetry::metrics::{MeasuredRequests, MeasuredTokens, ResourceMetrics};
use portcullis_verifier::{TrustedIssuer, Verifier, VerifierSettings};
use tower_layer::Layer as _;

use super::{
    broker::ConfiguredBroker,
    configured_issuer::ConfiguredIssuer,
    process::Process,
    resource::{Resource, ResourceInputs, RuleLimit},
    upstream::ResourceUpstream,
};
use crate::limits::shared::SharedLimits;
use portcullis_config::{
    Diagnostic, KeyPath,
    file::Authorization,
    plan::{Fingerprint, Plan, ResourcePlan, UpstreamPlan},
};

/// Builds the parts of a state.
pub(super) struct StateBuilder<'a> {
    pub(super) plan: &'a Plan,
    pub(super) process: &'a Process,
    pub(super) previous: Option<PreviousParts<'a>>,
    pub(super) limits: &'a SharedLimits,
}

/// The parts of the previous state that can be used again.
#[derive(Clone, Copy)]
pub(super) struct PreviousParts<'a> {
    pub(super) issuers: &'a [ConfiguredIssuer],
    pub(super) broker: Option<&'a ConfiguredBroker>,
    pub(super) resources: &'a [Arc<Resource>],
    /// The maximum number of cached tokens of each resource.
    pub(super) cached_tokens: usize,
}

impl StateBuilder<'_> {
    /// Builds the issuers, without network access. Those that have not changed keep their keys.
    /// Fails with the key of the first issuer whose settings cannot be used.
    pub(super) fn issuers(&self) -> anyhow::Result<Vec<ConfiguredIssuer>> {
        let previous = |fingerprint| {
            self.previous?
                .issuers
                .iter()
                .find(|previous| previous.fingerprint == fingerprint)
        };
        self.plan
            .issuers
            .iter()
            .enumerate()
            .map(|(position, plan)| {
                let fingerprint = plan.fingerprint;
                if let Some(previous) = previous(fingerprint) {
                    return Ok(previous.clone());
                }
                let key = format!("issuer[{position}]");
                let mut fetch = plan.fetch.clone();
                fetch.user_agent = Some(self.process.product.to_string());
                let fetch =
                    HttpFetch::new(fetch).map_err(|error| diagnostic(&key, &error.into()))?;
                let clock = Arc::clone(&self.process.clock);
                let control = tokio::runtime::Handle::current();
                let issuer =
                    TrustedIssuer::new(plan.settings.clone(), Arc::new(fetch), clock, control);
                let issuer = issuer.map_err(|error| diagnostic(&key, &error.into()))?;
                Ok(ConfiguredIssuer {
                    fingerprint,
                    issuer,
                })
            })
            .collect()
    }

    /// Builds the broker of the plan, if there is one. See [`ConfiguredBroker::new`].
    pub(super) fn broker(&self) -> anyhow::Result<Option<ConfiguredBroker>> {
        let previous = self.previous.and_then(|previous| previous.broker);
        let plan = self.plan.broker.as_ref();
        plan.map(|plan| ConfiguredBroker::new(plan, self.process, previous))
            .transpose()
    }

    /// Builds the resources in the order of the plan. Fails with the key of the first resource that
    /// cannot be built.
    pub(super) fn resources(
        &self,
        issuers: &[ConfiguredIssuer],
        broker: Option<&ConfiguredBroker>,
    ) -> anyhow::Result<Vec<Arc<Resource>>> {
        let build = |(position, plan)| {
            self.resource(plan, issuers, broker)
                .map_err(|error| diagnostic(&format!("resource[{position}]"), &error).into())
        };
        self.plan.resources.iter().enumerate().map(build).collect()
    }

    /// Builds a resource, or returns the previous one if neither it nor anything that it uses has
    /// changed.
    fn resource(
        &self,
        plan: &ResourcePlan,
        issuers: &[ConfiguredIssuer],
        broker: Option<&ConfiguredBroker>,
    ) -> anyhow::Result<Arc<Resource>> {
        let broker = broker.filter(|_| plan.accepts_broker);
        let issuers: Vec<&ConfiguredIssuer> = plan
            .issuers
            .iter()
            .map(|position| &issuers[*position])
            .chain(broker.map(|broker| &broker.issuer))
            .collect();
        let inputs = ResourceInputs {
            shared: self.plan.shared,
            own: plan.fingerprint,
            issuers: issuers.iter().map(|issuer| issuer.fingerprint).collect(),
        };
        let uri = &plan.metadata.resource;
        let previous = self.previous.and_then(|previous| previous.resource(uri));
        if let Some(previous) = previous.filter(|previous| previous.inputs == inputs) {
            return Ok(Arc::clone(previous));
        }
        let metrics = self
            .process
            .observers
            .metrics
            .as_ref()
            .map(|metrics| metrics.of_resource(uri));
        let verifier = self.verifier(plan, &issuers, previous, metrics.clone())?;
        let protected = self.protected_resource(plan, verifier.clone(), metrics.clone())?;
        let rule_limits = self.rule_limits(plan, previous);
        let endpoint = EndpointLayer::new(self.endpoint(plan, &protected, &rule_limits))?;
        let guard = GuardLayer::new(Arc::clone(&protected));
        let upstream = match previous
            .filter(|previous| previous.upstream.fingerprint == plan.upstream_fingerprint)
        {
            Some(previous) => Arc::clone(&previous.upstream),
            None => ResourceUpstream::new(plan, self.process)?,
        };
        let stacks = upstream
            .backends
            .iter()
            .map(|backend| guard.layer(endpoint.layer(backend.clone())))
            .collect();
        Ok(Arc::new(Resource {
            endpoint: plan.endpoint.clone(),
            metadata_path: protected.metadata_path().to_owned(),
            root_metadata: plan.root_metadata,
            protected,
            verifier,
            stacks,
            layer: endpoint,
            upstream,
            rule_limits: rule_limits.into_iter().flatten().collect(),
            metrics,
            inputs,
        }))
    }

    /// Builds the verifier, or returns the previous one, with its cached tokens, if it has the same
    /// issuers.
    fn verifier(
        &self,
        plan: &ResourcePlan,
        issuers: &[&ConfiguredIssuer],
        previous: Option<&Arc<Resource>>,
        metrics: Option<Arc<ResourceMetrics>>,
    ) -> anyhow::Result<Option<Arc<Verifier>>> {
        if plan.authorization == Authorization::None {
            return Ok(None);
        }
        let mut settings = VerifierSettings::new(plan.metadata.resource.clone());
        settings.max_token_bytes = self.plan.limits.max_token;
        settings.cache_entries = self.plan.limits.cached_tokens;
        settings.observer = metrics.map(|metrics| Arc::new(MeasuredTokens(metrics)) as _);
        settings.inactive_tokens = self
            .process
            .replicas
            .clone()
            .map(|replicas| Arc::new(replicas) as _);
        let has_same_cache = self
            .previous
            .is_some_and(|previous| previous.cached_tokens == settings.cache_entries);
        let previous = previous
            .and_then(|previous| previous.verifier.as_ref())
            .filter(|_| has_same_cache);
        let has_same_issuers = |previous: &&Arc<Verifier>| {
            let mut pairs = previous.issuers().iter().zip(issuers);
            previous.issuers().len() == issuers.len()
                && pairs.all(|(previous, new)| Arc::ptr_eq(previous, &new.issuer))
        };
        if let Some(previous) = previous.filter(has_same_issuers) {
            return Ok(Some(Arc::clone(previous)));
        }
        let issuers = issuers
            .iter()
            .map(|issuer| Arc::clone(&issuer.issuer))
            .collect();
        Ok(Some(Verifier::new(
            settings,
            issuers,
            Arc::clone(&self.process.clock),
        )?))
    }

    /// Builds what the guards of all workers share.
    fn protected_resource(
        &self,
        plan: &ResourcePlan,
        verifier: Option<Arc<Verifier>>,
        metrics: Option<Arc<ResourceMetrics>>,
    ) -> anyhow::Result<Arc<ProtectedResource>> {
        let authentication = verifier.map_or(Authentication::Off, Authentication::Required);
        let mut settings = GuardSettings::new(plan.metadata.clone(), authentication)?;
        settings.realm.clone_from(&plan.realm);
        settings.root_metadata = plan.root_metadata;
        settings.required_scopes = plan.required_scopes.clone();
        settings.scopes_enforced_by = ScopeEnforcer::Inner;
        settings.scope_implications = plan.scope_implications.clone();
        settings.claims.clone_from(&plan.claims);
        settings.routes.clone_from(&plan.routes);
        settings.origins = plan.origins.clone();
        settings.cors = EndpointSettings::cors(&plan.session_header);
        settings.limits = self.limits.guard.clone();
        // The guard rejects the request before its message is read.
        let exceeded = error_body(
            ErrorCode::InternalError,
            "Too many requests; try again later",
            None,
            None,
        );
        settings.limits.exceeded_body = Some(exceeded.into());
        settings.trusted_proxies = self.plan.rates.proxies.clone();
        settings.clock = Arc::clone(&self.process.clock);
        let observers = Arc::clone(&self.process.observers);
        settings.sink = match metrics {
            Some(metrics) => Arc::new(MeasuredRequests {
                inner: observers,
                metrics,
            }) as Arc<dyn DecisionSink>,
            None => observers,
        };
        settings.traces = self.plan.traces.as_ref().map(|traces| traces.sampling);
        Ok(ProtectedResource::new(settings)?)
    }

    /// Returns the rate limit of each rule; `None` for a rule without one. Rules that have not
    /// changed keep their counts.
    fn rule_limits(
        &self,
        plan: &ResourcePlan,
        previous: Option<&Arc<Resource>>,
    ) -> Vec<Option<RuleLimit>> {
        let mut kept: Vec<RuleLimit> = previous
            .map(|previous| previous.rule_limits.clone())
            .unwrap_or_default();
        let limit = |(rate, fingerprint): (&Option<_>, &Fingerprint)| {
            let rate = (*rate)?;
            // Of two equal rules, each has its own.
            let position = kept
                .iter()
                .position(|previous| previous.fingerprint == *fingerprint);
            Some(
                position
                    .map(|position| kept.swap_remove(position))
                    .unwrap_or_else(|| {
                        let clock = Arc::clone(&self.process.clock);
                        RuleLimit {
                            fingerprint: *fingerprint,
                            limiter: RateLimiter::new(rate, self.plan.rates.entries, clock),
                        }
                    }),
            )
        };
        plan.rates
            .iter()
            .zip(&plan.rule_fingerprints)
            .map(limit)
            .collect()
    }

    fn endpoint(
        &self,
        plan: &ResourcePlan,
        resource: &Arc<ProtectedResource>,
        rule_limits: &[Option<RuleLimit>],
    ) -> EndpointSettings {
        let mut settings =
            EndpointSettings::new(Arc::clone(resource), self.process.sessions.clone());
        settings.ended_status = self.plan.session.ended_status;
        settings.required_scopes = plan.required_scopes.clone();
        settings.rules.clone_from(&plan.rules);
        for (rule, limit) in settings.rules.iter_mut().zip(rule_limits) {
            rule.limit = limit.as_ref().map(|limit| Arc::clone(&limit.limiter));
        }
        settings.revisions = plan.revisions;
        settings.session_header = plan.session_header.clone();
        settings.session_mode = plan.session_mode;
        settings.response_grace = plan.response_grace;
        settings.upstream = plan.upstream.identity().into();
        if let UpstreamPlan::Http(upstream) = &plan.upstream {
            settings.head_timeout = upstream.head_timeout;
        }
        settings.max_body = self.plan.limits.max_body;
        settings.max_depth = self.plan.limits.max_depth;
        settings.budget = Arc::clone(&self.limits.body_budget);
        settings.streams = self.process.streams.clone();
        settings
    }
}

impl<'a> PreviousParts<'a> {
    fn resource(&self, uri: &ResourceUri) -> Option<&'a Arc<Resource>> {
        self.resources
            .iter()
            .find(|resource| resource.protected.resource() == uri)
    }
}

/// Returns an error about a key of the configuration.
fn diagnostic(key: &str, error: &anyhow::Error) -> Diagnostic {
    Diagnostic::new(&KeyPath::parse(key), &format!("{error:#}"))
}
