use std::path::PathBuf;

use super::Audiences;
use crate::{SecretSource, Span};
use portcullis_verifier::IssuerSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[issuer]]`: an authorization server whose tokens are accepted.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Issuer {
    /// The issuer identifier, byte for byte as in the tokens.
    #[schemars(example = "https://auth.example.com/realms/prod")]
    pub issuer: String,
    /// How tokens are validated: by their signature, by introspection, or both.
    #[serde(default)]
    pub validate: Validation,
    /// The accepted signature algorithms.
    #[serde(default = "default_algorithms")]
    pub algorithms: Vec<String>,
    /// The URL of the keys. Default: discovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "https://auth.example.com/realms/prod/protocol/openid-connect/certs")]
    pub jwks_uri: Option<String>,
    /// A file with the keys. They are then not fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "/etc/portcullis/jwks.json")]
    pub jwks_file: Option<PathBuf>,
    /// When keys are fetched again.
    #[serde(default)]
    pub jwks: Jwks,
    /// The permitted clock difference.
    #[serde(default = "default_leeway")]
    pub leeway: Span,
    /// The maximum of `exp` minus `iat`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "1h")]
    pub max_lifetime: Option<Span>,
    /// Accepts only tokens of type `at+jwt` (RFC 9068).
    #[serde(default)]
    pub require_at_jwt: bool,
    /// Whether tokens without `sub` may own sessions. Default: they may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"client")]
    pub subjectless: Option<Subjectless>,
    /// Other URLs of the resource, and the issuer's own names for it, that are accepted in `aud`.
    /// With several resources: those of each endpoint.
    #[serde(default, skip_serializing_if = "Audiences::is_empty")]
    #[schemars(example = ["https://old.example.com/mcp"])]
    pub audiences: Audiences,
    /// Claims whose values count as scopes, in addition to `scope` and `scp`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = ["permissions", "/realm_access/roles"])]
    pub scope_claims: Vec<String>,
    /// A PEM file with further certificate authorities that are trusted for this issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "/etc/portcullis/ca.pem")]
    pub ca_file: Option<PathBuf>,
    /// The egress proxy for requests to this issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "http://proxy.example.com:3128")]
    pub proxy: Option<String>,
    /// This server's client identifier at the issuer, for introspection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"portcullis")]
    pub client_id: Option<String>,
    /// The secret of this client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<SecretSource>,
    /// The introspection endpoint. Default: discovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        example = "https://auth.example.com/realms/prod/protocol/openid-connect/token/introspect"
    )]
    pub introspection_endpoint: Option<String>,
    /// How this server authenticates at the introspection endpoint. Default: according to the
    /// issuer's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"basic")]
    pub introspection_auth: Option<IntrospectionAuth>,
    /// The maximum number of concurrent introspection requests. Default: 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 64, range(min = 1, max = 1024))]
    pub introspection_in_flight: Option<usize>,
    /// How long an introspection response is cached. Default: 30s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "30s")]
    pub introspection_cache: Option<Span>,
}

impl Issuer {
    /// An issuer with the defaults of a file: its keys are discovered, and it signs with RS256.
    pub fn new(issuer: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            validate: Validation::default(),
            algorithms: default_algorithms(),
            jwks_uri: None,
            jwks_file: None,
            jwks: Jwks::default(),
            leeway: default_leeway(),
            max_lifetime: None,
            require_at_jwt: false,
            subjectless: None,
            audiences: Audiences::default(),
            scope_claims: Vec::new(),
            ca_file: None,
            proxy: None,
            client_id: None,
            client_secret: None,
            introspection_endpoint: None,
            introspection_auth: None,
            introspection_in_flight: None,
            introspection_cache: None,
        }
    }
}

/// How an issuer's tokens are validated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Validation {
    /// By their signature.
    #[default]
    #[serde(rename = "jwt")]
    Jwt,
    /// By a request to the issuer (RFC 7662).
    #[serde(rename = "introspection")]
    Introspection,
    /// By both.
    #[serde(rename = "jwt+introspection")]
    JwtAndIntrospection,
}

/// How this server authenticates at the introspection endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IntrospectionAuth {
    /// With the secret in the form.
    Post,
    /// With the secret in the `Authorization` header.
    Basic,
}

/// Who owns the sessions of a token without `sub`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Subjectless {
    /// Their client.
    Client,
}

/// `jwks = { .. }` of an issuer.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Jwks {
    /// The minimum time between two fetches that unknown key identifiers cause.
    pub cooldown: Span,
    /// How long stale keys remain in use while the issuer is unavailable.
    pub max_stale: Span,
}

impl Default for Jwks {
    fn default() -> Self {
        Self {
            cooldown: Span::new(IssuerSettings::DEFAULT_COOLDOWN),
            max_stale: Span::new(IssuerSettings::DEFAULT_MAX_STALE),
        }
    }
}

fn default_algorithms() -> Vec<String> {
    vec!["RS256".to_owned()]
}

fn default_leeway() -> Span {
    Span::new(IssuerSettings::DEFAULT_LEEWAY)
}
