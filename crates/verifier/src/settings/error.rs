//! [`VerifierSettingsError`]: why the settings of a verifier or an issuer cannot be used.

use portcullis_metadata::{Issuer, ResourceUri};

/// Why settings cannot be used. The message names the setting and the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifierSettingsError {
    /// Introspection has no `client_id`.
    #[error("issuer {issuer}: introspection needs a client_id")]
    IntrospectionClient {
        /// The issuer.
        issuer: Issuer,
    },
    /// `client_secret_basic` has no secret.
    #[error("issuer {issuer}: introspection with client_secret_basic needs a client_secret")]
    IntrospectionSecret {
        /// The issuer.
        issuer: Issuer,
    },
    /// The configured introspection endpoint is neither `https` nor `http` with a loopback host, or
    /// violates the URL policy.
    #[error(
        "issuer {issuer}: the introspection endpoint must be https, or http with a loopback host"
    )]
    IntrospectionEndpoint {
        /// The issuer.
        issuer: Issuer,
    },
    /// The maximum number of concurrent calls is outside 1 to 1024.
    #[error(
        "issuer {issuer}: the maximum number of concurrent introspection calls must be 1 to 1024"
    )]
    IntrospectionInFlight {
        /// The issuer.
        issuer: Issuer,
    },
    /// The cache lifetime of introspection responses exceeds 30 s.
    #[error("issuer {issuer}: introspection responses can be cached for at most 30 s")]
    IntrospectionCacheLifetimeTooLong {
        /// The issuer.
        issuer: Issuer,
    },
    /// Two issuers introspect all their tokens, so opaque tokens cannot be assigned to one of them.
    #[error(
        "resource {resource}: {first} and {second} both introspect all tokens, but opaque tokens can go to one issuer only; validate one of them by signature"
    )]
    AmbiguousIntrospection {
        /// The resource.
        resource: ResourceUri,
        /// The first issuer.
        first: Issuer,
        /// The second issuer.
        second: Issuer,
    },
    /// No signature algorithm is allowed.
    #[error("issuer {issuer}: no signature algorithm is allowed; name at least one, such as RS256")]
    NoAlgorithm {
        /// The issuer.
        issuer: Issuer,
    },
    /// The leeway is longer than 60 s.
    #[error("issuer {issuer}: the leeway must be at most 60 s")]
    LeewayTooLong {
        /// The issuer.
        issuer: Issuer,
    },
    /// The cooldown is shorter than 1 s.
    #[error("issuer {issuer}: the cooldown must be at least 1 s")]
    CooldownTooShort {
        /// The issuer.
        issuer: Issuer,
    },
    /// The configured key URL is neither `https` nor `http` with a loopback host, or violates the
    /// URL policy.
    #[error("issuer {issuer}: the URL of its keys must be https, or http with a loopback host")]
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
    /// None of the fixed keys can be used.
    #[error("issuer {issuer}: none of the given keys matches the allowed algorithms")]
    NoUsableKey {
        /// The issuer.
        issuer: Issuer,
    },
    /// There is no issuer.
    #[error("resource {resource}: there is no issuer; name at least one")]
    NoIssuer {
        /// The resource.
        resource: ResourceUri,
    },
    /// An issuer is given twice.
    #[error("resource {resource}: issuer {issuer} is given twice")]
    DuplicateIssuer {
        /// The resource.
        resource: ResourceUri,
        /// The issuer.
        issuer: Issuer,
    },
    /// The random number generator fails.
    #[error("the random number generator fails")]
    Random,
}

impl VerifierSettingsError {
    /// Returns a stable code for logs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::IntrospectionClient { .. } => "settings.introspection_client",
            Self::IntrospectionSecret { .. } => "settings.introspection_secret",
            Self::IntrospectionEndpoint { .. } => "settings.introspection_endpoint",
            Self::IntrospectionInFlight { .. } => "settings.introspection_in_flight",
            Self::IntrospectionCacheLifetimeTooLong { .. } => {
                "settings.introspection_remembered_too_long"
            }
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
