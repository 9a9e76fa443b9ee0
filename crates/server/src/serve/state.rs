//! The state of the server: issuers, sessions and the service stack of each resource, built from a plan.

mod builder;
mod former;
mod limits;
mod process;
#[cfg(test)]
mod tests;
mod upstream;

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use portcullis_endpoint::{Endpoint, EndpointBody, EndpointLayer};
use portcullis_guard::{Guard, GuardBody, OriginPolicy, ProtectedResource};
use portcullis_metadata::{Clock, ResourceUri};
use portcullis_verifier::{TrustedIssuer, Verifier};
use tokio::{task::JoinSet, time::timeout};

use self::{
    builder::{RuleLimits, StateBuilder},
    limits::SharedLimits,
    upstream::ResourceUpstream,
};
use super::{
    backend::{Backend, BackendBody},
    health::Readiness,
    limit_exchange::NumberedLimits,
};
use crate::{
    config::{Diagnostic, KeyPath},
    plan::{Fingerprint, Plan},
    telemetry::AccessLog,
};

pub(super) use self::process::Process;

/// The service stack of a resource: guard, endpoint, upstream.
pub(super) type Stack = Guard<Endpoint<Backend>>;
/// The response body of a [`Stack`].
pub(super) type StackBody = GuardBody<EndpointBody<BackendBody>>;

/// The RFC 9728 metadata path without an endpoint's path.
const ROOT_METADATA: &str = "/.well-known/oauth-protected-resource";

/// How long a new configuration waits for the keys of new and changed issuers.
const KEY_FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Everything that requests need, of one configuration.
pub(super) struct ServerState {
    process: Process,
    resources: Vec<Arc<Resource>>,
    issuers: Vec<ConfiguredIssuer>,
    limits: SharedLimits,
    numbered_limits: NumberedLimits,
    origins: OriginPolicy,
    shutdown_timeout: Duration,
    shutdown_delay: Duration,
    cached_tokens: usize,
    /// Resources of former configurations that requests in progress still use.
    former: Vec<Weak<ProtectedResource>>,
    /// None of them is in use, and what their requests had opened has ended.
    is_former_unused: AtomicBool,
}

/// An error about a key of the configuration.
fn diagnostic(key: &str, error: &anyhow::Error) -> Diagnostic {
    Diagnostic::new(&KeyPath::parse(key), &format!("{error:#}"))
}

/// An issuer and the fingerprint of its settings.
#[derive(Clone)]
struct ConfiguredIssuer {
    fingerprint: Fingerprint,
    issuer: Arc<TrustedIssuer>,
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
    layer: EndpointLayer,
    upstream: Arc<ResourceUpstream>,
    rule_limits: RuleLimits,
    /// The fingerprints of everything that the resource was built from: shared settings, its own, and those of its issuers.
    inputs: (Fingerprint, Fingerprint, Vec<Fingerprint>),
}

impl ServerState {
    /// Builds the state for the current runtime, without network access before
    /// [`spawn_key_refresh`](Self::spawn_key_refresh). Parts that have not changed since `former` are used again, with
    /// their keys, cached tokens, counts and connections.
    ///
    /// # Errors
    /// Fails when the plan cannot run. Nothing has changed then.
    pub(super) fn new(plan: &Plan, process: &Process, former: Option<&Self>) -> anyhow::Result<Self> {
        let limits = SharedLimits::new(plan, &process.clock, former.map(|former| &former.limits));
        let builder = StateBuilder { plan, process, former, limits: &limits };
        let issuers = builder.issuers()?;
        let mut resources = Vec::new();
        for (position, resource) in plan.resources.iter().enumerate() {
            let built = builder.resource(resource, &issuers);
            resources.push(built.map_err(|error| diagnostic(&format!("resource[{position}]"), &error))?);
        }
        let is_first = former.is_none();
        let replaced = former.into_iter().flat_map(|former| {
            let own = former.resources.iter().map(|resource| Arc::downgrade(&resource.resource));
            former.former.iter().filter(|former| former.strong_count() > 0).cloned().chain(own)
        });
        let is_current = |former: &Weak<ProtectedResource>| {
            resources.iter().any(|resource| std::ptr::eq(Arc::as_ptr(&resource.resource), former.as_ptr()))
        };
        let of_rules = resources.iter().flat_map(|resource| {
            let limits = resource.rule_limits.iter().enumerate();
            limits.map(|(position, (_, limit))| (format!("{} rule {position}", resource.endpoint), limit))
        });
        let numbered_limits = NumberedLimits::new(limits.named().chain(of_rules));
        let former: Vec<_> = replaced.filter(|former| !is_current(former)).collect();
        Ok(Self {
            numbered_limits,
            is_former_unused: AtomicBool::new(is_first),
            former,
            process: process.clone(),
            resources,
            issuers,
            limits,
            origins: plan.origins.clone(),
            shutdown_timeout: plan.shutdown_timeout,
            shutdown_delay: plan.shutdown_delay,
            cached_tokens: plan.limits.cached_tokens,
        })
    }

    /// Starts fetching the issuers' keys.
    pub(super) fn spawn_key_refresh(&self) {
        for ConfiguredIssuer { issuer, .. } in &self.issuers {
            issuer.spawn_refresh();
        }
    }

    /// Starts fetching the issuers' keys, and waits for those of issuers that `former` does not have, at most 5 s.
    /// Requests then find them.
    pub(super) async fn fetch_new_keys(&self, former: &Self) {
        self.spawn_key_refresh();
        let is_new = |new: &&ConfiguredIssuer| former.issuers.iter().all(|old| !Arc::ptr_eq(&old.issuer, &new.issuer));
        let mut fetches = JoinSet::new();
        for issuer in self.issuers.iter().filter(is_new).map(|new| Arc::clone(&new.issuer)) {
            fetches.spawn(async move { issuer.refresh_now().await });
        }
        if timeout(KEY_FETCH_TIMEOUT, async { while fetches.join_next().await.is_some() {} }).await.is_err() {
            tracing::warn!("the keys of a new issuer are not available yet");
        }
    }

    /// Returns the stack of the endpoint whose path or metadata path this is.
    pub(super) fn stack(&self, path: &str, worker: usize) -> Option<Stack> {
        let mount = self.resources.iter().find(|mount| mount.answers(path))?;
        mount.stacks.get(worker).cloned()
    }

    pub(super) fn readiness(&self) -> impl Iterator<Item = Readiness<'_>> {
        self.resources.iter().map(|mount| Readiness {
            endpoint: &mount.endpoint,
            issuers: mount.verifier.as_ref().map_or(&[], |verifier| verifier.issuers()),
        })
    }

    /// Returns the rate limits that replicas count together.
    pub(super) fn numbered_limits(&self) -> &NumberedLimits {
        &self.numbered_limits
    }

    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    /// Returns how long the server still accepts connections after the signal to shut down.
    pub(super) fn shutdown_delay(&self) -> Duration {
        self.shutdown_delay
    }

    /// Reports from now on that the server is not ready.
    pub(super) fn set_draining(&self) {
        self.process.is_draining.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.process.is_draining.load(Ordering::Relaxed)
    }

    /// Ends the event streams on which clients only listen, now and from now on.
    pub(super) fn end_listeners(&self) {
        let ended = self.process.streams.drain();
        if ended > 0 {
            tracing::info!(streams = ended, "event streams without a request end with the shutdown");
        }
    }

    /// Returns how long a shutdown waits for requests in progress.
    pub(super) fn shutdown_timeout(&self) -> Duration {
        self.shutdown_timeout
    }

    fn resource(&self, uri: &ResourceUri) -> Option<&Arc<Resource>> {
        self.resources.iter().find(|resource| resource.resource.resource() == uri)
    }

    /// Ends expired sessions and removes expired tokens.
    pub(super) fn sweep(&self) {
        self.process.sessions.sweep();
        self.end_opened_since_reload();
        for verifier in self.resources.iter().filter_map(|mount| mount.verifier.as_ref()) {
            verifier.sweep();
        }
    }

    /// Ends event streams whose authorization has ended, and rechecks introspected tokens that streams depend on.
    pub(super) fn sweep_streams(&self) {
        self.issuers.iter().for_each(|configured| configured.issuer.start_due_rechecks());
        self.process.streams.sweep();
    }

    /// Marks the requests in progress as cancelled by the shutdown.
    pub(super) fn cut_off(&self) {
        self.resources.iter().for_each(|mount| mount.resource.mark_shutting_down());
        self.former.iter().filter_map(Weak::upgrade).for_each(|former| former.mark_shutting_down());
    }

    /// Returns the policy for paths that belong to no endpoint.
    pub(super) fn origins(&self) -> &OriginPolicy {
        &self.origins
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.process.clock
    }

    pub(super) fn access(&self) -> &AccessLog {
        &self.process.observers.access
    }
}

impl Resource {
    fn answers(&self, path: &str) -> bool {
        path == self.endpoint || path == self.metadata_path || (self.root_metadata && path == ROOT_METADATA)
    }
}
