//! [`ClientError`].

use http::StatusCode;
use portcullis_discovery::{DiscoveryError, FetchError};
use portcullis_metadata::{DocumentError, Issuer, OAuthError, RegistrationError, ResourceUri, Scopes};

use crate::{
    AccessTokenSourceError, AssertionError, InteractionError, RedirectError, RefusedRedirect, StartUrl, StartUrlError,
    StoreError, UnsupportedServer,
};

/// Why there is no token. No variant holds a token, a code or a secret.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL is none that a token may be sent to; nothing was sent.
    #[error(transparent)]
    StartUrl(#[from] StartUrlError),
    /// The resource could not be reached.
    #[error("cannot reach the resource")]
    Resource(#[source] FetchError),
    /// The resource redirected to a URL that is not followed.
    #[error(transparent)]
    Redirected(#[from] RefusedRedirect),
    /// The resource did not ask for authorization.
    #[error("the resource answered {status} without a token, and asked for none")]
    NotChallenged {
        /// What it answered.
        status: StatusCode,
    },
    /// The chain to the authorization server broke.
    #[error("cannot find out who issues tokens for the resource")]
    Discovery(#[source] DiscoveryError),
    /// The resource's metadata names a resource above the start URL, and neither the person nor the caller has accepted
    /// that ([`AuthorizerSettings::accept_broader_resource`](crate::AuthorizerSettings::accept_broader_resource)). No
    /// request for authorization was made.
    #[error(
        "{start} is part of the resource {resource}: a token for it also opens the other paths there, and the server at \
         {start} could use it for them. If that is acceptable, run `portcullis login` for this URL in a terminal, or give \
         --accept-broader-resource"
    )]
    BroaderResource {
        /// The start URL.
        start: StartUrl,
        /// The resource.
        resource: ResourceUri,
    },
    /// The token would be requested without `resource`, and neither the person nor the caller has accepted that
    /// ([`ProviderSettings::accept_unbound_token`](crate::ProviderSettings::accept_unbound_token)). No request for
    /// authorization was made.
    #[error(
        "the authorization server {issuer} is not told that the token is for {start}, so that only the scopes limit it: \
         {scopes}. If these are scopes of that server, run `portcullis login` for this URL in a terminal, or give \
         --accept-unbound-token"
    )]
    UnboundToken {
        /// The start URL.
        start: StartUrl,
        /// The authorization server.
        issuer: Issuer,
        /// The scopes to request.
        scopes: Scopes,
    },
    /// The token would be, or is, for another API than the resource, and is not bound to the resource. A token that was
    /// obtained is not used.
    #[error(
        "the server asks for a token of {issuer} that is valid for {api}; it could use the token there in your name, so \
         that it gets none"
    )]
    OtherApi {
        /// The authorization server.
        issuer: Issuer,
        /// The other API, for people.
        api: &'static str,
    },
    /// The resource lists no authorization server.
    #[error("the resource lists no authorization server")]
    NoAuthorizationServer,
    /// The authorization server that the caller wants, or has credentials for, is none of the resource's.
    #[error("the resource does not list the authorization server {issuer}")]
    AuthorizationServerNotListed {
        /// The one that is wanted.
        issuer: Issuer,
    },
    /// The authorization server is not fit for the flow.
    #[error(transparent)]
    UnsupportedServer(#[from] UnsupportedServer),
    /// There are no credentials for the authorization server, it registers no clients by itself, and nobody could be
    /// asked ([`Interaction::client_information`](crate::Interaction::client_information)).
    #[error("the authorization server {issuer} wants a client that was registered there; give its client identifier")]
    NoRegistration {
        /// The authorization server.
        issuer: Issuer,
    },
    /// The authorization server refused to register the client.
    #[error(transparent)]
    Registration(RegistrationError),
    /// The authorization server registered the client without the redirect URI that was asked for. The registration is
    /// not used.
    #[error("the authorization server {issuer} did not register the redirect URI {redirect_uri}, but others or none")]
    RedirectNotRegistered {
        /// The authorization server.
        issuer: Issuer,
        /// The redirect URI that was asked for.
        redirect_uri: String,
    },
    /// The client authenticates in a way that is not supported.
    #[error("the authorization server wants a client authentication that is not supported")]
    UnsupportedAuthenticationMethod,
    /// Nobody answered the authorization request.
    #[error(transparent)]
    Interaction(#[from] InteractionError),
    /// The answer to the authorization request has no code to use.
    #[error(transparent)]
    Redirect(#[from] RedirectError),
    /// The token endpoint refused.
    #[error("the token endpoint refused: {0}")]
    TokenRequest(OAuthError),
    /// The token is not a bearer token, so that nobody here knows how to use it.
    #[error("the token is of a type that is not supported")]
    UnsupportedTokenType,
    /// An endpoint of the authorization server could not be reached.
    #[error("cannot reach the {endpoint} endpoint")]
    Endpoint {
        /// Which one.
        endpoint: &'static str,
        /// Why.
        #[source]
        error: FetchError,
    },
    /// An endpoint of the authorization server answered with a status that says nothing.
    #[error("the {endpoint} endpoint answered {status}")]
    Status {
        /// Which one.
        endpoint: &'static str,
        /// The status.
        status: StatusCode,
    },
    /// An endpoint of the authorization server returned an invalid document.
    #[error("the answer of the {endpoint} endpoint is unusable")]
    InvalidResponse {
        /// The endpoint.
        endpoint: &'static str,
        /// The reason why the document is invalid.
        #[source]
        error: DocumentError,
    },
    /// The resource takes only tokens that are bound to a key, and the authorization server binds none with ES256.
    #[error("the resource wants tokens that are bound by DPoP, which the authorization server {issuer} does not offer")]
    DpopNotSupported {
        /// The authorization server.
        issuer: Issuer,
    },
    /// What stands for the caller in a machine's flow could not be had.
    #[error(transparent)]
    Assertion(#[from] AssertionError),
    /// The credential store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The runtime that the refresh ran on has ended.
    #[error("the refresh was interrupted")]
    TaskEnded,
    /// The authorization server has no device authorization endpoint (RFC 8628).
    #[error("the authorization server {issuer} does not offer the device flow; sign in without --device")]
    DeviceFlowNotSupported {
        /// The authorization server.
        issuer: Issuer,
    },
    /// The answer of the device authorization endpoint has no usable code or page.
    #[error("the answer of the device authorization endpoint is unusable")]
    InvalidDeviceAuthorization,
    /// The person did not consent before the device code expired.
    #[error("the code expired before the sign-in was completed; start again")]
    DeviceCodeExpired,
    /// The caller's source of access tokens gave none.
    #[error(transparent)]
    AccessTokenSource(#[from] AccessTokenSourceError),
    /// A proof or an assertion could not be signed.
    #[error("a proof for the authorization server could not be signed")]
    Signing,
    /// The operating system gave no random bytes.
    #[error("the system's random number generator does not answer")]
    NoRandomness,
}

impl ClientError {
    /// The stable code, for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::StartUrl(error) => error.code(),
            Self::Resource(error) | Self::Endpoint { error, .. } => error.code(),
            Self::Redirected(_) => "client.redirected",
            Self::NotChallenged { .. } => "client.not_challenged",
            Self::Discovery(error) => error.code(),
            Self::BroaderResource { .. } => "client.broader_resource",
            Self::UnboundToken { .. } => "client.unbound_token",
            Self::OtherApi { .. } => "client.other_api",
            Self::NoAuthorizationServer => "client.no_server",
            Self::AuthorizationServerNotListed { .. } => "client.server_not_listed",
            Self::UnsupportedServer(error) => error.code(),
            Self::NoRegistration { .. } => "client.no_registration",
            Self::Registration(_) => "client.registration",
            Self::RedirectNotRegistered { .. } => "client.redirect_not_registered",
            Self::UnsupportedAuthenticationMethod => "client.authentication_method",
            Self::Interaction(error) => error.code(),
            Self::Redirect(error) => error.code(),
            Self::TokenRequest(_) => "client.token",
            Self::UnsupportedTokenType => "client.token_type",
            Self::Status { .. } => "client.status",
            Self::InvalidResponse { .. } => "client.document",
            Self::DpopNotSupported { .. } => "client.no_binding",
            Self::Assertion(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::TaskEnded => "client.interrupted",
            Self::DeviceFlowNotSupported { .. } => "client.no_device_flow",
            Self::InvalidDeviceAuthorization => "client.device_authorization",
            Self::DeviceCodeExpired => "client.device_code_expired",
            Self::AccessTokenSource(_) => "client.access_token_source",
            Self::Signing => "client.signature",
            Self::NoRandomness => "client.no_randomness",
        }
    }
}
