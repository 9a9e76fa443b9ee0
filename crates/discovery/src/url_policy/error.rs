//! [`UrlPolicyError`]: why a URL or an address is forbidden.

/// Why the URL policy forbids a URL or an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlPolicyError {
    /// The scheme is neither `https` nor, if allowed, `http` with a loopback host.
    #[error(
        "the URL is not https; http is accepted only for a loopback host, and in metadata only if the server's own URL has a \
         loopback host, too"
    )]
    Scheme,
    /// The URL has a user name or a password.
    #[error("the URL has user information")]
    UserInformation,
    /// The host is, or resolves only to, addresses that the policy forbids. For URLs from a peer,
    /// these are by default loopback, private, link-local, shared, multicast, documentation, cloud
    /// metadata and other special addresses.
    #[error("the host is or resolves to an address that is not public")]
    Address,
    /// The request would use an egress proxy, which resolves names, and the host is an IP address,
    /// a name of a private network or a cloud metadata service.
    #[error("an egress proxy is used, and the host is not a public name")]
    PrivateName,
}

impl UrlPolicyError {
    /// Returns a stable code for logs and metrics.
    pub fn code(self) -> &'static str {
        match self {
            Self::Scheme => "fetch.refused.scheme",
            Self::UserInformation => "fetch.refused.user_information",
            Self::Address => "fetch.refused.address",
            Self::PrivateName => "fetch.refused.private_name",
        }
    }
}
