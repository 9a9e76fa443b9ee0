//! [`Interaction`]: the user's part of the flow.

use portcullis_discovery::{BoxFuture, FetchError};
use portcullis_metadata::{Issuer, ResourceUri};
use url::Url;

use crate::{
    AuthorizationRequest, ClientInformation, KnownIssuer, RedirectParameters, StartUrl,
    UnboundSignIn,
};

mod auto_consent;
mod device_authorization;
mod ended_sign_in;
mod loopback_redirect;
mod new_registration;
mod page;
mod peer_user;
mod redirect_address;
mod redirect_server;

pub use auto_consent::AutoConsent;
pub use device_authorization::DeviceAuthorization;
pub use ended_sign_in::EndedSignIn;
pub use loopback_redirect::LoopbackRedirect;
pub use new_registration::NewRegistration;
pub use redirect_address::{RedirectAddress, RedirectAddressError};

/// Presents the authorization request to the user and returns the response. It can also act without
/// a user.
pub trait Interaction: Send + Sync + 'static {
    /// The redirect URI of authorization requests. It must not change during this value's life.
    fn redirect_uri(&self) -> &Url;

    /// Opens the request's [`url`](AuthorizationRequest::url) and returns the parameters of the
    /// redirect.
    ///
    /// The caller validates the parameters. An implementation that shows them to the user must
    /// validate them first, with [`AuthorizationRequest::validate_response`].
    ///
    /// # Errors
    /// When no response arrives.
    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<RedirectParameters, InteractionError>>;

    /// Asks the user for a client that was registered manually at `issuer`, which does not support
    /// dynamic registration. The result is stored for that authorization server. By default it is
    /// None.
    ///
    /// # Errors
    /// When the user cannot be asked. A user without a client is `Ok(None)`.
    fn client_information<'a>(
        &'a self,
        issuer: &'a Issuer,
    ) -> BoxFuture<'a, Result<Option<ClientInformation>, InteractionError>> {
        let _ = issuer;
        Box::pin(async { Ok(None) })
    }

    /// Shows the page and the code of the device flow (RFC 8628 section 3.3). By default nothing is
    /// shown. The user code is printable ASCII, and the URLs are safe to open.
    fn show_device_code(&self, authorization: &DeviceAuthorization) {
        let _ = authorization;
    }

    /// Asks whether to sign in for `resource`, whose path is only a prefix of the path of `start`.
    /// Such a token is also valid for the other paths below the resource, which may belong to
    /// others, and the server at `start` receives it. It is not asked about a resource of the whole
    /// host's metadata ([`BroaderResource`](crate::BroaderResource)). The question comes before the
    /// sign-in. By default the result is false.
    ///
    /// # Errors
    /// When the user cannot be asked.
    fn accept_broader_resource<'a>(
        &'a self,
        start: &'a StartUrl,
        resource: &'a ResourceUri,
    ) -> BoxFuture<'a, Result<bool, InteractionError>> {
        let _ = (start, resource);
        Box::pin(async { Ok(false) })
    }

    /// Asks whether to sign in without `resource`: only the scopes limit where the token is valid.
    /// The question comes before the sign-in. By default the result is false.
    ///
    /// # Errors
    /// When the user cannot be asked.
    fn accept_unbound_token<'a>(
        &'a self,
        sign_in: &'a UnboundSignIn,
    ) -> BoxFuture<'a, Result<bool, InteractionError>> {
        let _ = sign_in;
        Box::pin(async { Ok(false) })
    }

    /// Asks whether to register the client again for a step-up. A new client starts a new session
    /// with the server. By default the result is false.
    ///
    /// # Errors
    /// When the user cannot be asked.
    fn accept_new_registration<'a>(
        &'a self,
        registration: &'a NewRegistration,
    ) -> BoxFuture<'a, Result<bool, InteractionError>> {
        let _ = registration;
        Box::pin(async { Ok(false) })
    }

    /// Reports that an earlier sign-in has ended, so that the next one is no surprise. By default it
    /// is only logged.
    fn sign_in_ended(&self, ended: &EndedSignIn) {
        tracing::warn!("{ended}");
    }

    /// Reports that another process, or another task of this one, signs in to `start`, and that this
    /// sign-in waits for it. By default it is only logged.
    fn waiting_for_other_sign_in(&self, start: &StartUrl) {
        tracing::info!("waiting for another sign-in to {start}");
    }

    /// Reports the known differences of the provider that apply to this sign-in. By default they
    /// are only logged.
    fn provider_recognized(&self, provider: &'static KnownIssuer) {
        tracing::info!(provider = provider.name, "a known provider: {provider}");
    }
}

/// Why there is no authorization response.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InteractionError {
    /// No local port could be bound for the redirect.
    #[error("cannot listen on this machine for the redirect: {0}")]
    Listen(std::io::ErrorKind),
    /// No browser can be opened, and no user can see the authorization URL.
    #[error(
        "no browser can be opened on this machine, and there is no terminal in which a user could read the authorization URL"
    )]
    NoBrowser,
    /// The one-time address of the sign-in was opened twice: another user may have opened it, and
    /// could complete the sign-in with another account.
    #[error(
        "the address of this sign-in was opened twice, possibly by another user of this machine; the sign-in was stopped. \
         Sign in again"
    )]
    OpenedTwice,
    /// No random address could be generated for the sign-in.
    #[error("the system's random number generator failed")]
    NoRandomness,
    /// No response arrived within the time limit.
    #[error("the sign-in was not completed in time")]
    TimedOut,
    /// The authorization endpoint could not be fetched.
    #[error("cannot reach the authorization endpoint {url}")]
    Fetch {
        /// Its URL, without the query.
        url: String,
        /// The reason.
        #[source]
        error: FetchError,
    },
    /// The authorization endpoint did not redirect back at once: it requires a user.
    #[error("the authorization endpoint requires a user (status {status})")]
    UserRequired {
        /// Its status.
        status: http::StatusCode,
    },
    /// The authorization endpoint redirected to a URL other than the redirect URI.
    #[error("the authorization endpoint redirected to another URL than the redirect URI")]
    RedirectedElsewhere,
    /// The redirect's query is malformed.
    #[error("the authorization response is malformed")]
    Malformed,
}

impl InteractionError {
    /// The stable code, for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Listen(_) => "interaction.listen",
            Self::NoBrowser => "interaction.no_browser",
            Self::OpenedTwice => "interaction.opened_twice",
            Self::NoRandomness => "interaction.no_randomness",
            Self::TimedOut => "interaction.timed_out",
            Self::Fetch { error, .. } => error.code(),
            Self::UserRequired { .. } => "interaction.wants_a_person",
            Self::RedirectedElsewhere => "interaction.redirected_elsewhere",
            Self::Malformed => "interaction.malformed",
        }
    }
}
