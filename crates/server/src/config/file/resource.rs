//! `[[resource]]` in the configuration file.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{RateLimit, Span};

/// `[[resource]]`: one protected endpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resource {
    /// The endpoint's path, compared byte for byte.
    pub(crate) endpoint: String,
    #[serde(default)]
    pub(crate) auth: Authorization,
    /// The issuers of this resource. Default: all configured issuers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) issuers: Option<Vec<String>>,
    /// Whether this one of several resources serves its metadata at the root path, too.
    #[serde(default)]
    pub(crate) default: bool,
    #[serde(default = "default_realm")]
    pub(crate) realm: String,
    /// The name that people see, for the metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resource_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resource_documentation: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scopes_supported: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) required_scopes: Vec<String>,
    /// The scopes that each broader scope implies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) scope_implies: BTreeMap<String, Vec<String>>,
    /// The requirements on the claims of every token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) claim: Vec<Claim>,
    /// The served protocol revisions. Default: all known revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revisions: Option<Vec<String>>,
    /// The prefix of the session header, `<proto>-Session-Id`.
    #[serde(default = "default_proto")]
    pub(crate) proto: String,
    #[serde(default)]
    pub(crate) sessions: Sessions,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed_hosts: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) allowed_origins: Option<Vec<String>>,
    pub(crate) upstream: Upstream,
    /// A PEM file with the certificate authorities of an `https` upstream. Default: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_ca_file: Option<PathBuf>,
    /// The headers that identify the principal to the upstream, with the claim of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) identity_headers: Option<BTreeMap<String, String>>,
    /// Client headers that assert the client's identity and are forwarded nevertheless.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) forward_headers: Vec<String>,
    /// The time limit for the head of an upstream's response.
    #[serde(default = "default_upstream_head_timeout")]
    pub(crate) upstream_head_timeout: Span,
    /// Whether cookies are forwarded between client and upstream.
    #[serde(default)]
    pub(crate) forward_cookies: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) rule: Vec<Rule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) route: Vec<Route>,
}

/// Whether a resource requires a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Authorization {
    #[default]
    Required,
    None,
}

/// Whether a resource has sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sessions {
    #[default]
    On,
    /// For upstreams without sessions.
    Off,
}

/// Where admitted requests are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Upstream {
    /// The built-in MCP server.
    Demo,
    /// An `http` or `https` URL.
    Http(String),
    /// A Unix socket: `/path/to/socket`, or `/path/to/socket:/request/path`.
    Unix(String),
}

/// `[[resource.claim]]`, and `claims` of a rule: a requirement on a token's claims. Without a condition the claim must
/// be present.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    /// The claim's name, or a JSON pointer into the claims.
    pub(crate) claim: String,
    /// The allowed values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) one_of: Option<Vec<String>>,
    /// The allowed domains after the last `@`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) domain: Option<Vec<String>>,
    /// Whether the rule only reports the requests that it would reject.
    #[serde(default)]
    pub(crate) report_only: bool,
}

/// `[[resource.rule]]`: scopes and claims for JSON-RPC methods, and for tools, prompts and resources by name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// A pattern for methods.
    pub(crate) method: String,
    /// A pattern for the name of the tool, prompt or resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) claims: Vec<Claim>,
    /// The rate limit for these messages per principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<RateLimit>,
}

/// `[[resource.route]]`: scopes for HTTP methods and paths.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Route {
    /// The HTTP methods. Empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) methods: Vec<String>,
    /// A pattern for paths.
    pub(crate) path: String,
    pub(crate) scopes: Vec<String>,
}

fn default_realm() -> String {
    "mcp".to_owned()
}

fn default_upstream_head_timeout() -> Span {
    Span::secs(5 * 60)
}

fn default_proto() -> String {
    "Mcp".to_owned()
}
