//! Serving: one accept loop, one worker a core, and a control runtime for everything that is not a request.

mod accept;
mod activity;
mod backend;
mod closer;
mod connection;
mod health;
mod linger;
mod request_body;
mod router;
mod shutdown;
mod site;
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
    sync::{mpsc, watch},
    time::{MissedTickBehavior, interval, timeout},
};

use crate::{
    plan::Plan,
    telemetry::{AccessLog, LogFormat},
};
use connection::ConnectionLimits;
use router::Router;
use site::Site;
use tls::Tls;
use worker::Worker;

pub(crate) use shutdown::on_signal;

/// How often ended sessions and outdated tokens are looked for.
const SWEEP: Duration = Duration::from_secs(5);

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
    Site::new(plan, Arc::new(SystemClock::new()), access).map(drop)
}

/// Serves until `shutdown` is true and the requests under way have ended, or their time is up.
///
/// It runs on the control runtime: keys are fetched, sessions reaped and connections accepted there.
///
/// # Errors
/// When a worker cannot be started.
pub(crate) async fn serve(
    plan: Plan,
    listener: TcpListener,
    access: Arc<AccessLog>,
    shutdown: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let address = listener.local_addr()?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let (site, closing) = Site::new(&plan, Arc::new(SystemClock::new()), Arc::clone(&access))?;
    site.start();
    let tls = plan.tls.as_ref().map(Tls::new).transpose()?;
    if let (Some(tls), Some(files)) = (&tls, &plan.tls) {
        tokio::spawn(tls.clone().follow(files.clone()));
    }
    tokio::spawn(closing.run());
    let site = Arc::new(ArcSwap::from_pointee(site));

    let limits = ConnectionLimits {
        max_head: plan.max_head(),
        max_headers: plan.limits.max_headers,
        idle: plan.limits.header_timeout.0,
        max_streams: plan.limits.max_streams,
    };
    let (done, mut all_done) = mpsc::channel(1);
    let workers = (0..plan.workers)
        .map(|number| {
            let router = Router::new(Arc::clone(&site), number, limits.max_headers);
            Worker::start(format!("worker-{number}"), router, tls.clone(), limits, shutdown.clone(), done.clone())
        })
        .collect::<Result<Vec<_>, _>>()
        .context("a worker cannot be started")?;
    drop(done);

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
    if timeout(plan.shutdown_timeout, all_done.recv()).await.is_err() {
        tracing::warn!(timeout.seconds = plan.shutdown_timeout.as_secs(), "requests still under way are cut off");
    }
    reaper.abort();
    Ok(access.flush(&mut std::io::stderr())?)
}
