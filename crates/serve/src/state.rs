//! The state of the server: issuers, sessions and the service stack of each resource, built from a
//! plan.

mod broker;
mod builder;
mod configured_issuer;
mod ending;
mod metrics;
mod process;
mod replaced;
mod resource;
#[cfg(test)]
mod tests;
mod upstream;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use http::StatusCode;
use portcullis_broker::Broker;
use portcullis_guard::OriginPolicy;
use portcullis_metadata::{Clock, ResourceUri};
use portcullis_telemetry::AccessLog;
use portcullis_verifier::{TrustedIssuer, Verifier};
use serde_json::Value;
use tokio::{task::JoinSet, time::timeout};

use self::{
    broker::ConfiguredBroker,
    builder::{PreviousParts, StateBuilder},
    configured_issuer::ConfiguredIssuer,
    replaced::ReplacedResources,
    resource::Resource,
};
use super::{
    forwarded_headers::ForwardedHeaders,
    health::{self, Readiness},
    limits::{registry::LimitRegistry, shared::SharedLimits},
    replicas::Replicas,
};
use portcullis_config::plan::{Plan, UpstreamPlan};

pub(super) use self::{
    process::Process,
    resource::{Stack, StackBody},
};

/// How long a new configuration waits for the keys of new and changed issuers.
const KEY_FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Everything that requests need, of one configuration.
pub(super) struct ServerState {
    process: Process,
    resources: Vec<Arc<Resource>>,
    /// With that of the broker, if there is one.
    issuers: Vec<ConfiguredIssuer>,
    broker: Option<ConfiguredBroker>,
    limits: SharedLimits,
    limit_registry: LimitRegistry,
    origins: OriginPolicy,
    shutdown_timeout: Duration,
    shutdown_delay: Duration,
    cached_tokens: usize,
    replaced: ReplacedResources,
    forwarded_headers: ForwardedHeaders,
}

impl ServerState {
    /// Builds the state for the current runtime, without network access before
    /// [`spawn_key_refresh`](Self::spawn_key_refresh). Parts that have not changed since the
    /// `previous` state are used again, with their keys, cached tokens, counts and connections.
    /// Fails when the plan cannot run. Nothing has changed then.
    pub(super) fn new(
        plan: &Plan,
        process: &Process,
        previous: Option<&Self>,
    ) -> anyhow::Result<Self> {
        let limits = SharedLimits::new(
            plan,
            &process.clock,
            previous.map(|previous| &previous.limits),
        );
        let parts = previous.map(|previous| PreviousParts {
            issuers: &previous.issuers,
            broker: previous.broker.as_ref(),
            resources: &previous.resources,
            cached_tokens: previous.cached_tokens,
        });
        let builder = StateBuilder {
            plan,
            process,
            previous: parts,
            limits: &limits,
        };
        let mut issuers = builder.issuers()?;
        let broker = builder.broker()?;
        let resources = builder.resources(&issuers, broker.as_ref())?;
        issuers.extend(broker.as_ref().map(|broker| broker.issuer.clone()));
        let of_rules = resources.iter().flat_map(|resource| {
            let limits = resource.rule_limits.iter().enumerate();
            limits.map(|(position, rule)| {
                (
                    format!("{} rule {position}", resource.endpoint),
                    &rule.limiter,
                )
            })
        });
        Ok(Self {
            limit_registry: LimitRegistry::new(limits.named().chain(of_rules)),
            replaced: match previous {
                Some(previous) => previous
                    .replaced
                    .followed_by(&previous.resources, &resources),
                None => ReplacedResources::default(),
            },
            process: process.clone(),
            resources,
            issuers,
            broker,
            limits,
            origins: plan.origins.clone(),
            shutdown_timeout: plan.shutdown_timeout,
            shutdown_delay: plan.shutdown_delay,
            cached_tokens: plan.limits.cached_tokens,
            forwarded_headers: ForwardedHeaders::new(plan.rates.proxies.clone()),
        })
    }

    /// Lets the ends at the broker reach the tokens that this state caches. Call this when new
    /// requests use it.
    pub(super) fn receive_broker_ends(&self) {
        if let (Some(configured), Some(process)) = (&self.broker, &self.process.broker) {
            process.ends.set_issuer(&configured.issuer.issuer);
        }
    }

    /// Returns whether the keys of the broker in the state directory have changed.
    pub(super) fn has_other_broker_keys(&self) -> bool {
        match (&self.broker, &self.process.broker) {
            (Some(configured), Some(process)) => configured.has_other_stored_keys(process),
            _ => false,
        }
    }

    /// Returns the broker, if there is one.
    pub(super) fn broker(&self) -> Option<&Arc<Broker>> {
        self.broker.as_ref().map(|configured| &configured.broker)
    }

    /// Applies the connection limits of the plan that this state was built from to upstreams of the
    /// previous state, too: these keep their connections, but the limit of open files may divide
    /// differently.
    pub(super) fn set_connection_limits(&self, plan: &Plan) {
        // The resources are in the order of the plan.
        for (resource, planned) in self.resources.iter().zip(&plan.resources) {
            if let (Some(limit), UpstreamPlan::Http(settings)) =
                (&resource.upstream.connections, &planned.upstream)
            {
                limit.set_max(settings.connection_limit.max());
            }
        }
    }

    /// Starts fetching the issuers' keys.
    pub(super) fn spawn_key_refresh(&self) {
        for ConfiguredIssuer { issuer, .. } in &self.issuers {
            issuer.spawn_refresh();
        }
    }

    /// Starts fetching the issuers' keys, and waits for those of issuers that the `previous` state
    /// does not have, at most 5 s. Requests then find them.
    pub(super) async fn fetch_new_keys(&self, previous: &Self) {
        self.spawn_key_refresh();
        let is_new = |new: &&ConfiguredIssuer| {
            previous
                .issuers
                .iter()
                .all(|old| !Arc::ptr_eq(&old.issuer, &new.issuer))
        };
        let mut fetches = JoinSet::new();
        for issuer in self
            .issuers
            .iter()
            .filter(is_new)
            .map(|new| Arc::clone(&new.issuer))
        {
            fetches.spawn(async move { issuer.refresh_now().await });
        }
        if timeout(KEY_FETCH_TIMEOUT, async {
            while fetches.join_next().await.is_some() {}
        })
        .await
        .is_err()
        {
            tracing::warn!("the keys of a new issuer are not available yet");
        }
    }

    /// Returns what warns of a proxy that is not named in `trusted_proxies`.
    pub(super) fn forwarded_headers(&self) -> &ForwardedHeaders {
        &self.forwarded_headers
    }

    /// Returns the stack of the endpoint whose path or metadata path this is.
    pub(super) fn stack(&self, path: &str, worker: usize) -> Option<Stack> {
        let resource = self
            .resources
            .iter()
            .find(|resource| resource.answers(path))?;
        resource.stacks.get(worker).cloned()
    }

    /// Returns the issuers of each resource, for `/readyz`.
    fn readiness(&self) -> impl Iterator<Item = Readiness<'_>> {
        self.resources.iter().map(|resource| Readiness {
            endpoint: &resource.endpoint,
            issuers: resource
                .verifier
                .as_ref()
                .map_or(&[], |verifier| verifier.issuers()),
        })
    }

    /// Returns the issuers of all resources.
    pub(super) fn issuers(&self) -> impl Iterator<Item = &Arc<TrustedIssuer>> {
        self.issuers.iter().map(|configured| &configured.issuer)
    }

    /// Returns the verifiers of the resources that require tokens.
    pub(super) fn verifiers(&self) -> impl Iterator<Item = &Arc<Verifier>> {
        self.resources
            .iter()
            .filter_map(|resource| resource.verifier.as_ref())
    }

    /// Returns the rate limits that replicas count together.
    pub(super) fn limit_registry(&self) -> &LimitRegistry {
        &self.limit_registry
    }

    /// Returns the parts that outlive this configuration.
    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    /// Returns the status and the report of `/readyz`.
    pub(super) fn ready(&self) -> (StatusCode, Value) {
        let replicas = self.process.replicas.as_ref().map(Replicas::readiness);
        health::ready(self.is_draining(), self.readiness(), replicas)
    }

    /// Returns how long the server still accepts connections after the signal to shut down.
    pub(super) fn shutdown_delay(&self) -> Duration {
        self.shutdown_delay
    }

    /// Reports from now on that the server is not ready.
    pub(super) fn set_draining(&self) {
        self.process.is_draining.store(true, Ordering::Relaxed);
    }

    /// Returns whether the server shuts down.
    pub(super) fn is_draining(&self) -> bool {
        self.process.is_draining.load(Ordering::Relaxed)
    }

    /// Ends the event streams on which clients only listen, now and from now on.
    pub(super) fn end_listeners(&self) {
        let ended = self.process.streams.drain();
        if ended > 0 {
            tracing::info!(
                streams = ended,
                "event streams without a request end with the shutdown"
            );
        }
    }

    /// Returns how long a shutdown waits for requests in progress.
    pub(super) fn shutdown_timeout(&self) -> Duration {
        self.shutdown_timeout
    }

    fn resource(&self, uri: &ResourceUri) -> Option<&Arc<Resource>> {
        self.resources
            .iter()
            .find(|resource| resource.protected.resource() == uri)
    }

    /// Ends expired sessions and removes expired tokens.
    pub(super) fn sweep(&self) {
        self.process.sessions.sweep();
        self.end_opened_since_reload();
        for verifier in self.verifiers() {
            verifier.sweep();
        }
    }

    /// Ends event streams whose authorization has ended, and rechecks introspected tokens that
    /// streams depend on.
    pub(super) fn sweep_streams(&self) {
        self.issuers
            .iter()
            .for_each(|configured| configured.issuer.start_due_rechecks());
        self.process.streams.sweep();
    }

    /// Lets this configuration decide about requests whose body is still arriving. Call this when
    /// new requests use it.
    pub(super) fn supersede_replaced(&self) {
        self.replaced
            .in_use()
            .for_each(|replaced| replaced.mark_superseded());
    }

    /// Marks the requests in progress as cancelled by the shutdown.
    pub(super) fn cut_off(&self) {
        self.resources
            .iter()
            .for_each(|resource| resource.protected.mark_shutting_down());
        self.replaced
            .in_use()
            .for_each(|replaced| replaced.mark_shutting_down());
    }

    /// Returns the policy for paths that belong to no endpoint.
    pub(super) fn origins(&self) -> &OriginPolicy {
        &self.origins
    }

    /// Returns the clock of the process.
    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.process.clock
    }

    pub(super) fn access(&self) -> &AccessLog {
        &self.process.observers.access
    }
}
