//! The upstream of one resource, with a client for each worker.

use std::sync::Arc;

use anyhow::Context as _;
use portcullis_endpoint::Plain;
use portcullis_gateway::{ConnectionLimit, HttpUpstream, HttpUpstreamSettings};

use super::{
    super::{
        backend::{Backend, BackendService, DemoUpstream},
        legacy_calls::LegacyCalls,
        sessions::{
            initialize::InitializeCalls,
            upstreams::{SessionUpstream, Upstream},
        },
    },
    Process,
};
use crate::{
    demo,
    plan::{Fingerprint, ResourcePlan, UpstreamPlan},
};

/// The upstream of one resource. A later configuration with the same fingerprint uses it again, with its connections.
pub(super) struct ResourceUpstream {
    pub(super) fingerprint: Fingerprint,
    /// Sessions continue while it is the same.
    pub(super) identity: String,
    /// The limit of open connections; `None` if it is not called over HTTP.
    pub(super) connections: Option<ConnectionLimit>,
    /// The client by which sessions are ended.
    pub(super) control: SessionUpstream,
    /// One per worker, so that upstream connections stay on one thread.
    pub(super) backends: Vec<Backend>,
}

impl ResourceUpstream {
    /// # Errors
    /// Fails when the upstream's settings cannot be used.
    pub(super) fn new(plan: &ResourcePlan, process: &Process) -> anyhow::Result<Arc<Self>> {
        let http_upstream = |settings: &HttpUpstreamSettings| {
            let mut settings = settings.clone();
            settings.resource = Some(plan.metadata.resource.clone());
            HttpUpstream::new(settings, Arc::clone(&process.clock)).context("upstream")
        };
        let client = match &plan.upstream {
            UpstreamPlan::Http(settings) => Upstream::Http(http_upstream(settings)?),
            UpstreamPlan::Demo => Upstream::Demo(Box::new(demo::service()?)),
        };
        let control = SessionUpstream { header: plan.session_header.clone(), client };
        let initialize_calls =
            Arc::new(InitializeCalls { upstream: control.clone(), upstream_ends: process.upstream_ends.clone() });
        let legacy_calls = LegacyCalls::new(plan.session_header.clone());
        let backends = (0..process.workers)
            .map(|_| {
                let service = match (&plan.upstream, &control.client) {
                    (UpstreamPlan::Http(settings), _) => BackendService::Http(http_upstream(settings)?),
                    (_, Upstream::Demo(demo)) => {
                        let (service, clock) = (Plain::new((**demo).clone()), Arc::clone(&process.clock));
                        BackendService::Demo(Box::new(DemoUpstream { service, clock }))
                    }
                    (UpstreamPlan::Demo, Upstream::Http(_)) => anyhow::bail!("the demo server is not called over HTTP"),
                };
                Ok(Backend::new(service, Arc::clone(&initialize_calls), Arc::clone(&legacy_calls)))
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Arc::new(Self {
            fingerprint: plan.upstream_fingerprint,
            identity: plan.upstream.identity(),
            connections: match &plan.upstream {
                UpstreamPlan::Http(settings) => Some(settings.connection_limit.clone()),
                UpstreamPlan::Demo => None,
            },
            control,
            backends,
        }))
    }
}
