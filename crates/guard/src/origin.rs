//! [`OriginPolicy`]: checks `Host` and `Origin`.

mod authority;
#[cfg(test)]
mod tests;

use http::{
    HeaderMap, StatusCode, Uri, Version,
    header::{HOST, ORIGIN},
};
use url::Url;

use self::authority::Authority;

/// Which `Host` and `Origin` values are accepted, as a defence against DNS rebinding and cross-origin reads.
///
/// - If the server's URL is on loopback, loopback hosts and origins are accepted on any port, and those that
///   [`allow_host`](Self::allow_host) and [`allow_origin`](Self::allow_origin) add.
/// - Otherwise any host and any origin is accepted. A call of [`allow_host`](Self::allow_host) restricts hosts to the
///   listed ones and the server's own. A call of [`allow_origin`](Self::allow_origin) or
///   [`only_listed_origins`](Self::only_listed_origins) restricts origins to the listed ones.
///
/// In every case there must be exactly one well-formed host (RFC 9112 section 3.2), and `Host` must agree with the
/// authority of the request target if both are present (RFC 9113 section 8.3.1). A request without `Origin` is accepted,
/// because it does not come from a web page. Any sandboxed page can send `Origin: null`, so it is accepted only if any
/// origin is.
#[derive(Clone, Debug)]
pub struct OriginPolicy {
    loopback: bool,
    own: HostRule,
    /// The default port of the server's scheme, which clients omit from `Host`.
    default_port: Option<u16>,
    hosts: Vec<HostRule>,
    origins: Vec<OriginRule>,
    /// Whether origins must be listed if the server is not on loopback.
    origins_listed: bool,
}

#[derive(Clone, Debug)]
struct HostRule {
    host: Box<str>,
    /// `None`: any port.
    port: Option<u16>,
}

#[derive(Clone, Debug)]
struct OriginRule {
    scheme: Box<str>,
    host: HostRule,
}

/// Why a request's host or origin is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OriginRejection {
    /// There is neither a `Host` header nor an authority in the request target.
    #[error("the request has no host")]
    HostMissing,
    /// There are several `Host` headers, which may be equal.
    #[error("the request has several host headers")]
    HostRepeated,
    /// The host is not `name`, `name:port` or `[address]:port`.
    #[error("the host is malformed")]
    HostMalformed,
    /// `Host` and the authority of the request target differ.
    #[error("the host header and the request target name different hosts")]
    HostDisagrees,
    /// The policy does not allow the host.
    #[error("the host is not allowed")]
    HostNotAllowed,
    /// There are several `Origin` headers.
    #[error("the request has several origin headers")]
    OriginRepeated,
    /// The policy does not allow the origin.
    #[error("the origin is not allowed")]
    OriginNotAllowed,
}

impl OriginRejection {
    /// Returns the stable reason code.
    pub fn code(self) -> &'static str {
        match self {
            Self::HostMissing => "host.missing",
            Self::HostRepeated => "host.repeated",
            Self::HostMalformed => "host.malformed",
            Self::HostDisagrees => "host.disagrees",
            Self::HostNotAllowed => "host.not_allowed",
            Self::OriginRepeated => "origin.repeated",
            Self::OriginNotAllowed => "origin.not_allowed",
        }
    }

    /// The status of the response: 400 if RFC 9112 section 3.2 requires it (a missing, repeated or malformed host),
    /// otherwise 403.
    pub fn status(self) -> StatusCode {
        match self {
            Self::HostMissing | Self::HostRepeated | Self::HostMalformed => StatusCode::BAD_REQUEST,
            _ => StatusCode::FORBIDDEN,
        }
    }
}

/// Why a host or origin setting is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OriginPolicyError {
    /// The base URL has no host.
    #[error("the base URL has no host")]
    NoHost,
    /// An allowed host is not `name`, `name:port` or `[address]:port`.
    #[error("`{0}` is not a host: write `name`, `name:port` or `[address]:port`")]
    Host(String),
    /// An allowed origin is not `scheme://host` with an optional port. `null` is not allowed, because any page can send it.
    #[error("`{0}` is not an origin: write `https://host` or `https://host:port`, without a path")]
    Origin(String),
}

impl OriginPolicyError {
    /// Returns a stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoHost => "settings.base_url",
            Self::Host(_) => "settings.allowed_hosts",
            Self::Origin(_) => "settings.allowed_origins",
        }
    }
}

impl OriginPolicy {
    /// Creates the policy for a server that clients reach at `base_url`. The path is ignored.
    ///
    /// # Errors
    /// Fails if the URL has no host.
    pub fn for_base_url(base_url: &Url) -> Result<Self, OriginPolicyError> {
        let host = base_url.host_str().ok_or(OriginPolicyError::NoHost)?;
        Ok(Self {
            loopback: portcullis_metadata::is_loopback(base_url),
            own: HostRule { host: host.into(), port: None },
            default_port: default_port(base_url.scheme()),
            hosts: Vec::new(),
            origins: Vec::new(),
            origins_listed: false,
        })
    }

    /// Accepts one more host: `name` (any port) or `name:port`. A `Host` without a port has the default port of the base
    /// URL's scheme. If the server is not on loopback, the first call restricts hosts to the listed ones and the server's
    /// own.
    ///
    /// # Errors
    /// Fails if the string is not a host.
    pub fn allow_host(mut self, host: &str) -> Result<Self, OriginPolicyError> {
        let parsed = Authority::parse(host).filter(|parsed| !parsed.host.contains('*'));
        let parsed = parsed.ok_or_else(|| OriginPolicyError::Host(host.to_owned()))?;
        self.hosts.push(HostRule { host: parsed.host.into(), port: parsed.port });
        Ok(self)
    }

    /// Accepts one more origin, such as `https://app.example.com` or `http://10.0.0.7:8080`. If the server is not on
    /// loopback, the first call restricts origins to the listed ones.
    ///
    /// # Errors
    /// Fails if the string is not an origin (RFC 6454 section 6.1) or is `null`.
    pub fn allow_origin(mut self, origin: &str) -> Result<Self, OriginPolicyError> {
        let error = || OriginPolicyError::Origin(origin.to_owned());
        let (scheme, authority) = split_origin(origin).ok_or_else(error)?;
        if authority.host.contains('*') {
            return Err(error());
        }
        let port = authority.port.or_else(|| default_port(scheme));
        let host = HostRule { host: authority.host.into(), port };
        self.origins.push(OriginRule { scheme: scheme.to_ascii_lowercase().into(), host });
        Ok(self.only_listed_origins())
    }

    /// Accepts only listed origins, and loopback origins if the server is on loopback.
    /// [`allow_origin`](Self::allow_origin) implies it. Without a listed origin no page is accepted.
    #[must_use]
    pub fn only_listed_origins(mut self) -> Self {
        self.origins_listed = true;
        self
    }

    /// Checks the version, target and headers of a request. Allocates nothing.
    ///
    /// # Errors
    /// Fails if the host is missing, repeated, malformed, contradictory or not allowed, or if the origin is repeated or not
    /// allowed.
    pub fn check(&self, version: Version, uri: &Uri, headers: &HeaderMap) -> Result<(), OriginRejection> {
        self.check_host(version, uri, headers)?;
        self.check_origin(headers)
    }

    /// Whether every origin is accepted, so that responses need not depend on the origin.
    pub(crate) fn allows_any_origin(&self) -> bool {
        !self.loopback && !self.origins_listed
    }

    fn check_host(&self, version: Version, uri: &Uri, headers: &HeaderMap) -> Result<(), OriginRejection> {
        let mut values = headers.get_all(HOST).iter();
        let header = values.next().map(|value| Authority::parse_header(value).ok_or(OriginRejection::HostMalformed));
        if values.next().is_some() {
            return Err(OriginRejection::HostRepeated);
        }
        let header = header.transpose()?;
        let target = uri.authority().map(|authority| Authority::parse(authority.as_str()));
        let target = target.map(|parsed| parsed.ok_or(OriginRejection::HostMalformed)).transpose()?;
        let host = match (header, target) {
            (Some(header), Some(target)) if !header.agrees(&target, uri.scheme_str().and_then(default_port)) => {
                return Err(OriginRejection::HostDisagrees);
            }
            (Some(host), _) => host,
            // Only HTTP/1.1 requires the header in addition to a target with a host (RFC 9112 section 3.2).
            (None, Some(target)) if version != Version::HTTP_11 => target,
            _ => return Err(OriginRejection::HostMissing),
        };
        let listed = || self.hosts.iter().any(|rule| rule.allows(&host, self.default_port));
        let allowed = if self.loopback {
            host.is_loopback() || listed()
        } else {
            self.hosts.is_empty() || self.own.allows(&host, self.default_port) || listed()
        };
        if allowed { Ok(()) } else { Err(OriginRejection::HostNotAllowed) }
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), OriginRejection> {
        let mut values = headers.get_all(ORIGIN).iter();
        let Some(origin) = values.next() else {
            return Ok(());
        };
        if values.next().is_some() {
            return Err(OriginRejection::OriginRepeated);
        }
        if self.allows_any_origin() {
            return Ok(());
        }
        let parsed = origin.to_str().ok().and_then(split_origin);
        let allowed = parsed.is_some_and(|(scheme, authority)| {
            let page_on_loopback = matches!(scheme, "http" | "https") && authority.is_loopback();
            (self.loopback && page_on_loopback) || self.origins.iter().any(|rule| rule.allows(scheme, &authority))
        });
        if allowed { Ok(()) } else { Err(OriginRejection::OriginNotAllowed) }
    }
}

impl HostRule {
    fn allows(&self, host: &Authority<'_>, default_port: Option<u16>) -> bool {
        self.host.eq_ignore_ascii_case(host.host)
            && self.port.is_none_or(|port| host.port.or(default_port) == Some(port))
    }
}

impl OriginRule {
    fn allows(&self, scheme: &str, authority: &Authority<'_>) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme) && self.host.allows(authority, default_port(scheme))
    }
}

/// The scheme and authority of an `Origin` value; `None` for `null` and for a value with a path.
fn split_origin(origin: &str) -> Option<(&str, Authority<'_>)> {
    let (scheme, authority) = origin.split_once("://")?;
    let scheme_like = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let well_formed = !scheme.is_empty() && scheme.bytes().all(scheme_like);
    if well_formed { Some((scheme, Authority::parse(authority)?)) } else { None }
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "https" => Some(443),
        "http" => Some(80),
        _ => None,
    }
}
