//! [`NonInteractiveGrant`]: how to obtain a token without a user.

use std::sync::Arc;

use portcullis_discovery::BoxFuture;
use portcullis_metadata::{Issuer, Secret};
use url::Url;

use crate::ClientInformation;

/// How a machine gets a token, with no person to ask.
#[derive(Clone)]
#[non_exhaustive]
pub enum NonInteractiveGrant {
    /// The client's own credentials are enough (`client_credentials`, RFC 6749 section 4.4).
    ClientCredentials,
    /// An enterprise's identity provider vouches for a person who has signed in there (enterprise-managed
    /// authorization): its token is exchanged for an assertion to the authorization server (RFC 8693), and that for the
    /// access token (RFC 7523).
    EnterpriseManaged(EnterpriseIdentity),
    /// The platform that a workload runs on vouches for it: its assertion is exchanged for the access token
    /// (RFC 7523). One request is made, and its refusal is final. The assertion goes to the authorization server that
    /// the resource names: set [`AuthorizerSettings::authorization_server`](crate::AuthorizerSettings) unless each
    /// assertion is made for one audience.
    JwtBearer(Arc<dyn AssertionSource>),
}

/// A person's identity at an enterprise's identity provider.
#[derive(Clone)]
pub struct EnterpriseIdentity {
    /// The token endpoint of the identity provider. It is the caller's to trust, and may be at a private address.
    pub token_endpoint: Url,
    /// The identity provider's issuer identifier: the audience when the client authenticates there with a key.
    pub issuer: Issuer,
    /// This client at the identity provider.
    pub client: ClientInformation,
    /// The person's ID token.
    pub id_token: Arc<dyn AssertionSource>,
}

/// Where a token comes from that stands for a person or a workload: asked whenever one is needed, since they end.
pub trait AssertionSource: Send + Sync + 'static {
    /// A token to present to `audience`.
    ///
    /// # Errors
    /// When there is none.
    fn assertion<'a>(&'a self, audience: &'a Issuer) -> BoxFuture<'a, Result<Secret, AssertionError>>;
}

/// The same token always, whatever the audience.
impl AssertionSource for Secret {
    fn assertion<'a>(&'a self, _: &'a Issuer) -> BoxFuture<'a, Result<Secret, AssertionError>> {
        Box::pin(async { Ok(self.clone()) })
    }
}

/// Why there is nothing to present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssertionError {
    /// The source has none now.
    #[error("there is no identity token to present")]
    Unavailable,
    /// The identity provider answered with another kind of token than the one asked for.
    #[error("the identity provider gave another kind of token than the one asked for")]
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
