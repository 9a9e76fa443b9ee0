//! [`IssuerSettings`]: the settings of one issuer.

mod application_audience;

use std::time::Duration;

use portcullis_discovery::UrlPolicy;
use portcullis_jose::AlgorithmSet;
use portcullis_metadata::{Issuer, JwkSet, ResourceUri};
use url::Url;

use crate::IntrospectionSettings;

pub use application_audience::{ApplicationAudience, ApplicationAudienceError};

/// The longest leeway that can be set.
pub(crate) const MAX_LEEWAY: Duration = Duration::from_secs(60);
/// The shortest cooldown that can be set: none at all would let any caller hammer the issuer.
pub(crate) const MIN_COOLDOWN: Duration = Duration::from_secs(1);

/// What is trusted of one issuer, and how its tokens are judged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IssuerSettings {
    /// The issuer. A token's `iss` has to equal its text byte for byte.
    pub issuer: Issuer,
    /// How tokens are verified. By signature, by default.
    pub validation: Validation,
    /// Which signature algorithms are allowed. RS256 alone by default.
    pub algorithms: AlgorithmSet,
    /// Where the keys come from. Discovered by default.
    pub keys: KeySource,
    /// Which addresses metadata and keys may be fetched from. [`UrlPolicy::Operator`] by default.
    pub url_policy: UrlPolicy,
    /// How long tokens with unknown keys cause no further fetch, after one did. 30 s by default, at least 1 s.
    pub cooldown: Duration,
    /// How long keys go on serving after their age is up while the issuer cannot be asked. 24 h by default.
    pub max_stale: Duration,
    /// What the clocks may differ by. 10 s by default, 60 s at most.
    pub leeway: Duration,
    /// The longest lifetime (`exp` less `iat`) that is accepted; a token without `iat` is refused then.
    /// Unlimited by default.
    pub max_lifetime: Option<Duration>,
    /// Whether the header `typ` has to be `at+jwt` (RFC 9068 section 2.1). Off by default: many issuers write `JWT`.
    pub require_at_jwt: bool,
    /// Whether a client whose tokens have no `sub` may own sessions as itself. Off by default.
    pub subjectless_client: bool,
    /// Other addresses of the protected resource that are accepted in `aud`. None by default. Whoever shares an
    /// issuer between resources should leave this empty: an address here counts for all of them.
    pub audiences: Vec<ResourceUri>,
    /// The issuer's own names for the protected resource that are accepted in `aud`, for providers that do not write the
    /// resource URL there. None by default. A token that matches only by such a name must also have a `scope` or `scp`
    /// with a scope, `azp` or `appid`, because an ID token can have the same `aud`. Use them only with a single resource
    /// and with required scopes; neither is checked here.
    pub application_audiences: Vec<ApplicationAudience>,
    /// Claims whose values count as scopes, beside `scope` and `scp`: names, or JSON pointers (RFC 6901) such as
    /// `/realm_access/roles`. None by default. The value is a string or an array; entries that are not scope names
    /// (RFC 6749 section 3.3) are ignored. In introspection responses, the members of these names count as well.
    pub scope_claims: Vec<String>,
}

impl IssuerSettings {
    /// The default of [`cooldown`](Self::cooldown).
    pub const DEFAULT_COOLDOWN: Duration = Duration::from_secs(30);
    /// The default of [`max_stale`](Self::max_stale).
    pub const DEFAULT_MAX_STALE: Duration = Duration::from_secs(24 * 60 * 60);
    /// The default of [`leeway`](Self::leeway).
    pub const DEFAULT_LEEWAY: Duration = Duration::from_secs(10);

    /// The defaults, for this issuer.
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
            application_audiences: Vec::new(),
            scope_claims: Vec::new(),
        }
    }

    /// Judges the settings by themselves, as [`TrustedIssuer::new`](crate::TrustedIssuer::new) will.
    ///
    /// # Errors
    /// The first thing that cannot be used.
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
        if let Some(claim) = self.scope_claims.iter().find(|claim| !is_scope_claim(claim)) {
            return Err(VerifierSettingsError::ScopeClaim { issuer: issuer(), claim: claim.clone() });
        }
        Ok(())
    }
}

/// Returns whether a claim's name or JSON pointer can be read for scopes. `scope` and `scp` are always read.
fn is_scope_claim(path: &str) -> bool {
    let Some(pointer) = path.strip_prefix('/') else { return !matches!(path, "" | "scope" | "scp") };
    let has_valid_escapes = pointer.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    has_valid_escapes && !matches!(pointer, "" | "scope" | "scp")
}

/// How an issuer's tokens are verified.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Validation {
    /// By signature, here.
    #[default]
    Jwt,
    /// By asking the issuer about each (RFC 7662), whatever they look like. A resource has one such issuer at most: its
    /// opaque tokens go there. Keys and algorithms count for nothing.
    Introspection(IntrospectionSettings),
    /// By signature first, then by asking the issuer about each that passed, so that a revocation works at once.
    JwtAndIntrospection(IntrospectionSettings),
}

impl Validation {
    /// How the issuer is asked about its tokens, where it is.
    pub fn introspection(&self) -> Option<&IntrospectionSettings> {
        match self {
            Self::Jwt => None,
            Self::Introspection(settings) | Self::JwtAndIntrospection(settings) => Some(settings),
        }
    }

    /// Whether tokens are verified by signature, alone or first.
    pub fn verifies_signature(&self) -> bool {
        !matches!(self, Self::Introspection(_))
    }
}

/// Where an issuer's keys come from.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum KeySource {
    /// From the `jwks_uri` of the issuer's metadata (RFC 8414).
    #[default]
    Discovered,
    /// From this address, without asking for the issuer's metadata.
    Uri(Url),
    /// These keys for good: nothing is ever fetched.
    Fixed(JwkSet),
}

/// Why settings cannot be used. The text names the setting and the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifierSettingsError {
    /// Introspection is asked for without the client that asks.
    #[error("issuer {issuer}: introspection needs a client_id")]
    IntrospectionClient {
        /// The issuer.
        issuer: Issuer,
    },
    /// `client_secret_basic` is asked for without a secret.
    #[error("issuer {issuer}: introspection with client_secret_basic needs a client_secret")]
    IntrospectionSecret {
        /// The issuer.
        issuer: Issuer,
    },
    /// The configured introspection endpoint is neither `https` nor `http` to a loopback host, or the URL policy
    /// refuses it.
    #[error("issuer {issuer}: the introspection endpoint has to be https, or http to a loopback host")]
    IntrospectionEndpoint {
        /// The issuer.
        issuer: Issuer,
    },
    /// The bound on calls that run at once is outside 1 to 1024.
    #[error("issuer {issuer}: from 1 to 1024 introspection calls can run at once")]
    IntrospectionInFlight {
        /// The issuer.
        issuer: Issuer,
    },
    /// Answers are to be remembered for longer than 30 s.
    #[error("issuer {issuer}: an introspected token is remembered for 30 s at most")]
    IntrospectionCacheLifetimeTooLong {
        /// The issuer.
        issuer: Issuer,
    },
    /// Two issuers that are asked about every token: to which of them would an opaque token go?
    #[error(
        "resource {resource}: {first} and {second} are both asked about every token, and an opaque token can go to one issuer only; validate one of them by signature"
    )]
    AmbiguousIntrospection {
        /// The resource.
        resource: ResourceUri,
        /// One issuer.
        first: Issuer,
        /// The other one.
        second: Issuer,
    },
    /// No signature algorithm is allowed.
    #[error("issuer {issuer}: no signature algorithm is allowed; name at least one, such as RS256")]
    NoAlgorithm {
        /// The issuer.
        issuer: Issuer,
    },
    /// The leeway is longer than 60 s.
    #[error("issuer {issuer}: the leeway is at most 60 s")]
    LeewayTooLong {
        /// The issuer.
        issuer: Issuer,
    },
    /// The cooldown is shorter than 1 s.
    #[error("issuer {issuer}: the cooldown is at least 1 s")]
    CooldownTooShort {
        /// The issuer.
        issuer: Issuer,
    },
    /// The configured key address is neither `https` nor `http` to a loopback host, or the URL policy refuses it.
    #[error("issuer {issuer}: the address of its keys has to be https, or http to a loopback host")]
    JwksUri {
        /// The issuer.
        issuer: Issuer,
    },
    /// A claim that cannot be read for scopes.
    #[error(
        "issuer {issuer}: scope_claims has {claim:?}; each entry is a claim's name or a JSON pointer such as \"/realm_access/roles\", and `scope` and `scp` are always read"
    )]
    ScopeClaim {
        /// The issuer.
        issuer: Issuer,
        /// The entry.
        claim: String,
    },
    /// None of the keys that are given for good can be used.
    #[error("issuer {issuer}: none of the given keys fits the allowed algorithms")]
    NoUsableKey {
        /// The issuer.
        issuer: Issuer,
    },
    /// A verifier needs at least one issuer.
    #[error("resource {resource}: no issuer is named; name at least one")]
    NoIssuer {
        /// The resource.
        resource: ResourceUri,
    },
    /// The same issuer twice: which settings would count?
    #[error("resource {resource}: issuer {issuer} is named twice")]
    DuplicateIssuer {
        /// The resource.
        resource: ResourceUri,
        /// The issuer.
        issuer: Issuer,
    },
    /// The machine's random generator fails.
    #[error("the machine's random generator fails")]
    Random,
}

impl VerifierSettingsError {
    /// The stable code, for logs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::IntrospectionClient { .. } => "settings.introspection_client",
            Self::IntrospectionSecret { .. } => "settings.introspection_secret",
            Self::IntrospectionEndpoint { .. } => "settings.introspection_endpoint",
            Self::IntrospectionInFlight { .. } => "settings.introspection_in_flight",
            Self::IntrospectionCacheLifetimeTooLong { .. } => "settings.introspection_remembered_too_long",
            Self::AmbiguousIntrospection { .. } => "settings.ambiguous_introspection",
            Self::NoAlgorithm { .. } => "settings.no_algorithm",
            Self::LeewayTooLong { .. } => "settings.leeway_too_long",
            Self::CooldownTooShort { .. } => "settings.cooldown_too_short",
            Self::JwksUri { .. } => "settings.jwks_uri",
            Self::ScopeClaim { .. } => "settings.scope_claim",
            Self::NoUsableKey { .. } => "settings.no_usable_key",
            Self::NoIssuer { .. } => "settings.no_issuer",
            Self::DuplicateIssuer { .. } => "settings.duplicate_issuer",
            Self::Random => "settings.random",
        }
    }
}
