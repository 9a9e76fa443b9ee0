//! `[[resource]]` in the configuration file.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{RateLimit, Span};

/// `[[resource]]`: one protected endpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resource {
    /// The endpoint's path, matched by exact bytes.
    pub(crate) endpoint: String,
    #[serde(default)]
    pub(crate) auth: Authorization,
    /// The issuers of this resource; all configured ones when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) issuers: Option<Vec<String>>,
    /// Serves the root form of the metadata address, when there are several resources.
    #[serde(default)]
    pub(crate) default: bool,
    #[serde(default = "default_realm")]
    pub(crate) realm: String,
    /// A name for people, in the metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resource_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resource_documentation: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scopes_supported: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) required_scopes: Vec<String>,
    /// Scopes that stand for others: broader ones, and what each implies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) scope_implies: BTreeMap<String, Vec<String>>,
    /// What the claims of every token have to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) claim: Vec<Claim>,
    /// The protocol revisions served; all known ones when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revisions: Option<Vec<String>>,
    /// The first word of the session header, `<proto>-Session-Id`.
    #[serde(default = "default_proto")]
    pub(crate) proto: String,
    #[serde(default)]
    pub(crate) sessions: Sessions,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed_hosts: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) allowed_origins: Option<Vec<String>>,
    pub(crate) upstream: Upstream,
    /// PEM certificates to verify an `https` upstream with, instead of the system certificates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_ca_file: Option<PathBuf>,
    /// Headers that carry the principal to the upstream: header name to claim name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) identity_headers: Option<BTreeMap<String, String>>,
    /// Headers that speak for the client and go from client to upstream all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) forward_headers: Vec<String>,
    /// How long the upstream may take to the head of a response.
    #[serde(default = "default_upstream_head_timeout")]
    pub(crate) upstream_head_timeout: Span,
    /// Lets the client's cookies through to the upstream.
    #[serde(default)]
    pub(crate) forward_cookies: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) rule: Vec<Rule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) route: Vec<Route>,
}

/// Whether a resource asks for a token.
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

/// What an admitted request is handed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Upstream {
    /// The small MCP server that this program brings along.
    Demo,
    /// An `http` or `https` URL.
    Http(String),
    /// A unix socket: `/path/to/socket`, or `/path/to/socket:/request/path`.
    Unix(String),
}

/// `[[resource.claim]]`, and `claims` of a rule: what a token's claims have to say. The claim has to be there when nothing
/// else is said of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    /// The claim's name, or a JSON pointer into the claims.
    pub(crate) claim: String,
    /// The values that it may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) one_of: Option<Vec<String>>,
    /// What may stand behind its last `@`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) domain: Option<Vec<String>>,
    /// Refuses nothing, and tells what it would have refused.
    #[serde(default)]
    pub(crate) report_only: bool,
}

/// `[[resource.rule]]`: scopes and claims for JSON-RPC methods, and for tools, prompts and resources by name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// A glob over methods.
    pub(crate) method: String,
    /// A glob over the tool's, prompt's or resource's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) claims: Vec<Claim>,
    /// How many such messages may come of each principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<RateLimit>,
}

/// `[[resource.route]]`: scopes for HTTP methods and paths.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Route {
    /// HTTP methods; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) methods: Vec<String>,
    /// A glob over paths.
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
