//! [`IntrospectionSettings`]: how an issuer's tokens are introspected.

use std::time::Duration;

use portcullis_discovery::UrlPolicy;
use portcullis_metadata::{AuthorizationServerMetadata, Issuer, Secret};
use url::Url;

use super::error::VerifierSettingsError;

/// The upper limit of `max_in_flight`.
const MAX_IN_FLIGHT: usize = 1024;
/// The upper limit of `cache_lifetime`.
const MAX_CACHE_LIFETIME: Duration = Duration::from_secs(30);

/// How an issuer's tokens are introspected (RFC 7662).
///
/// ```
/// use portcullis_metadata::{Issuer, Secret};
/// use portcullis_verifier::{IntrospectionSettings, IssuerSettings, Validation};
///
/// let mut introspection = IntrospectionSettings::new("portcullis");
/// introspection.client_secret = Some(Secret::new("from a file"));
/// let mut issuer = IssuerSettings::new(Issuer::parse("https://auth.example.com")?);
/// issuer.validation = Validation::JwtAndIntrospection(introspection.clone());
/// assert!(issuer.check().is_ok());
///
/// // Tokens are never sent to another machine over plain http.
/// introspection.endpoint = Some("http://auth.example.com/introspect".parse()?);
/// issuer.validation = Validation::JwtAndIntrospection(introspection);
/// assert_eq!(issuer.check().unwrap_err().code(), "settings.introspection_endpoint");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IntrospectionSettings {
    /// The client identifier of this server at the issuer. It is sent with every call.
    pub client_id: String,
    /// The client secret. Default: none.
    pub client_secret: Option<Secret>,
    /// The introspection endpoint: `https`, or `http` with a loopback host. Default: the
    /// `introspection_endpoint` of the issuer's metadata (RFC 8414).
    pub endpoint: Option<Url>,
    /// How the client authenticates. Default: [`Basic`](IntrospectionAuthentication::Basic) if the
    /// metadata's `introspection_endpoint_auth_methods_supported` has `client_secret_basic` and not
    /// `client_secret_post`, otherwise [`Post`](IntrospectionAuthentication::Post). With a
    /// configured [`endpoint`](Self::endpoint), the default is `Post`.
    pub authentication: Option<IntrospectionAuthentication>,
    /// The maximum number of concurrent calls, 1 to 1024. Further tokens are not verified. Default:
    /// 64.
    pub max_in_flight: usize,
    /// How long an active token is cached, which is also the maximum delay of a revocation. Default
    /// and maximum: 30 s. With 0, every request introspects its token.
    pub cache_lifetime: Duration,
}

/// How the client authenticates at the introspection endpoint (RFC 6749 section 2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IntrospectionAuthentication {
    /// `client_secret_post`: the secret is in the form.
    Post,
    /// `client_secret_basic`: identifier and secret are form-encoded in the `Authorization` header.
    /// The form contains the identifier, too.
    Basic,
}

impl IntrospectionSettings {
    /// Returns the default settings for a client.
    pub fn new(client_id: impl Into<String>) -> Self {
        Self {
            client_id: client_id.into(),
            client_secret: None,
            endpoint: None,
            authentication: None,
            max_in_flight: 64,
            cache_lifetime: MAX_CACHE_LIFETIME,
        }
    }

    /// Returns how the client authenticates: as configured in
    /// [`authentication`](Self::authentication), else by the default for this metadata of the
    /// issuer.
    pub fn method(
        &self,
        metadata: Option<&AuthorizationServerMetadata>,
    ) -> IntrospectionAuthentication {
        if let Some(configured) = self.authentication {
            return configured;
        }
        let supported = metadata
            .filter(|_| self.endpoint.is_none())
            .and_then(|metadata| {
                metadata
                    .introspection_endpoint_auth_methods_supported
                    .as_deref()
            })
            .unwrap_or_default();
        let supports = |method: &str| supported.iter().any(|supported| supported == method);
        if supports("client_secret_basic") && !supports("client_secret_post") {
            IntrospectionAuthentication::Basic
        } else {
            IntrospectionAuthentication::Post
        }
    }

    /// Checks the settings for an issuer with this URL policy.
    pub(super) fn check(
        &self,
        issuer: &Issuer,
        policy: UrlPolicy,
    ) -> Result<(), VerifierSettingsError> {
        let issuer = || issuer.clone();
        if self.client_id.is_empty() {
            return Err(VerifierSettingsError::IntrospectionClient { issuer: issuer() });
        }
        if self.authentication == Some(IntrospectionAuthentication::Basic)
            && self.client_secret.is_none()
        {
            return Err(VerifierSettingsError::IntrospectionSecret { issuer: issuer() });
        }
        if self
            .endpoint
            .as_ref()
            .is_some_and(|endpoint| policy.check(endpoint).is_err())
        {
            return Err(VerifierSettingsError::IntrospectionEndpoint { issuer: issuer() });
        }
        if !(1..=MAX_IN_FLIGHT).contains(&self.max_in_flight) {
            return Err(VerifierSettingsError::IntrospectionInFlight { issuer: issuer() });
        }
        if self.cache_lifetime > MAX_CACHE_LIFETIME {
            return Err(VerifierSettingsError::IntrospectionCacheLifetimeTooLong {
                issuer: issuer(),
            });
        }
        Ok(())
    }
}
