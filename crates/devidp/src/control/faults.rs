//! Faults that the server simulates on purpose.

use std::{num::NonZeroU32, time::Duration};

use http::StatusCode;
use parking_lot::Mutex;

use crate::{control::token_faults::TokenFault, server::endpoint::Endpoint};

/// A simulated fault, to test how clients and resource servers handle it.
///
/// Faults at one point apply in the order of injection, one per request. Each applies to the given
/// number of requests.
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
    /// The userinfo endpoint, or the user API with the imitation of GitHub.
    UserInfo,
    /// The ID tokens of the token endpoint.
    IdToken,
    /// The logout tokens that the server sends.
    LogoutToken,
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
    /// There is no response. The connection is closed when the client leaves, after 5 min, or when
    /// the server stops.
    Hang,
    /// The response has another issuer: in `issuer` at [`FaultPoint::Metadata`], and in `iss` of
    /// redirects without a consent page at [`FaultPoint::Authorize`], and in `iss` at
    /// [`FaultPoint::IdToken`] and [`FaultPoint::LogoutToken`]. Not valid at other points.
    WrongIssuer,
    /// The token is wrong. Valid only at [`FaultPoint::IdToken`] and [`FaultPoint::LogoutToken`],
    /// where the only other valid kind is [`WrongIssuer`](Self::WrongIssuer).
    Token(TokenFault),
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
    #[error(
        "wrong_issuer is valid only at metadata, authorize, id_token and logout_token: other responses have no issuer"
    )]
    NoIssuer,
    /// The kind is one for tokens and the point is one for responses, or the other way around.
    #[error(
        "this kind is not valid here: faults of tokens are for id_token and logout_token, which have no other ones"
    )]
    Point,
    /// Too many faults are pending.
    #[error("100 faults are pending already: clear them first")]
    TooMany,
}

impl FaultPoint {
    const ALL: [Self; 12] = [
        Self::Metadata,
        Self::Jwks,
        Self::Register,
        Self::Client,
        Self::Authorize,
        Self::DeviceAuthorization,
        Self::Token,
        Self::Introspect,
        Self::Revoke,
        Self::UserInfo,
        Self::IdToken,
        Self::LogoutToken,
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
            Self::UserInfo => "userinfo",
            Self::IdToken => "id_token",
            Self::LogoutToken => "logout_token",
        }
    }

    /// Returns whether faults at this point are in a token, and not in a response.
    const fn is_token(self) -> bool {
        matches!(self, Self::IdToken | Self::LogoutToken)
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
            Endpoint::UserInfo | Endpoint::GitHubApi => Some(Self::UserInfo),
            Endpoint::Home
            | Endpoint::Device
            | Endpoint::DeviceConsent
            | Endpoint::Consent
            | Endpoint::RotateKeys
            | Endpoint::Faults
            | Endpoint::ForgetClients
            | Endpoint::AnswerDevice
            | Endpoint::ChangeUser
            | Endpoint::LogOut => None,
        }
    }
}

impl FaultKind {
    /// Returns whether a response has no token because of the fault.
    pub(crate) const fn leaves_token_out(self) -> bool {
        matches!(self, Self::Token(TokenFault::NoToken))
    }

    const fn is_for_token(self) -> bool {
        matches!(self, Self::Token(_) | Self::WrongIssuer)
    }
}

const MAX_FAULTS: usize = 100;
const MAX_DELAY: Duration = Duration::from_secs(60);

/// The pending faults.
#[derive(Default)]
pub(crate) struct Faults(Mutex<Vec<Fault>>);

impl Faults {
    pub(crate) fn new(initial: &[Fault]) -> Result<Self, FaultError> {
        let faults = Self::default();
        initial
            .iter()
            .try_for_each(|fault| faults.inject(fault.clone()))?;
        Ok(faults)
    }

    pub(crate) fn inject(&self, fault: Fault) -> Result<(), FaultError> {
        match fault.kind {
            FaultKind::Status(status)
                if !(status.is_client_error() || status.is_server_error()) =>
            {
                return Err(FaultError::Status);
            }
            FaultKind::Delay(delay) if delay > MAX_DELAY => return Err(FaultError::Delay),
            FaultKind::WrongIssuer
                if !matches!(fault.at, FaultPoint::Metadata | FaultPoint::Authorize)
                    && !fault.at.is_token() =>
            {
                return Err(FaultError::NoIssuer);
            }
            FaultKind::Token(_) if !fault.at.is_token() => return Err(FaultError::Point),
            kind if fault.at.is_token() && !kind.is_for_token() => return Err(FaultError::Point),
            _ => {}
        }
        let mut faults = self.0.lock();
        if faults.len() >= MAX_FAULTS {
            return Err(FaultError::TooMany);
        }
        faults.push(fault);
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Takes the fault for the next request to an endpoint.
    pub(super) fn take_next(&self, endpoint: Endpoint) -> Option<(FaultPoint, FaultKind)> {
        let at = FaultPoint::for_endpoint(endpoint)?;
        self.take_at(at).map(|kind| (at, kind))
    }

    /// Takes the next fault at a point.
    pub(crate) fn take_at(&self, at: FaultPoint) -> Option<FaultKind> {
        let mut faults = self.0.lock();
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
}
