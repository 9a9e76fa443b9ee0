//! The running server: an accept loop, the worker threads that serve requests, and a control runtime for everything else.

mod accept;
mod admin;
mod backend;
mod backend_body;
mod background;
mod changed_files;
mod connection;
mod drain;
mod dry_run;
mod file_limit;
mod file_versions;
mod forwarded_headers;
mod health;
mod kept;
mod legacy_calls;
mod limit_exchange;
mod listener;
mod memory;
mod numbered_limits;
mod observers;
mod own_response;
mod periodic;
mod reload;
mod revocations;
mod router;
mod sessions;
mod shutdown;
mod signals;
mod state;
mod state_directory;
mod sweep;
mod tls;
mod worker;
mod worker_pool;

use std::{net::TcpListener, sync::Arc};

use arc_swap::ArcSwap;
use portcullis_config::plan::Plan;
use portcullis_metadata::SystemClock;
use portcullis_telemetry::{AccessLog, TraceExport, metrics::Metrics};
use portcullis_verifier::LimitHasher;

use admin::AdminServer;
use background::{BackgroundTasks, TaskInputs};
use changed_files::ChangedFiles;
use observers::Observers;
use reload::Reloader;
use shutdown::Shutdown;
use state::{Process, ServerState};
use tls::Tls;
use worker_pool::WorkerPool;

pub(crate) use admin::AdminListener;
pub(crate) use dry_run::runnable_plan;
pub(crate) use kept::Kept;
pub(crate) use listener::{PassedListener, bind};
pub(crate) use own_response::REFUSED;
pub(crate) use reload::ConfigSource;
pub(crate) use signals::Signals;
#[cfg(feature = "dev")]
pub(crate) use signals::shutdown as shutdown_signal;

/// The program that serves.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    /// Its version, which metrics tell.
    pub(crate) version: &'static str,
    /// Returns the memory that the calling thread has freed to the operating system. It is called on each thread from time to time.
    pub(crate) return_freed_memory: fn(),
}

/// The bound listeners.
pub(crate) struct Listeners {
    /// That of clients.
    pub(crate) clients: TcpListener,
    /// That of administrators, if there is one.
    pub(crate) admin: Option<AdminListener>,
}

/// Serves until the shutdown signal has arrived and the requests in progress have ended, or the shutdown timeout has passed.
///
/// Raises the process's limit of open files to what the plan needs. If that is not possible, serves fewer connections.
///
/// With the source of the configuration, reloads it at SIGHUP and, if it says so, when it changes.
///
/// Runs on the control runtime, which accepts connections, fetches keys and sweeps sessions.
///
/// # Errors
/// Fails when the server cannot start, or the last access lines cannot be written.
pub(crate) async fn serve(
    program: Program,
    mut plan: Plan,
    source: Option<ConfigSource>,
    listeners: Listeners,
    access: Arc<AccessLog>,
    Kept { sessions, audit }: Kept,
    Signals { shutdown, hangups }: Signals,
) -> anyhow::Result<()> {
    // Process: the listener, the limit of open files.
    let address = listeners.clients.local_addr()?;
    let listener = tokio::net::TcpListener::from_std(listeners.clients)?;
    let shortage = file_limit::fit(&mut plan);
    if plan.replicas.is_some() {
        // Replicas count requests together if they hash clients with the same key.
        LimitHasher::set_key(&plan.session.settings.keys.limit_key());
    }

    // State: issuers, sessions and the service stacks of all resources.
    let traces = plan.traces.clone().map(|settings| TraceExport::start(settings, program.version)).transpose()?;
    let clock = Arc::new(SystemClock::new());
    let observers = Observers {
        access: Arc::clone(&access),
        audit: audit.as_ref().map(|trail| trail.audit().clone()),
        metrics: plan.admin.as_ref().map(|_| Metrics::new(program.version, plan.workers, &*clock)),
        traces: traces.as_ref().map(|export| export.traces().clone()),
    };
    let mut kept = sessions.share(plan.replicas.as_ref(), Arc::clone(&clock) as _)?;
    let (process, upstream_ender) = Process::new(&plan, clock, observers, &mut kept);
    let state = ServerState::new(&plan, &process, None)?;
    process.upstream_ends.set_upstreams(state.upstreams());
    // If the plan cannot run, only its error is reported.
    if let Some(shortage) = shortage {
        shortage.warn();
    }
    kept.report();
    state.spawn_key_refresh();
    let tls = plan.tls.as_ref().map(|files| Tls::measured(files, process.observers.metrics.as_deref())).transpose()?;
    let state = Arc::new(ArcSwap::from_pointee(state));

    // Background tasks: reloads, ended sessions, sweeps, administrators.
    let files = ChangedFiles::new(&plan, tls.clone(), process.sessions.clone());
    let contents = std::mem::take(&mut plan.contents);
    let admin = listeners.admin.zip(plan.admin.as_ref());
    let (reopener, max_connections) = (audit.as_ref().map(|trail| trail.reopener()), plan.limits.max_connections);
    let inputs = TaskInputs {
        upstream_ender,
        reloader: Reloader::new(Arc::clone(&state), source, reopener, files, contents, max_connections),
        hangups,
        admin: admin.map(|(bound, plan)| AdminServer::new(bound, plan, Arc::clone(&state))).transpose()?,
        return_freed_memory: program.return_freed_memory,
        records_last_uses: kept.journal().is_some() || process.replicas.is_some(),
    };
    let tasks = BackgroundTasks::start(&state, inputs);
    // Clients wait in the queue of the listener until the ends of other replicas are known.
    tasks.wait_for_replicas(shutdown.clone()).await;

    // Workers: they serve what the accept loop passes to them.
    let draining = drain::begin_after(shutdown, Arc::clone(&state));
    let WorkerPool { workers, end } =
        WorkerPool::start(&plan, &state, tls.as_ref(), draining.clone(), program.return_freed_memory)?;
    tracing::info!(listen.address = %address, workers = plan.workers, "listening");
    accept::run(listener, workers, max_connections, draining).await;

    Shutdown { state, workers: end, tasks, kept, access, audit, traces }.run().await
}
