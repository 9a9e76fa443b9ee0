//! [`ClientError`]: why there is no token.

use http::StatusCode;
use portcullis_discovery::{DiscoveryError, FetchError, ResponseExcerpt};
use portcullis_metadata::{
    DocumentError, Issuer, ResourceUri, Scopes, authorization::OAuthError,
    client::RegistrationError,
};

use crate::{
    AccessTokenSourceError, AssertionError, InteractionError, NewRegistration, RedirectError,
    RefusedRedirect, Shortened, StartUrl, StartUrlError, StoreError, UnsupportedServer,
};

/// Why there is no token. No variant holds a token, a code or a secret.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// A token must not be sent to the URL. No request was sent.
    #[error(transparent)]
    StartUrl(#[from] StartUrlError),
    /// The resource could not be reached.
    #[error("cannot reach {url}")]
    Resource {
        /// The start URL, without the query.
        url: String,
        /// The reason.
        #[source]
        error: FetchError,
    },
    /// The resource redirected to a URL that is not followed.
    #[error(transparent)]
    Redirected(#[from] RefusedRedirect),
    /// The resource did not require authorization.
    #[error("the resource responded to a request without a token with {status}, not with 401{}", parenthesized(.response.as_deref()))]
    NotChallenged {
        /// The status.
        status: StatusCode,
        /// An excerpt of the response, unless it is an event stream.
        response: Option<Box<ResponseExcerpt>>,
    },
    /// Discovery of the authorization server failed.
    #[error("cannot find the authorization server of the resource")]
    Discovery(#[source] DiscoveryError),
    /// The resource in the metadata is a path prefix of the start URL, and neither the user nor the
    /// caller has accepted that
    /// ([`AuthorizerSettings::broader_resource`](crate::AuthorizerSettings::broader_resource)).
    /// No authorization request was sent.
    #[error(
        "{start} is part of the resource {resource}: a token for it is also valid for the other paths there, and the server at \
         {start} could use it for them"
    )]
    BroaderResource {
        /// The start URL.
        start: StartUrl,
        /// The resource.
        resource: ResourceUri,
    },
    /// The token would be requested without `resource`, and neither the user nor the caller has
    /// accepted that
    /// ([`ProviderSettings::accept_unbound_token`](crate::ProviderSettings::accept_unbound_token)).
    /// No authorization request was sent.
    #[error(
        "the token request to {issuer} does not name {start}, so only the scopes limit where the token is valid: {}",
        Shortened(.scopes)
    )]
    UnboundToken {
        /// The start URL.
        start: StartUrl,
        /// The authorization server.
        issuer: Issuer,
        /// The scopes to request.
        scopes: Scopes,
    },
    /// The token is for another API, and is not bound to the resource. If it was already issued, it
    /// is discarded.
    #[error(
        "the server requires a token of {issuer} that is valid for {api}; this is rejected, because the server could use \
         the token there in your name"
    )]
    OtherApi {
        /// The authorization server.
        issuer: Issuer,
        /// The display name of the other API.
        api: &'static str,
    },
    /// A step-up needs a new registration, and neither the user nor the caller has accepted one
    /// ([`Interaction::accept_new_registration`](crate::Interaction::accept_new_registration)). No
    /// authorization request was sent.
    #[error("insufficient_scope: {registration}")]
    RegistrationLacksScopes {
        /// The registration that would replace the present one.
        registration: Box<NewRegistration>,
    },
    /// The token manager has a given access token, a source of tokens, or no token, so it cannot
    /// sign in.
    #[error("this client does not obtain tokens from an authorization server")]
    NoAuthorizer,
    /// The resource lists no authorization server.
    #[error("the resource lists no authorization server")]
    NoAuthorizationServer,
    /// The resource does not list the authorization server that the caller chose or has credentials
    /// for.
    #[error("the resource does not list the authorization server {issuer}")]
    AuthorizationServerNotListed {
        /// The chosen server.
        issuer: Issuer,
    },
    /// The client of [`AuthorizerSettings::client`](crate::AuthorizerSettings::client) was used at
    /// another authorization server before. Nothing was sent to this one.
    #[error(
        "the client {} belongs to the authorization server {known}, but the resource now names {named}; nothing \
         was sent there",
        Shortened(.client_id)
    )]
    ClientOfOtherServer {
        /// The client identifier.
        client_id: String,
        /// The authorization server at which the client was used first for this start URL.
        known: Issuer,
        /// The authorization server that the resource names.
        named: Issuer,
    },
    /// A member of the metadata has too many entries. Nothing was sent to an authorization server
    /// after it was read.
    #[error("{member} in the metadata has {count} entries; at most {limit} are accepted")]
    MetadataTooLong {
        /// The member.
        member: &'static str,
        /// The number of its entries.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The authorization server does not support the flow.
    #[error(transparent)]
    UnsupportedServer(#[from] UnsupportedServer),
    /// There are no credentials for the authorization server, it does not support dynamic
    /// registration, and the user entered none
    /// ([`Interaction::client_information`](crate::Interaction::client_information)).
    #[error(
        "the authorization server {issuer} requires a client that is registered there; give its client identifier"
    )]
    NoRegistration {
        /// The authorization server.
        issuer: Issuer,
    },
    /// The authorization server rejected the registration.
    #[error(transparent)]
    Registration(RegistrationError),
    /// The authorization server registered the client without the requested redirect URI. The
    /// registration is discarded.
    #[error("the authorization server {issuer} did not register the redirect URI {redirect_uri}")]
    RedirectNotRegistered {
        /// The authorization server.
        issuer: Issuer,
        /// The requested redirect URI.
        redirect_uri: String,
    },
    /// The client authentication method is not supported.
    #[error(
        "the authorization server requires a client authentication method that is not supported"
    )]
    UnsupportedAuthenticationMethod,
    /// Three sign-ins within 10 min led to no request that the resource accepted. No further one
    /// was started, so that a server cannot open any number of browser windows.
    #[error(
        "3 sign-ins within 10 min led to no request that the server accepted, so no further one is started"
    )]
    TooManySignIns,
    /// The authorization request got no response.
    #[error(transparent)]
    Interaction(#[from] InteractionError),
    /// The authorization response has no valid code.
    #[error(transparent)]
    Redirect(#[from] RedirectError),
    /// The token endpoint returned an error.
    #[error("the token endpoint returned an error: {0}")]
    TokenRequest(OAuthError),
    /// The token is of a type that is not supported.
    #[error("the token type is not supported")]
    UnsupportedTokenType,
    /// An endpoint of the authorization server could not be reached.
    #[error("cannot reach the {endpoint} endpoint {url}")]
    Endpoint {
        /// The endpoint.
        endpoint: &'static str,
        /// Its URL, without the query.
        url: String,
        /// The reason.
        #[source]
        error: FetchError,
    },
    /// An endpoint of the authorization server returned an unexpected status without an OAuth
    /// error.
    #[error("the {endpoint} endpoint returned {status} ({response})")]
    Status {
        /// The endpoint.
        endpoint: &'static str,
        /// The status.
        status: StatusCode,
        /// An excerpt of the response, without the secrets of the request.
        response: Box<ResponseExcerpt>,
    },
    /// An endpoint of the authorization server returned an invalid document.
    #[error("the response of the {endpoint} endpoint is invalid ({response})")]
    InvalidResponse {
        /// The endpoint.
        endpoint: &'static str,
        /// The response, without the secrets of the request.
        response: Box<ResponseExcerpt>,
        /// Why the document is invalid.
        #[source]
        error: DocumentError,
    },
    /// The resource requires DPoP-bound tokens, and the authorization server does not support DPoP
    /// with ES256.
    #[error(
        "the resource requires DPoP-bound tokens, which the authorization server {issuer} does not support"
    )]
    DpopNotSupported {
        /// The authorization server.
        issuer: Issuer,
    },
    /// The assertion source failed.
    #[error(transparent)]
    Assertion(#[from] AssertionError),
    /// The token is deleted here, and the authorization server did not revoke it.
    #[error(
        "signed out on this machine, but the authorization server did not revoke the token, which is valid until it expires"
    )]
    Revocation(#[source] Box<ClientError>),
    /// The credential store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tokio runtime of the refresh task has shut down, or
    /// [`TokenManager::finish_refreshes`](crate::TokenManager::finish_refreshes) was called.
    #[error("the refresh was interrupted")]
    TaskEnded,
    /// The authorization server has no device authorization endpoint (RFC 8628).
    #[error("the authorization server {issuer} does not support the device flow")]
    DeviceFlowNotSupported {
        /// The authorization server.
        issuer: Issuer,
    },
    /// The device authorization response has no valid code or page.
    #[error("the response of the device authorization endpoint is invalid")]
    InvalidDeviceAuthorization,
    /// The user did not consent before the device code expired.
    #[error("the code expired before the sign-in was completed; start again")]
    DeviceCodeExpired,
    /// The caller's source provided no access token.
    #[error(transparent)]
    AccessTokenSource(#[from] AccessTokenSourceError),
    /// A DPoP proof or a client assertion could not be signed.
    #[error("a proof for the authorization server could not be signed")]
    Signing,
    /// The operating system's random number generator failed.
    #[error("the system's random number generator failed")]
    NoRandomness,
}

impl ClientError {
    /// The stable code, for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::StartUrl(error) => error.code(),
            Self::Resource { error, .. } | Self::Endpoint { error, .. } => error.code(),
            Self::Redirected(_) => "client.redirected",
            Self::NotChallenged { .. } => "client.not_challenged",
            Self::Discovery(error) => error.code(),
            Self::BroaderResource { .. } => "client.broader_resource",
            Self::UnboundToken { .. } => "client.unbound_token",
            Self::OtherApi { .. } => "client.other_api",
            Self::RegistrationLacksScopes { .. } => "client.registration_lacks_scopes",
            Self::NoAuthorizer => "client.no_authorizer",
            Self::NoAuthorizationServer => "client.no_server",
            Self::AuthorizationServerNotListed { .. } => "client.server_not_listed",
            Self::ClientOfOtherServer { .. } => "client.other_server",
            Self::MetadataTooLong { .. } => "client.metadata_too_long",
            Self::UnsupportedServer(error) => error.code(),
            Self::NoRegistration { .. } => "client.no_registration",
            Self::Registration(_) => "client.registration",
            Self::RedirectNotRegistered { .. } => "client.redirect_not_registered",
            Self::UnsupportedAuthenticationMethod => "client.authentication_method",
            Self::TooManySignIns => "client.too_many_sign_ins",
            Self::Interaction(error) => error.code(),
            Self::Redirect(error) => error.code(),
            Self::TokenRequest(_) => "client.token",
            Self::UnsupportedTokenType => "client.token_type",
            Self::Status { .. } => "client.status",
            Self::InvalidResponse { .. } => "client.document",
            Self::DpopNotSupported { .. } => "client.no_binding",
            Self::Assertion(error) => error.code(),
            Self::Revocation(_) => "client.revocation",
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

/// The excerpt of a response in parentheses, if there is one.
fn parenthesized(response: Option<&ResponseExcerpt>) -> String {
    response
        .map(|response| format!(" ({response})"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J8: no scopes or client identifier of a server fills the terminal.
    #[test]
    fn values_of_servers_are_shortened() {
        let long = "x".repeat(100_000);
        let issuer = Issuer::parse("https://auth.example.com").unwrap();
        let start = StartUrl::parse("https://mcp.example.com/mcp").unwrap();
        let scopes = Scopes::parse(&long).unwrap();
        let registration = NewRegistration {
            start: start.clone(),
            issuer: issuer.clone(),
            missing: scopes.clone(),
            scopes: scopes.clone(),
        };
        for error in [
            ClientError::UnboundToken {
                start,
                issuer: issuer.clone(),
                scopes,
            },
            ClientError::ClientOfOtherServer {
                client_id: long,
                known: issuer.clone(),
                named: issuer,
            },
            ClientError::RegistrationLacksScopes {
                registration: Box::new(registration),
            },
        ] {
            let text = error.to_string();
            assert!(
                text.contains("more characters)") && text.len() < 1200,
                "{text}"
            );
        }
    }
}
