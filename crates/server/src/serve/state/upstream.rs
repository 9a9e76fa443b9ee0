//! The upstream of one resource, with a client for each worker.

use std::sync::Arc;

use anyhow::Context as _;
use portcullis_endpoint::Plain;
use portcullis_gateway::HttpUpstream;

use super::{
    super::{
        backend::{Backend, BackendService},
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
    /// The client by which sessions are ended.
    pub(super) control: SessionUpstream,
    /// One per worker, so that upstream connections stay on one thread.
    pub(super) backends: Vec<Backend>,
}

impl ResourceUpstream {
    /// # Errors
    /// Fails when the upstream's settings cannot be used.
    pub(super) fn new(plan: &ResourcePlan, process: &Process) -> anyhow::Result<Arc<Self>> {
        let client = match &plan.upstream {
            UpstreamPlan::Http(settings) => {
                Upstream::Http(HttpUpstream::new((**settings).clone(), Arc::clone(&process.clock)).context("upstream")?)
            }
            UpstreamPlan::Demo => Upstream::Demo(Box::new(demo::service()?)),
        };
        let control = SessionUpstream { header: plan.session_header.clone(), client };
        let initialize_calls =
            Arc::new(InitializeCalls { upstream: control.clone(), upstream_ends: process.upstream_ends.clone() });
        let legacy_calls = LegacyCalls::new(plan.session_header.clone());
        let backends = (0..process.workers)
            .map(|_| {
                let service = match (&plan.upstream, &control.client) {
                    (UpstreamPlan::Http(settings), _) => {
                        BackendService::Http(HttpUpstream::new((**settings).clone(), Arc::clone(&process.clock))?)
                    }
                    (_, Upstream::Demo(demo)) => BackendService::Demo(Box::new(Plain::new((**demo).clone()))),
                    (UpstreamPlan::Demo, Upstream::Http(_)) => anyhow::bail!("the demo server is not called over HTTP"),
                };
                Ok(Backend::new(service, Arc::clone(&initialize_calls), Arc::clone(&legacy_calls)))
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Arc::new(Self {
            fingerprint: plan.upstream_fingerprint,
            identity: plan.upstream.identity(),
            control,
            backends,
        }))
    }
}
