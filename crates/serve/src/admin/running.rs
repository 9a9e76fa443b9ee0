//! [`RunningAdmin`]: the listener for administrators that is in use, which a reload replaces.

use std::sync::Arc;

use arc_swap::ArcSwap;
use portcullis_config::{file::AdminListen, plan::AdminPlan};
use portcullis_telemetry::metrics::{Expiry, Metrics};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::{
    AdminServer,
    listener::{AdminListener, Listening},
};
use crate::state::ServerState;

/// The table of the certificate.
const TLS: &str = "admin.tls";

/// The listener in use.
pub(crate) struct RunningAdmin {
    /// The configured address.
    listen: AdminListen,
    listening: Arc<Listening>,
    expiry: Option<Expiry>,
    /// To [`AdminServers`].
    successors: mpsc::Sender<AdminServer>,
}

/// The servers at the listener, one after another.
pub(crate) struct AdminServers {
    first: AdminServer,
    successors: mpsc::Receiver<AdminServer>,
}

impl RunningAdmin {
    /// Returns the listener of a plan, and what serves at it. Fails when TLS cannot be set up, or
    /// outside of a runtime.
    pub(crate) fn new(
        bound: AdminListener,
        plan: &AdminPlan,
        state: Arc<ArcSwap<ServerState>>,
    ) -> anyhow::Result<(Self, AdminServers)> {
        let first = AdminServer::new(Arc::new(bound.start()?), plan, state)?;
        let (sender, successors) = mpsc::channel(1);
        let running = Self {
            listen: first.listen.clone(),
            listening: Arc::clone(&first.listener),
            expiry: first.expiry(),
            successors: sender,
        };
        Ok((running, AdminServers { first, successors }))
    }

    /// Returns a server for another plan, which does not serve yet: at the same listener if its
    /// address is the same, or else at another one. Fails when the address cannot be listened on,
    /// or TLS cannot be set up.
    pub(crate) fn successor(
        &self,
        plan: &AdminPlan,
        state: Arc<ArcSwap<ServerState>>,
    ) -> anyhow::Result<AdminServer> {
        let listening = if plan.listen == self.listen {
            Arc::clone(&self.listening)
        } else {
            Arc::new(AdminListener::bind_beside(&plan.listen, &self.listen)?.start()?)
        };
        AdminServer::new(listening, plan, state)
    }

    /// Serves with a successor. The connections of the former server close as soon as no request
    /// is in progress.
    pub(crate) async fn replace(&mut self, successor: AdminServer) {
        self.listen.clone_from(&successor.listen);
        self.listening = Arc::clone(&successor.listener);
        self.expiry = successor.expiry();
        // Fails only when the server shuts down.
        let _ = self.successors.send(successor).await;
    }

    /// Shows the expiry of the certificate in the metrics.
    pub(crate) fn set_expiry(&self, metrics: Option<&Metrics>) {
        if let Some(metrics) = metrics {
            metrics.set_certificate(TLS, self.expiry.clone());
        }
    }
}

impl AdminServers {
    /// Serves until `stop` is true or the task is aborted.
    pub(crate) async fn run(self, mut stop: watch::Receiver<bool>) {
        let Self {
            first,
            mut successors,
        } = self;
        let mut running = JoinSet::new();
        let mut stop_current = start(&mut running, first);
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => break,
                Some(successor) = successors.recv() => {
                    stop_current.send_replace(true);
                    stop_current = start(&mut running, successor);
                }
                Some(_) = running.join_next() => {}
            }
        }
        stop_current.send_replace(true);
        while running.join_next().await.is_some() {}
    }
}

fn start(running: &mut JoinSet<()>, server: AdminServer) -> watch::Sender<bool> {
    let (stop, stopped) = watch::channel(false);
    running.spawn(server.run(stopped));
    stop
}
