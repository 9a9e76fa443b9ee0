//! [`OriginPolicy`]: checks `Host` and `Origin`.

mod authority;
mod error;
#[cfg(test)]
mod tests;

use http::{
    HeaderMap, Uri, Version,
    header::{HOST, ORIGIN},
};
use url::Url;

use self::authority::Authority;
pub use self::error::{OriginPolicyError, OriginRejection};

/// Which `Host` and `Origin` values are accepted, as a defence against DNS rebinding and
/// cross-origin reads.
///
/// - If the server's URL is on loopback, loopback hosts and origins are accepted on any port, and
///   those that [`allow_host`](Self::allow_host) and [`allow_origin`](Self::allow_origin) add.
/// - Otherwise any host and any origin is accepted. A call of [`allow_host`](Self::allow_host)
///   restricts hosts to the listed ones and the server's own. A call of
///   [`allow_origin`](Self::allow_origin) or [`only_listed_origins`](Self::only_listed_origins)
///   restricts origins to the listed ones.
///
/// In every case there must be exactly one well-formed host (RFC 9112 section 3.2), and `Host` must
/// agree with the authority of the request target if both are present (RFC 9113 section 8.3.1). A
/// request without `Origin` is accepted: a page of another origin can neither add a token to such a
/// request nor read its response. Any sandboxed page can send `Origin: null`, so it is accepted
/// only if any origin is.
///
/// ```
/// use http::{HeaderMap, HeaderValue, Uri, Version, header};
/// use portcullis_guard::OriginPolicy;
///
/// let policy = OriginPolicy::for_base_url(&"https://api.example.com/".parse()?)?;
/// let policy = policy.allow_origin("https://app.example.com")?;
///
/// let check = |origin| {
///     let mut headers = HeaderMap::new();
///     headers.insert(header::HOST, HeaderValue::from_static("api.example.com"));
///     headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
///     policy.check(Version::HTTP_11, &Uri::from_static("/"), &headers)
/// };
/// assert!(check("https://app.example.com").is_ok());
/// assert_eq!(check("https://evil.example").unwrap_err().code(), "origin.not_allowed");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct OriginPolicy {
    /// Whether the server's own URL is on loopback.
    loopback: bool,
    /// The server's own host, on any port.
    own: HostRule,
    /// The default port of the server's scheme, which clients omit from `Host`.
    default_port: Option<u16>,
    hosts: Vec<HostRule>,
    origins: Vec<OriginRule>,
    /// Whether origins must be listed if the server is not on loopback.
    origins_listed: bool,
}

/// An accepted host.
#[derive(Clone, Debug)]
struct HostRule {
    host: Box<str>,
    /// `None`: any port.
    port: Option<u16>,
}

/// An accepted origin.
#[derive(Clone, Debug)]
struct OriginRule {
    scheme: Box<str>,
    host: HostRule,
}

impl OriginPolicy {
    /// Creates the policy for a server that clients reach at `base_url`. The path is ignored.
    ///
    /// # Errors
    /// Fails if the URL has no host.
    pub fn for_base_url(base_url: &Url) -> Result<Self, OriginPolicyError> {
        let host = base_url.host_str().ok_or(OriginPolicyError::NoHost)?;
        Ok(Self {
            loopback: portcullis_metadata::syntax::is_loopback(base_url),
            own: HostRule {
                host: host.into(),
                port: None,
            },
            default_port: default_port(base_url.scheme()),
            hosts: Vec::new(),
            origins: Vec::new(),
            origins_listed: false,
        })
    }

    /// Accepts one more host: `name` (any port) or `name:port`. A `Host` without a port has the
    /// default port of the base URL's scheme. If the server is not on loopback, the first call
    /// restricts hosts to the listed ones and the server's own.
    ///
    /// # Errors
    /// Fails if the string is not a host.
    pub fn allow_host(mut self, host: &str) -> Result<Self, OriginPolicyError> {
        let parsed = Authority::parse(host).filter(|parsed| !parsed.host.contains('*'));
        let parsed = parsed.ok_or_else(|| OriginPolicyError::Host(host.to_owned()))?;
        self.hosts.push(HostRule {
            host: parsed.host.into(),
            port: parsed.port,
        });
        Ok(self)
    }

    /// Accepts one more origin, such as `https://app.example.com` or `http://10.0.0.7:8080`. If the
    /// server is not on loopback, the first call restricts origins to the listed ones.
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
        let host = HostRule {
            host: authority.host.into(),
            port,
        };
        self.origins.push(OriginRule {
            scheme: scheme.to_ascii_lowercase().into(),
            host,
        });
        Ok(self.only_listed_origins())
    }

    /// Accepts only listed origins, and loopback origins if the server is on loopback.
    /// [`allow_origin`](Self::allow_origin) implies it. Without a listed origin no page is
    /// accepted.
    #[must_use]
    pub fn only_listed_origins(mut self) -> Self {
        self.origins_listed = true;
        self
    }

    /// Checks the version, target and headers of a request. Allocates nothing.
    ///
    /// # Errors
    /// Fails if the host is missing, repeated, malformed, contradictory or not allowed, or if the
    /// origin is repeated or not allowed.
    pub fn check(
        &self,
        version: Version,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), OriginRejection> {
        self.check_host(version, uri, headers)?;
        self.check_origin(headers)
    }

    /// Returns whether every origin is accepted, so that responses need not depend on the origin.
    pub(crate) fn allows_any_origin(&self) -> bool {
        !self.loopback && !self.origins_listed
    }

    /// Checks the host of a request alone, for endpoints that decide about origins themselves.
    ///
    /// # Errors
    /// Fails if the host is missing, repeated, malformed, contradictory or not allowed.
    pub fn check_host(
        &self,
        version: Version,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), OriginRejection> {
        let host = request_host(version, uri, headers)?;
        let listed = || {
            self.hosts
                .iter()
                .any(|rule| rule.allows(&host, self.default_port))
        };
        let allowed = if self.loopback {
            host.is_loopback() || listed()
        } else {
            self.hosts.is_empty() || self.own.allows(&host, self.default_port) || listed()
        };
        if allowed {
            Ok(())
        } else {
            log_not_allowed(&host);
            Err(OriginRejection::HostNotAllowed)
        }
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
            (self.loopback && page_on_loopback)
                || self
                    .origins
                    .iter()
                    .any(|rule| rule.allows(scheme, &authority))
        });
        if allowed {
            Ok(())
        } else {
            Err(OriginRejection::OriginNotAllowed)
        }
    }
}

impl HostRule {
    fn allows(&self, host: &Authority<'_>, default_port: Option<u16>) -> bool {
        self.host.eq_ignore_ascii_case(host.host)
            && self
                .port
                .is_none_or(|port| host.port.or(default_port) == Some(port))
    }
}

impl OriginRule {
    fn allows(&self, scheme: &str, authority: &Authority<'_>) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
            && self.host.allows(authority, default_port(scheme))
    }
}

/// Logs a host that is not allowed, because neither the client nor the decision has it.
#[cold]
fn log_not_allowed(host: &Authority<'_>) {
    tracing::debug!(
        deny.code = OriginRejection::HostNotAllowed.code(),
        http.host = %host,
        "the host of the request is not allowed"
    );
}

/// Returns the only host of a request: that of `Host` or of the request target, which must agree if
/// there are both.
fn request_host<'r>(
    version: Version,
    uri: &'r Uri,
    headers: &'r HeaderMap,
) -> Result<Authority<'r>, OriginRejection> {
    let mut values = headers.get_all(HOST).iter();
    let header = values
        .next()
        .map(|value| Authority::parse_header(value).ok_or(OriginRejection::HostMalformed));
    if values.next().is_some() {
        return Err(OriginRejection::HostRepeated);
    }
    let header = header.transpose()?;
    let target = uri
        .authority()
        .map(|authority| Authority::parse(authority.as_str()));
    let target = target
        .map(|parsed| parsed.ok_or(OriginRejection::HostMalformed))
        .transpose()?;
    match (header, target) {
        (Some(header), Some(target))
            if !header.agrees(&target, uri.scheme_str().and_then(default_port)) =>
        {
            Err(OriginRejection::HostDisagrees)
        }
        (Some(host), _) => Ok(host),
        // Only HTTP/1.1 requires the header in addition to a target with a host (RFC 9112 section
        // 3.2).
        (None, Some(target)) if version != Version::HTTP_11 => Ok(target),
        _ => Err(OriginRejection::HostMissing),
    }
}

/// Returns the scheme and authority of an `Origin` value; `None` for `null` and for a value with a
/// path.
fn split_origin(origin: &str) -> Option<(&str, Authority<'_>)> {
    let (scheme, authority) = origin.split_once("://")?;
    let scheme_like = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let well_formed = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(scheme_like);
    if well_formed {
        Some((scheme, Authority::parse(authority)?))
    } else {
        None
    }
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "https" => Some(443),
        "http" => Some(80),
        _ => None,
    }
}
