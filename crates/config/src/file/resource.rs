use std::{collections::BTreeMap, path::PathBuf};

use portcullis_endpoint::EndpointSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{RateLimit, Span, one_form};

/// `[[resource]]`: one protected endpoint.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// The endpoint's path, compared byte for byte.
    #[schemars(example = "/mcp")]
    pub endpoint: String,
    /// Whether a token is required.
    #[serde(default)]
    pub auth: Authorization,
    /// The issuers of this resource. Default: all configured issuers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = ["https://auth.example.com/realms/prod"])]
    pub issuers: Option<Vec<String>>,
    /// Whether this one of several resources serves its metadata at the root path, too.
    #[serde(default)]
    pub default: bool,
    /// The `realm` in challenges.
    #[serde(default = "default_realm")]
    pub realm: String,
    /// The name that people see, for the metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "Example tools")]
    pub resource_name: Option<String>,
    /// The URL of the documentation for people, for the metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "https://mcp.example.com/docs")]
    pub resource_documentation: Option<String>,
    /// The scopes that the metadata lists. Clients request them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = ["mcp:tools", "mcp:admin"])]
    pub scopes_supported: Vec<String>,
    /// The scopes that every request needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = ["mcp:tools"])]
    pub required_scopes: Vec<String>,
    /// The scopes that each broader scope implies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(example = BTreeMap::from([("admin", vec!["read", "write"])]))]
    pub scope_implies: BTreeMap<String, Vec<String>>,
    /// The requirements on the claims of every token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claim: Vec<Claim>,
    /// The served protocol revisions. Default: all known revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = ["2025-06-18", "2025-11-25", "2026-07-28"])]
    pub revisions: Option<Vec<String>>,
    /// The prefix of the session header, `<proto>-Session-Id`.
    #[serde(default = "default_proto")]
    pub proto: String,
    /// Whether the resource has sessions.
    #[serde(default)]
    pub sessions: Sessions,
    /// Further accepted `Host` values: `name` or `name:port`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = ["mcp.internal:3000"])]
    pub allowed_hosts: Vec<String>,
    /// The accepted origins of web pages. Default: all, or loopback only if `base_url` is on
    /// loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = ["https://app.example.com"])]
    pub allowed_origins: Option<Vec<String>>,
    /// Where admitted requests are sent: `{ http = "http://127.0.0.1:8000/mcp" }`,
    /// `{ unix = "/path/to/socket" }` or `"demo"`.
    #[schemars(example = Upstream::Http("http://127.0.0.1:8000/mcp".to_owned()))]
    pub upstream: Upstream,
    /// A PEM file with the certificate authorities of an `https` upstream. Default: those of the
    /// system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "/etc/portcullis/upstream-ca.pem")]
    pub upstream_ca_file: Option<PathBuf>,
    /// The headers that identify the principal to the upstream, with the claim of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = BTreeMap::from([("X-User-Email", "email")]))]
    pub identity_headers: Option<BTreeMap<String, String>>,
    /// Client headers that assert the client's identity and are forwarded nevertheless.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = ["X-User"])]
    pub forward_headers: Vec<String>,
    /// The time limit for the head of an upstream's response.
    #[serde(default = "default_upstream_head_timeout")]
    pub upstream_head_timeout: Span,
    /// The time for which the response to a request, as an event stream, continues after its token
    /// has expired.
    #[serde(default = "default_response_grace")]
    pub response_grace: Span,
    /// Whether cookies are forwarded between client and upstream.
    #[serde(default)]
    pub forward_cookies: bool,
    /// The requirements on JSON-RPC messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rule: Vec<Rule>,
    /// The scopes of HTTP methods and paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub route: Vec<Route>,
}

impl Resource {
    /// A resource with the defaults of a file: a token of any issuer is required, with no scope.
    pub fn new(endpoint: impl Into<String>, upstream: Upstream) -> Self {
        Self {
            endpoint: endpoint.into(),
            auth: Authorization::default(),
            issuers: None,
            default: false,
            realm: default_realm(),
            resource_name: None,
            resource_documentation: None,
            scopes_supported: Vec::new(),
            required_scopes: Vec::new(),
            scope_implies: BTreeMap::new(),
            claim: Vec::new(),
            revisions: None,
            proto: default_proto(),
            sessions: Sessions::default(),
            allowed_hosts: Vec::new(),
            allowed_origins: None,
            upstream,
            upstream_ca_file: None,
            identity_headers: None,
            forward_headers: Vec::new(),
            upstream_head_timeout: default_upstream_head_timeout(),
            response_grace: default_response_grace(),
            forward_cookies: false,
            rule: Vec::new(),
            route: Vec::new(),
        }
    }
}

/// Whether a resource requires a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Authorization {
    /// A token is required.
    #[default]
    Required,
    /// No token is required.
    None,
}

/// Whether a resource has sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sessions {
    /// An identifier is required and issued.
    #[default]
    On,
    /// For upstreams without sessions.
    Off,
}

/// Where admitted requests are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Upstream {
    /// The built-in MCP server.
    Demo,
    /// An `http` or `https` URL.
    Http(String),
    /// A Unix socket: `/path/to/socket`, or `/path/to/socket:/request/path`.
    Unix(String),
}

impl<'de> Deserialize<'de> for Upstream {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        one_form::read(
            deserializer,
            &["demo", "http", "unix"],
            |form, text| match (form, text) {
                ("demo", None) => Some(Self::Demo),
                ("http", text) => text.map(Self::Http),
                ("unix", text) => text.map(Self::Unix),
                _ => None,
            },
        )
    }
}

/// `[[resource.claim]]`, and `claims` of a rule: a requirement on a token's claims. Without a
/// condition the claim must be present.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim's name, or a JSON pointer into the claims.
    #[schemars(example = "/realm_access/roles")]
    pub claim: String,
    /// The allowed values.
    #[schemars(example = ["mcp-user"])]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_of: Option<Vec<String>>,
    /// The allowed domains after the last `@`.
    #[schemars(example = ["example.com"])]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Vec<String>>,
    /// Whether the rule only reports the requests that it would reject. Not for `allow` of a
    /// provider.
    #[serde(default)]
    pub report_only: bool,
}

/// `[[resource.rule]]`: scopes and claims for JSON-RPC methods, and for tools, prompts and
/// resources by name.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// A pattern for methods.
    #[schemars(example = "tools/call")]
    pub method: String,
    /// A pattern for the name of the tool, prompt or resource.
    #[schemars(example = "admin_*")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The scopes that matching messages need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = ["mcp:admin"])]
    pub scopes: Vec<String>,
    /// The claims that matching messages need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// The rate limit for these messages per principal.
    #[schemars(example = RateLimit { requests: 10, per: Span::secs(60) })]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<RateLimit>,
}

/// `[[resource.route]]`: scopes for HTTP methods and paths.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// The HTTP methods. Empty means all.
    #[schemars(example = ["DELETE"])]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// A pattern for paths.
    #[schemars(example = "/mcp")]
    pub path: String,
    /// The scopes that matching requests need.
    #[schemars(example = ["mcp:admin"])]
    pub scopes: Vec<String>,
}

fn default_realm() -> String {
    "mcp".to_owned()
}

fn default_upstream_head_timeout() -> Span {
    Span::secs(5 * 60)
}

fn default_response_grace() -> Span {
    Span::new(EndpointSettings::DEFAULT_RESPONSE_GRACE)
}

fn default_proto() -> String {
    "Mcp".to_owned()
}
