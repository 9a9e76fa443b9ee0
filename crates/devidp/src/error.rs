use std::{io, net::SocketAddr};

use crate::{ClientProblem, FaultProblem};

/// Why a development authorization server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DevIdpError {
    /// The address is reachable from other machines.
    #[error(
        "the development authorization server listens on loopback only, and {address} is not: \
         use 127.0.0.1:{port} or [::1]:{port}", port = address.port()
    )]
    NotLoopback {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// Another process listens there already.
    #[error(
        "{address} is in use already: stop the process that listens there, or choose another port (0 takes a free one)"
    )]
    AddressInUse {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// The address cannot be listened on for another reason, the source.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
    /// The issuer's path is not of the accepted form.
    #[error(
        "the issuer path {path:?} is not usable: leave it empty, or write segments of letters, digits, `-`, `_`, `.` and `~` \
         like `/realms/dev`, without a slash at the end and not below `/.well-known`"
    )]
    IssuerPath {
        /// The path that was asked for.
        path: String,
    },
    /// The scopes hold `openid`.
    #[error("`openid` cannot be among the scopes: no ID tokens are issued. Leave it out")]
    OpenIdScope,
    /// There is no scope at all.
    #[error("no scope can be granted: name at least one, like `mcp:tools`")]
    NoScopes,
    /// The default user name is empty, too long, or has control characters.
    #[error(
        "the user name {user:?} is not usable: write 1 to 64 characters without control characters or surrounding spaces"
    )]
    User {
        /// The name that was asked for.
        user: String,
    },
    /// The access token lifetime is out of its range.
    #[error("access tokens live from 1 s to 1 h here, not {seconds} s")]
    TokenLifetime {
        /// The lifetime that was asked for, in whole seconds.
        seconds: u64,
    },
    /// No client could ever register.
    #[error("room for no client at all: set the number of clients to 1 or more")]
    NoRoomForClients,
    /// The refresh token lifetime is out of its range.
    #[error("refresh tokens live from 1 s to 30 days here, not {seconds} s")]
    RefreshTokenLifetime {
        /// The lifetime that was asked for, in whole seconds.
        seconds: u64,
    },
    /// The initial access token is empty.
    #[error("the initial access token is empty: leave it out to let anybody register, or give one")]
    InitialAccessToken,
    /// A client of the settings cannot be used.
    #[error("the client {id:?} is not usable: {problem}")]
    Client {
        /// Its identifier.
        id: String,
        /// What is wrong with it.
        problem: ClientProblem,
    },
    /// A trusted issuer has no usable key, or is there twice.
    #[error("the trusted issuer {issuer:?} has no usable public key, or is there twice")]
    TrustedIssuer {
        /// The issuer.
        issuer: String,
    },
    /// What fetches the documents of clients cannot be set up.
    #[error("cannot set up what fetches the documents of clients")]
    Fetch(#[source] portcullis_discovery::FetchError),
    /// A scripted fault makes no sense.
    #[error("a scripted fault is not usable: {0}")]
    Fault(FaultProblem),
    /// A signing key could not be made.
    #[error("cannot make the signing keys")]
    Keys(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl DevIdpError {
    /// A stable name for the kind of error, for logs and scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotLoopback { .. } => "devidp.not_loopback",
            Self::AddressInUse { .. } => "devidp.address_in_use",
            Self::Listen { .. } => "devidp.listen",
            Self::IssuerPath { .. } => "devidp.issuer_path",
            Self::OpenIdScope => "devidp.openid_scope",
            Self::NoScopes => "devidp.no_scopes",
            Self::User { .. } => "devidp.user",
            Self::TokenLifetime { .. } => "devidp.token_lifetime",
            Self::NoRoomForClients => "devidp.no_room_for_clients",
            Self::RefreshTokenLifetime { .. } => "devidp.refresh_token_lifetime",
            Self::InitialAccessToken => "devidp.initial_access_token",
            Self::Client { .. } => "devidp.client",
            Self::TrustedIssuer { .. } => "devidp.trusted_issuer",
            Self::Fetch(_) => "devidp.fetch",
            Self::Fault(_) => "devidp.fault",
            Self::Keys(_) => "devidp.keys",
        }
    }
}
