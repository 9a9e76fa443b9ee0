//! `[[broker.provider]]`: an identity provider, and who of its users gets which scopes.

use std::path::PathBuf;

use portcullis_identity_provider::ProviderKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{SecretSource, file::Claim};

/// `[[broker.provider]]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrokerProvider {
    /// The kind of provider.
    #[schemars(example = &"entra")]
    pub kind: BrokerProviderKind,
    /// The name of the provider in this server, which is in its redirect URI and in every `sub`.
    /// Default: the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"staff")]
    pub name: Option<String>,
    /// The tenant of Entra ID whose users may sign in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "aaaabbbb-0000-cccc-1111-dddd2222eeee")]
    pub tenant: Option<String>,
    /// The tenants of Entra ID whose users may sign in, in place of `tenant`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = ["aaaabbbb-0000-cccc-1111-dddd2222eeee"])]
    pub tenants: Option<Vec<String>>,
    /// The issuer, byte for byte as in the provider's ID tokens. Default: that of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "https://auth.example.com/realms/prod")]
    pub issuer: Option<String>,
    /// The identifier of the application at the provider.
    #[schemars(example = "11112222-bbbb-3333-cccc-4444dddd5555")]
    pub client_id: String,
    /// The secret of the application.
    pub client_secret: SecretSource,
    /// The requirements on the claims of every user. Default: all users of the provider may sign
    /// in, if the kind permits that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = [example_of_allow()])]
    pub allow: Option<Vec<Claim>>,
    /// The scopes that users get. Default: all scopes of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = [example_of_grant()])]
    pub grant: Option<Vec<BrokerGrant>>,
    /// The scopes to request from the provider. Default: those of the kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = ["openid", "email"])]
    pub scopes: Vec<String>,
    /// A PEM file with further certificate authorities that are trusted for this provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "/etc/portcullis/ca.pem")]
    pub ca_file: Option<PathBuf>,
    /// The egress proxy for requests to this provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "http://proxy.example.com:3128")]
    pub proxy: Option<String>,
    /// The URL of an API in place of that of GitHub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "https://github.example.com/api/v3")]
    pub api_url: Option<String>,
}

impl BrokerProvider {
    /// Returns the name: the configured one, or that of the kind.
    pub fn name(&self) -> &str {
        self.name
            .as_deref()
            .unwrap_or_else(|| ProviderKind::from(self.kind).as_str())
    }

    /// Returns the requirements on the claims of every user.
    pub(crate) fn allow(&self) -> &[Claim] {
        self.allow.as_deref().unwrap_or_default()
    }

    /// Returns the entries about the scopes that users get.
    pub(crate) fn grant(&self) -> &[BrokerGrant] {
        self.grant.as_deref().unwrap_or_default()
    }
}

/// A kind of provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BrokerProviderKind {
    /// Microsoft Entra ID.
    Entra,
    /// Google.
    Google,
    /// GitHub.
    GitHub,
    /// Okta.
    Okta,
    /// Auth0.
    Auth0,
    /// Keycloak.
    Keycloak,
    /// Amazon Cognito.
    Cognito,
    /// Any other OpenID provider.
    Oidc,
}

impl BrokerProviderKind {
    /// Returns an identifier as those that this kind of provider gives to applications.
    pub(crate) fn example_of_client_id(self) -> &'static str {
        match self {
            Self::Entra => "11112222-bbbb-3333-cccc-4444dddd5555",
            Self::Google => "1234567890-example.apps.googleusercontent.com",
            Self::GitHub => "Iv23liExampleExample",
            Self::Okta => "0oa1b2c3d4e5f6g7h8i9",
            Self::Auth0 => "aBcDeFgHiJkLmNoPqRsTuVwXyZ012345",
            Self::Cognito => "1example23456789",
            Self::Keycloak | Self::Oidc => "portcullis",
        }
    }

    /// Returns a rule of `allow` for a claim that this kind of provider has, in TOML.
    pub(crate) fn example_of_allow(self) -> &'static str {
        match self {
            Self::Entra => "{ claim = \"roles\", one_of = [\"mcp-users\"] }",
            Self::Google => "{ claim = \"hd\", one_of = [\"example.com\"] }",
            Self::GitHub => "{ claim = \"id\", one_of = [\"583231\"] }",
            Self::Keycloak => "{ claim = \"/realm_access/roles\", one_of = [\"mcp-user\"] }",
            Self::Okta | Self::Auth0 | Self::Cognito | Self::Oidc => {
                "{ claim = \"groups\", one_of = [\"mcp-users\"] }"
            }
        }
    }
}

impl From<BrokerProviderKind> for ProviderKind {
    fn from(kind: BrokerProviderKind) -> Self {
        match kind {
            BrokerProviderKind::Entra => Self::Entra,
            BrokerProviderKind::Google => Self::Google,
            BrokerProviderKind::GitHub => Self::GitHub,
            BrokerProviderKind::Okta => Self::Okta,
            BrokerProviderKind::Auth0 => Self::Auth0,
            BrokerProviderKind::Keycloak => Self::Keycloak,
            BrokerProviderKind::Cognito => Self::Cognito,
            BrokerProviderKind::Oidc => Self::Oidc,
        }
    }
}

/// `grant` of a provider: scopes for the users who meet a requirement. Without `claim`, all users
/// get them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrokerGrant {
    /// The claim's name, or a JSON pointer into the claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"roles")]
    pub claim: Option<String>,
    /// The allowed values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = ["admin"])]
    pub one_of: Option<Vec<String>>,
    /// The allowed domains after the last `@`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = ["example.com"])]
    pub domain: Option<Vec<String>>,
    /// The scopes.
    #[schemars(example = ["mcp:admin"])]
    pub scopes: Vec<String>,
}

/// Without `report_only`, which has no effect there.
fn example_of_allow() -> Value {
    json!({ "claim": "groups", "one_of": ["mcp-users"] })
}

fn example_of_grant() -> BrokerGrant {
    BrokerGrant {
        claim: Some("roles".to_owned()),
        one_of: Some(vec!["admin".to_owned()]),
        domain: None,
        scopes: vec!["mcp:admin".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each kind of provider has its name in the configuration.
    #[test]
    fn all_kinds_can_be_configured() {
        for kind in ProviderKind::ALL {
            let parsed: BrokerProviderKind = serde_json::from_value(kind.as_str().into()).unwrap();
            assert_eq!(ProviderKind::from(parsed), kind);
        }
    }
}
