//! A small OAuth 2.1 authorization server for development and tests, in your own process.
//!
//! It supports:
//!
//! - authorization server metadata (RFC 8414), also as the OpenID Connect discovery document
//! - published keys (RFC 7517) that can be rotated
//! - clients from the settings, dynamic registration (RFC 7591) with its management (RFC 7592), and client ID metadata
//!   documents
//! - the authorization code flow with PKCE (RFC 7636), a consent page, resource indicators (RFC 8707) and the issuer in
//!   the authorization response (RFC 9207)
//! - the device flow (RFC 8628)
//! - refresh tokens, client credentials, and assertions of trusted issuers (RFC 7523, RFC 8693)
//! - client authentication with a secret or with `private_key_jwt` (RFC 7523), and DPoP (RFC 9449)
//! - introspection by configured resources (RFC 7662) and revocation by clients (RFC 7009)
//! - injected faults for tests, and the imitation of providers ([`Provider`]) and of servers with other rules of client
//!   authentication ([`ClientAuthenticationMode`])
//!
//! ```
//! use portcullis_devidp::{DevIdp, DevIdpSettings};
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//!
//! let server = DevIdp::bind(DevIdpSettings { auto_consent: true, ..DevIdpSettings::default() }).await?;
//! let issuer = server.issuer().clone();
//! assert_eq!(issuer.as_str(), format!("http://{}", server.address()));
//!
//! let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
//! let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
//! // Discovery, registration and tokens now work at `issuer`.
//! drop(stop);
//! serving.await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Safety
//!
//! The server issues tokens to anyone, for any user name, without a password. Therefore it listens only on loopback
//! addresses, answers only requests for loopback host names (against DNS rebinding), and states on every page that it is
//! for development. Keys, clients and codes are kept in memory and are lost when the server stops.
//!
//! # Rules
//!
//! Authorization:
//!
//! - PKCE with S256 is required. A code is valid for 60 s and for one token request, even if that request fails. A second
//!   use revokes the tokens from the first use.
//! - A redirect URI is `https`, or `http` with a loopback host. It must match a registered one exactly, except for the port
//!   of a loopback host (RFC 8252 section 7.3). Errors are sent to the redirect URI after the client and the redirect URI
//!   are validated, and are displayed as a page before that.
//! - `resource` becomes the token's `aud`. It is optional only if the settings have a default.
//! - The consent page has no scripts, loads no resources, and cannot be framed. It can be answered once, from the same
//!   origin and the same browser.
//! - `auto_consent` skips the page for loopback redirect URIs. `login_hint` is then the user name.
//!
//! Tokens:
//!
//! - A refresh token is issued to clients that are registered for `refresh_token` and request the scope `offline_access`.
//!   Each use replaces it. Reuse of a replaced token ends the session: it revokes the current refresh token and makes all
//!   access tokens inactive (RFC 9700 section 4.14.2). A public client's refresh token is bound to its DPoP key, if any.
//! - An assertion has the issuer as its only audience, is valid for at most an hour, and can be used once, except for the
//!   token of a workload's platform. A DPoP proof is at most a minute old and can be used once.
//! - A client can revoke its own access tokens, which then become inactive. Revoking a refresh token ends its session.
//! - Replaced signing keys stay published while their tokens are valid, at most eight pairs, or are withdrawn at once.
//!
//! Devices:
//!
//! - A device code and its user code are valid for 10 min and for one use. Polls must be 5 s apart; an earlier one gets
//!   `slow_down` and adds 5 s.
//! - The page for a user code shows the code to compare, and has the same protection as the consent page. After 100 wrong
//!   codes in a minute, all codes are rejected until the minute is over.
//!
//! Clients:
//!
//! - A client identifier that is a URL names a client ID metadata document
//!   (draft-ietf-oauth-client-id-metadata-document). [`DocumentFetch`] documents the limits.
//! - A registration is read, updated and deleted with its registration access token, of which only the hash is stored. An
//!   update replaces the token.
//! - Clients with `private_key_jwt` must send their keys in `jwks`. `jwks_uri` is rejected.
//!
//! Limits:
//!
//! - There are at most 1000 codes, 1000 open consent pages, 1000 device authorizations, 1000 opaque tokens, 1000 sessions with refresh tokens and 100 client documents. The
//!   oldest is evicted first.
//! - There are at most `max_clients` registered clients. The oldest client that never obtained a code is evicted first. A
//!   client that is not used for a day expires.
//! - The server remembers at most 10,000 revoked access tokens, 10,000 ended sessions, 10,000 used assertions and 10,000
//!   used proofs until they expire. Above that, requests are rejected; a session still ends, but its access tokens stay
//!   active until they expire.
//!
//! Codes, tokens, secrets and query strings are never logged.
//!
//! # Control by tests
//!
//! [`Control`] rotates the keys, injects a [`Fault`], forgets registered clients and answers device authorizations while the
//! server runs. With the setting `admin`, programs on the same machine do this over HTTP: `POST admin/rotate` with
//! `{"old_keys":"keep"}` or `"withdraw"`, `POST admin/faults` with
//! `{"at":"token","kind":"status","status":503,"times":2}`, `DELETE admin/faults`, `POST admin/forget` with
//! `{"client_id":"..."}` or `{}`, and `POST admin/device` with `{"user_code":"...","decision":"allow"}` or `"deny"`. Requests
//! from browsers are rejected.
//!
//! # Unsupported
//!
//! The server does not support ID tokens, pushed authorization requests or TLS. The metadata has two members about ID
//! tokens because OpenID Connect Discovery requires them.

mod app;
mod authentication;
mod authorize;
mod clients;
mod control;
mod device;
mod error;
mod handle;
mod keys;
mod metadata;
mod providers;
mod server;
mod settings;
mod tables;
mod token;

pub use authentication::mode::ClientAuthenticationMode;
pub use clients::{
    grant_type::GrantType,
    settings::{ClientAuthentication, ClientSettings, ClientSettingsError},
};
pub use control::{
    Control, OldKeys,
    faults::{Fault, FaultError, FaultKind, FaultPoint},
};
pub use error::DevIdpError;
pub use providers::{Difference, Provider};
pub use server::DevIdp;
pub use settings::{DevIdpSettings, DocumentFetch, Registration, SigningAlgorithm, TokenHeaderType, TrustedIssuer};
