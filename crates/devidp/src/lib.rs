//! A small, real OAuth 2.1 authorization server for development and tests, in your own process.
//!
//! It does what a client and a protected resource need to try the whole way of a token: metadata (RFC 8414, also as the
//! OpenID Connect discovery document), published keys (RFC 7517), open registration (RFC 7591), the authorization code
//! flow with PKCE (RFC 7636) and a consent page, resource indicators (RFC 8707), the issuer in the redirect (RFC 9207),
//! introspection by the resources that the settings name (RFC 7662), and revocation by the client (RFC 7009).
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
//!   A second use withdraws nothing: no refresh tokens are issued, and an access token lives 5 min.
//! - A redirect URI is `https`, or `http` to a loopback host, and matches exactly; only the port of a loopback host may differ from the
//!   registered one (RFC 8252 section 7.3). An error goes to the redirect URI once client and redirect URI are
//!   known to be right, and is shown as a page before that.
//! - `resource` becomes the `aud` of the token. It may be left out only where the settings name a default.
//! - The consent page runs no script, loads nothing, and cannot be framed. Its answer counts once, from the same origin, and in the browser
//!   that it was shown in.
//! - `auto_consent` skips the page for loopback redirect URIs; `login_hint` then names the user.
//! - Every table is bounded: 1000 codes and 1000 open consent pages, of which the oldest goes first, and `max_clients` clients, of
//!   which the oldest goes that never obtained a code. A client that is not used for a day is forgotten.
//! - An access token can be given up by the client that it was issued to, and is then inactive to whoever introspects it;
//!   10,000 of them are remembered until they expire, and a further one is refused until then.
//! - Codes, tokens, secrets and query strings are never logged.
//!
//! # What it does not do
//!
//! No refresh tokens, ID tokens, pushed requests or TLS. The metadata says so by leaving them out; the two members about
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
