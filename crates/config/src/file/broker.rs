//! `[broker]`: an authorization server of its own, at which users sign in with an identity
//! provider.

mod provider;

use std::{collections::BTreeMap, path::PathBuf};

use portcullis_broker::{ClientSettings, Lifetimes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{SecretSource, Span};

pub use provider::{BrokerGrant, BrokerProvider, BrokerProviderKind};

/// `[broker]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Broker {
    /// The identity providers at which users sign in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provider: Vec<BrokerProvider>,
    /// Which clients may ask users to sign in.
    pub clients: BrokerClients,
    /// The endpoint of the resource for clients that name none. Default: the only resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = "/mcp")]
    pub default_resource: Option<String>,
    /// The lifetime of access tokens.
    pub access_token_lifetime: Span,
    /// The lifetime of a grant after its last refresh. Default: 180 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = "180d")]
    pub grant_lifetime: Option<Span>,
    /// How long a used refresh token gets the same successor again; `0s` for strict single use.
    pub refresh_reuse: Span,
    /// A refresh checks the user at the provider if the last check is older.
    pub recheck: Span,
    /// How long grants last while the provider cannot check their users.
    pub max_unchecked: Span,
    /// Whether users can let the server remember their consent to a client.
    pub remember_consent: bool,
    /// Whether users whose client is on another machine are offered the address to paste there.
    pub paste_callback: bool,
    /// The claims of access tokens that have the value of a claim of the provider.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(example = BTreeMap::from([("email", "email")]))]
    pub claims: BTreeMap<String, String>,
    /// The source of the broker's keys. Default: they are generated in the state directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<SecretSource>,
    /// The appearance of the pages that users see.
    pub page: BrokerPage,
    /// What scopes mean, for the users who consent to them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(example = BTreeMap::from([("mcp:tools", "Use the tools")]))]
    pub scope_descriptions: BTreeMap<String, String>,
    /// The resource servers elsewhere that may introspect tokens.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub introspection: Vec<BrokerIntrospection>,
}

impl Default for Broker {
    fn default() -> Self {
        let lifetimes = Lifetimes::default();
        Self {
            provider: Vec::new(),
            clients: BrokerClients::default(),
            default_resource: None,
            access_token_lifetime: Span::new(lifetimes.access_token),
            grant_lifetime: None,
            refresh_reuse: Span::new(lifetimes.refresh_reuse),
            recheck: Span::new(lifetimes.recheck),
            max_unchecked: Span::new(lifetimes.max_unchecked),
            remember_consent: false,
            paste_callback: true,
            claims: BTreeMap::new(),
            keys: None,
            page: BrokerPage::default(),
            scope_descriptions: BTreeMap::new(),
            introspection: Vec::new(),
        }
    }
}

/// `clients = { .. }` of `[broker]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BrokerClients {
    /// The hosts of `https` redirect URIs: names, or `*.` and a name for its subdomains, with a
    /// port if it is not 443. Loopback and the redirect URIs of known clients are always accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = ["*.example.com"])]
    pub redirect_hosts: Vec<String>,
    /// Whether clients can register.
    pub registration: bool,
    /// Whether the URL of a metadata document can identify a client.
    pub documents: bool,
    /// The maximum number of registered clients.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_registered: usize,
}

impl Default for BrokerClients {
    fn default() -> Self {
        let ClientSettings {
            redirect_hosts,
            registration,
            documents,
            max_registered,
        } = ClientSettings::default();
        Self {
            redirect_hosts: redirect_hosts.into_iter().map(String::from).collect(),
            registration,
            documents,
            max_registered,
        }
    }
}

/// `page = { .. }` of `[broker]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BrokerPage {
    /// The name of the service. Default: the host of `base_url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"Example")]
    pub name: Option<String>,
    /// An SVG or PNG file with the logo of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = "/etc/portcullis/logo.svg")]
    pub logo_file: Option<PathBuf>,
    /// The color of buttons: `#` and six hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = "#0b57d0")]
    pub accent: Option<String>,
}

/// `[[broker.introspection]]`: a resource server elsewhere that may introspect tokens.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrokerIntrospection {
    /// The identifier with which the resource server authenticates.
    #[schemars(example = &"resource-server")]
    pub client_id: String,
    /// Its secret.
    pub client_secret: SecretSource,
    /// The endpoint of the resource whose tokens it may introspect.
    #[schemars(example = "/mcp")]
    pub resource: String,
}
