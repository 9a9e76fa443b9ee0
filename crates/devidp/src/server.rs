//! [`DevIdp`]: listens and serves connections.

pub(crate) mod endpoint;
pub(crate) mod respond;
mod routes;

use std::{fmt, future::Future, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use portcullis_metadata::Issuer;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};

use crate::{
    app::App,
    control::Control,
    error::DevIdpError,
    keys::{KeyPair, Keys, KeysError},
    providers::profile::{FinalSlash, RegistrationRule},
    settings::{DevIdpSettings, DocumentFetch, Registration},
    token::identity_assertion,
};

const MAX_CONNECTIONS: usize = 256;
const MAX_HEADER_BYTES: usize = 32 * 1024;
const MAX_HEADERS: usize = 64;
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// A development authorization server that listens. It responds while [`serve`](Self::serve) runs.
pub struct DevIdp {
    app: Arc<App>,
    listener: TcpListener,
    address: SocketAddr,
}

impl DevIdp {
    /// Validates the settings, opens the port and generates the signing keys, which takes a
    /// noticeable part of a second.
    ///
    /// # Errors
    /// Fails if the address is not a loopback address or is in use, a setting is invalid, or the
    /// keys cannot be generated.
    pub async fn bind(mut settings: DevIdpSettings) -> Result<Self, DevIdpError> {
        settings.check()?;
        let profile = settings.profile();
        if settings.issuer_path.is_empty() {
            settings.issuer_path = profile.issuer_path.to_owned();
        }
        if profile.registration == RegistrationRule::None {
            settings.registration = Registration::Closed;
        }
        if !profile.client_documents {
            settings.client_documents = DocumentFetch::Off;
        }
        let requested = settings.listen;
        let listen = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => DevIdpError::AddressInUse { address: requested },
            _ => DevIdpError::Listen {
                address: requested,
                source,
            },
        };
        let listener = TcpListener::bind(requested).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let ends_with_slash = match profile.final_slash {
            FinalSlash::Never => false,
            FinalSlash::WithoutPath => settings.issuer_path.is_empty(),
            FinalSlash::Always => true,
        };
        let slash = if ends_with_slash { "/" } else { "" };
        let issuer = Issuer::parse(&format!("http://{address}{}{slash}", settings.issuer_path))
            .map_err(|_| DevIdpError::IssuerPath {
                path: settings.issuer_path.clone(),
            })?;

        let retention = settings
            .access_token_lifetime
            .max(identity_assertion::LIFETIME);
        let failed = |error: KeysError| DevIdpError::Keys(error.into());
        let pair = KeyPair::generate().await.map_err(failed)?;
        let keys = Keys::new(pair, retention, Arc::clone(&settings.clock)).map_err(failed)?;
        Ok(Self {
            app: Arc::new(App::new(settings, issuer, keys)?),
            listener,
            address,
        })
    }

    /// Returns a handle that controls the server while [`serve`](Self::serve) runs.
    pub fn control(&self) -> Control {
        Control(Arc::clone(&self.app))
    }

    /// Returns the issuer identifier: `http://`, the address and the issuer path, for some
    /// providers with a final slash.
    pub fn issuer(&self) -> &Issuer {
        &self.app.config.issuer
    }

    /// Returns the listening address with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` completes. Requests in progress can then finish within 10 s.
    ///
    /// At most 256 connections are open at once. Others wait to be accepted.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send) {
        let Self {
            app,
            listener,
            address,
        } = self;
        tracing::info!(issuer = app.config.issuer.as_str(), %address, "development authorization server is listening");
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => {}
                (stream, permit) = accept(&listener, &permits) => {
                    connections.spawn(serve_connection(Arc::clone(&app), stream, permit));
                }
            }
        }
        drop(listener);
        app.stop.send_replace(true);
        let drained = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_err() {
            tracing::warn!("closed connections whose requests did not finish in time");
            connections.shutdown().await;
        }
    }
}

impl fmt::Debug for DevIdp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevIdp")
            .field("issuer", self.issuer())
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Waits for a permit and accepts the next connection.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed, so this always returns a permit.
    let permit = Arc::clone(permits).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, permit),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot accept a connection"
                );
                // The process is probably out of file descriptors. Retrying at once would
                // busy-loop.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve_connection(app: Arc<App>, stream: TcpStream, _permit: Option<OwnedSemaphorePermit>) {
    let mut stopped = app.stop.subscribe();
    let service = service_fn(|request| {
        let app = Arc::clone(&app);
        async move { routes::handle(&app, request).await }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_header_size(MAX_HEADER_BYTES)
        .max_buf_size(2 * MAX_HEADER_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    // The result of `wait_for` holds a lock, so it is dropped before the next await.
    let stop_requested = async { drop(stopped.wait_for(|stopped| *stopped).await) };
    let result = tokio::select! {
        result = &mut connection => result,
        () = stop_requested => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(
            error = &error as &dyn std::error::Error,
            "a connection ended early"
        );
    }
}
