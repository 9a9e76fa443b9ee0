//! The rules that an upstream is checked against.

use portcullis_doctor::Rule;

pub(super) const REACHABLE: Rule = Rule::new("upstream.reachable", "RFC 9110 section 7.3");
pub(super) const TLS: Rule = Rule::new("upstream.tls", "RFC 9110 section 4.3.4");
pub(super) const ADDRESS: Rule =
    Rule::new("upstream.address", "docs/use/configuration-resources.md");
pub(super) const REDIRECT: Rule = Rule::new("upstream.redirect", "RFC 9110 section 15.4");
pub(super) const AUTHORIZATION: Rule = Rule::new(
    "upstream.authorization",
    "docs/use/configuration-resources.md",
);
pub(super) const HOST: Rule = Rule::new("upstream.host", "RFC 9110 section 7.2");
pub(super) const MCP: Rule = Rule::new("upstream.mcp", "MCP Streamable HTTP transport");
pub(super) const REVISION: Rule = Rule::new("upstream.revision", "MCP lifecycle");
pub(super) const SESSIONS: Rule = Rule::new("upstream.sessions", "MCP session management");
pub(super) const TIME: Rule = Rule::new("upstream.time", "docs/use/configuration-resources.md");
