//! The redirect URIs of known clients.

/// A redirect URI of a known client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownRedirect {
    /// The client.
    pub client: &'static str,
    /// The URI, or its beginning if the client has a URI for each of its connections.
    pub uri: &'static str,
    /// Whether one path segment, the identifier of a connection, follows the URI.
    pub has_id: bool,
    /// Where this is documented.
    pub source: &'static str,
    /// The date of the source, as year, month and, if known, day.
    pub date: &'static str,
}

/// The redirect URIs of known clients that are not loopback URIs. Each belongs to the maker of the
/// client, so a code that is sent there reaches no other party.
///
/// Clients with loopback URIs alone, as Claude Code, Codex and OpenCode, need no entry.
pub const KNOWN_REDIRECTS: &[KnownRedirect] = &[
    KnownRedirect {
        client: "Claude",
        uri: "https://claude.ai/api/mcp/auth_callback",
        has_id: false,
        source: "https://support.claude.com/en/articles/11503834-building-custom-connectors-via-remote-mcp-servers",
        date: "2026-10",
    },
    KnownRedirect {
        client: "Claude",
        uri: "https://claude.com/api/mcp/auth_callback",
        has_id: false,
        source: "https://support.claude.com/en/articles/11503834-building-custom-connectors-via-remote-mcp-servers",
        date: "2026-10",
    },
    KnownRedirect {
        client: "ChatGPT",
        uri: "https://chatgpt.com/connector_platform_oauth_redirect",
        has_id: false,
        source: "https://developers.openai.com/plugins/build/auth",
        date: "2026-11",
    },
    KnownRedirect {
        client: "ChatGPT",
        uri: "https://chatgpt.com/connector/oauth/",
        has_id: true,
        source: "https://developers.openai.com/plugins/build/auth",
        date: "2026-11",
    },
    KnownRedirect {
        client: "Visual Studio Code",
        uri: "https://vscode.dev/redirect",
        has_id: false,
        source: "https://github.com/microsoft/vscode/blob/main/src/vs/base/common/oauth.ts",
        date: "2026-11",
    },
    KnownRedirect {
        client: "Visual Studio Code",
        uri: "https://insiders.vscode.dev/redirect",
        has_id: false,
        source: "https://github.com/microsoft/vscode/blob/main/src/vs/base/common/oauth.ts",
        date: "2026-11",
    },
    KnownRedirect {
        client: "Cursor",
        uri: "cursor://anysphere.cursor-mcp/oauth/callback",
        has_id: false,
        source: "https://cursor.com/docs/mcp",
        date: "2026-10",
    },
    KnownRedirect {
        client: "Cursor",
        uri: "https://www.cursor.com/agents/mcp/oauth/callback",
        has_id: false,
        source: "https://cursor.com/docs/mcp",
        date: "2026-10",
    },
    KnownRedirect {
        client: "Copilot Studio",
        uri: "https://global.consent.azure-apim.net/redirect/",
        has_id: true,
        source: "https://learn.microsoft.com/en-us/microsoft-copilot-studio/mcp-add-existing-server-to-agent",
        date: "2026-10",
    },
];

/// The maximum length of the identifier of a connection in bytes.
const MAX_ID: usize = 256;

impl KnownRedirect {
    /// Returns whether a redirect URI is this one, byte for byte. The identifier of a connection
    /// consists of letters, digits, `-` and `_`.
    pub fn matches(&self, uri: &str) -> bool {
        match uri.strip_prefix(self.uri) {
            Some(id) if self.has_id => is_id(id),
            Some(rest) => rest.is_empty(),
            None => false,
        }
    }
}

/// Returns whether a redirect URI belongs to a known client.
pub(super) fn is_known_redirect(uri: &str) -> bool {
    KNOWN_REDIRECTS.iter().any(|known| known.matches(uri))
}

fn is_id(id: &str) -> bool {
    (1..=MAX_ID).contains(&id.len())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{RedirectHosts, RedirectPolicy, RedirectUri};

    /// Each entry is usable without any listed host, and is a URI that a client can register.
    #[test]
    fn known_clients_need_no_listed_host() {
        for known in KNOWN_REDIRECTS {
            let id = if known.has_id { "aB-9_" } else { "" };
            let uri = RedirectUri::parse_registered(&format!("{}{id}", known.uri)).unwrap();
            assert!(RedirectHosts::default().is_usable(&uri), "{}", known.uri);
            assert!(!uri.is_loopback(), "{}", known.uri);
            assert!(known.source.starts_with("https://"), "{}", known.uri);
            assert!(known.date.starts_with("20"), "{}", known.uri);
        }
    }

    #[test]
    fn similar_uris_are_not_known() {
        for uri in [
            "https://claude.ai/api/mcp/auth_callback/",
            "https://claude.ai/api/mcp/auth_callback?next=https://attacker.example",
            "https://claude.ai/api/mcp/other",
            "https://CLAUDE.ai/api/mcp/auth_callback",
            "https://claude.ai:443/api/mcp/auth_callback",
            "https://claude.ai.attacker.example/api/mcp/auth_callback",
            "http://claude.ai/api/mcp/auth_callback",
            "https://chatgpt.com/connector/oauth/",
            "https://chatgpt.com/connector/oauth",
            "https://chatgpt.com/connector/oauth/a/b",
            "https://chatgpt.com/connector/oauth/../../open",
            "https://chatgpt.com/connector/oauth/..",
            "https://chatgpt.com/connector/oauth/%2e%2e",
            "https://chatgpt.com/connector/oauth/a?next=b",
            "https://chatgpt.com/connector/oauth/a.b",
            "https://global.consent.azure-apim.net/redirect",
            "cursor://anysphere.cursor-mcp/oauth/callback2",
            "cursor://other/oauth/callback",
        ] {
            assert!(!is_known_redirect(uri), "{uri}");
        }
        assert!(!is_known_redirect(&format!(
            "https://chatgpt.com/connector/oauth/{}",
            "a".repeat(257)
        )));
    }
}
