use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use portcullis_discovery::Fetch;
use portcullis_metadata::{Clock, JwkSet, ResourceUri, Scopes, Secret, SystemClock};

use crate::{ClientSettings, DevIdpError, Fault, GrantType, user::is_user_name};

/// 30 days.
const MAX_REFRESH_SECONDS: u64 = 30 * 24 * 60 * 60;

/// What a development authorization server is started with.
///
/// Every field has a default, so that a caller names only what it changes:
///
/// ```
/// use portcullis_devidp::DevIdpSettings;
///
/// let settings = DevIdpSettings { auto_consent: true, ..DevIdpSettings::default() };
/// assert_eq!(settings.issuer_path, "");
/// ```
#[derive(Clone)]
pub struct DevIdpSettings {
    /// Where to listen. Only a loopback address is accepted; port 0 takes a free one. Default `127.0.0.1:0`.
    pub listen: SocketAddr,
    /// The path of the issuer identifier: empty, or something like `/realms/dev`, without a slash at its end.
    /// Default empty, so that the issuer is `http://127.0.0.1:<port>`.
    pub issuer_path: String,
    /// Answers authorization requests at once with a code, without asking anybody, for tests. It covers
    /// loopback redirect URIs only: a request that leads to another machine still gets the consent page.
    /// Default `false`.
    pub auto_consent: bool,
    /// The user name that the consent page proposes, and that `auto_consent` signs in, unless the request
    /// names one in `login_hint`. It becomes the `sub` claim. Default `alice`.
    pub user: String,
    /// The scopes that can be granted; a request without `scope` is granted all of them. `openid` is not
    /// among the possible ones, since no ID tokens are issued. Default `mcp:tools`.
    pub scopes: Scopes,
    /// The audience of tokens whose request names no `resource` (RFC 8707). Default none: such a request is
    /// answered with `invalid_target`.
    pub default_resource: Option<ResourceUri>,
    /// What access tokens are signed with. Keys for both algorithms are made at start and published.
    /// Default RS256.
    pub signing_algorithm: SigningAlgorithm,
    /// The `typ` of the access token's header. Default `JWT`.
    pub token_header_type: TokenHeaderType,
    /// How long an access token lives. 1 s to 1 h, default 5 min.
    pub access_token_lifetime: Duration,
    /// Whether DPoP proofs need a nonce of this server (RFC 9449 section 8): a request without it is answered with
    /// `use_dpop_nonce` and the nonce. Default `false`.
    pub dpop_nonces: bool,
    /// How long a refresh token lives when it is not used. 1 s to 30 days, default 24 h.
    pub refresh_token_lifetime: Duration,
    /// The clients that are there from the start, among them the protected resources that may introspect. Default none.
    pub clients: Vec<ClientSettings>,
    /// The issuers whose assertions are taken for tokens (RFC 7523 section 2.1), and whose ID tokens for identity assertions
    /// (RFC 8693). With none, neither grant type is served. Default none.
    pub trusted_issuers: Vec<TrustedIssuer>,
    /// Who may register a client (RFC 7591). Default anybody.
    pub registration: Registration,
    /// How documents of clients are fetched whose identifier is a URL. Default over HTTP.
    pub client_documents: DocumentFetch,
    /// How many clients that registered themselves are kept at once. When it is reached, a new registration takes the place of the
    /// oldest client that never obtained a code; when there is none, it is refused. Default 1000.
    pub max_clients: usize,
    /// What goes wrong on purpose, from the start. Default nothing.
    pub faults: Vec<Fault>,
    /// Whether programs on this machine may rotate the keys and script faults, at `admin/rotate` and `admin/faults`.
    /// Pages in a browser may not. Default `false`.
    pub admin: bool,
    /// Where the time comes from. Default the machine's clocks.
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
    /// Whether a server can be started with these, the port apart.
    pub(crate) fn check(&self) -> Result<(), DevIdpError> {
        if !self.listen.ip().is_loopback() {
            return Err(DevIdpError::NotLoopback { address: self.listen });
        }
        if !is_issuer_path(&self.issuer_path) {
            return Err(DevIdpError::IssuerPath { path: self.issuer_path.clone() });
        }
        if !is_user_name(&self.user) {
            return Err(DevIdpError::User { user: self.user.clone() });
        }
        if self.scopes.contains("openid") {
            return Err(DevIdpError::OpenIdScope);
        }
        if self.scopes.is_empty() {
            return Err(DevIdpError::NoScopes);
        }
        let seconds = self.access_token_lifetime.as_secs();
        if !(1..=3600).contains(&seconds) {
            return Err(DevIdpError::TokenLifetime { seconds });
        }
        if self.max_clients == 0 {
            return Err(DevIdpError::NoRoomForClients);
        }
        let seconds = self.refresh_token_lifetime.as_secs();
        if !(1..=MAX_REFRESH_SECONDS).contains(&seconds) {
            return Err(DevIdpError::RefreshTokenLifetime { seconds });
        }
        if matches!(&self.registration, Registration::WithToken(token) if token.secret().is_empty()) {
            return Err(DevIdpError::InitialAccessToken);
        }
        Ok(())
    }

    /// What tokens can be had with here.
    pub(crate) fn grant_types(&self) -> &'static [GrantType] {
        if self.trusted_issuers.is_empty() { &GrantType::WITHOUT_ASSERTIONS } else { &GrantType::ALL }
    }
}

fn is_issuer_path(path: &str) -> bool {
    let is_segment = |segment: &str| {
        let readable = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
        !matches!(segment, "" | "." | ".." | ".well-known") && segment.bytes().all(readable)
    };
    match path.strip_prefix('/') {
        Some(segments) => path.len() <= 200 && segments.split('/').all(is_segment),
        None => path.is_empty(),
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
            .field("clients", &self.clients)
            .field("trusted_issuers", &self.trusted_issuers)
            .field("registration", &self.registration)
            .field("client_documents", &self.client_documents)
            .field("faults", &self.faults)
            .field("admin", &self.admin)
            .finish_non_exhaustive()
    }
}

/// An issuer that vouches for people or workloads.
#[derive(Clone, Debug)]
pub struct TrustedIssuer {
    /// Its issuer identifier, compared byte for byte.
    pub issuer: String,
    /// Its public keys.
    pub keys: JwkSet,
}

/// Who may register a client (RFC 7591 section 3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Registration {
    /// Anybody.
    #[default]
    Open,
    /// Whoever sends this initial access token as a bearer token.
    WithToken(Secret),
    /// Nobody; the metadata names no registration endpoint.
    Closed,
}

/// How client ID metadata documents are fetched (draft-ietf-oauth-client-id-metadata-document).
///
/// The identifier is an `https` URL, or `http` to a loopback host, without a query. Names that resolve to private addresses are refused, redirects are not
/// followed, and a document has at most 16 KiB and 5 s. It counts for the `max-age` of its answer, at most 5 min, and for 1 min
/// where the answer says nothing; 100 are remembered.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum DocumentFetch {
    /// Over HTTP.
    #[default]
    Http,
    /// By this fetcher, which judges addresses itself.
    With(Arc<dyn Fetch>),
    /// Not at all, and the metadata says so.
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

/// The signature algorithms that the server has a key for (RFC 7518 section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SigningAlgorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256 and a 2048-bit key.
    #[default]
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn code(settings: DevIdpSettings) -> Option<&'static str> {
        settings.check().err().map(|error| error.code())
    }

    #[test]
    fn the_defaults_are_usable() {
        assert_eq!(code(DevIdpSettings::default()), None);
    }

    /// Only loopback is listened on, and the error names the fix.
    #[test]
    fn only_loopback_is_listened_on() {
        for loopback in ["127.0.0.1:9000", "127.1.2.3:0", "[::1]:9000"] {
            let listen = loopback.parse().unwrap();
            assert_eq!(code(DevIdpSettings { listen, ..DevIdpSettings::default() }), None, "{loopback}");
        }
        for reachable in ["0.0.0.0:9000", "192.168.1.1:9000", "[::]:9000", "[::ffff:127.0.0.1]:9000", "8.8.8.8:9000"] {
            let listen = reachable.parse().unwrap();
            let error = DevIdpSettings { listen, ..DevIdpSettings::default() }.check().unwrap_err();
            assert_eq!(error.code(), "devidp.not_loopback", "{reachable}");
            assert!(error.to_string().contains("use 127.0.0.1:9000 or [::1]:9000"), "{error}");
        }
    }

    #[test]
    fn issuer_paths_are_plain_segments() {
        for good in ["", "/dev", "/realms/dev-1_a.b~c"] {
            let settings = DevIdpSettings { issuer_path: good.to_owned(), ..DevIdpSettings::default() };
            assert_eq!(code(settings), None, "{good}");
        }
        for bad in ["/", "dev", "/dev/", "//dev", "/a/../b", "/.", "/a b", "/a?b", "/a%2Fb", "/.well-known/x", "/é"] {
            let settings = DevIdpSettings { issuer_path: bad.to_owned(), ..DevIdpSettings::default() };
            assert_eq!(code(settings), Some("devidp.issuer_path"), "{bad}");
        }
    }

    #[test]
    fn other_settings_are_checked_too() {
        let scopes = |text| Scopes::parse(text).unwrap();
        let base = DevIdpSettings::default;
        assert_eq!(code(DevIdpSettings { scopes: scopes("openid a"), ..base() }), Some("devidp.openid_scope"));
        assert_eq!(code(DevIdpSettings { scopes: scopes(""), ..base() }), Some("devidp.no_scopes"));
        assert_eq!(code(DevIdpSettings { user: String::new(), ..base() }), Some("devidp.user"));
        assert_eq!(code(DevIdpSettings { max_clients: 0, ..base() }), Some("devidp.no_room_for_clients"));
        let registration = Registration::WithToken(Secret::new(""));
        assert_eq!(code(DevIdpSettings { registration, ..base() }), Some("devidp.initial_access_token"));
        for days in [0, 31] {
            let refresh_token_lifetime = Duration::from_secs(days * 24 * 60 * 60);
            let settings = DevIdpSettings { refresh_token_lifetime, ..base() };
            assert_eq!(code(settings), Some("devidp.refresh_token_lifetime"));
        }
        for seconds in [0, 3601] {
            let access_token_lifetime = Duration::from_secs(seconds);
            assert_eq!(code(DevIdpSettings { access_token_lifetime, ..base() }), Some("devidp.token_lifetime"));
        }
    }
}
