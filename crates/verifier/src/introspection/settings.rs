use std::time::Duration;

use portcullis_discovery::UrlPolicy;
use portcullis_metadata::{Issuer, Secret};
use url::Url;

use crate::VerifierSettingsError;

/// The most calls that can be let run at once.
const MOST_IN_FLIGHT: usize = 1024;
/// The longest time for which an answer can be remembered.
const LONGEST_REMEMBERED: Duration = Duration::from_secs(30);

/// How an issuer is asked about its tokens (RFC 7662): as which client, where, and how much.
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
/// // A token never goes over plain http to another machine.
/// introspection.endpoint = Some("http://auth.example.com/introspect".parse()?);
/// issuer.validation = Validation::JwtAndIntrospection(introspection);
/// assert_eq!(issuer.check().unwrap_err().code(), "settings.introspection_endpoint");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IntrospectionSettings {
    /// The protected resource's own client at the issuer. It is sent with every call.
    pub client_id: String,
    /// That client's secret. None by default.
    pub client_secret: Option<Secret>,
    /// Where to ask, without asking for the issuer's metadata: `https`, or `http` to a loopback host. By default the
    /// `introspection_endpoint` of the metadata (RFC 8414).
    pub endpoint: Option<Url>,
    /// How the client authenticates. By default as the metadata's `introspection_endpoint_auth_methods_supported` says:
    /// [`Basic`](IntrospectionAuthentication::Basic) where it lists `client_secret_basic` and not `client_secret_post`,
    /// else [`Post`](IntrospectionAuthentication::Post). With an [`endpoint`](Self::endpoint) of its own, no
    /// metadata is asked for, and it is `Post`.
    pub authentication: Option<IntrospectionAuthentication>,
    /// How many calls run at once; tokens beyond them are not judged for the moment. 64 by default, 1 to 1024.
    pub max_in_flight: usize,
    /// How long a token counts after the issuer called it active, and how late a revocation works at most. 30 s by
    /// default and at most; with 0 the issuer is asked every time.
    pub cache_lifetime: Duration,
}

/// How the protected resource's client proves itself at the introspection endpoint (RFC 6749 section 2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IntrospectionAuthentication {
    /// `client_secret_post`: the secret stands in the form.
    Post,
    /// `client_secret_basic`: the secret stands in the `Authorization` header, both parts form-encoded. The client's
    /// identifier stays in the form as well.
    Basic,
}

impl IntrospectionSettings {
    /// The defaults, for this client.
    pub fn new(client_id: impl Into<String>) -> Self {
        Self {
            client_id: client_id.into(),
            client_secret: None,
            endpoint: None,
            authentication: None,
            max_in_flight: 64,
            cache_lifetime: LONGEST_REMEMBERED,
        }
    }

    pub(crate) fn check(&self, issuer: &Issuer, policy: UrlPolicy) -> Result<(), VerifierSettingsError> {
        let issuer = || issuer.clone();
        if self.client_id.is_empty() {
            return Err(VerifierSettingsError::IntrospectionClient { issuer: issuer() });
        }
        if self.authentication == Some(IntrospectionAuthentication::Basic) && self.client_secret.is_none() {
            return Err(VerifierSettingsError::IntrospectionSecret { issuer: issuer() });
        }
        if self.endpoint.as_ref().is_some_and(|endpoint| policy.check(endpoint).is_err()) {
            return Err(VerifierSettingsError::IntrospectionEndpoint { issuer: issuer() });
        }
        if !(1..=MOST_IN_FLIGHT).contains(&self.max_in_flight) {
            return Err(VerifierSettingsError::IntrospectionInFlight { issuer: issuer() });
        }
        if self.cache_lifetime > LONGEST_REMEMBERED {
            return Err(VerifierSettingsError::IntrospectionCacheLifetimeTooLong { issuer: issuer() });
        }
        Ok(())
    }
}
