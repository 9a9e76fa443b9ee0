//! A tower layer that turns any HTTP service into an OAuth 2.1 protected resource (RFC 6750, RFC
//! 9728).
//!
//! [`GuardLayer::builder`] builds a layer for a `tower` service of `http::Request` with any body,
//! such as an axum router. The guard does not read bodies and does not depend on a protocol above
//! HTTP.
//!
//! # Example
//!
//! ```
//! use portcullis_guard::{Caller, GuardLayer, Verifier};
//! # use std::{convert::Infallible, sync::Arc};
//! # use http::{Request, Response, StatusCode};
//! # use portcullis_testkit::{ScriptedFetch, TestIssuer};
//! # use tower::{Layer, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let issuer = TestIssuer::new("https://auth.example.com").with_resource("https://api.example.com/");
//! # let issuer = issuer.with_clock(portcullis_guard::metadata::SystemClock::new());
//! # let keys = ScriptedFetch::new();
//! # keys.publish(&issuer);
//! let verifier = Verifier::builder("https://api.example.com/").issuer("https://auth.example.com");
//! # let verifier = verifier.fetch(Arc::new(keys)); // The keys come from a test issuer here, otherwise over HTTP.
//! let guard = GuardLayer::builder(verifier.build()?).required_scopes("read").public_path("/healthz").build()?;
//!
//! let service = guard.layer(service_fn(async |request: Request<String>| {
//!     let name = request.extensions().get::<Caller>().and_then(Caller::subject).unwrap_or("unknown");
//!     Ok::<_, Infallible>(Response::new(format!("hello {name}")))
//! }));
//!
//! // Without a token, the response has a challenge.
//! let request = || Request::get("/").header("host", "api.example.com");
//! let denied = service.clone().oneshot(request().body(String::new())?).await?;
//! assert_eq!(denied.status(), StatusCode::UNAUTHORIZED);
//! assert_eq!(
//!     denied.headers()["www-authenticate"],
//!     "Bearer realm=\"api.example.com\", \
//!      resource_metadata=\"https://api.example.com/.well-known/oauth-protected-resource\", scope=\"read\""
//! );
//!
//! // With a token of the issuer, the service responds.
//! # let token = issuer.token().scope("read").sign();
//! let request = request().header("authorization", format!("Bearer {token}"));
//! let allowed = service.oneshot(request.body(String::new())?).await?;
//! assert_eq!(allowed.status(), StatusCode::OK);
//! # Ok(())
//! # }
//! ```
//!
//! # Steps
//!
//! A request passes these steps. The first one that rejects it responds:
//!
//! 1. The guard generates a [`RequestId`] and ignores an `X-Request-Id` of the client.
//! 2. The [`OriginPolicy`] checks `Host` and `Origin`: 400 or 403.
//! 3. The metadata document and CORS preflights are answered without a token.
//! 4. The [rate limit](limit::GuardLimits) per client address applies: 429.
//! 5. Requests to [public paths](GuardSettings::public_paths) are admitted without a token.
//! 6. There must be exactly one `Authorization: Bearer` header with a token that the [`Verifier`]
//!    accepts: 401 with a challenge that refers to the metadata. A token in the query is never
//!    accepted.
//! 7. The rate limit per principal applies: 429.
//! 8. The token's claims must meet the [claim rules](authorize::ClaimRule): 403. Its scopes must
//!    cover what the resource and its [routes](authorize::RouteRule) need, directly or by
//!    [implication](authorize::ScopeImplications): 403 with a challenge.
//! 9. The [limit on requests and event streams in progress](limit::ConcurrencyLimiter) of the
//!    principal applies: 429.
//!
//! The inner service receives requests without `Authorization` and `DPoP`, and with a [`Caller`] in
//! their extensions. A [`DecisionSink`] receives one [`Decision`] per request. Clients receive
//! generic texts and the request id; the reason code goes to the sink.
//!
//! The guard does not terminate TLS, does not limit bodies and connections, and does not check what
//! a message in a body needs. A request with a cached token allocates no boxed future.
//!
//! # Modules
//!
//! [`authorize`] has the rules for claims, scopes and paths, [`limit`] the limits on requests, and
//! [`trace`] the settings of trace contexts.
//!
//! # Other crates
//!
//! [`verifier`] and [`metadata`] are re-exported, so that a service needs no other crate of this
//! workspace.

mod authenticate;
pub mod authorize;
#[cfg(feature = "axum")]
mod axum;
mod builder;
mod caller;
mod client_address;
mod cors;
mod decision;
mod document;
mod identity;
mod layer;
pub mod limit;
mod new_decision;
mod origin;
mod reason_codes;
mod request_id;
mod resource;
mod respond;
mod settings;
mod superseded_request;
pub mod trace;

#[cfg(feature = "axum")]
pub use axum::NotGuarded;
pub use builder::{GuardBuilder, GuardBuilderError};
pub use caller::{Caller, ContinuedRequest, RejectionCode};
pub use client_address::{Peer, ProxyHeader, TrustedProxies, TrustedProxyError};
pub use cors::CorsSettings;
pub use decision::{Decision, DecisionSink, Operation, RequestRecord, Timing, TracingSink};
pub use layer::{Guard, GuardBody, GuardFuture, GuardLayer};
pub use origin::{OriginPolicy, OriginPolicyError, OriginRejection};
pub use portcullis_metadata as metadata;
pub use portcullis_verifier as verifier;
pub use portcullis_verifier::{IssuerSettings, Principal, Verifier, VerifierBuilder};
pub use reason_codes::REASON_CODES;
pub use request_id::RequestId;
pub use resource::ProtectedResource;
pub use respond::Challenges;
pub use settings::{Authentication, GuardSettings, GuardSettingsError};
pub use superseded_request::SupersededRequest;

/// Runs the examples of the README.
#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../README.md")]
pub struct Readme;

#[cfg(test)]
mod tests;
