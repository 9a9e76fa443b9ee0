use std::net::IpAddr;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Version,
    header::{CONTENT_TYPE, COOKIE, HOST, VIA},
};
use portcullis_mcp::header;
use url::Url;

use crate::{
    IdentityHeader, UpstreamSettingsError,
    address::Target,
    client_assertions::speaks_for_client,
    forward_headers,
    forwarded::{PublicAddress, is_forwarded},
    hop_by_hop::is_hop_by_hop,
    identity::{self, Identity},
    link::{Outbound, OutboundHead},
    query, trace_context,
};

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// All headers of this beginning are this gateway's to say.
pub(crate) const OWN_PREFIX: &str = "x-portcullis-";
/// How the upstream has to read the body of a POST. The client's own spelling is not passed on: readers differ in what
/// its parameters mean.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An admitted request, as it came.
pub(crate) struct Inbound<'a> {
    pub(crate) method: Method,
    pub(crate) version: Version,
    pub(crate) query: Option<&'a str>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) identity: Option<Identity<'a>>,
    pub(crate) request_id: HeaderValue,
    /// The client's address, behind trusted proxies.
    pub(crate) client_address: Option<IpAddr>,
}

/// What becomes of a request on its way to the upstream.
pub(crate) struct RequestRules {
    identity: Vec<IdentityHeader>,
    /// The names of those that [`OWN_PREFIX`] does not cover.
    foreign_names: Vec<HeaderName>,
    /// The headers that speak for the client and are passed on all the same.
    forward: Vec<HeaderName>,
    public: Option<PublicAddress>,
    cookies: bool,
}

impl RequestRules {
    pub(crate) fn new(
        identity: Vec<IdentityHeader>,
        forward: Vec<HeaderName>,
        public_url: Option<&Url>,
        cookies: bool,
    ) -> Result<Self, UpstreamSettingsError> {
        for (position, IdentityHeader { name, .. }) in identity.iter().enumerate() {
            if !may_carry_identity(name.as_str()) {
                return Err(UpstreamSettingsError::IdentityHeader(name.clone()));
            }
            if identity[..position].iter().any(|earlier| earlier.name == *name) {
                return Err(UpstreamSettingsError::IdentityHeaderDuplicate(name.clone()));
            }
        }
        forward_headers::check(&forward, &identity)?;
        let public = public_url.map(PublicAddress::new).transpose()?;
        let names = identity.iter().map(|header| &header.name);
        let foreign_names = names.filter(|name| !name.as_str().starts_with(OWN_PREFIX)).cloned().collect();
        Ok(Self { identity, foreign_names, forward, public, cookies })
    }

    /// The request that the upstream gets.
    pub(crate) fn apply(&self, inbound: Inbound<'_>, target: &Target) -> Outbound {
        let Inbound { method, version, query, mut headers, body, identity, request_id, client_address } = inbound;
        header::remove_connection_options(&mut headers);
        let asked = target.asked(query.map(query::without_token).as_deref());
        let mut head = OutboundHead::new(&method, &asked);
        head.header(&HOST, &target.host);
        if method == Method::POST {
            head.header(&CONTENT_TYPE, &JSON);
        }
        self.pass_on(&headers, &mut head);
        head.header(&X_REQUEST_ID, &request_id);
        head.header(&VIA, &via(version));
        if let Some(identity) = identity {
            identity::add(&mut head, identity, &self.identity);
        }
        if let Some(public) = &self.public {
            public.add(&mut head, client_address);
        }
        head.finish(body)
    }

    /// Repeats the headers that the upstream gets as they came.
    fn pass_on(&self, headers: &HeaderMap, head: &mut OutboundHead) {
        for (name, value) in headers {
            let is_passed = match name.as_str() {
                "traceparent" | "tracestate" => trace_context::is_valid(headers),
                text => !self.is_dropped(text),
            };
            if is_passed {
                head.header(name, value);
            }
        }
    }

    /// The names that nearly every request has are told at once, as the rule would tell them.
    fn is_dropped(&self, name: &str) -> bool {
        match name {
            "authorization" | "content-length" | "content-type" | "host" | "x-request-id" => true,
            "accept" | "mcp-method" | "mcp-name" | "mcp-protocol-version" | "mcp-session-id" => false,
            "accept-encoding" | "accept-language" | "user-agent" => self.is_identity(name),
            _ => self.is_dropped_by_rule(name),
        }
    }

    fn is_dropped_by_rule(&self, name: &str) -> bool {
        is_ambiguous(name)
            || is_hop_by_hop(name)
            || is_override(name)
            || name.starts_with(OWN_PREFIX)
            || (speaks_for_client(name) && !self.forward.iter().any(|listed| listed == name))
            || match name {
                "authorization" | "proxy-authorization" | "dpop" => true,
                // The body is framed anew, and waited for no longer.
                "content-length" | "expect" => true,
                // The bytes are JSON, as they were checked.
                "content-type" | "content-encoding" => true,
                // Said anew.
                "host" | "x-request-id" => true,
                _ if name == COOKIE => !self.cookies,
                _ => self.is_identity(name),
            }
    }

    /// Whether a header of identity has this name, of those that [`OWN_PREFIX`] does not cover.
    fn is_identity(&self, name: &str) -> bool {
        self.foreign_names.iter().any(|foreign| foreign == name)
    }
}

/// Servers that follow CGI (RFC 3875 section 4.1.18) cannot tell an underscore in a header's name from a hyphen, and
/// some of them no sign at all, so that `x_portcullis_subject` or `x.portcullis.subject` would be read as ours. As
/// common proxies do, no such header is passed on; only the names that a tool's schema chooses may be like that.
fn is_ambiguous(name: &str) -> bool {
    !is_plain(name) && !name.starts_with("mcp-param-")
}

pub(crate) fn is_plain(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Frameworks exist that act on the path or the method of these, and not on those that were judged.
pub(crate) fn is_override(name: &str) -> bool {
    matches!(
        name,
        "x-original-url"
            | "x-original-uri"
            | "x-rewrite-url"
            | "x-http-method"
            | "x-http-method-override"
            | "x-method-override"
    )
}

fn may_carry_identity(name: &str) -> bool {
    const TAKEN: [&str; 14] = [
        "accept",
        "authorization",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "dpop",
        "expect",
        "host",
        "proxy-authorization",
        "traceparent",
        "tracestate",
        "via",
        "x-request-id",
    ];
    is_plain(name)
        && !name.starts_with("mcp-")
        && !is_hop_by_hop(name)
        && !is_forwarded(name)
        && !is_override(name)
        && !TAKEN.contains(&name)
}

/// RFC 9110 section 7.6.3: a gateway says in each request which version it received it in.
fn via(version: Version) -> HeaderValue {
    HeaderValue::from_static(match version {
        Version::HTTP_2 => "2.0 portcullis",
        Version::HTTP_10 => "1.0 portcullis",
        _ => "1.1 portcullis",
    })
}

#[cfg(test)]
mod tests;
