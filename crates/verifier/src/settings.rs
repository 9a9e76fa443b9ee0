//! [`IssuerSettings`]: how the tokens of one issuer are verified.

mod application_audience;
mod error;
mod further_audience;
mod introspection;

use std::{sync::Arc, time::Duration};

use portcullis_discovery::UrlPolicy;
use portcullis_jose::AlgorithmSet;
use portcullis_metadata::{Issuer, JwkSet};
use url::Url;

use crate::{json_claims::is_claim_path, revoked_tokens::RevokedTokens};

pub use self::{
    application_audience::{ApplicationAudience, ApplicationAudienceError},
    error::VerifierSettingsError,
    further_audience::{AudienceName, FurtherAudience},
    introspection::{IntrospectionAuthentication, IntrospectionSettings},
};

/// The maximum leeway. A longer one would accept tokens long after they expired.
pub(crate) const MAX_LEEWAY: Duration = Duration::from_secs(60);
/// The minimum cooldown. Without one, any caller could cause a fetch per request.
pub(crate) const MIN_COOLDOWN: Duration = Duration::from_secs(1);

/// How the tokens of one issuer are verified. [`new`](Self::new) sets the defaults; assign fields
/// to change them.
///
/// ```
/// use std::time::Duration;
///
/// use portcullis_metadata::Issuer;
/// use portcullis_verifier::IssuerSettings;
///
/// let mut settings = IssuerSettings::new(Issuer::parse("https://auth.example.com")?);
/// settings.require_at_jwt = true;
/// settings.max_lifetime = Some(Duration::from_secs(3600));
/// assert!(settings.check().is_ok());
///
/// // A long leeway would accept tokens long after they expired.
/// settings.leeway = Duration::from_secs(3600);
/// assert_eq!(settings.check().unwrap_err().code(), "settings.leeway_too_long");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IssuerSettings {
    /// The issuer identifier. A token's `iss` must be equal to it byte for byte.
    pub issuer: Issuer,
    /// How tokens are verified. Default: by signature.
    pub validation: Validation,
    /// The allowed signature algorithms. Default: RS256 only. `none` and HMAC are not values of
    /// this type.
    pub algorithms: AlgorithmSet,
    /// Where the keys come from. Default: they are discovered.
    pub keys: KeySource,
    /// The addresses from which metadata and keys may be fetched. Default: [`UrlPolicy::Operator`].
    pub url_policy: UrlPolicy,
    /// The minimum time between two fetches that tokens with unknown keys cause. Default: 30 s.
    /// Minimum: 1 s.
    pub cooldown: Duration,
    /// How long stale keys remain in use while the issuer is unavailable. Default: 24 h.
    pub max_stale: Duration,
    /// The tolerated clock difference, for `exp`, `nbf` and `iat`. Default: 10 s. Maximum: 60 s.
    pub leeway: Duration,
    /// The maximum lifetime of a token (`exp` minus `iat`). If it is set, tokens without `iat` are
    /// rejected. Default: unlimited.
    pub max_lifetime: Option<Duration>,
    /// Whether the header's `typ` must be `at+jwt` (RFC 9068 section 2.1). Default: no, because
    /// many issuers send `JWT`.
    pub require_at_jwt: bool,
    /// Whether clients whose tokens have no subject may own sessions, see
    /// [`Principal::may_own_sessions_as_client`](crate::Principal::may_own_sessions_as_client).
    /// Default: no.
    pub subjectless_client: bool,
    /// Values of `aud` that name one protected resource each, beside its URL. Default: none. Not
    /// checked here: that each names one resource only.
    pub audiences: Vec<FurtherAudience>,
    /// Claims whose values count as scopes, beside `scope` and `scp`: names, or JSON pointers (RFC
    /// 6901) such as `/realm_access/roles`. Default: none. The value is a string or an array;
    /// entries that are not scope names (RFC 6749 section 3.3) are ignored. In introspection
    /// responses, the members of these names count as well.
    pub scope_claims: Vec<String>,
    /// The tokens that this process knows to be revoked, for an issuer of its own. Default: none.
    /// After an addition, call
    /// [`TrustedIssuer::drop_cached_tokens`](crate::TrustedIssuer::drop_cached_tokens).
    pub revoked: Option<Arc<dyn RevokedTokens>>,
}

impl IssuerSettings {
    /// The default of [`cooldown`](Self::cooldown).
    pub const DEFAULT_COOLDOWN: Duration = Duration::from_secs(30);
    /// The default of [`max_stale`](Self::max_stale).
    pub const DEFAULT_MAX_STALE: Duration = Duration::from_secs(24 * 60 * 60);
    /// The default of [`leeway`](Self::leeway).
    pub const DEFAULT_LEEWAY: Duration = Duration::from_secs(10);

    /// Returns the default settings for an issuer.
    pub fn new(issuer: Issuer) -> Self {
        Self {
            issuer,
            validation: Validation::Jwt,
            algorithms: AlgorithmSet::default(),
            keys: KeySource::Discovered,
            url_policy: UrlPolicy::Operator,
            cooldown: Self::DEFAULT_COOLDOWN,
            max_stale: Self::DEFAULT_MAX_STALE,
            leeway: Self::DEFAULT_LEEWAY,
            max_lifetime: None,
            require_at_jwt: false,
            subjectless_client: false,
            audiences: Vec::new(),
            scope_claims: Vec::new(),
            revoked: None,
        }
    }

    /// Checks the settings, as [`TrustedIssuer::new`](crate::TrustedIssuer::new) does.
    ///
    /// # Errors
    /// Returns the first problem.
    pub fn check(&self) -> Result<(), VerifierSettingsError> {
        let issuer = || self.issuer.clone();
        if let Some(introspection) = self.validation.introspection() {
            introspection.check(&self.issuer, self.url_policy)?;
        }
        if self.algorithms.is_empty() {
            return Err(VerifierSettingsError::NoAlgorithm { issuer: issuer() });
        }
        if self.leeway > MAX_LEEWAY {
            return Err(VerifierSettingsError::LeewayTooLong { issuer: issuer() });
        }
        if self.cooldown < MIN_COOLDOWN {
            return Err(VerifierSettingsError::CooldownTooShort { issuer: issuer() });
        }
        if let KeySource::Uri(uri) = &self.keys
            && self.url_policy.check(uri).is_err()
        {
            return Err(VerifierSettingsError::JwksUri { issuer: issuer() });
        }
        if let Some(claim) = self
            .scope_claims
            .iter()
            .find(|claim| !is_scope_claim(claim))
        {
            return Err(VerifierSettingsError::ScopeClaim {
                issuer: issuer(),
                claim: claim.clone(),
            });
        }
        Ok(())
    }
}

/// Returns whether a claim's name or JSON pointer can be read for scopes. `scope` and `scp` are
/// always read.
fn is_scope_claim(path: &str) -> bool {
    let name = path.strip_prefix('/').unwrap_or(path);
    is_claim_path(path) && !matches!(name, "" | "scope" | "scp")
}

/// How an issuer's tokens are verified.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Validation {
    /// By signature.
    #[default]
    Jwt,
    /// By introspection (RFC 7662), even for JWTs. Keys and algorithms are not used. A resource has
    /// at most one such issuer, which also introspects opaque tokens.
    Introspection(IntrospectionSettings),
    /// By signature, then by introspection, so that revocations take effect.
    JwtAndIntrospection(IntrospectionSettings),
}

impl Validation {
    /// Returns the introspection settings, if tokens are introspected.
    pub fn introspection(&self) -> Option<&IntrospectionSettings> {
        match self {
            Self::Jwt => None,
            Self::Introspection(settings) | Self::JwtAndIntrospection(settings) => Some(settings),
        }
    }

    /// Returns whether signatures are verified.
    pub fn verifies_signature(&self) -> bool {
        !matches!(self, Self::Introspection(_))
    }
}

/// Where an issuer's keys come from.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum KeySource {
    /// The `jwks_uri` of the issuer's metadata (RFC 8414).
    #[default]
    Discovered,
    /// This URL. The issuer's metadata is not fetched.
    Uri(Url),
    /// These keys. Nothing is fetched.
    Fixed(JwkSet),
}
