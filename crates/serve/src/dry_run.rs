//! [`runnable_plan`]: the check that a configuration can run, which builds and drops the state of
//! its server.

use std::sync::Arc;

use portcullis_metadata::SystemClock;
use portcullis_telemetry::{AccessLog, LogFormat};

use super::{
    broker::{persistence::BrokerPersistence, process::BrokerProcess},
    observers::Observers,
    persistence::session_persistence::SessionPersistence,
    state::{Process, ServerState},
};
use portcullis_config::{Config, Diagnostic, KeyPath, plan::Plan};

/// Returns the plan of a configuration that can run. Accesses no network and opens no port. Does
/// not check the port and the state directory.
///
/// # Errors
/// Fails with all errors of the configuration, or the first reason why its plan cannot run.
pub fn runnable_plan(config: &Config) -> Result<Plan, Vec<Diagnostic>> {
    let plan = Plan::new(config)?;
    build_in_runtime(&plan).map_err(|error| match error.downcast::<Diagnostic>() {
        Ok(found) => vec![found],
        Err(error) => vec![Diagnostic::new(&KeyPath::default(), &format!("{error:#}"))],
    })?;
    Ok(plan)
}

fn build_in_runtime(plan: &Plan) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async { build(plan) })
}

fn build(plan: &Plan) -> anyhow::Result<()> {
    let broker = plan.broker.as_ref();
    let broker = broker.map(|_| BrokerPersistence::in_memory(plan, Arc::new(SystemClock::new())));
    state(plan, broker.transpose()?).map(drop)
}

/// Builds the state of a server that keeps nothing but the records of its broker. Fails with the
/// reason why the plan cannot run.
pub(crate) fn state(plan: &Plan, broker: Option<BrokerPersistence>) -> anyhow::Result<ServerState> {
    let access = Arc::new(AccessLog::without_writer(LogFormat::default()));
    let mut persistence = SessionPersistence::in_memory(plan);
    let observers = Observers {
        access,
        audit: None,
        metrics: None,
        traces: None,
    };
    let (process, _) = Process::new(
        plan,
        crate::Product::default(),
        Arc::new(SystemClock::new()),
        observers,
        &mut persistence,
    );
    let process = process.with_broker(broker.map(BrokerProcess::new));
    ServerState::new(plan, &process, None)
}
