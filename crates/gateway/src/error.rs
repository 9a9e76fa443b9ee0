use http::HeaderName;

/// Why an upstream's settings are not usable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamSettingsError {
    /// The address is `https`, and nothing says which certificates are trusted.
    #[error("an https upstream needs certificates that it is judged by")]
    TrustMissing,
    /// The address is neither `http` nor `https`, or an `https` one for a unix socket.
    #[error("an upstream's address is an http or https URL, that of a unix socket an http URL")]
    AddressScheme,
    /// The address has no host that fits into a `Host` header.
    #[error("an upstream's address has a host")]
    AddressWithoutHost,
    /// The address carries a user name or password.
    #[error("an upstream's address carries no user information")]
    AddressUserInformation,
    /// The address has a fragment.
    #[error("an upstream's address has no fragment")]
    AddressFragment,
    /// The address's path or query cannot be asked for.
    #[error("the path of an upstream's address is not usable in a request")]
    AddressPath,
    /// The address is a unix socket where there are none.
    #[error("this platform has no unix sockets")]
    NoUnixSockets,
    /// There is no certificate to judge an upstream by.
    #[error("there is no certificate in it")]
    TrustEmpty,
    /// A certificate to judge an upstream by cannot be used.
    #[error("it has a certificate that cannot be used, or is no PEM text")]
    TrustInvalid,
    /// The certificates that this machine trusts cannot be had.
    #[error("this machine's trusted certificates cannot be used; install them (Debian: ca-certificates)")]
    TrustPlatform,
    /// The public URL has no host, or is neither `http` nor `https`.
    #[error("the public URL is an http or https URL with a host")]
    PublicUrl,
    /// A header that may not carry identity: it has a meaning of its own, or another sign than hyphens in its name.
    #[error("the header `{0}` cannot carry identity")]
    IdentityHeader(HeaderName),
    /// Two identity headers have one name.
    #[error("the identity header `{0}` is named twice")]
    IdentityHeaderDuplicate(HeaderName),
    /// A header that cannot be forwarded from clients, and why.
    #[error("forward_headers lists `{0}`, which cannot be forwarded: {1}; remove it")]
    ForwardHeader(HeaderName, &'static str),
}

impl UpstreamSettingsError {
    /// The stable reason code.
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
            Self::ForwardHeader(..) => "upstream.forward_header",
        }
    }
}

/// Why an answer's body ended before its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamBodyError {
    /// The connection to the upstream broke, or what came over it was not HTTP.
    #[error("the upstream's answer broke off")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl UpstreamBodyError {
    /// The stable reason code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Broken(_) => "upstream.body_broken",
        }
    }
}
