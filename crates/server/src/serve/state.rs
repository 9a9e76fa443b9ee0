//! The state of the server: issuers, sessions and the service stack of each resource, built from a plan.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::Context as _;
use portcullis_discovery::HttpFetch;
use portcullis_endpoint::{
    BodyBudget, EndedSessionStatus, Endpoint, EndpointBody, EndpointLayer, EndpointSettings, Plain, StreamRegistry,
};
use portcullis_gateway::{HttpUpstream, HttpUpstreamSettings};
use portcullis_guard::{
    Authentication, ConcurrencyLimiter, Guard, GuardBody, GuardLayer, GuardLimits, GuardSettings, OriginPolicy,
    ProtectedResource, Rate, RateLimiter, ScopeEnforcer,
};
use portcullis_metadata::Clock;
use portcullis_session::SessionStore;
use portcullis_verifier::{TrustedIssuer, Verifier, VerifierSettings};
use tower_layer::Layer as _;

use super::{
    backend::{Backend, BackendBody, BackendService},
    health::Readiness,
    legacy_calls::LegacyCalls,
    observers::Observers,
    sessions::{
        initialize::InitializeCalls,
        upstream_end::{SessionEvents, Upstream, UpstreamEndQueue, UpstreamEnder, Upstreams},
    },
};
use crate::{
    config::{Authorization, Limits},
    demo::{self, DemoService},
    plan::{Plan, RatesPlan, ResourcePlan, UpstreamPlan},
    telemetry::AccessLog,
};

/// The service stack of a resource: guard, endpoint, upstream.
pub(super) type Stack = Guard<Endpoint<Backend>>;
/// The response body of a [`Stack`].
pub(super) type StackBody = GuardBody<EndpointBody<BackendBody>>;

/// The RFC 9728 metadata path without an endpoint's path.
const ROOT_METADATA: &str = "/.well-known/oauth-protected-resource";

/// Everything that requests need, of one configuration.
pub(super) struct ServerState {
    resources: Vec<Resource>,
    issuers: Vec<Arc<TrustedIssuer>>,
    sessions: SessionStore,
    streams: StreamRegistry,
    origins: OriginPolicy,
    clock: Arc<dyn Clock>,
    access: Arc<AccessLog>,
    is_draining: AtomicBool,
}

/// One protected endpoint.
struct Resource {
    endpoint: String,
    metadata_path: String,
    root_metadata: bool,
    resource: Arc<ProtectedResource>,
    /// `None` without authorization.
    verifier: Option<Arc<Verifier>>,
    /// One stack per worker, so that upstream connections stay on one thread.
    stacks: Vec<Stack>,
}

impl ServerState {
    /// Builds the state for the current runtime, without network access before [`spawn_key_refresh`](Self::spawn_key_refresh).
    pub(super) fn new(
        plan: &Plan,
        clock: Arc<dyn Clock>,
        observers: Observers,
    ) -> anyhow::Result<(Self, UpstreamEnder)> {
        let issuers = trusted_issuers(plan, &clock)?;
        let (events, queued) = SessionEvents::new(observers.audit.clone());
        let upstream_ends = events.upstream_ends().clone();
        let sessions = SessionStore::new(plan.session.settings.clone(), Arc::clone(&clock), Arc::new(events));
        let observers = Arc::new(observers);
        let streams = StreamRegistry::new(Arc::clone(&clock), Arc::clone(&observers) as _);
        let builder = StateBuilder {
            limits: &plan.limits,
            rates: &plan.rates,
            guard_limits: guard_limits(plan, &clock),
            workers: plan.workers,
            budget: BodyBudget::new(plan.limits.body_budget),
            sessions: sessions.clone(),
            streams: streams.clone(),
            clock: &clock,
            observers: Arc::clone(&observers),
            ended_status: plan.session.ended_status,
            upstream_ends,
        };
        let mut resources = Vec::new();
        let mut upstreams = Upstreams::new();
        for resource in &plan.resources {
            let name = || format!("resource {:?}", resource.endpoint);
            let demo = matches!(resource.upstream, UpstreamPlan::Demo).then(demo::service);
            resources.push(builder.resource(resource, &issuers, demo.as_ref()).with_context(name)?);
            let upstream = match (&resource.upstream, demo) {
                (UpstreamPlan::Http(settings), _) => Upstream::Http(builder.upstream(settings)?),
                (UpstreamPlan::Demo, Some(demo)) => Upstream::Demo(Box::new(demo)),
                (UpstreamPlan::Demo, None) => continue,
            };
            upstreams.insert(resource.metadata.resource.clone(), (resource.session_header.clone(), upstream));
        }
        let origins = plan.origins.clone();
        let access = Arc::clone(&observers.access);
        let is_draining = AtomicBool::new(false);
        let state = Self { resources, issuers, sessions, streams, origins, clock, access, is_draining };
        Ok((state, UpstreamEnder { queued, upstreams }))
    }

    /// Starts fetching the issuers' keys.
    pub(super) fn spawn_key_refresh(&self) {
        for issuer in &self.issuers {
            issuer.spawn_refresh();
        }
    }

    /// Returns the stack of the endpoint whose path or metadata path this is.
    pub(super) fn stack(&self, path: &str, worker: usize) -> Option<Stack> {
        let mount = self.resources.iter().find(|mount| mount.answers(path))?;
        mount.stacks.get(worker).cloned()
    }

    /// Reports from now on that the server is not ready.
    pub(super) fn set_draining(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Ends the event streams on which clients only listen, now and from now on.
    pub(super) fn end_listeners(&self) {
        let ended = self.streams.drain();
        if ended > 0 {
            tracing::info!(streams = ended, "event streams without a request end with the shutdown");
        }
    }

    pub(super) fn readiness(&self) -> impl Iterator<Item = Readiness<'_>> {
        self.resources.iter().map(|mount| Readiness {
            endpoint: &mount.endpoint,
            issuers: mount.verifier.as_ref().map_or(&[], |verifier| verifier.issuers()),
        })
    }

    pub(super) fn sessions(&self) -> &SessionStore {
        &self.sessions
    }

    /// Ends expired sessions and removes expired tokens.
    pub(super) fn sweep(&self) {
        self.sessions.sweep();
        for verifier in self.resources.iter().filter_map(|mount| mount.verifier.as_ref()) {
            verifier.sweep();
        }
    }

    /// Ends event streams whose authorization has ended, and rechecks introspected tokens that streams depend on.
    pub(super) fn sweep_streams(&self) {
        self.issuers.iter().for_each(|issuer| issuer.start_due_rechecks());
        self.streams.sweep();
    }

    /// Marks the requests in progress as cancelled by the shutdown.
    pub(super) fn cut_off(&self) {
        self.resources.iter().for_each(|mount| mount.resource.mark_shutting_down());
    }

    /// Returns the policy for paths that belong to no endpoint.
    pub(super) fn origins(&self) -> &OriginPolicy {
        &self.origins
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(super) fn access(&self) -> &AccessLog {
        &self.access
    }
}

impl Resource {
    fn answers(&self, path: &str) -> bool {
        path == self.endpoint || path == self.metadata_path || (self.root_metadata && path == ROOT_METADATA)
    }
}

fn trusted_issuers(plan: &Plan, clock: &Arc<dyn Clock>) -> anyhow::Result<Vec<Arc<TrustedIssuer>>> {
    plan.issuers
        .iter()
        .map(|issuer| {
            let name = || format!("issuer {:?}", issuer.settings.issuer.as_str());
            let fetch = HttpFetch::new(issuer.fetch.clone()).with_context(name)?;
            let control = tokio::runtime::Handle::current();
            Ok(TrustedIssuer::new(issuer.settings.clone(), Arc::new(fetch), Arc::clone(clock), control)?)
        })
        .collect()
}

/// Returns the limits that all resources share, so that using several resources does not raise them.
fn guard_limits(plan: &Plan, clock: &Arc<dyn Clock>) -> GuardLimits {
    let rates = &plan.rates;
    let limiter = |rate: Option<Rate>| rate.map(|rate| RateLimiter::new(rate, rates.entries, Arc::clone(clock)));
    // A session has one stream that its client listens on, so streams have the limit of sessions.
    let in_progress = ConcurrencyLimiter::new(plan.limits.in_flight_per_principal, plan.session.settings.max_per_owner);
    let mut limits = GuardLimits::default();
    limits.per_address = limiter(rates.per_address);
    limits.per_principal = limiter(rates.per_principal);
    limits.in_flight = Some(in_progress);
    limits
}

/// Builds resources from their shared parts.
struct StateBuilder<'a> {
    limits: &'a Limits,
    rates: &'a RatesPlan,
    guard_limits: GuardLimits,
    workers: usize,
    budget: Arc<BodyBudget>,
    sessions: SessionStore,
    streams: StreamRegistry,
    ended_status: EndedSessionStatus,
    upstream_ends: UpstreamEndQueue,
    clock: &'a Arc<dyn Clock>,
    observers: Arc<Observers>,
}

impl StateBuilder<'_> {
    fn upstream(&self, settings: &HttpUpstreamSettings) -> anyhow::Result<HttpUpstream> {
        Ok(HttpUpstream::new(settings.clone(), Arc::clone(self.clock))?)
    }

    fn resource(
        &self,
        plan: &ResourcePlan,
        issuers: &[Arc<TrustedIssuer>],
        demo: Option<&DemoService>,
    ) -> anyhow::Result<Resource> {
        let verifier = self.verifier(plan, issuers)?;
        let resource = self.protected_resource(plan, verifier.clone())?;
        let endpoint = EndpointLayer::new(self.endpoint(plan, &resource))?;
        let guard = GuardLayer::new(Arc::clone(&resource));
        let initialize_calls = Arc::new(InitializeCalls {
            resource: plan.metadata.resource.clone(),
            header: plan.session_header.clone(),
            upstream_ends: self.upstream_ends.clone(),
        });
        let legacy_calls = LegacyCalls::new(plan.session_header.clone());
        let stacks = (0..self.workers)
            .map(|_| {
                let service = match &plan.upstream {
                    UpstreamPlan::Http(settings) => BackendService::Http(self.upstream(settings)?),
                    UpstreamPlan::Demo => {
                        BackendService::Demo(Box::new(Plain::new(demo.context("the demo server")?.clone())))
                    }
                };
                Ok(guard.layer(endpoint.layer(Backend::new(
                    service,
                    Arc::clone(&initialize_calls),
                    Arc::clone(&legacy_calls),
                ))))
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Resource {
            endpoint: plan.endpoint.clone(),
            metadata_path: resource.metadata_path().to_owned(),
            root_metadata: plan.root_metadata,
            resource,
            verifier,
            stacks,
        })
    }

    fn verifier(&self, plan: &ResourcePlan, issuers: &[Arc<TrustedIssuer>]) -> anyhow::Result<Option<Arc<Verifier>>> {
        if plan.authorization == Authorization::None {
            return Ok(None);
        }
        let issuers = plan.issuers.iter().map(|position| Arc::clone(&issuers[*position])).collect();
        let mut settings = VerifierSettings::new(plan.metadata.resource.clone());
        settings.max_token_bytes = self.limits.max_token;
        settings.cache_entries = self.limits.cached_tokens;
        Ok(Some(Verifier::new(settings, issuers, Arc::clone(self.clock))?))
    }

    fn protected_resource(
        &self,
        plan: &ResourcePlan,
        verifier: Option<Arc<Verifier>>,
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
        settings.limits = self.guard_limits.clone();
        settings.trusted_proxies = self.rates.proxies.clone();
        settings.clock = Arc::clone(self.clock);
        settings.sink = Arc::clone(&self.observers) as _;
        Ok(ProtectedResource::new(settings)?)
    }

    fn endpoint(&self, plan: &ResourcePlan, resource: &Arc<ProtectedResource>) -> EndpointSettings {
        let mut settings = EndpointSettings::new(Arc::clone(resource), self.sessions.clone());
        settings.ended_status = self.ended_status;
        settings.required_scopes = plan.required_scopes.clone();
        settings.rules.clone_from(&plan.rules);
        for (rule, rate) in settings.rules.iter_mut().zip(&plan.rates) {
            rule.limit = rate.map(|rate| RateLimiter::new(rate, self.rates.entries, Arc::clone(self.clock)));
        }
        settings.revisions = plan.revisions;
        settings.session_header = plan.session_header.clone();
        settings.max_body = self.limits.max_body;
        settings.max_depth = self.limits.max_depth;
        settings.budget = Arc::clone(&self.budget);
        settings.streams = self.streams.clone();
        settings
    }
}
