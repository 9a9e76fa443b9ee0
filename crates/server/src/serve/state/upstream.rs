//! The upstream of one resource, with a client for each worker.

use std::sync::Arc;

use anyhow::Context as _;
use portcullis_endpoint::Plain;
use portcullis_gateway::{ConnectionLimit, HttpUpstream};

use super::{
    super::{
        backend::{Backend, BackendService, DemoUpstream},
        legacy_calls::LegacyCalls,
        sessions::{
            initialize::InitializeCalls,
            upstreams::{SessionUpstream, Upstream},
        },
    },
    process::Process,
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
    /// Creates the clients of an upstream, without a connection.
    ///
    /// # Errors
    /// Fails when the upstream's settings cannot be used.
    pub(super) fn new(plan: &ResourcePlan, process: &Process) -> anyhow::Result<Arc<Self>> {
        let (client, services) = match &plan.upstream {
            UpstreamPlan::Http(settings) => {
                let mut settings = settings.clone();
                settings.resource = Some(plan.metadata.resource.clone());
                let new_client =
                    || HttpUpstream::new((*settings).clone(), Arc::clone(&process.clock)).context("upstream");
                let services = (0..process.workers).map(|_| new_client().map(BackendService::Http));
                (Upstream::Http(new_client()?), services.collect::<anyhow::Result<Vec<_>>>()?)
            }
            UpstreamPlan::Demo => {
                let shared = Box::new(demo::service()?);
                let new_service = || {
                    BackendService::Demo(Box::new(DemoUpstream {
                        service: Plain::new((*shared).clone()),
                        clock: Arc::clone(&process.clock),
                    }))
                };
                let services = (0..process.workers).map(|_| new_service()).collect();
                (Upstream::Demo(shared), services)
            }
        };
        let control = SessionUpstream { header: plan.session_header.clone(), client };
        let initialize_calls =
            Arc::new(InitializeCalls { upstream: control.clone(), upstream_ends: process.upstream_ends.clone() });
        let legacy_calls = LegacyCalls::new(plan.session_header.clone());
        let backend = |service| Backend::new(service, Arc::clone(&initialize_calls), Arc::clone(&legacy_calls));
        Ok(Arc::new(Self {
            fingerprint: plan.upstream_fingerprint,
            identity: plan.upstream.identity(),
            connections: match &plan.upstream {
                UpstreamPlan::Http(settings) => Some(settings.connection_limit.clone()),
                UpstreamPlan::Demo => None,
            },
            control,
            backends: services.into_iter().map(backend).collect(),
        }))
    }
}
