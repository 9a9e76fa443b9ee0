//! [`Interaction`]: the part of the flow in which the user takes part.

use portcullis_discovery::{BoxFuture, FetchError};
use portcullis_metadata::{Issuer, ResourceUri};
use url::Url;

use crate::{
    AuthorizationRequest, ClientInformation, DeviceAuthorization, KnownIssuer, RedirectParameters, StartUrl,
    UnboundSignIn,
};

mod auto_consent;
mod loopback_redirect;
mod page;
mod redirect_address;
mod redirect_server;

pub use auto_consent::AutoConsent;
pub use loopback_redirect::LoopbackRedirect;
pub use redirect_address::{RedirectAddress, RedirectAddressError};

/// How a person, or what stands in for one, gets from the authorization URL to the redirect.
pub trait Interaction: Send + Sync + 'static {
    /// Where the authorization server is to send the answer. It stays the same for this value's life.
    fn redirect_uri(&self) -> &Url;

    /// Has the request's [`url`](AuthorizationRequest::url) visited and returns what came back in the redirect.
    ///
    /// The parameters are judged by the caller. An implementation that shows them to a person must judge them first,
    /// by [`AuthorizationRequest::validate_response`].
    ///
    /// # Errors
    /// When no answer comes.
    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<RedirectParameters, InteractionError>>;

    /// Asks for a client that was registered by hand at `issuer`, which registers none by itself. The answer is kept
    /// for that authorization server. By default there is nobody to ask.
    ///
    /// # Errors
    /// When the person cannot be asked; none is what they have no answer to.
    fn client_information<'a>(
        &'a self,
        issuer: &'a Issuer,
    ) -> BoxFuture<'a, Result<Option<ClientInformation>, InteractionError>> {
        let _ = issuer;
        Box::pin(async { Ok(None) })
    }

    /// Shows the page and the code of the device flow (RFC 8628 section 3.3). By default nothing is shown. The user code is
    /// printable ASCII, and the URLs are safe to open.
    fn show_device_code(&self, authorization: &DeviceAuthorization) {
        let _ = authorization;
    }

    /// Asks whether to sign in for `resource`, whose path is only a prefix of the path of `start`. A token for it also
    /// opens the other paths below the resource, which may belong to others, and the server at `start` receives the
    /// token. It is asked before the person is sent anywhere. By default the answer is no.
    ///
    /// # Errors
    /// When the person cannot be asked.
    fn accept_broader_resource<'a>(
        &'a self,
        start: &'a StartUrl,
        resource: &'a ResourceUri,
    ) -> BoxFuture<'a, Result<bool, InteractionError>> {
        let _ = (start, resource);
        Box::pin(async { Ok(false) })
    }

    /// Asks whether to sign in without `resource`: only the scopes limit where the token is valid. It is asked before the
    /// person is sent anywhere. By default the answer is no.
    ///
    /// # Errors
    /// When the person cannot be asked.
    fn accept_unbound_token<'a>(&'a self, sign_in: &'a UnboundSignIn) -> BoxFuture<'a, Result<bool, InteractionError>> {
        let _ = sign_in;
        Box::pin(async { Ok(false) })
    }

    /// Tells which known differences of the provider apply to this sign-in. By default they are only logged.
    fn provider_recognized(&self, provider: &'static KnownIssuer) {
        tracing::info!(provider = provider.name, "a known provider: {provider}");
    }
}

/// Why no answer came from the authorization endpoint.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InteractionError {
    /// No local port could be bound for the redirect.
    #[error("cannot listen on this machine for the answer: {0}")]
    Listen(std::io::ErrorKind),
    /// Nobody answered within the limit.
    #[error("nobody answered the sign-in page in time")]
    TimedOut,
    /// The authorization endpoint could not be fetched.
    #[error("cannot fetch the authorization endpoint")]
    Fetch(#[source] FetchError),
    /// The authorization endpoint did not redirect back at once: it wants a person.
    #[error("the authorization endpoint wants a person to answer (status {status})")]
    UserRequired {
        /// The status it answered with.
        status: http::StatusCode,
    },
    /// The authorization endpoint redirected to somewhere else than the redirect URI.
    #[error("the authorization endpoint redirected to somewhere else")]
    RedirectedElsewhere,
    /// The redirect's query is malformed.
    #[error("the answer is malformed")]
    Malformed,
}

impl InteractionError {
    /// The stable code, for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Listen(_) => "interaction.listen",
            Self::TimedOut => "interaction.timed_out",
            Self::Fetch(error) => error.code(),
            Self::UserRequired { .. } => "interaction.wants_a_person",
            Self::RedirectedElsewhere => "interaction.redirected_elsewhere",
            Self::Malformed => "interaction.malformed",
        }
    }
}
