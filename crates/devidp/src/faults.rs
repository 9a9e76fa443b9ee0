use std::{
    num::NonZeroU32,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::StatusCode;

use crate::{
    app::App,
    endpoint::Endpoint,
    respond::{self, Reply},
};

/// Something that goes wrong on purpose, so that a test can see what others make of it.
///
/// Faults at one place strike in the order in which they were injected, one a request, each as often as it says.
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
    /// Where it strikes.
    pub at: FaultPoint,
    /// What happens.
    pub kind: FaultKind,
    /// How many requests it strikes; `None` for all until faults are cleared.
    pub times: Option<NonZeroU32>,
}

/// Where a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultPoint {
    /// The metadata document, in all its places.
    Metadata,
    /// The published keys.
    Jwks,
    /// The registration endpoint.
    Register,
    /// The authorization endpoint.
    Authorize,
    /// The token endpoint.
    Token,
    /// The introspection endpoint.
    Introspect,
    /// The revocation endpoint.
    Revoke,
}

/// What happens to a request that a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// It is answered as ever, this much later; at most a minute.
    Delay(Duration),
    /// It is answered with this status, 400 to 599, and nothing is done.
    Status(StatusCode),
    /// It is answered with 200 and JSON that breaks off.
    Garbage,
    /// It is never answered. The connection ends when the client leaves, after 5 min, or when the server stops.
    Hang,
    /// It is answered as ever, but for the issuer, which is another one: `issuer` of [`FaultPoint::Metadata`], `iss` in the
    /// redirect of [`FaultPoint::Authorize`] that needs no consent page. For these two alone.
    WrongIssuer,
    /// The connection is closed without an answer.
    Drop,
}

/// Why a fault cannot be injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultProblem {
    /// The status is no error.
    #[error("a fault's status is from 400 to 599")]
    Status,
    /// The delay is too long.
    #[error("a fault's delay is at most 60 s")]
    Delay,
    /// There is no issuer in the answer.
    #[error("wrong_issuer is for metadata and authorize alone: other answers have no issuer")]
    NoIssuer,
    /// Too many faults wait already.
    #[error("100 faults wait already: clear them first")]
    TooMany,
}

impl FaultPoint {
    const ALL: [Self; 7] =
        [Self::Metadata, Self::Jwks, Self::Register, Self::Authorize, Self::Token, Self::Introspect, Self::Revoke];

    /// The place with this name, as the admin endpoint takes it.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|point| point.as_str() == name)
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Jwks => "jwks",
            Self::Register => "register",
            Self::Authorize => "authorize",
            Self::Token => "token",
            Self::Introspect => "introspect",
            Self::Revoke => "revoke",
        }
    }

    const fn of(endpoint: Endpoint) -> Option<Self> {
        match endpoint {
            Endpoint::Metadata => Some(Self::Metadata),
            Endpoint::Jwks => Some(Self::Jwks),
            Endpoint::Register => Some(Self::Register),
            Endpoint::Authorize => Some(Self::Authorize),
            Endpoint::Token => Some(Self::Token),
            Endpoint::Introspect => Some(Self::Introspect),
            Endpoint::Revoke => Some(Self::Revoke),
            Endpoint::Front | Endpoint::Consent | Endpoint::RotateKeys | Endpoint::Faults => None,
        }
    }
}

const MAX_FAULTS: usize = 100;
const MAX_DELAY: Duration = Duration::from_secs(60);
const HANG: Duration = Duration::from_secs(300);
const BROKEN: &[u8] = br#"{"keys":[{"kty":"RSA","#;
/// What stands in place of the issuer. It is another host, so that whoever does not compare asks somebody else.
pub(crate) const WRONG_ISSUER: &str = "https://wrong-issuer.example";

/// The faults that are still to strike.
#[derive(Default)]
pub(crate) struct Faults(Mutex<Vec<Fault>>);

impl Faults {
    pub(crate) fn inject(&self, fault: Fault) -> Result<(), FaultProblem> {
        match fault.kind {
            FaultKind::Status(status) if !(status.is_client_error() || status.is_server_error()) => {
                return Err(FaultProblem::Status);
            }
            FaultKind::Delay(delay) if delay > MAX_DELAY => return Err(FaultProblem::Delay),
            FaultKind::WrongIssuer if !matches!(fault.at, FaultPoint::Metadata | FaultPoint::Authorize) => {
                return Err(FaultProblem::NoIssuer);
            }
            _ => {}
        }
        let mut faults = self.faults();
        if faults.len() >= MAX_FAULTS {
            return Err(FaultProblem::TooMany);
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

    /// The fault that strikes the next request there.
    fn next(&self, at: FaultPoint) -> Option<FaultKind> {
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

/// What becomes of a request.
pub(crate) enum Struck {
    /// It is handled as ever.
    Not,
    /// It is handled as ever, and the issuer replaced in the answer.
    Issuer,
    /// This is the answer.
    Answered(Reply),
    /// There is none.
    Cut,
}

/// Lets the fault strike that waits at this endpoint, where there is one.
pub(crate) async fn strike(app: &App, endpoint: Endpoint) -> Struck {
    let Some((at, kind)) = FaultPoint::of(endpoint).and_then(|at| Some((at, app.faults.next(at)?))) else {
        return Struck::Not;
    };
    tracing::warn!(fault.at = at.as_str(), fault.kind = ?kind, "a scripted fault strikes");
    match kind {
        FaultKind::Delay(delay) => {
            wait(app, delay).await;
            Struck::Not
        }
        FaultKind::Status(status) => Struck::Answered(respond::plain(status, "This is a scripted fault.\n")),
        FaultKind::Garbage => Struck::Answered(respond::document(Bytes::from_static(BROKEN))),
        FaultKind::Hang => {
            wait(app, HANG).await;
            Struck::Cut
        }
        FaultKind::WrongIssuer => Struck::Issuer,
        FaultKind::Drop => Struck::Cut,
    }
}

/// Waits for that long, or until the server stops.
async fn wait(app: &App, time: Duration) {
    let mut stopped = app.stop.subscribe();
    let stopped = async { drop(stopped.wait_for(|stopped| *stopped).await) };
    let _ = tokio::time::timeout(time, stopped).await;
}
