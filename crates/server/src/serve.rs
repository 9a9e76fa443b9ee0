//! Serving: one accept loop, one worker a core, and a control runtime for everything that is not a request.

mod accept;
mod activity;
mod backend;
mod closer;
mod connection;
mod connections;
mod descriptors;
mod hangup;
mod health;
mod last_sessions;
mod linger;
mod opening;
mod request_body;
mod router;
mod session_keys;
mod shutdown;
mod sinks;
mod site;
mod streams;
mod tls;
mod worker;

use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use arc_swap::ArcSwap;
use portcullis_metadata::SystemClock;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, MissedTickBehavior, interval, timeout, timeout_at},
};

use crate::{
    audit::AuditTrail,
    plan::Plan,
    telemetry::{AccessLog, LogFormat},
};
use connection::ConnectionLimits;
use last_sessions::Teller;
use request_body::BodyTimes;
use router::Router;
use sinks::Sinks;
use site::Site;
use tls::Tls;
use worker::{Ending, Worker};

pub(crate) use shutdown::on_signal;

/// How often ended sessions and outdated tokens are looked for.
const SWEEP: Duration = Duration::from_secs(5);

/// What requests that are cut off, and then the audit trail, have to tell of their end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Opens the port.
///
/// # Errors
/// When the address cannot be listened on; the message names the fix.
pub(crate) fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).with_context(|| {
        format!("cannot listen on {address}; stop the program that holds the port, or choose another with --listen")
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Builds all that a plan asks for and throws it away: what is wrong with it shows, and nobody is asked anything.
///
/// # Errors
/// When the plan cannot run.
pub(crate) fn rehearse(plan: &Plan) -> anyhow::Result<()> {
    let access = Arc::new(AccessLog::unwritten(LogFormat::default()));
    Site::new(plan, Arc::new(SystemClock::new()), Sinks { access, audit: None }).map(drop)
}

/// Serves until `shutdown` is true and the requests under way have ended, or their time is up.
///
/// The process's limit of open files is raised to what the plan needs; where that cannot be, fewer connections are served.
///
/// It runs on the control runtime: keys are fetched, sessions reaped and connections accepted there.
///
/// # Errors
/// When a worker cannot be started.
pub(crate) async fn serve(
    mut plan: Plan,
    listener: TcpListener,
    access: Arc<AccessLog>,
    audit: Option<AuditTrail>,
    shutdown: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let address = listener.local_addr()?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let shortage = descriptors::fit(&mut plan);
    hangup::outlive()?;
    if let Some(audit) = &audit {
        audit.follow_rotation()?;
    }
    let sinks = Sinks { access: Arc::clone(&access), audit: audit.as_ref().map(|trail| trail.audit().clone()) };
    let (site, closing) = Site::new(&plan, Arc::new(SystemClock::new()), sinks)?;
    // Only now: a plan that cannot run is one line, and not this one.
    if let Some(shortage) = shortage {
        shortage.warn();
    }
    site.start();
    let tls = plan.tls.as_ref().map(Tls::new).transpose()?;
    if let (Some(tls), Some(files)) = (&tls, &plan.tls) {
        tokio::spawn(tls.clone().follow(files.clone()));
    }
    if let Some(sources) = plan.session.key_sources.clone() {
        tokio::spawn(session_keys::follow(site.sessions().clone(), sources));
    }
    let (last, shutdown_sessions) = oneshot::channel();
    let teller = Teller { last, task: tokio::spawn(closing.run(shutdown_sessions)) };
    let site = Arc::new(ArcSwap::from_pointee(site));

    let limits = ConnectionLimits {
        max_head: plan.max_head(),
        max_headers: plan.limits.max_headers,
        idle: plan.limits.header_timeout.0,
        body: BodyTimes { pause: plan.limits.body_pause.0, whole: plan.limits.body_timeout.0 },
        max_streams: plan.limits.max_streams,
        max_resets: plan.limits.max_resets,
    };
    let (done, mut all_done) = mpsc::channel(1);
    let (cut, cut_off) = watch::channel(false);
    let ending = Ending { shutdown: shutdown.clone(), cut_off };
    let workers = (0..plan.workers)
        .map(|number| {
            let router = Router::new(Arc::clone(&site), number, limits.max_headers);
            Worker::start(format!("worker-{number}"), router, tls.clone(), limits, ending.clone(), done.clone())
        })
        .collect::<Result<Vec<_>, _>>()
        .context("a worker cannot be started")?;
    drop(done);

    tokio::spawn(streams::end_unauthorized(Arc::clone(&site)));
    let swept = Arc::clone(&site);
    let reaper = tokio::spawn(async move {
        let mut period = interval(SWEEP);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            period.tick().await;
            swept.load().sweep();
        }
    });

    tracing::info!(listen.address = %address, workers = plan.workers, "listening");
    accept::run(listener, workers, plan.limits.max_connections, shutdown).await;
    tracing::info!("shutting down: requests under way may end");
    let deadline = Instant::now() + plan.shutdown_timeout;
    if timeout_at(deadline, all_done.recv()).await.is_err() {
        tracing::warn!(timeout.seconds = plan.shutdown_timeout.as_secs(), "requests still under way are cut off");
        site.load().cut_off();
        cut.send_replace(true);
        // Each of them is told of before it is gone; a worker that is stuck is not waited for.
        let _ = timeout(LAST_WORDS, all_done.recv()).await;
    }
    reaper.abort();
    let sessions = site.load().sessions().clone();
    let ended = last_sessions::end(&sessions, audit.as_ref(), deadline.max(Instant::now() + LAST_WORDS)).await;
    let left = deadline.saturating_duration_since(Instant::now()).max(LAST_WORDS);
    tokio::join!(teller.finish(ended, left), async {
        if let Some(audit) = audit {
            audit.finish(left).await;
        }
    });
    Ok(access.flush(&mut std::io::stderr())?)
}
