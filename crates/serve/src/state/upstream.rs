use std::sync::Arc;

use anyhow::Context as _;
use portcullis_gateway::{ConnectionLimit, HttpUpstream, HttpUpstreamSettings};

use super::process::Process;
use crate::{
    backend::{Backend, HttpBackend, legacy_calls::LegacyCalls},
    demo::DemoServer,
    sessions::{initialize::InitializeCalls, upstreams::SessionUpstream},
};
use portcullis_config::plan::{Fingerprint, ResourcePlan, UpstreamPlan};

/// The upstream of one resource. A later configuration with the same fingerprint uses it again,
/// with its connections.
pub(super) struct ResourceUpstream {
    pub(super) fingerprint: Fingerprint,
    /// Sessions continue while it is the same.
    pub(super) identity: String,
    /// The limit of open connections; `None` if it is not called over HTTP.
    pub(super) connections: Option<ConnectionLimit>,
    /// The client by which sessions are ended; `None` if the upstream keeps no sessions.
    pub(super) control: Option<SessionUpstream>,
    /// One per worker, so that upstream connections stay on one thread.
    pub(super) backends: Vec<Backend>,
}

impl ResourceUpstream {
    /// Creates the clients of an upstream, without a connection. Fails when the upstream's settings
    /// cannot be used.
    pub(super) fn new(plan: &ResourcePlan, process: &Process) -> anyhow::Result<Arc<Self>> {
        let (connections, control, backends) = match &plan.upstream {
            UpstreamPlan::Http(settings) => {
                let (control, backends) = http_backends(settings, plan, process)?;
                (
                    Some(settings.connection_limit.clone()),
                    Some(control),
                    backends,
                )
            }
            UpstreamPlan::Demo => {
                let server = DemoServer::new(plan.revisions)?;
                let demo = Backend::Demo {
                    server,
                    clock: Arc::clone(&process.clock),
                };
                (None, None, vec![demo; process.workers])
            }
        };
        Ok(Arc::new(Self {
            fingerprint: plan.upstream_fingerprint,
            identity: plan.upstream.identity(),
            connections,
            control,
            backends,
        }))
    }
}

/// Returns the client that ends sessions, and the backend of each worker.
fn http_backends(
    settings: &HttpUpstreamSettings,
    plan: &ResourcePlan,
    process: &Process,
) -> anyhow::Result<(SessionUpstream, Vec<Backend>)> {
    let mut settings = settings.clone();
    settings.resource = Some(plan.metadata.resource.clone());
    let new_client =
        || HttpUpstream::new(settings.clone(), Arc::clone(&process.clock)).context("upstream");
    let control = SessionUpstream {
        header: plan.session_header.clone(),
        client: new_client()?,
    };
    let initialize_calls = Arc::new(InitializeCalls {
        upstream: control.clone(),
        upstream_ends: process.upstream_ends.clone(),
    });
    let legacy_calls = LegacyCalls::new(plan.session_header.clone());
    let new_backend = |_| {
        let initialize_calls = Arc::clone(&initialize_calls);
        let legacy_calls = Arc::clone(&legacy_calls);
        Ok(Backend::Http(HttpBackend {
            upstream: new_client()?,
            initialize_calls,
            legacy_calls,
        }))
    };
    let backends = (0..process.workers)
        .map(new_backend)
        .collect::<anyhow::Result<_>>()?;
    Ok((control, backends))
}
