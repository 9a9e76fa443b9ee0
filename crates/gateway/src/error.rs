//! [`UpstreamSettingsError`] and [`UpstreamBodyError`]: why settings cannot be used, or a body is
//! incomplete.

use http::HeaderName;

/// Why an upstream's settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamSettingsError {
    /// The address is `https`, and no trusted certificates are set.
    #[error("an https upstream needs trusted certificates")]
    TrustMissing,
    /// The address is neither `http` nor `https`, or an `https` one for a unix socket.
    #[error(
        "the address of an upstream must be an http or https URL, and that of a Unix socket an http URL"
    )]
    AddressScheme,
    /// The address has no host that fits into a `Host` header.
    #[error("the address of an upstream must have a host")]
    AddressWithoutHost,
    /// The address carries a user name or password.
    #[error("the address of an upstream must not contain user information")]
    AddressUserInformation,
    /// The address has a fragment.
    #[error("the address of an upstream must not have a fragment")]
    AddressFragment,
    /// The address's path or query is not valid in a request.
    #[error("the path or query of the upstream's address is not valid in a request")]
    AddressPath,
    /// The address is a Unix socket, and the platform has none.
    #[error("this platform has no Unix sockets")]
    NoUnixSockets,
    /// The PEM file contains no certificate. The message continues the name of the file.
    #[error("it contains no certificate")]
    TrustEmpty,
    /// The PEM file contains an unusable certificate. The message continues the name of the file.
    #[error("it is not a PEM file, or contains an unusable certificate")]
    TrustInvalid,
    /// The operating system has no usable trusted certificates.
    #[error(
        "the trusted certificates of this machine cannot be used; install them (Debian: ca-certificates)"
    )]
    TrustPlatform,
    /// The public URL has no host, or is neither `http` nor `https`.
    #[error("the public URL must be an http or https URL with a host")]
    PublicUrl,
    /// The header cannot be an identity header: it has another meaning, or its name has characters
    /// other than letters, digits and hyphens.
    #[error("the header `{0}` cannot be an identity header")]
    IdentityHeader(HeaderName),
    /// Two identity headers have the same name.
    #[error("the identity header `{0}` is listed twice")]
    IdentityHeaderDuplicate(HeaderName),
    /// Requests would reach the upstream without the header of their session.
    #[error(
        "the session header `{0}` would be removed from requests to the upstream, because proxies or servers give it another meaning"
    )]
    SessionHeader(HeaderName),
    /// The header cannot be forwarded from clients, with the reason.
    #[error("forward_headers lists `{0}`, which cannot be forwarded: {1}; remove it")]
    ForwardHeader(HeaderName, &'static str),
}

impl UpstreamSettingsError {
    /// Returns the stable reason code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TrustMissing => "upstream.address_tls",
            Self::AddressScheme => "upstream.address_scheme",
            Self::AddressWithoutHost => "upstream.address_without_host",
            Self::AddressUserInformation => "upstream.address_user_information",
            Self::AddressFragment => "upstream.address_fragment",
            Self::AddressPath => "upstream.address_path",
            Self::NoUnixSockets => "upstream.no_unix_sockets",
            Self::TrustEmpty => "upstream.trust_empty",
            Self::TrustInvalid => "upstream.trust_invalid",
            Self::TrustPlatform => "upstream.trust_of_machine",
            Self::PublicUrl => "upstream.public_url",
            Self::IdentityHeader(_) => "upstream.identity_header",
            Self::IdentityHeaderDuplicate(_) => "upstream.identity_header_twice",
            Self::SessionHeader(_) => "upstream.session_header",
            Self::ForwardHeader(..) => "upstream.forward_header",
        }
    }
}

/// Why the body of a response is incomplete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamBodyError {
    /// The connection to the upstream failed, or the body is not valid HTTP.
    #[error("the body of the upstream's response is incomplete")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl UpstreamBodyError {
    /// Returns the stable reason code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Broken(_) => "upstream.body_broken",
        }
    }
}
