//! [`Case`]: the requests whose instructions are counted.

/// A request whose instructions are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// A call in a session, with a token that is cached.
    CachedPost,
    /// The same, with an audit record.
    AuditedPost,
    /// A message on the stream of a GET.
    StreamMessage,
    /// A call of revision 2026-07-28, with a token that is cached.
    Stateless,
    /// A call in a session, with a new token that is signed with ES256.
    UncachedEs256,
    /// A call in a session, with a new token that is signed with RS256.
    UncachedRs256,
    /// A call without a token, which gets 401.
    Refused,
    /// The cached call over HTTP/2.
    Http2,
}

impl Case {
    /// All cases, in the order of the table.
    pub(super) const ALL: [Self; 8] = [
        Self::CachedPost,
        Self::AuditedPost,
        Self::StreamMessage,
        Self::Stateless,
        Self::UncachedEs256,
        Self::UncachedRs256,
        Self::Refused,
        Self::Http2,
    ];

    /// Returns the name in the table and on the command line.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::CachedPost => "cached-post",
            Self::AuditedPost => "audited-post",
            Self::StreamMessage => "stream-message",
            Self::Stateless => "stateless",
            Self::UncachedEs256 => "uncached-es256",
            Self::UncachedRs256 => "uncached-rs256",
            Self::Refused => "refused",
            Self::Http2 => "http2",
        }
    }

    /// Returns how often a request is repeated where the others send one. A timer weighs more
    /// beside a cheap one.
    pub(super) const fn repetitions(self) -> u32 {
        match self {
            Self::StreamMessage => 4,
            _ => 1,
        }
    }

    /// Returns what the page says about it.
    pub(super) const fn description(self) -> &'static str {
        match self {
            Self::CachedPost => "`tools/call` in a session, with a cached RS256 token",
            Self::AuditedPost => "the same, with an audit record in a file",
            Self::StreamMessage => "a message on the stream of a GET",
            Self::Stateless => "`tools/call` of revision 2026-07-28, with a cached token",
            Self::UncachedEs256 => "`tools/call` in a session, with a new ES256 token",
            Self::UncachedRs256 => "the same, with a new RS256 token",
            Self::Refused => "`tools/call` without a token, which gets 401",
            Self::Http2 => "the first case over HTTP/2",
        }
    }
}
