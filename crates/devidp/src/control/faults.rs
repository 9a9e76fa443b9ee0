//! Faults that the server simulates on purpose.

use std::{
    num::NonZeroU32,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::StatusCode;

use crate::{
    app::App,
    server::{
        endpoint::Endpoint,
        respond::{self, Reply},
    },
};

/// A simulated fault, to test how clients and resource servers handle it.
///
/// Faults at one point apply in the order of injection, one per request. Each applies to the given number of requests.
///
/// ```
/// use std::num::NonZeroU32;
/// use portcullis_devidp::{DevIdpSettings, Fault, FaultKind, FaultPoint};
///
/// let fault = Fault { at: FaultPoint::Jwks, kind: FaultKind::Garbage, times: NonZeroU32::new(2) };
/// let settings = DevIdpSettings { faults: vec![fault], ..DevIdpSettings::default() };
/// assert_eq!(settings.faults.len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The point at which the fault applies.
    pub at: FaultPoint,
    /// The kind of fault.
    pub kind: FaultKind,
    /// The number of requests. `None` means all requests until the faults are cleared.
    pub times: Option<NonZeroU32>,
}

/// The point at which a fault applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultPoint {
    /// The metadata document at all its URLs.
    Metadata,
    /// The JWK set.
    Jwks,
    /// The registration endpoint.
    Register,
    /// The registrations of clients (RFC 7592).
    Client,
    /// The authorization endpoint.
    Authorize,
    /// The device authorization endpoint.
    DeviceAuthorization,
    /// The token endpoint.
    Token,
    /// The introspection endpoint.
    Introspect,
    /// The revocation endpoint.
    Revoke,
}

/// The effect of a fault on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The response is delayed by this time, at most a minute.
    Delay(Duration),
    /// The response has this status, 400 to 599. The request is not processed.
    Status(StatusCode),
    /// The response is 200 with truncated JSON.
    Garbage,
    /// There is no response. The connection is closed when the client leaves, after 5 min, or when the server stops.
    Hang,
    /// The response has another issuer: in `issuer` at [`FaultPoint::Metadata`], and in `iss` of redirects without a consent
    /// page at [`FaultPoint::Authorize`]. Not valid at other points.
    WrongIssuer,
    /// The connection is closed without a response.
    Drop,
}

/// Why a fault is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// The status is not an error status.
    #[error("a fault's status must be from 400 to 599")]
    Status,
    /// The delay is too long.
    #[error("a fault's delay must be at most 60 s")]
    Delay,
    /// Responses at this point have no issuer.
    #[error("wrong_issuer is valid only at metadata and authorize: other responses have no issuer")]
    NoIssuer,
    /// Too many faults are pending.
    #[error("100 faults are pending already: clear them first")]
    TooMany,
}

impl FaultPoint {
    const ALL: [Self; 9] = [
        Self::Metadata,
        Self::Jwks,
        Self::Register,
        Self::Client,
        Self::Authorize,
        Self::DeviceAuthorization,
        Self::Token,
        Self::Introspect,
        Self::Revoke,
    ];

    /// Parses the name that the admin endpoint uses.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|point| point.as_str() == name)
    }

    /// Returns the name that the admin endpoint uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Jwks => "jwks",
            Self::Register => "register",
            Self::Client => "client",
            Self::Authorize => "authorize",
            Self::DeviceAuthorization => "device_authorization",
            Self::Token => "token",
            Self::Introspect => "introspect",
            Self::Revoke => "revoke",
        }
    }

    const fn for_endpoint(endpoint: Endpoint) -> Option<Self> {
        match endpoint {
            Endpoint::Metadata => Some(Self::Metadata),
            Endpoint::Jwks => Some(Self::Jwks),
            Endpoint::Register => Some(Self::Register),
            Endpoint::Client => Some(Self::Client),
            Endpoint::Authorize => Some(Self::Authorize),
            Endpoint::DeviceAuthorization => Some(Self::DeviceAuthorization),
            Endpoint::Token => Some(Self::Token),
            Endpoint::Introspect => Some(Self::Introspect),
            Endpoint::Revoke => Some(Self::Revoke),
            Endpoint::Home
            | Endpoint::Device
            | Endpoint::DeviceConsent
            | Endpoint::Consent
            | Endpoint::RotateKeys
            | Endpoint::Faults
            | Endpoint::ForgetClients
            | Endpoint::AnswerDevice => None,
        }
    }
}

const MAX_FAULTS: usize = 100;
const MAX_DELAY: Duration = Duration::from_secs(60);
const MAX_HANG: Duration = Duration::from_secs(300);
const TRUNCATED_JSON: &[u8] = br#"{"keys":[{"kty":"RSA","#;
/// The issuer that replaces the real one. It has another host, so a client that does not compare issuers contacts that
/// host.
pub(crate) const WRONG_ISSUER: &str = "https://wrong-issuer.example";

/// The pending faults.
#[derive(Default)]
pub(crate) struct Faults(Mutex<Vec<Fault>>);

impl Faults {
    pub(crate) fn inject(&self, fault: Fault) -> Result<(), FaultError> {
        match fault.kind {
            FaultKind::Status(status) if !(status.is_client_error() || status.is_server_error()) => {
                return Err(FaultError::Status);
            }
            FaultKind::Delay(delay) if delay > MAX_DELAY => return Err(FaultError::Delay),
            FaultKind::WrongIssuer if !matches!(fault.at, FaultPoint::Metadata | FaultPoint::Authorize) => {
                return Err(FaultError::NoIssuer);
            }
            _ => {}
        }
        let mut faults = self.faults();
        if faults.len() >= MAX_FAULTS {
            return Err(FaultError::TooMany);
        }
        faults.push(fault);
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.faults().len()
    }

    pub(crate) fn clear(&self) {
        self.faults().clear();
    }

    /// Takes the fault for the next request at a point.
    fn take_next(&self, at: FaultPoint) -> Option<FaultKind> {
        let mut faults = self.faults();
        let index = faults.iter().position(|fault| fault.at == at)?;
        let fault = faults.get_mut(index)?;
        let kind = fault.kind;
        match fault.times.map(|times| NonZeroU32::new(times.get() - 1)) {
            None => {}
            Some(Some(left)) => fault.times = Some(left),
            Some(None) => drop(faults.remove(index)),
        }
        Some(kind)
    }

    fn faults(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What to do with a request.
pub(crate) enum FaultEffect {
    /// Handle the request normally.
    None,
    /// Handle the request and replace the issuer in the response.
    WrongIssuer,
    /// Send this response.
    Respond(Reply),
    /// Close the connection without a response.
    CloseConnection,
}

/// Applies the next fault for this endpoint, if any.
pub(crate) async fn apply(app: &App, endpoint: Endpoint) -> FaultEffect {
    let Some((at, kind)) = FaultPoint::for_endpoint(endpoint).and_then(|at| Some((at, app.faults.take_next(at)?)))
    else {
        return FaultEffect::None;
    };
    tracing::warn!(fault.at = at.as_str(), fault.kind = ?kind, "a scripted fault applies");
    match kind {
        FaultKind::Delay(delay) => {
            wait(app, delay).await;
            FaultEffect::None
        }
        FaultKind::Status(status) => FaultEffect::Respond(respond::plain(status, "This is a scripted fault.\n")),
        FaultKind::Garbage => FaultEffect::Respond(respond::document(Bytes::from_static(TRUNCATED_JSON))),
        FaultKind::Hang => {
            wait(app, MAX_HANG).await;
            FaultEffect::CloseConnection
        }
        FaultKind::WrongIssuer => FaultEffect::WrongIssuer,
        FaultKind::Drop => FaultEffect::CloseConnection,
    }
}

/// Waits for a duration or until the server stops.
async fn wait(app: &App, duration: Duration) {
    let mut stopped = app.stop.subscribe();
    let stopped = async { drop(stopped.wait_for(|stopped| *stopped).await) };
    let _ = tokio::time::timeout(duration, stopped).await;
}
