use http::{
    HeaderMap, StatusCode, Uri, Version,
    header::{HOST, ORIGIN},
};
use url::Url;

use authority::Authority;

mod authority;

/// Which `Host` and `Origin` values a server answers: its defence against DNS rebinding and against pages
/// that should not read it.
///
/// - Where the server's own address is loopback, only loopback hosts and origins are admitted, on any port,
///   and those that [`allow_host`](Self::allow_host) and [`allow_origin`](Self::allow_origin) add.
/// - Elsewhere any host and any origin is, until one of the two (or [`only_listed_origins`](Self::only_listed_origins))
///   narrows it: then only the listed ones are (and, for hosts, the server's own name).
///
/// Whatever the settings, there must be exactly one well-formed host (RFC 9112 section 3.2), and `Host` must
/// agree with the authority of the request target where both are present (RFC 9113 section 8.3.1). A
/// request without `Origin` comes from no page and is admitted. `Origin: null` is any sandboxed page's, so
/// it is admitted only where any origin is.
#[derive(Clone, Debug)]
pub struct OriginPolicy {
    loopback: bool,
    own: HostRule,
    /// The port that clients leave out of `Host`: that of the server's own scheme.
    default_port: Option<u16>,
    hosts: Vec<HostRule>,
    origins: Vec<OriginRule>,
    /// Whether origins are admitted by the list alone, where the server is not on loopback.
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

/// Why a request's host or origin is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OriginRejection {
    /// There is neither a `Host` header nor an authority in the request target.
    #[error("the request names no host")]
    HostMissing,
    /// There are several `Host` headers, equal ones included.
    #[error("the request has several host headers")]
    HostRepeated,
    /// The host is no `name`, `name:port` or `[address]:port`.
    #[error("the host is malformed")]
    HostMalformed,
    /// `Host` and the authority of the request target differ.
    #[error("the host header and the request target name different hosts")]
    HostDisagrees,
    /// The policy does not admit the host.
    #[error("the host is not allowed")]
    HostNotAllowed,
    /// There are several `Origin` headers.
    #[error("the request has several origin headers")]
    OriginRepeated,
    /// The policy does not admit the origin.
    #[error("the origin is not allowed")]
    OriginNotAllowed,
}

impl OriginRejection {
    /// The stable reason code.
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

    /// The status to answer with: 400 where RFC 9112 section 3.2 demands it (no host, several, a malformed
    /// one), else 403.
    pub fn status(self) -> StatusCode {
        match self {
            Self::HostMissing | Self::HostRepeated | Self::HostMalformed => StatusCode::BAD_REQUEST,
            _ => StatusCode::FORBIDDEN,
        }
    }
}

/// Why a setting is no host or origin to admit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OriginPolicyError {
    /// The address that clients see has no host.
    #[error("the base URL has no host")]
    NoHost,
    /// An allowed host is no `name`, `name:port` or `[address]:port`.
    #[error("`{0}` is no host: write `name`, `name:port` or `[address]:port`")]
    Host(String),
    /// An allowed origin is no `scheme://host` with an optional port. `null` is none: any page can send it.
    #[error("`{0}` is no origin: write `https://host` or `https://host:port`, without a path")]
    Origin(String),
}

impl OriginPolicyError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoHost => "settings.base_url",
            Self::Host(_) => "settings.allowed_hosts",
            Self::Origin(_) => "settings.allowed_origins",
        }
    }
}

impl OriginPolicy {
    /// The policy for a server that clients reach at `base_url`; its path does not count.
    ///
    /// # Errors
    /// When the URL has no host.
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

    /// Admits one more host: `name` (any port) or `name:port`, where a `Host` without a port stands for the one
    /// that belongs to the base URL's scheme. For a server that is not on loopback the first one narrows
    /// "any host" to the listed ones and its own.
    ///
    /// # Errors
    /// When the text is no host.
    pub fn allow_host(mut self, host: &str) -> Result<Self, OriginPolicyError> {
        let parsed = Authority::parse(host).filter(|parsed| !parsed.host.contains('*'));
        let parsed = parsed.ok_or_else(|| OriginPolicyError::Host(host.to_owned()))?;
        self.hosts.push(HostRule { host: parsed.host.into(), port: parsed.port });
        Ok(self)
    }

    /// Admits one more origin, such as `https://app.example.com` or `http://10.0.0.7:8080`. For a server
    /// that is not on loopback the first one narrows "any origin" to the listed ones.
    ///
    /// # Errors
    /// When the text is no origin (RFC 6454 section 6.1), or is `null`.
    pub fn allow_origin(mut self, origin: &str) -> Result<Self, OriginPolicyError> {
        let refused = || OriginPolicyError::Origin(origin.to_owned());
        let (scheme, authority) = split_origin(origin).ok_or_else(refused)?;
        if authority.host.contains('*') {
            return Err(refused());
        }
        let port = authority.port.or_else(|| default_port(scheme));
        let host = HostRule { host: authority.host.into(), port };
        self.origins.push(OriginRule { scheme: scheme.to_ascii_lowercase().into(), host });
        Ok(self.only_listed_origins())
    }

    /// Admits listed origins alone, on loopback those of loopback too. [`allow_origin`](Self::allow_origin) implies
    /// it; by itself it is the empty list, which admits no page.
    #[must_use]
    pub fn only_listed_origins(mut self) -> Self {
        self.origins_listed = true;
        self
    }

    /// Judges one request by its version, target and headers. Allocates nothing.
    ///
    /// # Errors
    /// When the host is missing, repeated, malformed, contradicted or not admitted, or the origin is
    /// repeated or not admitted.
    pub fn check(&self, version: Version, uri: &Uri, headers: &HeaderMap) -> Result<(), OriginRejection> {
        self.check_host(version, uri, headers)?;
        self.check_origin(headers)
    }

    /// Whether every origin is admitted, so that an answer need not say for which one it is.
    pub(crate) fn admits_any_origin(&self) -> bool {
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
            // Only HTTP/1.1 demands the header beside a target that names the host (RFC 9112 section 3.2).
            (None, Some(target)) if version != Version::HTTP_11 => target,
            _ => return Err(OriginRejection::HostMissing),
        };
        let listed = || self.hosts.iter().any(|rule| rule.admits(&host, self.default_port));
        let admitted = if self.loopback {
            host.is_loopback() || listed()
        } else {
            self.hosts.is_empty() || self.own.admits(&host, self.default_port) || listed()
        };
        if admitted { Ok(()) } else { Err(OriginRejection::HostNotAllowed) }
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), OriginRejection> {
        let mut values = headers.get_all(ORIGIN).iter();
        let Some(origin) = values.next() else {
            return Ok(());
        };
        if values.next().is_some() {
            return Err(OriginRejection::OriginRepeated);
        }
        if self.admits_any_origin() {
            return Ok(());
        }
        let parsed = origin.to_str().ok().and_then(split_origin);
        let admitted = parsed.is_some_and(|(scheme, authority)| {
            let page_on_loopback = matches!(scheme, "http" | "https") && authority.is_loopback();
            (self.loopback && page_on_loopback) || self.origins.iter().any(|rule| rule.admits(scheme, &authority))
        });
        if admitted { Ok(()) } else { Err(OriginRejection::OriginNotAllowed) }
    }
}

impl HostRule {
    fn admits(&self, host: &Authority<'_>, default_port: Option<u16>) -> bool {
        self.host.eq_ignore_ascii_case(host.host)
            && self.port.is_none_or(|port| host.port.or(default_port) == Some(port))
    }
}

impl OriginRule {
    fn admits(&self, scheme: &str, authority: &Authority<'_>) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme) && self.host.admits(authority, default_port(scheme))
    }
}

/// An `Origin` value's scheme and authority; `None` for `null` and for anything with a path.
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

#[cfg(test)]
mod tests;
