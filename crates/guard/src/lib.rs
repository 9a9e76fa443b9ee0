//! The tower layer that puts OAuth 2.1 in front of any HTTP resource.
//!
//! A [`GuardLayer`] turns a `tower` service of `http::Request`, with any body, into a protected resource
//! (RFC 6750, RFC 9728). It reads no body and knows no protocol above HTTP. A request passes these steps, and
//! the first that refuses it answers:
//!
//! 1. It gets a [`RequestId`]; an inbound `X-Request-Id` counts for nothing.
//! 2. `Host` and `Origin` are judged by the [`OriginPolicy`]: 400 or 403.
//! 3. The metadata document is served, and CORS preflights are answered, to anybody.
//! 4. Not more requests than the [limits](GuardLimits) say may come from an address: 429.
//! 5. There has to be exactly one `Authorization: Bearer`, and the verifier has to accept its token: 401 with a
//!    challenge that names the document. A token in the query is never read.
//! 6. Nor may there be more of one principal: 429. The token's claims have to be what the [rules](ClaimRule) want: 403. It has to have the scopes that the resource
//!    and its [routes](RouteRule) need, be it through [broader ones](ScopeImplications): 403 with a challenge.
//! 7. No principal has more requests in progress than its [limit](ConcurrencyLimiter), nor more event streams open: 429.
//!
//! The service behind it sees what is left: requests without `Authorization` and `DPoP`, with one [`Caller`] in
//! their extensions. Whatever happens, a [`DecisionSink`] is told once. A token that was verified a short while
//! ago costs no allocation and no boxed future to judge, and one lock for the time of a table probe; each limit takes one more.
//!
//! Clients get generic words and the correlation id; the reason code goes to the sink. Not done here: TLS,
//! limits on bodies and connections, and whatever the message in a body needs.
//!
//! # Example
//!
//! The issuer here is a forged one; in production keys come over `portcullis_discovery::HttpFetch`.
//!
//! ```
//! use std::{convert::Infallible, sync::Arc};
//!
//! use http::{Request, Response, StatusCode};
//! use portcullis_guard::{Authentication, Caller, GuardLayer, GuardSettings, ProtectedResource};
//! use portcullis_metadata::{ProtectedResourceMetadata, ResourceUri, Scopes};
//! use portcullis_testkit::{ScriptedFetch, TestIssuer, ManualClock};
//! use portcullis_verifier::{IssuerSettings, TrustedIssuer, Verifier, VerifierSettings};
//! use tower::{Layer, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let forge = TestIssuer::new("https://auth.example.com").with_resource("https://api.example.com/");
//! let (fetch, clock) = (ScriptedFetch::new(), Arc::new(ManualClock::new()));
//! fetch.publish(&forge);
//!
//! let resource = ResourceUri::parse("https://api.example.com/")?;
//! let issuer = IssuerSettings::new(forge.issuer().clone());
//! let issuer = TrustedIssuer::new(issuer, Arc::new(fetch), clock.clone(), tokio::runtime::Handle::current())?;
//! let verifier = Verifier::new(VerifierSettings::new(resource.clone()), vec![issuer], clock)?;
//!
//! let metadata = ProtectedResourceMetadata::new(resource, vec![forge.issuer().clone()]);
//! let mut settings = GuardSettings::new(metadata, Authentication::Required(verifier))?;
//! settings.required_scopes = Scopes::parse("read")?;
//!
//! let hello = service_fn(async |request: Request<String>| {
//!     let caller = request.extensions().get::<Caller>().and_then(Caller::principal);
//!     let name = caller.and_then(|principal| principal.subject()).unwrap_or("nobody");
//!     Ok::<_, Infallible>(Response::new(format!("hello {name}")))
//! });
//! let service = GuardLayer::new(ProtectedResource::new(settings)?).layer(hello);
//!
//! let ask = || Request::get("/").header("host", "api.example.com");
//! let denied = service.clone().oneshot(ask().body(String::new())?).await?;
//! assert_eq!(denied.status(), StatusCode::UNAUTHORIZED);
//! assert_eq!(
//!     denied.headers()["www-authenticate"],
//!     "Bearer realm=\"api.example.com\", \
//!      resource_metadata=\"https://api.example.com/.well-known/oauth-protected-resource\", scope=\"read\""
//! );
//!
//! let bearer = format!("Bearer {}", forge.token().scope("read").sign());
//! let allowed = service.oneshot(ask().header("authorization", bearer).body(String::new())?).await?;
//! assert_eq!(allowed.status(), StatusCode::OK);
//! # Ok(())
//! # }
//! ```

mod authenticate;
mod authorize;
mod bearer;
mod body;
mod builder;
mod caller;
mod challenges;
mod claim_rule;
mod client_address;
mod cors;
mod decision;
mod document;
mod exchange;
mod future;
mod judge;
mod layer;
mod limit;
mod operation;
mod origin;
mod path_glob;
mod request_id;
mod resource;
mod respond;
mod scope_implications;
mod settings;

pub use body::GuardBody;
pub use builder::{GuardBuilder, GuardBuilderError};
pub use caller::{Caller, Peer, RejectionCode};
pub use challenges::Challenges;
pub use claim_rule::{ClaimDenial, ClaimDenials, ClaimRule, ClaimRuleError, ClaimTest};
pub use client_address::{ProxyHeader, TrustedProxies, TrustedProxyError};
pub use decision::{Decision, DecisionSink, TracingSink};
pub use future::GuardFuture;
pub use layer::{Guard, GuardLayer};
pub use limit::{ConcurrencyLimiter, GuardLimits, LimitExceeded, Rate, RateError, RateLimiter};
pub use operation::Operation;
pub use origin::{OriginPolicy, OriginPolicyError, OriginRejection};
pub use path_glob::{PathGlob, PathGlobError};
pub use portcullis_metadata as metadata;
pub use portcullis_verifier as verifier;
pub use portcullis_verifier::{IssuerSettings, Principal, Verifier, VerifierBuilder};
pub use request_id::RequestId;
pub use resource::ProtectedResource;
pub use scope_implications::ScopeImplications;
pub use settings::{Authentication, CorsSettings, GuardSettings, GuardSettingsError, RouteRule, ScopeEnforcer};

#[cfg(test)]
mod tests;
