//! The listener for administrators: it lists and ends sessions and grants of the broker, drops
//! cached tokens, and serves metrics.
//!
//! It runs on the control runtime, apart from the requests of clients. Each request must have the
//! token, a permitted `Host` and no `Origin`, and each is logged and audited, except successful
//! requests for metrics. An action continues when its client disconnects.
//!
//! A connection without a valid token cannot keep administrators out: it is closed after
//! [`AUTHENTICATION_TIMEOUT`], and earlier if it is idle and the place is needed.

mod access;
mod authenticated;
mod confirmation;
mod dropping;
mod ending;
mod grants;
mod handler;
mod listener;
mod listing;
mod report;
mod request;
mod response;
mod running;

use std::{net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep},
};

use self::{
    access::AccessPolicy,
    authenticated::Authenticated,
    handler::{AdminContext, AdminHandler},
    listener::{Accepted, AcceptedStream, Listening},
};
use super::{
    connection::{
        self, ConnectionLimits, accept::acquire_permit, activity::Activity,
        request_body::BodyTimeouts, table::ConnectionTable, tls::Tls,
    },
    reload::key_material_files::{CHECK_PERIOD, CertificateFiles},
    state::ServerState,
};
use portcullis_config::{file::AdminListen, plan::AdminPlan};
use portcullis_telemetry::metrics::Expiry;

pub use self::listener::AdminListener;
pub(crate) use self::running::{AdminServers, RunningAdmin};

/// The maximum number of connections, including those that have ended while their actions continue.
/// At this number, an idle connection is closed for a new one; if none is idle, the new one waits.
const MAX_CONNECTIONS: u32 = 16;
/// The time from the accepted connection to the head of a request with a valid token. It includes
/// the TLS handshake.
const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause after a failed accept.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// The limits of each connection.
const LIMITS: ConnectionLimits = ConnectionLimits {
    max_head: 16 << 10,
    max_headers: 64,
    idle: Duration::from_secs(10),
    body: BodyTimeouts {
        pause: Duration::from_secs(5),
        whole: Duration::from_secs(10),
    },
    max_streams: 8,
    max_resets: 20,
};

/// A server at a listener for administrators, with the settings of one configuration.
pub(crate) struct AdminServer {
    /// The configured address.
    listen: AdminListen,
    listener: Arc<Listening>,
    tls: Option<Tls>,
    certificate: Option<CertificateFiles>,
    context: Arc<AdminContext>,
}

impl AdminServer {
    /// Returns the server at a listener. Fails when TLS cannot be set up.
    fn new(
        listener: Arc<Listening>,
        plan: &AdminPlan,
        state: Arc<ArcSwap<ServerState>>,
    ) -> anyhow::Result<Self> {
        let tls = plan.tls.as_ref().map(Tls::new).transpose()?;
        let certificate = tls
            .clone()
            .zip(plan.tls.clone())
            .map(|(tls, files)| CertificateFiles::new(tls, files));
        let policy = AccessPolicy::new(plan);
        Ok(Self {
            listen: plan.listen.clone(),
            listener,
            tls,
            certificate,
            context: Arc::new(AdminContext { state, policy }),
        })
    }

    /// Returns when the certificate in use expires.
    fn expiry(&self) -> Option<Expiry> {
        self.tls.as_ref().map(Tls::expiry)
    }

    /// Serves until `stop` is true or the task is aborted.
    async fn run(mut self, stop: watch::Receiver<bool>) {
        tracing::info!(admin.listen = %self.listener, "listening for administrators");
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS as usize));
        let mut connections = JoinSet::new();
        self.accept_until(stop, &permits, &mut connections).await;
        drop(self.listener);
        while connections.join_next().await.is_some() {}
        // Actions whose clients have disconnected hold the remaining permits.
        let _ = permits.acquire_many(MAX_CONNECTIONS).await;
    }

    async fn accept_until(
        &mut self,
        stop: watch::Receiver<bool>,
        permits: &Arc<Semaphore>,
        connections: &mut JoinSet<()>,
    ) {
        let table = Arc::new(ConnectionTable::default());
        let mut certificate_checks = interval(CHECK_PERIOD);
        certificate_checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stopped = stop.clone();
        // Kept across iterations, because it owns a connection while it waits for a permit.
        let mut accepting = pin!(accept(&self.listener, permits, &table));
        loop {
            tokio::select! {
                accepted = accepting.as_mut() => {
                    accepting.set(accept(&self.listener, permits, &table));
                    // Nothing closes the semaphore.
                    let Some((accepted, permit)) = accepted else { return };
                    spawn(connections, &table, |activity| {
                        serve(accepted, self.tls.clone(), Arc::clone(&self.context), permit, activity, stop.clone())
                    });
                }
                Some(_) = connections.join_next() => {}
                _ = certificate_checks.tick() => self.certificate.iter_mut().for_each(CertificateFiles::check),
                _ = stopped.wait_for(|stop| *stop) => return,
            }
        }
    }
}

/// Accepts a connection, and waits for its permit. Logs each failed accept, and pauses after it.
/// Returns `None` only if the semaphore is closed.
async fn accept(
    listener: &Listening,
    permits: &Arc<Semaphore>,
    table: &ConnectionTable,
) -> Option<(Accepted, OwnedSemaphorePermit)> {
    loop {
        match listener.accept().await {
            Ok(accepted) => return Some((accepted, acquire_permit(permits, table).await.ok()?)),
            Err(error) => {
                tracing::warn!(error = %error, "a connection of an administrator was not accepted");
                sleep(ERROR_PAUSE).await;
            }
        }
    }
}

/// Starts the task of a connection, and adds the connection to the table.
fn spawn<F>(
    connections: &mut JoinSet<()>,
    table: &Arc<ConnectionTable>,
    serve: impl FnOnce(Arc<Activity>) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let activity = Activity::new();
    let entry = table.add(Arc::clone(&activity));
    let slot = entry.slot();
    let served = serve(activity);
    let task = connections.spawn(async move {
        let _entry = entry;
        served.await;
    });
    table.set_task(slot, task);
}

/// Serves a connection until it ends, `stop` is true, or it has had no valid token in time. Its
/// permit is held until its actions have ended, too.
async fn serve(
    accepted: Accepted,
    tls: Option<Tls>,
    context: Arc<AdminContext>,
    permit: OwnedSemaphorePermit,
    activity: Arc<Activity>,
    stop: watch::Receiver<bool>,
) {
    let Accepted { stream, peer } = accepted;
    let authenticated = Authenticated::default();
    let handler = AdminHandler {
        context,
        peer,
        authenticated: authenticated.clone(),
        permit: Arc::new(permit),
    };
    let served = async {
        let protocol = connection::protocol(LIMITS);
        // The handler has the client's address.
        let address = SocketAddr::from(([0; 4], 0));
        match (stream, tls) {
            (AcceptedStream::Unix(stream), _) => {
                connection::serve(stream, address, &protocol, LIMITS, handler, activity, stop)
                    .await;
            }
            (AcceptedStream::Tcp(stream), None) => {
                connection::serve(stream, address, &protocol, LIMITS, handler, activity, stop)
                    .await;
            }
            (AcceptedStream::Tcp(stream), Some(tls)) => match tls.accept(stream).await {
                Ok(stream) => {
                    connection::serve(stream, address, &protocol, LIMITS, handler, activity, stop)
                        .await
                }
                Err(error) => {
                    tracing::debug!(error = %error, "a connection of an administrator failed")
                }
            },
        }
    };
    tokio::select! {
        () = served => {}
        () = authenticated.missing_after(AUTHENTICATION_TIMEOUT) => {
            tracing::debug!("a connection without a valid token was closed");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use portcullis_audit::{AdminPeer, AuditSettings, AuditTarget, AuditTrail};
    use portcullis_metadata::SystemClock;
    use portcullis_telemetry::{AccessLog, LogFormat};
    use tokio::{
        io::AsyncWriteExt as _,
        net::{TcpListener, UnixStream},
    };

    use super::*;
    use portcullis_config::{from_text, plan::Plan};

    use crate::{
        observers::Observers, persistence::session_persistence::SessionPersistence, state::Process,
    };

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    /// Returns the plan of a server whose issuer is at this address.
    fn plan(issuer: SocketAddr, token_file: &std::path::Path) -> Plan {
        let config = format!(
            r#"
            base_url = "http://127.0.0.1:3000"
            [admin]
            listen = "unix:/run/portcullis/admin.sock"
            token = {{ file = "{}" }}
            [[issuer]]
            issuer = "http://{issuer}"
            [[resource]]
            endpoint = "/mcp"
            upstream = "demo"
            "#,
            token_file.display()
        );
        Plan::new(&from_text(&config).unwrap()).unwrap()
    }

    /// E12: an action is completed and audited although its client disconnects.
    #[tokio::test]
    async fn an_action_outlives_its_connection() {
        let directory = tempfile::tempdir().unwrap();
        let [token, trail] = ["token", "audit.jsonl"].map(|name| directory.path().join(name));
        fs::write(&token, TOKEN).unwrap();
        let issuer = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = issuer.local_addr().unwrap();
        let plan = plan(address, &token);

        let clock = Arc::new(SystemClock::new());
        let settings = AuditSettings::new(AuditTarget::File(trail.clone()));
        let audit = AuditTrail::start(&settings, None, 1, Arc::clone(&clock) as _).unwrap();
        let access = Arc::new(AccessLog::without_writer(LogFormat::default()));
        let observers = Observers {
            access,
            audit: Some(audit.audit().clone()),
            metrics: None,
            traces: None,
        };
        let (process, _) = Process::new(
            &plan,
            crate::Product::default(),
            clock,
            observers,
            &mut SessionPersistence::in_memory(&plan),
        );
        let state = Arc::new(ArcSwap::from_pointee(
            ServerState::new(&plan, &process, None).unwrap(),
        ));
        let context = Arc::new(AdminContext {
            state,
            policy: AccessPolicy::new(plan.admin.as_ref().unwrap()),
        });

        let permits = Arc::new(Semaphore::new(1));
        let permit = Arc::clone(&permits).acquire_owned().await.unwrap();
        let (mut client, server) = UnixStream::pair().unwrap();
        let accepted = Accepted {
            stream: AcceptedStream::Unix(server),
            peer: AdminPeer::User(0),
        };
        let (_running, stop) = watch::channel(false);
        let connection = tokio::spawn(serve(
            accepted,
            None,
            context,
            permit,
            Activity::new(),
            stop,
        ));
        let body = format!("{{\"issuer\":\"http://{address}\"}}");
        let head = format!(
            "POST /v1/tokens/drop HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: \
             application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        client
            .write_all([head, body].concat().as_bytes())
            .await
            .unwrap();
        // The action waits for the keys of the issuer.
        let fetch = issuer.accept().await.unwrap();
        drop(client);
        connection.await.unwrap();
        drop((fetch, issuer));
        drop(permits.acquire().await.unwrap());

        audit.finish(Duration::from_secs(60)).await;
        let records = fs::read_to_string(&trail).unwrap();
        let mut records = records
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let action = records
            .find(|record| record["admin.action"] == "tokens.drop")
            .unwrap();
        assert_eq!(action["decision"], "allow", "{action}");
        assert_eq!(action["tokens.dropped"], 0, "{action}");
    }
}
