//! [`DevIdpSettings`]: the settings of the server.

mod check;

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use portcullis_authorization_server::client::GrantType;
use portcullis_discovery::Fetch;
use portcullis_metadata::{Clock, JwkSet, ResourceUri, Scopes, Secret, SystemClock};
use serde_json::{Map, Value};

use crate::{
    authentication::mode::ClientAuthenticationMode,
    clients::settings::ClientSettings,
    control::faults::Fault,
    providers::{Provider, profile::Profile},
    users::UserSettings,
};

/// The grant types of a server without trusted issuers.
const WITHOUT_ASSERTIONS: [GrantType; 4] = [
    GrantType::AuthorizationCode,
    GrantType::RefreshToken,
    GrantType::DeviceCode,
    GrantType::ClientCredentials,
];

/// The settings of a development authorization server.
///
/// Every field has a default:
///
/// ```
/// use portcullis_devidp::DevIdpSettings;
///
/// let settings = DevIdpSettings { auto_consent: true, ..DevIdpSettings::default() };
/// assert_eq!(settings.issuer_path, "");
/// ```
#[derive(Clone)]
pub struct DevIdpSettings {
    /// The address to listen on. It must be a loopback address. Port 0 chooses a free port. Default
    /// `127.0.0.1:0`.
    pub listen: SocketAddr,
    /// The path of the issuer identifier, such as `/realms/dev`, without a trailing slash. At most
    /// 200 characters. If it is empty, which is the default, the path is that of the imitated
    /// provider, or there is none: `http://127.0.0.1:<port>`.
    pub issuer_path: String,
    /// Whether to grant authorization requests without the consent page, for tests. Requests with a
    /// redirect URI on another machine still get the consent page. Default `false`.
    pub auto_consent: bool,
    /// The user name that the consent page suggests and `auto_consent` uses, unless the request has
    /// a `login_hint`. It becomes the `sub` claim. Default `alice`.
    pub user: String,
    /// The scopes that can be granted. A request without `scope` gets all of them. `openid` and
    /// the other scopes of OpenID Connect can be granted in any case, and are not allowed here.
    /// Default `mcp:tools`.
    pub scopes: Scopes,
    /// The audience of tokens if the request has no `resource` (RFC 8707), or if the imitated
    /// provider ignores it. Default none: requests without `resource` fail with `invalid_target`,
    /// unless the imitated provider ignores it, or the request has the scope `openid`. The audience
    /// is then the issuer.
    pub default_resource: Option<ResourceUri>,
    /// The signature algorithm of access tokens and ID tokens. Keys for both algorithms are
    /// published. Default RS256.
    pub signing_algorithm: SigningAlgorithm,
    /// The `typ` header of access tokens. Default `JWT`.
    pub token_header_type: TokenHeaderType,
    /// The lifetime of access tokens, from 1 s to 1 h. Default 5 min.
    pub access_token_lifetime: Duration,
    /// Whether DPoP proofs must contain a nonce of this server (RFC 9449 section 8). A request
    /// without it fails with `use_dpop_nonce`, and the response has the nonce. Default `false`.
    pub dpop_nonces: bool,
    /// The lifetime of an unused refresh token, from 1 s to 30 days. Default 24 h.
    pub refresh_token_lifetime: Duration,
    /// The provider to imitate. Default none.
    pub provider: Option<Provider>,
    /// Further claims of access tokens, such as `groups`. They may replace claims that a provider
    /// adds, and no other ones. Default none.
    pub extra_claims: Map<String, Value>,
    /// The users whose claims are configured. Other users can sign in as well. Default none.
    pub users: Vec<UserSettings>,
    /// Which client authentication the token, revocation and device authorization endpoints accept.
    /// Default the registered method.
    pub client_authentication_mode: ClientAuthenticationMode,
    /// The configured clients, including protected resources that may introspect. Default none.
    pub clients: Vec<ClientSettings>,
    /// The trusted issuers. Their assertions can be exchanged for access tokens (RFC 7523 section
    /// 2.1), and their ID tokens for identity assertions (RFC 8693). Both grant types are disabled
    /// without trusted issuers. Default none.
    pub trusted_issuers: Vec<TrustedIssuer>,
    /// Who may register clients (RFC 7591). Default anyone.
    pub registration: Registration,
    /// How client ID metadata documents are fetched. Default over HTTP.
    pub client_documents: DocumentFetch,
    /// The maximum number of dynamically registered clients. At the limit, a new client replaces
    /// the least recently used one that no user has approved. If there is none, the registration is
    /// rejected. Default 1000.
    pub max_clients: usize,
    /// The initial faults. Default none.
    pub faults: Vec<Fault>,
    /// Whether programs on this machine may control the server over HTTP as
    /// [`Control`](crate::Control) does: at `admin/rotate`, `admin/faults`, `admin/forget`,
    /// `admin/device`, `admin/user` and `admin/logout`. Requests from browsers are rejected.
    /// Default `false`.
    pub admin: bool,
    /// The clock. Default the operating system's clocks.
    pub clock: Arc<dyn Clock>,
}

impl Default for DevIdpSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            issuer_path: String::new(),
            auto_consent: false,
            user: "alice".to_owned(),
            scopes: Scopes::from_names(["mcp:tools"]).unwrap_or_default(),
            default_resource: None,
            signing_algorithm: SigningAlgorithm::Rs256,
            token_header_type: TokenHeaderType::Jwt,
            access_token_lifetime: Duration::from_secs(300),
            dpop_nonces: false,
            refresh_token_lifetime: Duration::from_secs(24 * 60 * 60),
            provider: None,
            extra_claims: Map::new(),
            users: Vec::new(),
            client_authentication_mode: ClientAuthenticationMode::Registered,
            clients: Vec::new(),
            trusted_issuers: Vec::new(),
            registration: Registration::Open,
            client_documents: DocumentFetch::Http,
            max_clients: 1000,
            faults: Vec::new(),
            admin: false,
            clock: Arc::new(SystemClock::new()),
        }
    }
}

impl DevIdpSettings {
    /// Returns the behaviour of the imitated provider, if any, or the standard one.
    pub(crate) fn profile(&self) -> &'static Profile {
        const STANDARD: &Profile = &Profile::STANDARD;
        self.provider.map_or(STANDARD, Provider::profile)
    }

    /// Returns the supported grant types.
    pub(crate) fn grant_types(&self) -> &'static [GrantType] {
        if self.trusted_issuers.is_empty() {
            &WITHOUT_ASSERTIONS
        } else {
            &GrantType::ALL
        }
    }
}

impl fmt::Debug for DevIdpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevIdpSettings")
            .field("listen", &self.listen)
            .field("issuer_path", &self.issuer_path)
            .field("auto_consent", &self.auto_consent)
            .field("user", &self.user)
            .field("scopes", &self.scopes)
            .field("default_resource", &self.default_resource)
            .field("signing_algorithm", &self.signing_algorithm)
            .field("token_header_type", &self.token_header_type)
            .field("access_token_lifetime", &self.access_token_lifetime)
            .field("max_clients", &self.max_clients)
            .field("dpop_nonces", &self.dpop_nonces)
            .field("refresh_token_lifetime", &self.refresh_token_lifetime)
            .field("provider", &self.provider)
            .field("extra_claims", &self.extra_claims)
            .field("users", &self.users)
            .field(
                "client_authentication_mode",
                &self.client_authentication_mode,
            )
            .field("clients", &self.clients)
            .field("trusted_issuers", &self.trusted_issuers)
            .field("registration", &self.registration)
            .field("client_documents", &self.client_documents)
            .field("faults", &self.faults)
            .field("admin", &self.admin)
            .finish_non_exhaustive()
    }
}

/// A trusted issuer of assertions or ID tokens.
#[derive(Clone, Debug)]
pub struct TrustedIssuer {
    /// The issuer identifier. It is compared byte for byte.
    pub issuer: String,
    /// The issuer's public keys.
    pub keys: JwkSet,
}

/// Who may register clients (RFC 7591 section 3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Registration {
    /// Anyone.
    #[default]
    Open,
    /// Clients that send this initial access token as a bearer token.
    WithToken(Secret),
    /// No one. The metadata has no registration endpoint.
    Closed,
}

/// How client ID metadata documents are fetched (draft-ietf-oauth-client-id-metadata-document).
///
/// The URL is `https`, or `http` with a loopback host, and has no query. Host names that resolve to
/// private addresses are rejected, and redirects are not followed. A document has at most 16 KiB
/// and must arrive within 5 s. It is cached for its `max-age`, at most 5 min, or for 1 min without
/// `Cache-Control`. At most 100 documents are cached.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum DocumentFetch {
    /// Over HTTP.
    #[default]
    Http,
    /// With this fetcher, which must check addresses itself.
    With(Arc<dyn Fetch>),
    /// Disabled. The metadata does not announce support.
    Off,
}

impl fmt::Debug for DocumentFetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "Http",
            Self::With(_) => "With(..)",
            Self::Off => "Off",
        })
    }
}

/// The signature algorithms of the server (RFC 7518 section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SigningAlgorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256 and a 2048-bit key.
    #[default]
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
}

impl SigningAlgorithm {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
        }
    }
}

/// The `typ` header of access tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenHeaderType {
    /// `JWT` (RFC 7519 section 5.1).
    #[default]
    Jwt,
    /// `at+jwt` (RFC 9068 section 2.1).
    AtJwt,
}

impl TokenHeaderType {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Jwt => "JWT",
            Self::AtJwt => "at+jwt",
        }
    }
}
