//! [`DevIdpError`]: why the server cannot start or replace its keys.

use std::{io, net::SocketAddr};

use crate::{clients::settings::ClientSettingsError, control::faults::FaultError};

/// Why a development authorization server cannot start, or cannot replace its keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DevIdpError {
    /// The address is reachable from other machines.
    #[error(
        "the development authorization server listens on loopback only, and {address} is not: \
         use 127.0.0.1:{port} or [::1]:{port}", port = address.port()
    )]
    NotLoopback {
        /// The configured address.
        address: SocketAddr,
    },
    /// Another process already listens on the address.
    #[error(
        "{address} is in use already: stop the process that listens there, or choose another port (0 takes a free one)"
    )]
    AddressInUse {
        /// The configured address.
        address: SocketAddr,
    },
    /// The server cannot listen on the address for another reason.
    #[error("cannot listen on {address}")]
    Listen {
        /// The configured address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The issuer path is invalid.
    #[error(
        "the issuer path {path:?} is invalid: leave it empty, or use segments of letters, digits, `-`, `_`, `.` and `~` like \
         `/realms/dev`, at most 200 characters, without a trailing slash and the segments `.`, `..` and `.well-known`"
    )]
    IssuerPath {
        /// The configured path.
        path: String,
    },
    /// The scopes contain `openid`.
    #[error("the scopes must not contain `openid`, which every client may request: remove it")]
    OpenIdScope,
    /// The set of scopes is empty.
    #[error("the server has no scopes: configure at least one, like `mcp:tools`")]
    NoScopes,
    /// The default user name is empty, too long, or has control characters.
    #[error(
        "the user name {user:?} is invalid: use 1 to 64 characters without control characters or surrounding spaces"
    )]
    User {
        /// The configured name.
        user: String,
    },
    /// Two users of the settings have the same name.
    #[error("the user {user:?} is configured twice: remove one of them")]
    UserTwice {
        /// The name.
        user: String,
    },
    /// The access token lifetime is out of range.
    #[error("the access token lifetime must be from 1 s to 1 h, not {seconds} s")]
    TokenLifetime {
        /// The configured lifetime in whole seconds.
        seconds: u64,
    },
    /// The maximum number of registered clients is 0.
    #[error("the maximum number of clients is 0: set it to 1 or more")]
    MaxClientsZero,
    /// The refresh token lifetime is out of range.
    #[error("the refresh token lifetime must be from 1 s to 30 days, not {seconds} s")]
    RefreshTokenLifetime {
        /// The configured lifetime in whole seconds.
        seconds: u64,
    },
    /// The initial access token is empty.
    #[error("the initial access token is empty: set it, or remove it to allow open registration")]
    InitialAccessToken,
    /// An extra claim or a claim of a user has no name, or one that the server uses.
    #[error(
        "the claim {name:?} cannot be set: its name is empty or one that this server sets itself; choose another name"
    )]
    Claim {
        /// The name of the claim.
        name: String,
    },
    /// The extra claims or those of a user are too large.
    #[error("the claims have {size} bytes; the maximum is 4096")]
    ClaimsTooLarge {
        /// The size of all extra claims as JSON.
        size: usize,
    },
    /// A configured client is invalid.
    #[error("the client {id:?} is invalid: {problem}")]
    Client {
        /// The client identifier.
        id: String,
        /// The cause.
        problem: ClientSettingsError,
    },
    /// A trusted issuer has no usable key or is configured twice.
    #[error("the trusted issuer {issuer:?} has no usable public key or is configured twice")]
    TrustedIssuer {
        /// The issuer.
        issuer: String,
    },
    /// The HTTP client for client ID metadata documents or logout tokens cannot be created.
    #[error("cannot create the HTTP client for client ID metadata documents or logout tokens")]
    Fetch(#[source] portcullis_discovery::FetchError),
    /// A fault in the settings is invalid.
    #[error("a scripted fault is invalid: {0}")]
    Fault(FaultError),
    /// The first DPoP nonce cannot be generated.
    #[error("cannot generate the first DPoP nonce")]
    Nonce(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The signing keys cannot be generated.
    #[error("cannot generate the signing keys")]
    Keys(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl DevIdpError {
    /// Returns a stable code for logs and scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotLoopback { .. } => "devidp.not_loopback",
            Self::AddressInUse { .. } => "devidp.address_in_use",
            Self::Listen { .. } => "devidp.listen",
            Self::IssuerPath { .. } => "devidp.issuer_path",
            Self::OpenIdScope => "devidp.openid_scope",
            Self::NoScopes => "devidp.no_scopes",
            Self::User { .. } => "devidp.user",
            Self::UserTwice { .. } => "devidp.user_twice",
            Self::TokenLifetime { .. } => "devidp.token_lifetime",
            Self::MaxClientsZero => "devidp.no_room_for_clients",
            Self::RefreshTokenLifetime { .. } => "devidp.refresh_token_lifetime",
            Self::InitialAccessToken => "devidp.initial_access_token",
            Self::Claim { .. } => "devidp.claim",
            Self::ClaimsTooLarge { .. } => "devidp.claims_too_large",
            Self::Client { .. } => "devidp.client",
            Self::TrustedIssuer { .. } => "devidp.trusted_issuer",
            Self::Fetch(_) => "devidp.fetch",
            Self::Fault(_) => "devidp.fault",
            Self::Nonce(_) => "devidp.nonce",
            Self::Keys(_) => "devidp.keys",
        }
    }
}
