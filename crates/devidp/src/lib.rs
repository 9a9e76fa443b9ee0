//! A small, real OAuth 2.1 authorization server for development and tests, in your own process.
//!
//! It does what a client and a protected resource need to try the whole way of a token: metadata (RFC 8414, also as the
//! OpenID Connect discovery document), published keys that can be rotated (RFC 7517), clients that the settings name, that register
//! (RFC 7591) or that publish a client ID metadata document, the authorization code flow with PKCE (RFC 7636) and a consent page, resource
//! indicators (RFC 8707), the issuer in the redirect (RFC 9207), refresh tokens, client credentials, clients that sign (RFC 7523), DPoP
//! (RFC 9449), assertions of issuers that the settings trust (RFC 7523, RFC 8693), introspection by the resources that the settings
//! name (RFC 7662), and revocation by the client (RFC 7009). And it fails on purpose, where a test asks it to.
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
//! # What keeps it harmless
//!
//! Anybody gets a token here, under any user name, without a password. Therefore it listens on loopback addresses only, answers to
//! loopback host names only (against DNS rebinding), and says on every page that it is for development. Keys, clients and
//! codes live in memory and are gone when it stops.
//!
//! # Its rules
//!
//! - PKCE is required, with S256. A code lives 60 s and counts once: the first exchange that presents it spends it, even a wrong one.
//!   A second use withdraws what the first one brought.
//! - A redirect URI is `https`, or `http` to a loopback host, and matches exactly; only the port of a loopback host may differ from the
//!   registered one (RFC 8252 section 7.3). An error goes to the redirect URI once client and redirect URI are
//!   known to be right, and is shown as a page before that.
//! - `resource` becomes the `aud` of the token. It may be left out only where the settings name a default.
//! - The consent page runs no script, loads nothing, and cannot be framed. Its answer counts once, from the same origin, and in the browser
//!   that it was shown in.
//! - `auto_consent` skips the page for loopback redirect URIs; `login_hint` then names the user.
//! - A refresh token is issued to clients that are registered for `refresh_token` and asked for the scope `offline_access`. Each use
//!   replaces it. One that was replaced before withdraws its whole session: the refresh token that replaced it, and for introspection all
//!   access tokens (RFC 9700 section 4.14.2). Those of public clients are bound to the key of a DPoP proof, where there was one.
//! - A signed assertion has the issuer as its only audience, lives for an hour at most, and counts once; the token of a workload's
//!   platform alone may be used again. A DPoP proof is at most a minute old, and counts once.
//! - A client whose identifier is a URL is what the document there says (draft-ietf-oauth-client-id-metadata-document), fetched with the
//!   bounds that [`DocumentFetch`] tells. A client that signs and names a `jwks_uri`
//!   is refused, there and in a registration: its keys come by value, in `jwks`.
//! - Keys that were replaced stay published while their tokens can live, eight pairs at most, or are withdrawn at once.
//! - Every table is bounded: 1000 codes, open consent pages and sessions with refresh tokens each, and 100 client documents, of which the
//!   oldest goes first; and `max_clients` clients that registered, of which the oldest goes that never obtained a code. A client that is not
//!   used for a day is forgotten. 10,000 access tokens that were given up, sessions that were withdrawn, assertions and proofs each are
//!   remembered until they could not count any more; a further one is refused until then, but for a withdrawn session, whose
//!   access tokens then stay active for their last minutes.
//! - An access token can be given up by the client that it was issued to, and is then inactive to whoever introspects it; with a refresh
//!   token goes its whole session.
//! - Codes, tokens, secrets and query strings are never logged.
//!
//! # What tests steer
//!
//! [`Control`] rotates the keys and injects a [`Fault`] while the server runs. With `admin`, programs on this machine do the same over
//! HTTP: `POST admin/rotate` with `{"old_keys":"keep"}` or `"withdraw"`, `POST admin/faults` with
//! `{"at":"token","kind":"status","status":503,"times":2}`, and `DELETE admin/faults`. A request that a page in a browser sends is
//! refused there.
//!
//! # What it does not do
//!
//! No ID tokens, pushed requests or TLS. The metadata says so by leaving them out; the two members about
//! ID tokens that it has are there because OpenID Connect Discovery requires them of every document.

mod admin;
mod app;
mod assertion;
mod authorize;
mod client_assertion;
mod client_authentication;
mod client_document;
mod client_settings;
mod clients;
mod code;
mod consent;
mod control;
mod dpop;
mod endpoint;
mod error;
mod faults;
mod form;
mod grant_type;
mod handle;
mod introspection;
mod issued;
mod keys;
mod metadata;
mod oauth_error;
mod page;
mod redirect;
mod refresh;
mod registration;
mod respond;
mod revocation;
mod routes;
mod server;
mod session;
mod settings;
mod tables;
mod token;
mod user;

pub use client_settings::{ClientAuthentication, ClientProblem, ClientSettings};
pub use control::{Control, OldKeys};
pub use error::DevIdpError;
pub use faults::{Fault, FaultKind, FaultPoint, FaultProblem};
pub use grant_type::GrantType;
pub use server::DevIdp;
pub use settings::{DevIdpSettings, DocumentFetch, Registration, SigningAlgorithm, TokenHeaderType, TrustedIssuer};
