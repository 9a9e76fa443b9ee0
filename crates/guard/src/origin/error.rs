//! [`OriginRejection`] and [`OriginPolicyError`]: why a request or a policy is rejected.

use http::StatusCode;
use portcullis_reason_codes::ReasonCodes;

/// Why a request's host or origin is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum OriginRejection {
    /// There is neither a `Host` header nor an authority in the request target.
    #[error("the request has no host")]
    #[code = "host.missing"]
    HostMissing,
    /// There are several `Host` headers, which may be equal.
    #[error("the request has several host headers")]
    #[code = "host.repeated"]
    HostRepeated,
    /// The host is not `name`, `name:port` or `[address]:port`.
    #[error("the host is malformed")]
    #[code = "host.malformed"]
    HostMalformed,
    /// `Host` and the authority of the request target differ.
    #[error("the host header and the request target name different hosts")]
    #[code = "host.disagrees"]
    HostDisagrees,
    /// The policy does not allow the host.
    #[error("the host is not allowed")]
    #[code = "host.not_allowed"]
    HostNotAllowed,
    /// There are several `Origin` headers.
    #[error("the request has several origin headers")]
    #[code = "origin.repeated"]
    OriginRepeated,
    /// The policy does not allow the origin.
    #[error("the origin is not allowed")]
    #[code = "origin.not_allowed"]
    OriginNotAllowed,
}

impl OriginRejection {
    /// Returns the status of the response: 400 if RFC 9112 section 3.2 requires it (a missing,
    /// repeated or malformed host), otherwise 403.
    pub fn status(self) -> StatusCode {
        match self {
            Self::HostMissing | Self::HostRepeated | Self::HostMalformed => StatusCode::BAD_REQUEST,
            _ => StatusCode::FORBIDDEN,
        }
    }
}

/// Why a host or origin setting is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum OriginPolicyError {
    /// The base URL has no host.
    #[error("the base URL has no host")]
    #[code = "settings.base_url"]
    NoHost,
    /// An allowed host is not `name`, `name:port` or `[address]:port`.
    #[error("`{0}` is not a host: write `name`, `name:port` or `[address]:port`")]
    #[code = "settings.allowed_hosts"]
    Host(String),
    /// An allowed origin is not `scheme://host` with an optional port. `null` is not allowed,
    /// because any page can send it.
    #[error("`{0}` is not an origin: write `https://host` or `https://host:port`, without a path")]
    #[code = "settings.allowed_origins"]
    Origin(String),
}
