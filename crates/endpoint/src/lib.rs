//! The tower layer for a Model Context Protocol endpoint (Streamable HTTP), inside the guard.
//!
//! [`EndpointLayer`] stands behind a [`Guard`](portcullis_guard::Guard), which has settled who calls, and before a
//! service that takes [`Admitted`] requests: a gateway, or with [`Plain`] any service of HTTP requests. It reads
//! each message once, bounded, and hands on exactly the bytes that it judged:
//!
//! - **Eras.** Legacy revisions (2025-03-26, 2025-06-18, 2025-11-25) have sessions, modern ones (2026-07-28) have none. What makes
//!   a message modern is its own `_meta`, confirmed by its headers. Headers that say something else than the body
//!   are refused.
//! - **Sessions** begin when the inner service accepts an `initialize` and settles on a revision that is served, and belong to the token's subject and client.
//!   The client only ever sees an identifier made here; the one that the inner service gave out stays inside. An
//!   identifier of somebody else's is answered as an unknown one. The inner service's 404 to its own identifier ends
//!   the session, and so does DELETE.
//! - **Event streams** end when their token expires, unless the owner uses the session with a newer one, and when the
//!   issuer revokes an introspected token: see [`StreamRegistry`].
//! - **Rules** add scopes by method and by every name of a tool, prompt, resource or task that a message carries. The URI of a
//!   resource is compared under every spelling that a server could take for the same resource. One 403 names everything
//!   that a message needs.
//!
//! A POST is refused for the first of these that applies: its size (413, 503); for a legacy message the lack of a
//! usable session (400, -32000), whatever the body is; its content type (415); what makes it unreadable (400, -32700,
//! -32600, -32602) or no message of its era (400, -32020, -32022, -32602, -32600; 404, -32601); missing scopes (403); for
//! `initialize` a token without subject (403) and a full store (503). GET and DELETE without a usable session get 400 in plain text.
//! Clients get generic texts; the reason goes to the guard's [`Decision`](portcullis_guard::Decision) as a code.
//!
//! No future is boxed on the way of a request, and a body that comes in one piece is not copied.
//!
//! ```
//! use std::{convert::Infallible, sync::Arc};
//!
//! use bytes::Bytes;
//! use http::{Request, Response, StatusCode};
//! use http_body_util::Full;
//! use portcullis_endpoint::{AdmittedBody, EndpointLayer, EndpointSettings, Plain};
//! use portcullis_guard::{Authentication, GuardLayer, GuardSettings, ProtectedResource};
//! use portcullis_metadata::{ProtectedResourceMetadata, ResourceUri, SystemClock};
//! use portcullis_session::{SessionKey, SessionSettings, SessionStore};
//! use tower::{Layer, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let resource = ResourceUri::parse("http://localhost:3000/mcp")?;
//! let metadata = ProtectedResourceMetadata::new(resource, vec![]);
//! let mut guard = GuardSettings::new(metadata, Authentication::Off)?; // a verifier in real life
//! let mut sessions = SessionSettings::new(SessionKey::random()?);
//! sessions.max_total = 1000;
//! let sessions = SessionStore::new(sessions, Arc::new(SystemClock::new()), Arc::new(()));
//!
//! let server = service_fn(|_: Request<AdmittedBody>| async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("{}"))) });
//!
//! guard.cors = EndpointSettings::cors(&portcullis_mcp::header::SESSION);
//! let resource = ProtectedResource::new(guard)?;
//! let endpoint = EndpointLayer::new(EndpointSettings::new(Arc::clone(&resource), sessions))?.layer(Plain::new(server));
//! let service = GuardLayer::new(resource).layer(endpoint);
//!
//! let post = |message: &'static str| {
//!     let request = Request::post("/mcp").header("host", "localhost:3000").header("content-type", "application/json");
//!     request.body(Full::<Bytes>::from(message))
//! };
//! // Without a session nothing but `initialize` comes through.
//! let refused = service.clone().oneshot(post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)?).await?;
//! assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
//!
//! let opened = service.clone().oneshot(post(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#)?).await?;
//! assert_eq!(opened.status(), StatusCode::OK);
//! assert!(opened.headers().contains_key("mcp-session-id"));
//! # Ok(())
//! # }
//! ```

mod admission;
mod admitted;
mod builder;
mod future;
mod layer;
mod message;
mod plain;
mod response;
mod rules;
mod service;
mod session;
mod settings;
mod state;
mod stream;

pub use admitted::Admitted;
pub use builder::{EndpointBuilder, EndpointBuilderError};
pub use future::EndpointFuture;
pub use layer::EndpointLayer;
pub use message::BodyBudget;
pub use plain::Plain;
pub use response::{AdmittedBody, EndpointBody, EndpointBodyError};
pub use rules::{MessageRule, NameGlob, NameGlobError};
pub use service::Endpoint;
pub use session::{BackendSessionGuard, EndedSessionStatus};
pub use settings::{EndpointSettings, EndpointSettingsError};
pub use stream::{EndedStream, StreamEndReason, StreamObserver, StreamRegistry};

#[cfg(test)]
mod tests;
