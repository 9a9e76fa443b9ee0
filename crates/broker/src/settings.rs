//! [`BrokerSettings`]: what an operator decides.

use std::{collections::BTreeMap, time::Duration};

use portcullis_guard::authorize::ClaimRule;
use portcullis_identity_provider::ProviderSettings;
use portcullis_metadata::{Issuer, ResourceUri, Scopes, Secret};

/// The path of a redirect URI, without the name of the provider.
pub(crate) const CALLBACK_PATH: &str = "/oauth/callback/";
/// The path of a back-channel logout URI, without the name of the provider.
pub(crate) const LOGOUT_PATH: &str = "/oauth/logout/";

/// What an operator decides about the broker.
#[derive(Clone, Debug)]
pub struct BrokerSettings {
    /// The issuer of its tokens: scheme, host and port of the server, without a path.
    pub issuer: Issuer,
    /// The resources for which tokens are issued. At least one.
    pub resources: Vec<BrokerResource>,
    /// The resource of a request that names none, if there are several: a position in `resources`.
    pub default_resource: Option<usize>,
    /// The providers at which users sign in. At least one.
    pub providers: Vec<BrokerProvider>,
    /// Which clients may ask users to sign in.
    pub clients: ClientSettings,
    /// The pages that users see.
    pub pages: PageSettings,
    /// Lifetimes of tokens and grants.
    pub lifetimes: Lifetimes,
    /// The claims of access tokens, each with the name of the provider's claim. The first is not
    /// one that RFC 9068 or RFC 7519 defines for the token itself; the second can be, such as
    /// `sub`.
    pub claims: BTreeMap<String, String>,
    /// The resource servers elsewhere that may introspect tokens.
    pub introspection_clients: Vec<IntrospectionClient>,
    /// The length in bytes of the longest token that the guards of the resources accept. A longer
    /// one is not issued, nor one of more than 24 KiB, which clients could not revoke.
    pub max_token: usize,
}

impl BrokerSettings {
    /// Returns the redirect URI to register at the provider with this name.
    pub fn redirect_uri(&self, provider: &str) -> String {
        self.url(CALLBACK_PATH, provider)
    }

    /// Returns the URI to which the provider with this name sends logout tokens, if it supports
    /// that (OpenID Connect Back-Channel Logout 1.0).
    pub fn logout_uri(&self, provider: &str) -> String {
        self.url(LOGOUT_PATH, provider)
    }

    fn url(&self, path: &str, provider: &str) -> String {
        let origin = self.issuer.url().origin().ascii_serialization();
        format!("{origin}{path}{provider}")
    }
}

/// A resource for which tokens are issued.
#[derive(Clone, Debug)]
pub struct BrokerResource {
    /// Its identifier, which is the audience of its tokens.
    pub uri: ResourceUri,
    /// Its name for people, if it has one.
    pub name: Option<Box<str>>,
    /// The scopes that its tokens can have.
    pub scopes: Scopes,
    /// The scopes of a request without `scope`.
    pub default_scopes: Scopes,
}

/// A provider, and who of its users gets which scopes.
#[derive(Clone, Debug)]
pub struct BrokerProvider {
    /// The provider.
    pub settings: ProviderSettings,
    /// The rules that a user must meet, each of them. Empty for all users of the provider.
    pub allow: Vec<ClaimRule>,
    /// The scopes of users. Empty for all scopes of the resource.
    pub grants: Vec<ScopeGrant>,
}

/// Scopes for some users.
#[derive(Clone, Debug)]
pub struct ScopeGrant {
    /// The rule that a user must meet. `None` for all users.
    pub rule: Option<ClaimRule>,
    /// The scopes.
    pub scopes: Scopes,
}

/// Which clients may ask users to sign in.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The hosts of `https` redirect URIs: names, or `*.` and a name for its subdomains, with a
    /// port if it is not 443. Loopback hosts and the redirect URIs of known clients are always
    /// accepted.
    pub redirect_hosts: Vec<Box<str>>,
    /// Whether clients can register (RFC 7591).
    pub registration: bool,
    /// Whether clients can be identified by the URL of their metadata document.
    pub documents: bool,
    /// The maximum number of registered clients.
    pub max_registered: usize,
}

/// The pages that users see.
#[derive(Clone, Debug, Default)]
pub struct PageSettings {
    /// The name of the service.
    pub name: Option<Box<str>>,
    /// The logo, as the bytes of an SVG or PNG file and its media type.
    pub logo: Option<Logo>,
    /// The color of buttons, as six hexadecimal digits.
    pub accent: Option<[u8; 3]>,
    /// What scopes mean, in the operator's words.
    pub scopes: BTreeMap<String, String>,
    /// Whether a consent may be remembered (see the rules in the security page).
    pub remember: bool,
    /// Whether "My client is on another machine" is offered.
    pub paste_callback: bool,
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Logo {
    /// `image/svg+xml` or `image/png`.
    pub media_type: &'static str,
    /// The content of the file.
    pub bytes: Vec<u8>,
}

/// Lifetimes of tokens and grants.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    /// An access token.
    pub access_token: Duration,
    /// A grant after its last refresh.
    pub grant: Duration,
    /// How long a used refresh token is answered with the same successor. Zero for strict single
    /// use.
    pub refresh_reuse: Duration,
    /// A user is checked again at a refresh if the last check is older.
    pub recheck: Duration,
    /// How long a grant lasts while the provider cannot check its user.
    pub max_unchecked: Duration,
}

/// A resource server elsewhere that may introspect tokens (RFC 7662).
#[derive(Clone, Debug)]
pub struct IntrospectionClient {
    /// Its identifier.
    pub id: Box<str>,
    /// Its secret.
    pub secret: Secret,
    /// Its resource. It learns only about tokens for this one.
    pub resource: ResourceUri,
}

impl Default for Lifetimes {
    fn default() -> Self {
        const MINUTE: u64 = 60;
        const HOUR: u64 = 60 * MINUTE;
        const DAY: u64 = 24 * HOUR;
        Self {
            access_token: Duration::from_secs(HOUR),
            grant: Duration::from_secs(180 * DAY),
            refresh_reuse: Duration::from_secs(10 * MINUTE),
            recheck: Duration::from_secs(50 * MINUTE),
            max_unchecked: Duration::from_secs(DAY),
        }
    }
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            redirect_hosts: Vec::new(),
            registration: true,
            documents: true,
            max_registered: 10_000,
        }
    }
}
