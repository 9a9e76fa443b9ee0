//! `[[issuer]]` in the configuration file.

use std::path::PathBuf;

use portcullis_verifier::IssuerSettings;
use serde::{Deserialize, Serialize};

use crate::config::{Span, secret::SecretSource};

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
    /// Other addresses of the same resource that `aud` may name, and the issuer's own names for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) audiences: Vec<String>,
    /// Claims whose values count as scopes, beside `scope` and `scp`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scope_claims: Vec<String>,
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
        Self { cooldown: Span(IssuerSettings::DEFAULT_COOLDOWN), max_stale: Span(IssuerSettings::DEFAULT_MAX_STALE) }
    }
}

fn default_algorithms() -> Vec<String> {
    vec!["RS256".to_owned()]
}

fn default_leeway() -> Span {
    Span(IssuerSettings::DEFAULT_LEEWAY)
}
