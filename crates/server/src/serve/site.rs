//! Everything that requests are answered by, built from a plan and replaced as one.

use std::sync::Arc;

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
    backend::{self, Backend, BackendBody},
    closer::{Closer, Closing, Leftovers, Upstream, Upstreams},
    health::Readiness,
    opening::Openings,
    sinks::Sinks,
};
use crate::{
    config::{Authorization, Limits},
    demo::{self, DemoService},
    plan::{Plan, RatesPlan, ResourcePlan, UpstreamPlan},
    telemetry::AccessLog,
};

/// The layers that a request passes, from the outside.
pub(super) type Stack = Guard<Endpoint<Backend>>;
/// The body of an answer that came through them.
pub(super) type SiteBody = GuardBody<EndpointBody<BackendBody>>;

/// Where RFC 9728 metadata stands when it is asked for without an endpoint's path.
const ROOT_METADATA: &str = "/.well-known/oauth-protected-resource";

/// All protected endpoints of one configuration.
pub(super) struct Site {
    mounts: Vec<Mount>,
    issuers: Vec<Arc<TrustedIssuer>>,
    sessions: SessionStore,
    streams: StreamRegistry,
    origins: OriginPolicy,
    clock: Arc<dyn Clock>,
    access: Arc<AccessLog>,
}

/// One protected endpoint.
struct Mount {
    endpoint: String,
    metadata_path: String,
    root_metadata: bool,
    resource: Arc<ProtectedResource>,
    /// None where authorization is off.
    verifier: Option<Arc<Verifier>>,
    /// One a worker, so that upstream connections never cross threads.
    stacks: Vec<Stack>,
}

impl Site {
    /// Builds it, for the runtime that it is called on. Nothing is asked of anybody before [`start`](Self::start).
    pub(super) fn new(plan: &Plan, clock: Arc<dyn Clock>, sinks: Sinks) -> anyhow::Result<(Self, Closing)> {
        let issuers = trusted_issuers(plan, &clock)?;
        let (closer, over) = Closer::new(sinks.audit.clone());
        let leftovers = closer.leftovers().clone();
        let sessions = SessionStore::new(plan.session.settings.clone(), Arc::clone(&clock), Arc::new(closer));
        let sinks = Arc::new(sinks);
        let streams = StreamRegistry::new(Arc::clone(&clock), Arc::clone(&sinks) as _);
        let shared = Shared {
            limits: &plan.limits,
            rates: &plan.rates,
            guard_limits: guard_limits(plan, &clock),
            workers: plan.workers,
            budget: BodyBudget::new(plan.limits.body_budget),
            sessions: sessions.clone(),
            streams: streams.clone(),
            clock: &clock,
            sinks: Arc::clone(&sinks),
            ended_status: plan.session.ended_status,
            leftovers,
        };
        let mut mounts = Vec::new();
        let mut upstreams = Upstreams::new();
        for resource in &plan.resources {
            let name = || format!("resource {:?}", resource.endpoint);
            let demo = matches!(resource.upstream, UpstreamPlan::Demo).then(demo::service);
            mounts.push(shared.mount(resource, &issuers, demo.as_ref()).with_context(name)?);
            let upstream = match (&resource.upstream, demo) {
                (UpstreamPlan::Http(settings), _) => Upstream::Http(shared.upstream(settings)?),
                (UpstreamPlan::Demo, Some(demo)) => Upstream::Demo(Box::new(demo)),
                (UpstreamPlan::Demo, None) => continue,
            };
            upstreams.insert(resource.metadata.resource.clone(), (resource.session_header.clone(), upstream));
        }
        let origins = plan.origins.clone();
        let access = Arc::clone(&sinks.access);
        let site = Self { mounts, issuers, sessions, streams, origins, clock, access };
        Ok((site, Closing { over, upstreams }))
    }

    /// Starts fetching the issuers' keys.
    pub(super) fn start(&self) {
        for issuer in &self.issuers {
            issuer.spawn_refresh();
        }
    }

    /// The stack of the endpoint that a path belongs to, as its endpoint or as its metadata.
    pub(super) fn stack(&self, path: &str, worker: usize) -> Option<Stack> {
        let mount = self.mounts.iter().find(|mount| mount.answers(path))?;
        mount.stacks.get(worker).cloned()
    }

    pub(super) fn readiness(&self) -> impl Iterator<Item = Readiness<'_>> {
        self.mounts.iter().map(|mount| Readiness {
            endpoint: &mount.endpoint,
            issuers: mount.verifier.as_ref().map_or(&[], |verifier| verifier.issuers()),
        })
    }

    pub(super) fn sessions(&self) -> &SessionStore {
        &self.sessions
    }

    /// Ends what is over: sessions and cached tokens.
    pub(super) fn sweep(&self) {
        self.sessions.sweep();
        for verifier in self.mounts.iter().filter_map(|mount| mount.verifier.as_ref()) {
            verifier.sweep();
        }
    }

    /// Ends event streams whose authorization has ended, and has introspected tokens checked again that streams depend on.
    pub(super) fn sweep_streams(&self) {
        self.issuers.iter().for_each(|issuer| issuer.recheck_due());
        self.streams.sweep();
    }

    /// Says that requests still under way are given up.
    pub(super) fn cut_off(&self) {
        self.mounts.iter().for_each(|mount| mount.resource.mark_shutting_down());
    }

    /// The policy for paths that belong to no endpoint.
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

impl Mount {
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

/// One limit for all resources, so that nobody gets more by going to several.
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

/// What all endpoints share.
struct Shared<'a> {
    limits: &'a Limits,
    rates: &'a RatesPlan,
    guard_limits: GuardLimits,
    workers: usize,
    budget: Arc<BodyBudget>,
    sessions: SessionStore,
    streams: StreamRegistry,
    ended_status: EndedSessionStatus,
    leftovers: Leftovers,
    clock: &'a Arc<dyn Clock>,
    sinks: Arc<Sinks>,
}

impl Shared<'_> {
    fn upstream(&self, settings: &HttpUpstreamSettings) -> anyhow::Result<HttpUpstream> {
        Ok(HttpUpstream::new(settings.clone(), Arc::clone(self.clock))?)
    }

    fn mount(
        &self,
        plan: &ResourcePlan,
        issuers: &[Arc<TrustedIssuer>],
        demo: Option<&DemoService>,
    ) -> anyhow::Result<Mount> {
        let verifier = self.verifier(plan, issuers)?;
        let resource = self.protected_resource(plan, verifier.clone())?;
        let endpoint = EndpointLayer::new(self.endpoint(plan, &resource))?;
        let guard = GuardLayer::new(Arc::clone(&resource));
        let openings = Arc::new(Openings {
            resource: plan.metadata.resource.clone(),
            header: plan.session_header.clone(),
            leftovers: self.leftovers.clone(),
        });
        let stacks = (0..self.workers)
            .map(|_| {
                let kind = match &plan.upstream {
                    UpstreamPlan::Http(settings) => backend::Kind::Http(self.upstream(settings)?),
                    UpstreamPlan::Demo => {
                        backend::Kind::Demo(Box::new(Plain::new(demo.context("the demo server")?.clone())))
                    }
                };
                Ok(guard.layer(endpoint.layer(Backend::new(kind, Arc::clone(&openings)))))
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Mount {
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
        settings.sink = Arc::clone(&self.sinks) as _;
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
