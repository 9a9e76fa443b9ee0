//! The running server: one accept loop, one worker thread per core, and a control runtime for everything else.

mod accept;
mod admin;
mod backend;
mod changed_files;
mod connection;
mod drain;
mod file_limit;
mod health;
mod legacy_calls;
mod limit_exchange;
mod listener;
mod memory;
mod observers;
mod reload;
mod revocations;
mod router;
mod sessions;
mod signals;
mod state;
mod sweep;
mod tls;
mod worker;

use std::{net::TcpListener, sync::Arc, time::Duration};

use anyhow::Context as _;
use arc_swap::ArcSwap;
use portcullis_metadata::SystemClock;
use portcullis_verifier::LimitHasher;
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot, watch},
    time::{Instant, timeout, timeout_at},
};

use crate::{
    audit::AuditTrail,
    config::{Config, Diagnostic, KeyPath},
    metrics::Metrics,
    plan::Plan,
    telemetry::{AccessLog, LogFormat},
    traces::TraceExport,
};
use admin::AdminServer;
use changed_files::ChangedFiles;
use connection::{ConnectionLimits, request_body::BodyTimeouts};
use limit_exchange::CurrentLimits;
use observers::Observers;
use reload::Reloader;
use revocations::CurrentRevocations;
use router::Router;
use sessions::{
    kept::KeptSessions,
    shutdown::{UpstreamEndTask, end_all},
};
use state::{Process, ServerState};
use tls::Tls;
use worker::{StopSignals, Worker};

pub(crate) use admin::AdminListener;
pub(crate) use listener::{PassedListener, bind};
pub(crate) use reload::ConfigSource;
pub(crate) use signals::shutdown as shutdown_signal;

/// The minimum time for cancelled requests to report their end, and for the audit trail to write its last records.
const FINAL_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The bound listeners.
pub(crate) struct Listeners {
    /// That of clients.
    pub(crate) clients: TcpListener,
    /// That of administrators, if there is one.
    pub(crate) admin: Option<AdminListener>,
}

/// Returns the plan of a configuration that can run. Everything that the plan needs is built and dropped, without any network
/// access.
///
/// # Errors
/// Fails with all errors of the configuration, or the first reason why its plan cannot run.
pub(crate) fn runnable_plan(config: &Config) -> Result<Plan, Vec<Diagnostic>> {
    let plan = Plan::new(config)?;
    dry_run(&plan)?;
    Ok(plan)
}

fn dry_run(plan: &Plan) -> Result<(), Vec<Diagnostic>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let checked = runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(async { build(plan) }));
    checked.map_err(|error| match error.downcast::<Diagnostic>() {
        Ok(found) => vec![found],
        Err(error) => vec![Diagnostic::new(&KeyPath::default(), &format!("{error:#}"))],
    })
}

fn build(plan: &Plan) -> anyhow::Result<()> {
    let access = Arc::new(AccessLog::without_writer(LogFormat::default()));
    let mut kept = KeptSessions::in_memory(&plan.session);
    let observers = Observers { access, audit: None, metrics: None, traces: None };
    let (process, _) = Process::new(plan, Arc::new(SystemClock::new()), observers, &mut kept);
    ServerState::new(plan, &process, None).map(drop)
}

/// Serves until `shutdown` is true and the requests in progress have ended, or the shutdown timeout has passed.
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
    mut plan: Plan,
    source: Option<ConfigSource>,
    Listeners { clients: listener, admin }: Listeners,
    access: Arc<AccessLog>,
    audit: Option<AuditTrail>,
    shutdown: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    // Process: the listener, the limit of open files, signals.
    let address = listener.local_addr()?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let shortage = file_limit::fit(&mut plan);
    let hangups = signals::hangups()?;

    // Replicas count requests together if they hash clients with the same key.
    if plan.replicas.is_some() {
        LimitHasher::set_key(&plan.session.settings.keys.limit_key());
    }

    // State: issuers, sessions and the service stacks of all resources.
    let traces = plan.traces.clone().map(TraceExport::start).transpose()?;
    let clock = Arc::new(SystemClock::new());
    let observers = Observers {
        access: Arc::clone(&access),
        audit: audit.as_ref().map(|trail| trail.audit().clone()),
        metrics: plan.admin.as_ref().map(|_| Metrics::new(plan.workers, &*clock)),
        traces: traces.as_ref().map(|export| export.traces().clone()),
    };
    let mut kept = KeptSessions::open(&plan.session, plan.state_dir.as_deref(), Arc::clone(&clock) as _)
        .share(plan.replicas.as_ref(), Arc::clone(&clock) as _)?;
    let (process, upstream_ends) = Process::new(&plan, clock, observers, &mut kept);
    let state = ServerState::new(&plan, &process, None)?;
    process.upstream_ends.set_upstreams(state.upstreams());
    // If the plan cannot run, only its error is reported.
    if let Some(shortage) = shortage {
        shortage.warn();
    }
    kept.warn();
    state.spawn_key_refresh();
    let tls = plan.tls.as_ref().map(|files| Tls::measured(files, process.observers.metrics.as_deref())).transpose()?;

    // Background tasks: reloaded files, ended sessions, sweeps.
    let journal = kept.journal();
    if journal.is_some() || process.replicas.is_some() {
        tokio::spawn(sessions::kept::record_last_uses(process.sessions.clone()));
    }
    let (last_sessions, sessions_at_shutdown) = oneshot::channel();
    let upstream_ends = UpstreamEndTask { last_sessions, task: tokio::spawn(upstream_ends.run(sessions_at_shutdown)) };
    let state = Arc::new(ArcSwap::from_pointee(state));
    let replicas = process.replicas.clone().map(|replicas| {
        let counts = Arc::new(CurrentLimits(Arc::clone(&state)));
        tokio::spawn(limit_exchange::run(Arc::clone(&state), replicas.clone()));
        let revocations = Arc::new(CurrentRevocations(Arc::clone(&state)));
        (replicas.spawn(process.sessions.clone(), counts, revocations), replicas)
    });
    tokio::spawn(sweep::streams(Arc::clone(&state)));
    let table_sweep = tokio::spawn(sweep::tables(Arc::clone(&state)));
    let files = ChangedFiles::new(&plan, tls.clone(), process.sessions.clone());
    let reopener = audit.as_ref().map(AuditTrail::reopener);
    let contents = std::mem::take(&mut plan.contents);
    let reloader = Reloader::new(Arc::clone(&state), source, reopener, files, contents);
    let reloads = tokio::spawn(reloader.run(hangups));

    // Administrators.
    let (stop_admin, admin_stopped) = watch::channel(false);
    let admin = admin.zip(plan.admin.as_ref());
    let admin = admin.map(|(bound, plan)| AdminServer::new(bound, plan, Arc::clone(&state))).transpose()?;
    let admin = admin.map(|admin| tokio::spawn(admin.run(admin_stopped)));

    // Clients wait in the queue of the listener until the ends of other replicas are known.
    if let Some((_, replicas)) = &replicas {
        let mut shutdown = shutdown.clone();
        tokio::select! {
            () = replicas.joined() => {}
            _ = shutdown.wait_for(|is_shutting_down| *is_shutting_down) => {}
        }
    }

    // Workers.
    let limits = connection_limits(&plan);
    let (worker_done, mut workers_done) = mpsc::channel(1);
    let (cancel, cancelled) = watch::channel(false);
    let draining = drain::begin_after(shutdown, Arc::clone(&state));
    let stop = StopSignals { draining: draining.clone(), cancelled };
    let workers = (0..plan.workers)
        .map(|number| {
            let router = Router::new(Arc::clone(&state), number, limits.max_headers);
            Worker::start(number, router, tls.clone(), limits, stop.clone(), worker_done.clone())
        })
        .collect::<Result<Vec<_>, _>>()
        .context("a worker cannot be started")?;
    drop(worker_done);
    tokio::spawn(memory::return_freed());
    workers.iter().for_each(|worker| drop(worker.runtime().spawn(memory::return_freed())));
    if let Some(metrics) = &process.observers.metrics {
        workers.iter().for_each(|worker| metrics.add_runtime(worker.runtime().clone()));
        metrics.add_runtime(Handle::current());
    }

    tracing::info!(listen.address = %address, workers = plan.workers, "listening");
    accept::run(listener, workers, plan.limits.max_connections, draining).await;

    // Shutdown: streams and requests first, then sessions, then the logs.
    tracing::info!("shutting down: waiting for requests in progress");
    reloads.abort();
    state.load().end_listeners();
    let shutdown_timeout = state.load().shutdown_timeout();
    let deadline = Instant::now() + shutdown_timeout;
    if timeout_at(deadline, workers_done.recv()).await.is_err() {
        tracing::warn!(
            timeout.seconds = shutdown_timeout.as_secs(),
            "cancelling the requests that are still in progress"
        );
        state.load().cut_off();
        cancel.send_replace(true);
        // Each cancelled request is logged before its worker is done. A worker that is stuck is not waited for.
        let _ = timeout(FINAL_FLUSH_TIMEOUT, workers_done.recv()).await;
    }
    table_sweep.abort();
    stop_admin.send_replace(true);
    let ended = end_all(
        &process.sessions,
        kept.continue_after_restart(),
        audit.as_ref(),
        deadline.max(Instant::now() + FINAL_FLUSH_TIMEOUT),
    )
    .await;
    let left = deadline.saturating_duration_since(Instant::now()).max(FINAL_FLUSH_TIMEOUT);
    let write_audit = async {
        if let Some(audit) = audit {
            audit.finish(left).await;
        }
    };
    process.sessions.record_last_uses();
    let write_journal = async {
        if let Some(journal) = journal {
            sessions::kept::finish(&journal, left).await;
        }
    };
    if let Some(admin) = admin {
        // The actions in progress still reach the audit trail.
        let _ = timeout(FINAL_FLUSH_TIMEOUT, admin).await;
    }
    let send_traces = async {
        if let Some(traces) = traces {
            traces.finish(left).await;
        }
    };
    let leave_replicas = async {
        if let Some((task, replicas)) = replicas {
            replicas.finish(task, left).await;
        }
    };
    tokio::join!(upstream_ends.finish(ended, left), write_audit, write_journal, leave_replicas, send_traces);
    Ok(access.flush(&mut std::io::stderr())?)
}

fn connection_limits(plan: &Plan) -> ConnectionLimits {
    ConnectionLimits {
        max_head: plan.max_head(),
        max_headers: plan.limits.max_headers,
        idle: plan.limits.header_timeout.0,
        body: BodyTimeouts { pause: plan.limits.body_pause.0, whole: plan.limits.body_timeout.0 },
        max_streams: plan.limits.max_streams,
        max_resets: plan.limits.max_resets,
    }
}
