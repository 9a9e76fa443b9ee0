//! The listener for administrators: it lists and ends sessions, and drops cached tokens.
//!
//! It runs on the control runtime, apart from the requests of clients. Each request must have the token, a permitted `Host` and
//! no `Origin`, and each is logged and audited.

mod access;
mod confirmation;
mod dropping;
mod ending;
mod handler;
mod listener;
mod listing;
mod report;
mod request;
mod response;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep},
};

use self::{
    access::AccessPolicy,
    handler::{AdminContext, AdminHandler},
    listener::{Accepted, AcceptedStream, Listening},
};
use super::{
    changed_files::{CHECK_PERIOD, CertificateFiles},
    connection::{self, ConnectionLimits, activity::Activity, request_body::BodyTimeouts},
    state::ServerState,
    tls::Tls,
};
use crate::plan::AdminPlan;

pub(crate) use self::listener::AdminListener;

/// The maximum number of connections. Further ones wait in the backlog of the socket.
const MAX_CONNECTIONS: usize = 16;
/// The pause after a failed accept.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// The limits of each connection.
const LIMITS: ConnectionLimits = ConnectionLimits {
    max_head: 16 << 10,
    max_headers: 64,
    idle: Duration::from_secs(10),
    body: BodyTimeouts { pause: Duration::from_secs(5), whole: Duration::from_secs(10) },
    max_streams: 8,
    max_resets: 20,
};

/// The running listener for administrators.
pub(super) struct AdminServer {
    listener: Listening,
    tls: Option<Tls>,
    certificate: Option<CertificateFiles>,
    context: Arc<AdminContext>,
}

impl AdminServer {
    /// Returns the server at a bound listener.
    ///
    /// # Errors
    /// Fails when TLS cannot be set up, or outside of a runtime.
    pub(super) fn new(
        listener: AdminListener,
        plan: &AdminPlan,
        state: Arc<ArcSwap<ServerState>>,
    ) -> anyhow::Result<Self> {
        let metrics = state.load().process().observers.metrics.clone();
        let tls = plan.tls.as_ref().map(|files| Tls::measured(files, metrics.as_deref())).transpose()?;
        let certificate = tls.clone().zip(plan.tls.clone()).map(|(tls, files)| CertificateFiles::new(tls, files));
        let policy = AccessPolicy::new(plan);
        Ok(Self { listener: listener.start()?, tls, certificate, context: Arc::new(AdminContext { state, policy }) })
    }

    /// Serves until `stop` is true or the task is aborted.
    pub(super) async fn run(mut self, stop: watch::Receiver<bool>) {
        tracing::info!(admin.listen = %self.listener, "listening for administrators");
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        let mut certificate_checks = interval(CHECK_PERIOD);
        certificate_checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stopped = stop.clone();
        loop {
            tokio::select! {
                accepted = accept(&self.listener, &permits) => match accepted {
                    Ok((accepted, permit)) => {
                        let tls = self.tls.clone();
                        let context = Arc::clone(&self.context);
                        let stop = stop.clone();
                        connections.spawn(async move {
                            let _permit = permit;
                            serve(accepted, tls, context, stop).await;
                        });
                    }
                    Err(error) => {
                        tracing::warn!(error = %error, "a connection of an administrator was not accepted");
                    }
                },
                Some(_) = connections.join_next() => {}
                _ = certificate_checks.tick() => self.certificate.iter_mut().for_each(CertificateFiles::check),
                _ = stopped.wait_for(|stop| *stop) => break,
            }
        }
        while connections.join_next().await.is_some() {}
    }
}

/// Accepts a connection once there is a permit for it. Returns an error after a pause, so that the loop does not spin.
async fn accept(listener: &Listening, permits: &Arc<Semaphore>) -> std::io::Result<(Accepted, OwnedSemaphorePermit)> {
    // Never closed.
    let permit = Arc::clone(permits).acquire_owned().await.map_err(std::io::Error::other)?;
    match listener.accept().await {
        Ok(accepted) => Ok((accepted, permit)),
        Err(error) => {
            sleep(ERROR_PAUSE).await;
            Err(error)
        }
    }
}

/// Serves a connection until it ends or `stop` is true.
async fn serve(accepted: Accepted, tls: Option<Tls>, context: Arc<AdminContext>, stop: watch::Receiver<bool>) {
    let Accepted { stream, peer } = accepted;
    let handler = AdminHandler { context, peer };
    let protocol = connection::protocol(LIMITS);
    // The handler has the client's address.
    let address = SocketAddr::from(([0; 4], 0));
    let activity = Activity::new();
    match (stream, tls) {
        (AcceptedStream::Unix(stream), _) => {
            connection::serve(stream, address, &protocol, LIMITS, handler, activity, stop).await;
        }
        (AcceptedStream::Tcp(stream), None) => {
            connection::serve(stream, address, &protocol, LIMITS, handler, activity, stop).await;
        }
        (AcceptedStream::Tcp(stream), Some(tls)) => match tls.accept(stream).await {
            Ok(stream) => connection::serve(stream, address, &protocol, LIMITS, handler, activity, stop).await,
            Err(error) => tracing::debug!(error = %error, "a connection of an administrator failed"),
        },
    }
}
