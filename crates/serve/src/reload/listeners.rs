//! [`RunningListeners`]: the listeners of the running server, which a reload replaces.

use std::{net::SocketAddr, sync::Arc};

use arc_swap::ArcSwap;
use portcullis_config::plan::Plan;
use portcullis_telemetry::metrics::Metrics;
use tokio::{net::TcpListener, sync::mpsc};

use crate::{
    admin::{AdminServer, RunningAdmin},
    connection::{client_listener::Replacement, listener::bind_beside, tls::Tls},
    state::ServerState,
};

/// The table of the certificate for clients.
const TLS: &str = "tls";

/// The listeners of clients and of administrators.
pub(crate) struct RunningListeners {
    /// To the accept loop of clients.
    clients: mpsc::Sender<Replacement>,
    /// The configured address of clients. The socket can have another port.
    listen: SocketAddr,
    tls: Option<Tls>,
    admin: Option<RunningAdmin>,
}

/// Listeners for another plan, which are bound but not yet in use. Their sockets are closed when
/// they are dropped.
pub(super) struct BoundListeners {
    listen: SocketAddr,
    /// `None` if the listener of clients stays.
    clients: Option<Replacement>,
    tls: Option<Tls>,
    /// `None` if the listener for administrators stays.
    admin: Option<AdminServer>,
}

impl RunningListeners {
    /// Returns the listeners of a plan, which are in use. `clients` leads to the accept loop.
    pub(crate) fn new(
        plan: &Plan,
        clients: mpsc::Sender<Replacement>,
        tls: Option<Tls>,
        admin: Option<RunningAdmin>,
        metrics: Option<&Metrics>,
    ) -> Self {
        set_expiry(metrics, tls.as_ref());
        if let Some(admin) = &admin {
            admin.set_expiry(metrics);
        }
        Self {
            clients,
            listen: plan.listen,
            tls,
            admin,
        }
    }

    /// Binds the addresses of another plan that are not those of the running one.
    /// `has_other_admin` tells whether `[admin]` differs.
    ///
    /// Fails when an address cannot be listened on, or TLS cannot be set up. The message contains
    /// the fix. The running listeners stay as they are.
    pub(super) fn bind(
        &self,
        plan: &Plan,
        has_other_admin: bool,
        state: &Arc<ArcSwap<ServerState>>,
    ) -> anyhow::Result<BoundListeners> {
        let socket = (plan.listen != self.listen)
            .then(|| {
                let bound = bind_beside(plan.listen, self.listen, "listen")?;
                TcpListener::from_std(bound).map_err(anyhow::Error::from)
            })
            .transpose()?;
        let tls = match (&self.tls, &plan.tls) {
            (Some(tls), Some(_)) => Some(tls.clone()),
            (None, Some(files)) => Some(Tls::new(files)?),
            (_, None) => None,
        };
        let replaces = socket.is_some() || tls.is_some() != self.tls.is_some();
        let admin = match (&self.admin, &plan.admin) {
            (Some(running), Some(plan)) if has_other_admin => {
                Some(running.successor(plan, Arc::clone(state))?)
            }
            _ => None,
        };
        Ok(BoundListeners {
            listen: plan.listen,
            clients: replaces.then(|| Replacement {
                socket,
                tls: tls.clone(),
            }),
            tls,
            admin,
        })
    }

    /// Uses other listeners in place of those that they replace, whose connections close as soon as
    /// no request is in progress.
    pub(super) async fn replace(&mut self, bound: BoundListeners, metrics: Option<&Metrics>) {
        let BoundListeners {
            listen,
            clients,
            tls,
            admin,
        } = bound;
        (self.listen, self.tls) = (listen, tls);
        if let Some(replacement) = clients {
            set_expiry(metrics, self.tls.as_ref());
            // Fails only when the server no longer accepts connections.
            let _ = self.clients.send(replacement).await;
        }
        if let Some((running, server)) = self.admin.as_mut().zip(admin) {
            running.replace(server).await;
            running.set_expiry(metrics);
        }
    }

    /// Returns TLS of the listener of clients.
    pub(super) fn tls(&self) -> Option<Tls> {
        self.tls.clone()
    }
}

fn set_expiry(metrics: Option<&Metrics>, tls: Option<&Tls>) {
    if let Some(metrics) = metrics {
        metrics.set_certificate(TLS, tls.map(Tls::expiry));
    }
}
