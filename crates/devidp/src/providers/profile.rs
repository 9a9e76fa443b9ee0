use portcullis_metadata::Scopes;
use serde_json::{Map, Value};

/// The behaviour in which providers differ. [`STANDARD`](Self::STANDARD) is the behaviour without a
/// provider.
pub(crate) struct Profile {
    /// The issuer path, unless the settings have one.
    pub(crate) issuer_path: &'static str,
    /// When the issuer ends with a slash.
    pub(crate) final_slash: FinalSlash,
    /// Where the metadata document is served.
    pub(crate) well_known: &'static [WellKnown],
    /// Further documents, which have another issuer.
    pub(crate) other_documents: &'static [OtherDocument],
    /// The members of the metadata document that are omitted.
    pub(crate) omitted_members: &'static [&'static str],
    /// The members of the metadata document whose list is replaced.
    pub(crate) replaced_lists: &'static [(&'static str, &'static [&'static str])],
    /// Whether authorization responses have the parameter `iss` (RFC 9207).
    pub(crate) sends_issuer: bool,
    /// Whether successful authorization responses have the parameter `session_state`.
    pub(crate) sends_session_state: bool,
    /// How the audience of a token is chosen.
    pub(crate) audience: AudienceRule,
    /// The identifier of the API that prefixes each of its scopes in requests and responses, but
    /// not in tokens.
    pub(crate) scope_prefix: Option<&'static str>,
    pub(crate) token_format: TokenFormat,
    /// The path of the issuer in tokens, if it is not that of the metadata.
    pub(crate) token_issuer_path: Option<&'static str>,
    /// Renames, removes and adds claims of an access token.
    pub(crate) rewrite_claims: fn(&mut Map<String, Value>),
    /// Renames, removes and adds claims of an ID token. `None` if the provider has no ID tokens.
    pub(crate) id_token_claims: Option<IdTokenClaims>,
    /// Renames, removes and adds claims of a response of the userinfo endpoint.
    pub(crate) user_info_claims: fn(&mut Map<String, Value>),
    /// The scopes about the user, which every client may request. They have no prefix.
    pub(crate) user_scopes: &'static [&'static str],
    /// Whether access tokens have scopes.
    pub(crate) has_scopes: bool,
    /// The prefix of refresh tokens.
    pub(crate) refresh_token_prefix: &'static str,
    /// Which clients get refresh tokens.
    pub(crate) refresh_tokens: RefreshTokenRule,
    /// What happens to a refresh token when it is used.
    pub(crate) rotation: RotationRule,
    /// Whether a refresh request must have a `scope`.
    pub(crate) refresh_requires_scope: bool,
    /// Whether public clients are rejected, and with which error.
    pub(crate) public_clients: PublicClientRule,
    /// Whether clients can register.
    pub(crate) registration: RegistrationRule,
    /// Whether clients may be identified by the URL of their metadata document.
    pub(crate) client_documents: bool,
    /// The format of responses of the token endpoint.
    pub(crate) token_response: TokenResponseFormat,
    /// What distinguishes the provider from MCP's profile, in parts that several profiles can have.
    pub(crate) differences: &'static [&'static [Difference]],
}

/// Renames, removes and adds claims of an ID token.
type IdTokenClaims = fn(&mut Map<String, Value>, &IdTokenContext<'_>);

/// What the claims of an ID token depend on.
pub(crate) struct IdTokenContext<'a> {
    /// The origin of the issuer.
    pub(crate) origin: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) scopes: &'a Scopes,
}

/// When the issuer ends with a slash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinalSlash {
    Never,
    /// If it has no path.
    WithoutPath,
    Always,
}

/// A well-known location of the metadata document, relative to the issuer's path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WellKnown {
    /// `/.well-known/oauth-authorization-server/path` (RFC 8414 section 3).
    OAuthInserted,
    /// `/path/.well-known/oauth-authorization-server`.
    OAuthAppended,
    /// `/.well-known/openid-configuration/path`.
    OpenIdInserted,
    /// `/path/.well-known/openid-configuration` (OpenID Connect Discovery 1.0 section 4).
    OpenIdAppended,
}

/// A metadata document with another issuer than the server's.
pub(crate) struct OtherDocument {
    /// The path at which it is served.
    pub(crate) path: &'static str,
    /// The path of the issuer in it. It may contain a placeholder, which is not valid in a URL.
    pub(crate) issuer_path: &'static str,
}

/// How the audience of a token is chosen.
#[derive(Clone, Copy)]
pub(crate) enum AudienceRule {
    /// It is the `resource` of the request (RFC 8707).
    Resource,
    /// `resource` is ignored. The audience is the default resource of the settings or, without it,
    /// this value.
    Default(Option<&'static str>),
    /// As `Default(None)`, but a second `resource` is an error.
    DefaultWithSingleResource,
    /// `resource` is ignored. The audience is the parameter `audience` or, without it, the default
    /// resource of the settings.
    AudienceParameter,
    /// The audience is this value. A `resource` must be the prefix of the requested scopes.
    Fixed(&'static str),
}

#[derive(Clone, Copy)]
pub(crate) enum TokenFormat {
    Jwt,
    /// A random string with this prefix.
    Opaque(&'static str),
    /// A random string if the token has no audience, else a JWT.
    OpaqueWithoutAudience,
}

/// When a client that may use refresh tokens gets one.
#[derive(Clone, Copy)]
pub(crate) enum RefreshTokenRule {
    /// If it requests the scope `offline_access`.
    OfflineAccess,
    /// If it sends `access_type=offline`, and the user approves the client for the first time or it
    /// sends `prompt=consent`.
    AccessType,
    Always,
    Never,
}

/// What happens to a refresh token when it is used.
#[derive(Clone, Copy)]
pub(crate) enum RotationRule {
    /// A new one replaces it. Its reuse ends the session.
    Replace,
    /// The response has a new one, and the old one stays valid.
    KeepOld,
    /// It stays valid, and the response has none.
    Keep,
}

/// Whether clients without a secret get tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PublicClientRule {
    Allowed,
    /// They get `invalid_client`.
    InvalidClient,
    /// They get `invalid_request`, because `client_secret` is missing.
    MissingSecret,
}

/// Whether clients can register.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegistrationRule {
    /// According to the settings.
    Settings,
    /// There is no registration endpoint.
    None,
    /// The endpoint is announced, and needs a token of the provider's API.
    ApiToken,
    /// According to the settings, but unknown members and scopes are rejected.
    Strict,
}

/// The format of responses of the token endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenResponseFormat {
    /// JSON (RFC 6749 section 5).
    Json,
    /// That of GitHub, for an OAuth app.
    GitHub,
    /// That of GitHub, for a GitHub App.
    GitHubApp,
}

/// A difference between a provider and MCP's profile that the server imitates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// What the provider does, in one sentence.
    pub summary: &'static str,
    /// Where this is documented or was observed: URLs, or a measurement in words.
    pub references: &'static [&'static str],
}

impl Profile {
    /// MCP's profile, without the behaviour of any provider.
    pub(crate) const STANDARD: Self = Self {
        issuer_path: "",
        final_slash: FinalSlash::Never,
        well_known: &[
            WellKnown::OAuthInserted,
            WellKnown::OpenIdInserted,
            WellKnown::OpenIdAppended,
        ],
        other_documents: &[],
        omitted_members: &[],
        replaced_lists: &[],
        sends_issuer: true,
        sends_session_state: false,
        audience: AudienceRule::Resource,
        scope_prefix: None,
        token_format: TokenFormat::Jwt,
        token_issuer_path: None,
        rewrite_claims: |_| {},
        id_token_claims: Some(|_, _| {}),
        user_info_claims: |_| {},
        user_scopes: &["openid", "profile", "email", "address", "phone"],
        has_scopes: true,
        refresh_token_prefix: "",
        refresh_tokens: RefreshTokenRule::OfflineAccess,
        rotation: RotationRule::Replace,
        refresh_requires_scope: false,
        public_clients: PublicClientRule::Allowed,
        registration: RegistrationRule::Settings,
        client_documents: true,
        token_response: TokenResponseFormat::Json,
        differences: &[],
    };
}

impl Profile {
    /// Returns whether this is a profile of GitHub, which is not an OpenID provider.
    pub(crate) fn is_github(&self) -> bool {
        !matches!(self.token_response, TokenResponseFormat::Json)
    }
}

impl WellKnown {
    /// Returns the path of the document of an issuer with this path, which has no trailing slash.
    pub(crate) fn path(self, issuer_path: &str) -> String {
        match self {
            Self::OAuthInserted => format!("/.well-known/oauth-authorization-server{issuer_path}"),
            Self::OAuthAppended => format!("{issuer_path}/.well-known/oauth-authorization-server"),
            Self::OpenIdInserted => format!("/.well-known/openid-configuration{issuer_path}"),
            Self::OpenIdAppended => format!("{issuer_path}/.well-known/openid-configuration"),
        }
    }
}
