//! [`NonInteractiveGrant`]: how to obtain a token without a user.

use std::sync::Arc;

use portcullis_discovery::BoxFuture;
use portcullis_metadata::{Issuer, Secret};
use url::Url;

use crate::ClientInformation;

/// How a client obtains a token without a user's interaction.
#[derive(Clone)]
#[non_exhaustive]
pub enum NonInteractiveGrant {
    /// The client's own credentials (`client_credentials`, RFC 6749 section 4.4).
    ClientCredentials,
    /// Enterprise-managed authorization: the user's ID token from an enterprise's identity provider
    /// is exchanged for an assertion to the authorization server (RFC 8693), and the assertion for
    /// the access token (RFC 7523).
    EnterpriseManaged(EnterpriseIdentity),
    /// Workload identity: an assertion of the platform is exchanged for the access token (RFC
    /// 7523). The rejection of an assertion is final. The assertion is sent to the authorization
    /// server that the resource lists: set
    /// [`AuthorizerSettings::authorization_server`](crate::AuthorizerSettings::authorization_server)
    /// unless each assertion has a single audience.
    JwtBearer(Arc<dyn AssertionSource>),
}

/// A user's identity at an enterprise's identity provider.
#[derive(Clone)]
pub struct EnterpriseIdentity {
    /// The token endpoint of the identity provider. The caller is trusted to choose it; it can be
    /// at a private address.
    pub token_endpoint: Url,
    /// The identity provider's issuer identifier: the audience when the client authenticates there
    /// with a key.
    pub issuer: Issuer,
    /// This client at the identity provider.
    pub client: ClientInformation,
    /// The user's ID token.
    pub id_token: Arc<dyn AssertionSource>,
}

/// Provides tokens that identify a user or a workload. It is called for each grant, because the
/// tokens expire.
pub trait AssertionSource: Send + Sync + 'static {
    /// Returns a token to present to `audience`.
    ///
    /// # Errors
    /// When there is no token.
    fn assertion<'a>(
        &'a self,
        audience: &'a Issuer,
    ) -> BoxFuture<'a, Result<Secret, AssertionError>>;
}

/// A fixed token for every audience.
impl AssertionSource for Secret {
    fn assertion<'a>(&'a self, _: &'a Issuer) -> BoxFuture<'a, Result<Secret, AssertionError>> {
        Box::pin(async { Ok(self.clone()) })
    }
}

/// Why a source provides no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssertionError {
    /// The source has no token now.
    #[error("no identity token is available")]
    Unavailable,
    /// The identity provider returned another type of token than the one requested.
    #[error("the identity provider returned another type of token than the one requested")]
    UnexpectedTokenType,
}

impl AssertionError {
    /// The stable code, for logs and tests.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unavailable => "assertion.unavailable",
            Self::UnexpectedTokenType => "assertion.other_kind",
        }
    }
}
