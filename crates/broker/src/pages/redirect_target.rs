//! [`RedirectTarget`]: where an answer goes, for people and for the policy of a page.

use std::borrow::Cow;

use portcullis_metadata::syntax::is_loopback;
use url::Url;

/// Where the browser takes an answer: a redirect URI that has passed validation.
#[derive(Clone, Debug)]
pub(crate) struct RedirectTarget {
    url: Url,
}

/// The kinds of redirect targets, which users must tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetKind {
    /// A web server elsewhere.
    Web,
    /// A port of the user's computer.
    Loopback,
    /// The application that the user's device opens for this scheme.
    Scheme,
}

impl RedirectTarget {
    /// Parses a redirect URI. Returns `None` if it is not an absolute URL.
    pub(crate) fn parse(redirect_uri: &str) -> Option<Self> {
        let url = Url::parse(redirect_uri).ok()?;
        Some(Self { url })
    }

    pub(super) fn of(url: &Url) -> Self {
        Self { url: url.clone() }
    }

    /// Returns whether every program on the user's device could receive the answer.
    pub(crate) fn is_local(&self) -> bool {
        self.kind() != TargetKind::Web
    }

    pub(super) fn kind(&self) -> TargetKind {
        match self.url.scheme() {
            "http" | "https" if is_loopback(&self.url) => TargetKind::Loopback,
            "http" | "https" => TargetKind::Web,
            _ => TargetKind::Scheme,
        }
    }

    /// Returns the host, in ASCII and without its port, or the scheme with its colon.
    pub(super) fn host(&self) -> Cow<'_, str> {
        match (self.kind(), self.url.host_str()) {
            (TargetKind::Web | TargetKind::Loopback, Some(host)) => host.into(),
            _ => format!("{}:", self.url.scheme()).into(),
        }
    }

    /// Returns the host and the port, in ASCII, or the scheme and what follows it as authority.
    pub(super) fn place(&self) -> Cow<'_, str> {
        let authority = self.url.authority();
        match self.kind() {
            TargetKind::Web | TargetKind::Loopback => authority.into(),
            TargetKind::Scheme if authority.is_empty() => format!("{}:", self.url.scheme()).into(),
            TargetKind::Scheme => format!("{}://{authority}", self.url.scheme()).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_shown_by_its_host_or_scheme() {
        for (uri, kind, host, place) in [
            (
                "https://claude.ai/api/callback?a=b",
                TargetKind::Web,
                "claude.ai",
                "claude.ai",
            ),
            (
                "https://b\u{fc}cher.example:8443/",
                TargetKind::Web,
                "xn--bcher-kva.example",
                "xn--bcher-kva.example:8443",
            ),
            (
                "http://127.0.0.1:4321/callback",
                TargetKind::Loopback,
                "127.0.0.1",
                "127.0.0.1:4321",
            ),
            (
                "http://localhost/callback",
                TargetKind::Loopback,
                "localhost",
                "localhost",
            ),
            (
                "http://[::1]:4321/",
                TargetKind::Loopback,
                "[::1]",
                "[::1]:4321",
            ),
            (
                "cursor://anysphere.cursor-mcp/oauth/callback",
                TargetKind::Scheme,
                "cursor:",
                "cursor://anysphere.cursor-mcp",
            ),
            (
                "com.example.app:/callback",
                TargetKind::Scheme,
                "com.example.app:",
                "com.example.app:",
            ),
        ] {
            let target = RedirectTarget::parse(uri).unwrap();
            assert_eq!(target.kind(), kind, "{uri}");
            assert_eq!(target.host(), host);
            assert_eq!(target.place(), place);
            assert_eq!(target.is_local(), kind != TargetKind::Web);
        }
    }
}
