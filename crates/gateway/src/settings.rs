use std::time::Duration;

use http::HeaderName;
use url::Url;

use crate::{Address, ConnectionLimit, IdentityHeader, UpstreamTrust};

/// How an [`HttpUpstream`](crate::HttpUpstream) behaves.
#[derive(Clone, Debug)]
pub struct HttpUpstreamSettings {
    /// Where the upstream listens.
    pub address: Address,
    /// The certificates that the upstream is judged by; an `https` address needs them. None by default.
    pub trust: Option<UpstreamTrust>,
    /// The headers that tell the upstream who calls; [`IdentityHeader::defaults`] by default. Inbound headers of
    /// these names, and all that begin with `X-Portcullis-`, never reach the upstream.
    pub identity: Vec<IdentityHeader>,
    /// Headers that speak for the client, such as `X-Real-IP` or `X-User`, and go from client to upstream all the same:
    /// for a proxy in front that writes them and removes the client's own. None by default: none of them passes. Headers
    /// that carry credentials, identity, the session or the framing are refused.
    pub forward: Vec<HeaderName>,
    /// The address that clients know this service by: its scheme and host go into `Forwarded` and
    /// `X-Forwarded-Proto`, `-Host`, and the client's address into `Forwarded` and `X-Forwarded-For`. Nothing by
    /// default: then none of them is sent. Inbound ones are removed either way.
    pub public_url: Option<Url>,
    /// Whether `Cookie` goes to the upstream and `Set-Cookie` comes back from it; not by default.
    pub cookies: bool,
    /// How long connecting may take; 5 s by default.
    pub connect_timeout: Duration,
    /// How long the upstream may take from the request to the head of its response, connecting included; 5 min by
    /// default. Then the client gets 504 and the connection to the upstream is closed. A response whose head has arrived
    /// may take any time. The limit is checked once a second: it is met up to a second late.
    pub head_timeout: Duration,
    /// How many connections the upstream may have; 10,000 by default. At the limit, requests get 503 with `Retry-After`.
    /// A clone of the settings shares it, and so do all instances that are made of the same settings.
    pub connections: ConnectionLimit,
    /// How many unused connections are kept; 64 by default. Beyond that the longest unused one is closed.
    pub max_idle: usize,
    /// How long an unused connection stays usable; 4 s by default, less than the 5 s after which common servers
    /// close it, so that a request seldom meets a connection that is just being closed.
    pub max_idle_age: Duration,
}

impl HttpUpstreamSettings {
    /// The defaults, for an upstream at this address.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            trust: None,
            identity: IdentityHeader::defaults(),
            forward: Vec::new(),
            public_url: None,
            cookies: false,
            connect_timeout: Duration::from_secs(5),
            head_timeout: Duration::from_secs(300),
            connections: ConnectionLimit::new(10_000),
            max_idle: 64,
            max_idle_age: Duration::from_secs(4),
        }
    }
}
