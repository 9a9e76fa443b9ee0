//! The rules that turn an inbound request into the request to the upstream.

use std::net::IpAddr;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Version,
    header::{CONTENT_TYPE, COOKIE, HOST, VIA},
};
use portcullis_guard::{TraceContext, TraceParent};
use portcullis_http1::{Request, RequestBuilder};
use portcullis_mcp::header;
use url::Url;

use super::{
    client_assertions::asserts_client,
    forward_headers,
    forwarded::PublicAddress,
    header_names::{GATEWAY_PREFIX, is_ambiguous, is_override, may_carry_identity},
    identity::{self, Identity, IdentityHeader},
};
use crate::{
    address::{Target, without_token},
    error::UpstreamSettingsError,
    hop_by_hop::is_hop_by_hop,
};

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The media type of a POST. The client's own spelling is not forwarded, because parsers disagree on its parameters.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An admitted request, or one of the gateway itself, with what the gateway knows about it.
pub(crate) struct InboundRequest<'a> {
    pub(crate) method: Method,
    pub(crate) version: Version,
    /// The client's query, without `?`.
    pub(crate) query: Option<&'a str>,
    pub(crate) headers: HeaderMap,
    /// The complete body.
    pub(crate) body: Bytes,
    /// The caller. `None` if no token was required.
    pub(crate) identity: Option<Identity<'a>>,
    pub(crate) request_id: HeaderValue,
    /// The client's address, as reported by trusted proxies.
    pub(crate) client_address: Option<IpAddr>,
    /// The trace context, if the gateway has one of its own.
    pub(crate) trace: Option<TraceContext>,
}

/// The rules that turn an inbound request into the request to the upstream.
pub(crate) struct ForwardingRules {
    identity_headers: Vec<IdentityHeader>,
    /// The names of the identity headers without [`GATEWAY_PREFIX`].
    unprefixed_identity_names: Vec<HeaderName>,
    /// The client assertions that are forwarded.
    forward_headers: Vec<HeaderName>,
    public_address: Option<PublicAddress>,
    forward_cookies: bool,
}

impl ForwardingRules {
    /// Checks the settings and prepares the rules.
    ///
    /// # Errors
    /// Fails if a header cannot carry the identity or be forwarded, is listed twice, or the public URL has no host.
    pub(crate) fn new(
        identity_headers: Vec<IdentityHeader>,
        forward_headers: Vec<HeaderName>,
        public_url: Option<&Url>,
        forward_cookies: bool,
    ) -> Result<Self, UpstreamSettingsError> {
        for (position, IdentityHeader { name, .. }) in identity_headers.iter().enumerate() {
            if !may_carry_identity(name.as_str()) {
                return Err(UpstreamSettingsError::IdentityHeader(name.clone()));
            }
            if identity_headers[..position].iter().any(|earlier| earlier.name == *name) {
                return Err(UpstreamSettingsError::IdentityHeaderDuplicate(name.clone()));
            }
        }
        forward_headers::check(&forward_headers, &identity_headers)?;
        let public_address = public_url.map(PublicAddress::new).transpose()?;
        let names = identity_headers.iter().map(|header| &header.name);
        let unprefixed_identity_names =
            names.filter(|name| !name.as_str().starts_with(GATEWAY_PREFIX)).cloned().collect();
        Ok(Self { identity_headers, unprefixed_identity_names, forward_headers, public_address, forward_cookies })
    }

    /// Returns the request to the upstream. Nothing of the client's request is forwarded but the method, the query without
    /// tokens, the headers that pass the rules, and the body.
    pub(crate) fn upstream_request(&self, inbound: InboundRequest<'_>, target: &Target) -> Request {
        let InboundRequest { method, version, query, mut headers, body, identity, request_id, client_address, trace } =
            inbound;
        header::remove_connection_options(&mut headers);
        let path_and_query = target.path_and_query(query.map(without_token).as_deref());
        let mut request = RequestBuilder::new(&method, &path_and_query);
        request.header(&HOST, &target.host);
        if method == Method::POST {
            request.header(&CONTENT_TYPE, &JSON);
        }
        self.forward(&headers, trace.as_ref(), &mut request);
        if let Some(parent) = trace.and_then(|trace| trace.upstream_traceparent()) {
            request.header(&TraceParent::HEADER, &parent);
        }
        request.header(&X_REQUEST_ID, &request_id).header(&VIA, &via(version));
        if let Some(identity) = identity {
            identity::add_headers(&mut request, identity, &self.identity_headers);
        }
        if let Some(public_address) = &self.public_address {
            public_address.add_headers(&mut request, client_address);
        }
        request.body(body)
    }

    /// Copies the headers that are forwarded. The state of a trace is forwarded if the request belongs to this trace.
    fn forward(&self, headers: &HeaderMap, trace: Option<&TraceContext>, request: &mut RequestBuilder) {
        for (name, value) in headers {
            let is_forwarded = match name.as_str() {
                "traceparent" => trace.is_none() && TraceParent::of(headers).is_some(),
                "tracestate" => match trace {
                    Some(trace) => trace.parent_id().is_some(),
                    None => TraceParent::of(headers).is_some(),
                },
                text => !self.is_removed(text),
            };
            if is_forwarded {
                request.header(name, value);
            }
        }
    }

    /// Returns whether the header is removed. The most common names are decided first, as [`Self::is_removed_by_rule`]
    /// would.
    fn is_removed(&self, name: &str) -> bool {
        match name {
            "authorization" | "content-length" | "content-type" | "host" | "x-request-id" => true,
            "accept" | "mcp-method" | "mcp-name" | "mcp-protocol-version" | "mcp-session-id" => false,
            "accept-encoding" | "accept-language" | "user-agent" => self.is_identity(name),
            _ => self.is_removed_by_rule(name),
        }
    }

    /// Returns whether the header is removed by any of the rules.
    fn is_removed_by_rule(&self, name: &str) -> bool {
        is_ambiguous(name)
            || is_hop_by_hop(name)
            || is_override(name)
            || name.starts_with(GATEWAY_PREFIX)
            || (asserts_client(name) && !self.forward_headers.iter().any(|listed| listed == name))
            || match name {
                "authorization" | "proxy-authorization" | "dpop" => true,
                // The body is complete, and the gateway frames it.
                "content-length" | "expect" => true,
                // The body is the JSON that was checked.
                "content-type" | "content-encoding" => true,
                // The gateway sets its own.
                "host" | "x-request-id" => true,
                _ if name == COOKIE => !self.forward_cookies,
                _ => self.is_identity(name),
            }
    }

    /// Returns whether this is the name of an identity header without [`GATEWAY_PREFIX`].
    fn is_identity(&self, name: &str) -> bool {
        self.unprefixed_identity_names.iter().any(|identity| identity == name)
    }
}

/// `Via` with the version of the inbound request (RFC 9110 section 7.6.3).
fn via(version: Version) -> HeaderValue {
    HeaderValue::from_static(match version {
        Version::HTTP_2 => "2.0 portcullis",
        Version::HTTP_10 => "1.0 portcullis",
        _ => "1.1 portcullis",
    })
}

#[cfg(test)]
pub(super) mod tests;
