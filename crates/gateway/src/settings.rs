//! [`HttpUpstreamSettings`]: the settings of an HTTP upstream.

use std::time::Duration;

use http::HeaderName;
use portcullis_mcp::header;
use portcullis_metadata::ResourceUri;
use url::Url;

use crate::{
    address::{UpstreamAddress, UpstreamTrust},
    connection::ConnectionLimit,
    request::IdentityHeader,
};

/// Settings of an [`HttpUpstream`](crate::HttpUpstream). [`new`](Self::new) sets the defaults;
/// change the fields that should differ.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpUpstreamSettings {
    /// The address that the upstream listens on.
    pub address: UpstreamAddress,
    /// The resource that the upstream serves, for the log. Default: none.
    pub resource: Option<ResourceUri>,
    /// The trusted certificate authorities. Required for an `https` address, unused otherwise.
    /// Default: none.
    pub trust: Option<UpstreamTrust>,
    /// The headers that identify the caller to the upstream. Default: [`IdentityHeader::defaults`].
    /// Client headers with these names, and all client headers whose names begin with
    /// `X-Portcullis-`, are removed.
    pub identity_headers: Vec<IdentityHeader>,
    /// Client headers that assert the client's address or identity, such as `X-Real-IP` or
    /// `X-User`, and that are forwarded nevertheless. Use it when a proxy in front sets these
    /// headers and removes the client's own. Default: none. Names of headers that carry
    /// credentials, identity, the session or the framing are rejected.
    pub forward_headers: Vec<HeaderName>,
    /// The header with the identifier of a session. It must be one that is forwarded, and no
    /// identity header. Default: `Mcp-Session-Id`.
    pub session_header: HeaderName,
    /// The URL under which clients reach this service. Its scheme and host are sent in `Forwarded`,
    /// `X-Forwarded-Proto` and `X-Forwarded-Host`, the client's address in `Forwarded` and
    /// `X-Forwarded-For`. Default: none; these headers are not sent. The client's own copies are
    /// always removed.
    pub public_url: Option<Url>,
    /// Whether `Cookie` is forwarded to the upstream and `Set-Cookie` to the client. Default:
    /// `false`.
    pub forward_cookies: bool,
    /// The time limit for connecting, including the TLS handshake. Default: 5 s.
    pub connect_timeout: Duration,
    /// The time limit from the request to the head of the response, connecting included. Default: 5
    /// min.
    ///
    /// At the limit the client gets 504 and the connection to the upstream is closed. The limit
    /// does not apply to the response body. It is checked once a second, so that it takes effect up
    /// to one second late.
    pub head_timeout: Duration,
    /// The maximum number of open connections. Default: 10,000. At the limit, requests get 503 with
    /// `Retry-After`. Clones of these settings share the limit, and so do all upstreams that are
    /// made from them.
    pub connection_limit: ConnectionLimit,
    /// The maximum number of idle connections of one [`HttpUpstream`](crate::HttpUpstream).
    /// Default: 64. At the limit, the connection that has been idle longest is closed.
    pub max_idle_connections: usize,
    /// The time after which an idle connection is no longer used. Default: 4 s, less than the 5 s
    /// after which common servers close idle connections.
    pub idle_timeout: Duration,
}

impl HttpUpstreamSettings {
    /// Returns the default settings for the upstream at `address`.
    pub fn new(address: UpstreamAddress) -> Self {
        Self {
            address,
            resource: None,
            trust: None,
            identity_headers: IdentityHeader::defaults(),
            forward_headers: Vec::new(),
            session_header: header::SESSION,
            public_url: None,
            forward_cookies: false,
            connect_timeout: Duration::from_secs(5),
            head_timeout: Duration::from_secs(300),
            connection_limit: ConnectionLimit::new(10_000),
            max_idle_connections: 64,
            idle_timeout: Duration::from_secs(4),
        }
    }
}
