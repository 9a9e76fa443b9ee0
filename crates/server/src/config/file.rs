//! The shape of the configuration file. What a value means for a running server is judged in `crate::build`.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{Span, secret::SecretSource};

/// The whole file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Address and port to listen on.
    #[serde(default = "default_listen")]
    pub(crate) listen: SocketAddr,
    /// What clients see: scheme and authority, `https` unless loopback.
    pub(crate) base_url: String,
    /// Threads of the data path; the number of cores when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workers: Option<usize>,
    /// How long a shutdown waits for requests under way.
    #[serde(default = "default_shutdown_timeout")]
    pub(crate) shutdown_timeout: Span,
    /// Lets `auth = "none"` go together with a listener that is not on loopback.
    #[serde(default)]
    pub(crate) dangerous_allow_unauthenticated_network: bool,
    /// Proxies in front whose word on the client's address is taken: addresses and networks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) trusted_proxies: Vec<String>,
    /// The header in which they say it.
    #[serde(default)]
    pub(crate) trusted_proxy_header: ForwardedHeader,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<Tls>,
    #[serde(default)]
    pub(crate) issuer: Vec<Issuer>,
    pub(crate) resource: Vec<Resource>,
    #[serde(default)]
    pub(crate) session: Session,
    #[serde(default)]
    pub(crate) limits: Limits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) audit: Option<Audit>,
}

/// The header in which a proxy says whom it was called by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ForwardedHeader {
    #[default]
    #[serde(rename = "X-Forwarded-For")]
    XForwardedFor,
    Forwarded,
}

/// `[tls]`: the files that let the listener speak TLS.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tls {
    /// PEM file with the certificate, and behind it the ones that lead to the root.
    pub(crate) certificates: PathBuf,
    /// PEM file with the certificate's private key.
    pub(crate) key: PathBuf,
}

/// `[[issuer]]`: an authorization server whose tokens are accepted.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Issuer {
    /// The issuer identifier, byte for byte as in the tokens.
    pub(crate) issuer: String,
    #[serde(default)]
    pub(crate) validate: Validation,
    #[serde(default = "default_algorithms")]
    pub(crate) algorithms: Vec<String>,
    /// Where the keys are, in place of discovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) jwks_uri: Option<String>,
    /// A file with the keys, in place of any fetch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) jwks_file: Option<PathBuf>,
    #[serde(default)]
    pub(crate) jwks: Jwks,
    #[serde(default = "default_leeway")]
    pub(crate) leeway: Span,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_lifetime: Option<Span>,
    #[serde(default)]
    pub(crate) require_at_jwt: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subjectless: Option<Subjectless>,
    /// Other addresses of the same resource that `aud` may name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) audiences: Vec<String>,
    /// PEM file of a private certificate authority on the way to this issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Egress proxy on the way to this issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) proxy: Option<String>,
    /// The service's own client at the issuer, for introspection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret: Option<SecretSource>,
    /// Where the issuer is asked, in place of discovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) introspection_endpoint: Option<String>,
    /// How that client authenticates; as the issuer's metadata says when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) introspection_auth: Option<IntrospectionAuth>,
    /// Calls that run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) introspection_in_flight: Option<usize>,
    /// How long a token counts without another call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) introspection_cache: Option<Span>,
}

/// How an issuer's tokens are validated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Validation {
    #[default]
    #[serde(rename = "jwt")]
    Jwt,
    #[serde(rename = "introspection")]
    Introspection,
    #[serde(rename = "jwt+introspection")]
    JwtAndIntrospection,
}

/// How the service's client authenticates where tokens are introspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IntrospectionAuth {
    Post,
    Basic,
}

/// What stands for a token without `sub`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Subjectless {
    Client,
}

/// `jwks = { .. }` of an issuer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Jwks {
    /// The shortest time between two fetches for unknown key identifiers.
    pub(crate) cooldown: Span,
    /// How long keys serve while their address cannot be reached.
    pub(crate) max_stale: Span,
}

impl Default for Jwks {
    fn default() -> Self {
        Self { cooldown: Span::secs(30), max_stale: Span::secs(24 * 60 * 60) }
    }
}

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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed_hosts: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) allowed_origins: Option<Vec<String>>,
    pub(crate) upstream: Upstream,
    /// PEM certificates that an `https` upstream is judged by, in place of the machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_ca_file: Option<PathBuf>,
    /// Headers that carry the principal to the upstream: header name to claim name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) identity_headers: Option<BTreeMap<String, String>>,
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

/// `[session]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Session {
    pub(crate) idle_timeout: Span,
    pub(crate) lifetime: Span,
    pub(crate) max_total: usize,
    pub(crate) max_per_owner: usize,
    /// What the owner of an ended session is answered: 400 or 404.
    pub(crate) ended_status: u16,
    /// What tags identifiers, the key of new ones first; random ones at each start when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keys: Option<Vec<SecretSource>>,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            idle_timeout: Span::secs(30 * 60),
            lifetime: Span::secs(24 * 60 * 60),
            max_total: 100_000,
            max_per_owner: 100,
            ended_status: 400,
            keys: None,
        }
    }
}

/// `[limits]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// Bytes of one request body.
    pub(crate) max_body: usize,
    /// Bytes of all request bodies held at once.
    pub(crate) body_budget: usize,
    /// Nesting of JSON in a request body.
    pub(crate) max_depth: usize,
    /// Bytes of one access token.
    pub(crate) max_token: usize,
    /// Connections open at once.
    pub(crate) max_connections: usize,
    /// Header fields of one request.
    pub(crate) max_headers: usize,
    /// Time for a request's head to arrive, and for a connection to stay idle.
    pub(crate) header_timeout: Span,
    /// How long a client may pause inside a body.
    pub(crate) body_pause: Span,
    /// How long a body may take in all, from its first pause.
    pub(crate) body_timeout: Span,
    /// HTTP/2 streams open at once on one connection.
    pub(crate) max_streams: u32,
    /// HTTP/2 streams that a client may open and reset, before anything is done for them, on one connection.
    pub(crate) max_resets: usize,
    /// Tokens held in the verified-token cache, for each resource.
    pub(crate) cached_tokens: usize,
    /// Requests of each client address, before their token is looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) per_address: Option<RateLimit>,
    /// Requests of each principal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) per_principal: Option<RateLimit>,
    /// How many addresses, and how many principals, are counted apart.
    pub(crate) rate_entries: usize,
}

/// So many requests in so long a time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RateLimit {
    pub(crate) requests: u32,
    pub(crate) per: Span,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body: 4 << 20,
            body_budget: 256 << 20,
            max_depth: 64,
            max_token: 16 << 10,
            max_connections: 10_000,
            max_headers: 100,
            header_timeout: Span::secs(30),
            body_pause: Span::secs(30),
            body_timeout: Span::secs(5 * 60),
            max_streams: 100,
            max_resets: 20,
            cached_tokens: 10_000,
            per_address: None,
            per_principal: None,
            rate_entries: 100_000,
        }
    }
}

/// `[audit]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Audit {
    pub(crate) target: AuditTarget,
    /// Bytes of records that wait to be written.
    #[serde(default = "default_audit_queue")]
    pub(crate) queue: usize,
    /// How often is told what was used; only at the end when zero.
    #[serde(default = "default_usage_interval")]
    pub(crate) usage_interval: Span,
    /// Rows of principal, resource and tool that are counted apart.
    #[serde(default = "default_usage_rows")]
    pub(crate) usage_rows: usize,
}

/// Where the audit trail is written to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuditTarget {
    Stdout,
    File(PathBuf),
}

fn default_audit_queue() -> usize {
    64 << 20
}

fn default_usage_interval() -> Span {
    Span::secs(5 * 60)
}

fn default_usage_rows() -> usize {
    10_000
}

fn default_listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 3000))
}

fn default_shutdown_timeout() -> Span {
    Span::secs(10)
}

fn default_algorithms() -> Vec<String> {
    vec!["RS256".to_owned()]
}

fn default_leeway() -> Span {
    Span::secs(10)
}

fn default_realm() -> String {
    "mcp".to_owned()
}

fn default_proto() -> String {
    "Mcp".to_owned()
}
