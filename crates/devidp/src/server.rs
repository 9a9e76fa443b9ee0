use std::{fmt, future::Future, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use portcullis_metadata::Issuer;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};

use crate::{Control, DevIdpError, DevIdpSettings, app::App, control, keys::Keys, routes};

const MAX_CONNECTIONS: usize = 256;
const MAX_HEADER_BYTES: usize = 32 * 1024;
const MAX_HEADERS: usize = 64;
const HEADER_TIME: Duration = Duration::from_secs(30);
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// A development authorization server that listens, and answers while [`serve`](Self::serve) runs.
pub struct DevIdp {
    app: Arc<App>,
    listener: TcpListener,
    address: SocketAddr,
}

impl DevIdp {
    /// Checks the settings, opens the port, and makes the keys, which takes a noticeable part of a second.
    ///
    /// # Errors
    /// When the address is not loopback or is in use, a setting is not usable, or no key can be made.
    pub async fn bind(settings: DevIdpSettings) -> Result<Self, DevIdpError> {
        settings.check()?;
        let asked = settings.listen;
        let listen = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => DevIdpError::AddressInUse { address: asked },
            _ => DevIdpError::Listen { address: asked, source },
        };
        let listener = TcpListener::bind(asked).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let issuer = Issuer::parse(&format!("http://{address}{}", settings.issuer_path))
            .map_err(|_| DevIdpError::IssuerPath { path: settings.issuer_path.clone() })?;

        let keep = settings.access_token_lifetime;
        let keys = Keys::new(control::new_pair().await?, keep, Arc::clone(&settings.clock));
        let keys = keys.map_err(|error| DevIdpError::Keys(error.into()))?;
        Ok(Self { app: Arc::new(App::new(settings, issuer, keys)?), listener, address })
    }

    /// A hand on the server, to use while [`serve`](Self::serve) runs.
    pub fn control(&self) -> Control {
        Control(Arc::clone(&self.app))
    }

    /// The issuer identifier: `http://`, the address, and the issuer path.
    pub fn issuer(&self) -> &Issuer {
        &self.app.issuer
    }

    /// The address that is listened on, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` completes; then lets requests that are under way finish, for 10 s at most.
    ///
    /// At most 256 connections are open at once; others wait until they are accepted.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send) {
        let Self { app, listener, address } = self;
        tracing::info!(issuer = app.issuer.as_str(), %address, "development authorization server is listening");
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => {}
                (stream, permit) = accept(&listener, &room) => {
                    connections.spawn(connection(Arc::clone(&app), stream, permit));
                }
            }
        }
        drop(listener);
        app.stop.send_replace(true);
        let drained = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_TIME, drained).await.is_err() {
            tracing::warn!("cut off requests that did not finish in time");
            connections.shutdown().await;
        }
    }
}

impl fmt::Debug for DevIdp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevIdp").field("issuer", self.issuer()).field("address", &self.address).finish_non_exhaustive()
    }
}

/// The next connection, once there is room for it.
async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed, so that there is always a permit in the end.
    let permit = Arc::clone(room).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, permit),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot accept a connection");
                // Out of descriptors, most likely: trying again at once would only spin.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(app: Arc<App>, stream: TcpStream, _room: Option<OwnedSemaphorePermit>) {
    let mut stopped = app.stop.subscribe();
    let service = service_fn(|request| {
        let app = Arc::clone(&app);
        async move { routes::answer(&app, request).await }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_header_size(MAX_HEADER_BYTES)
        .max_buf_size(2 * MAX_HEADER_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    // The answer of `wait_for` borrows from a lock, which must not live on beside an await.
    let told_to_stop = async { drop(stopped.wait_for(|stopped| *stopped).await) };
    let outcome = tokio::select! {
        outcome = &mut connection => outcome,
        () = told_to_stop => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(error = &error as &dyn std::error::Error, "a connection ended early");
    }
}
