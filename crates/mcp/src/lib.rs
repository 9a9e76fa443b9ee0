//! What the Model Context Protocol puts on the wire, read and written without any I/O.
//!
//! The crate is for whoever stands between a client and a server, or is one of them, and must know what a
//! message is without understanding its method:
//!
//! - [`Envelope`]: one borrowed pass over a JSON-RPC message that tells its kind, method, id, and what it acts
//!   on, and refuses messages that two readers could take for two different ones;
//! - [`classify`]: whether a message follows a *legacy* revision (2025-03-26, 2025-06-18, 2025-11-25: sessions) or a
//!   *modern* one (2026-07-28: none), and whether its headers say what its body says;
//! - [`encode_mirrored`], [`decode_mirrored`] and [`mirrored_member`]: what `Mcp-Name` and its kin say;
//! - [`error_body`] and [`ErrorCode`]: JSON-RPC error responses;
//! - [`client_methods`]: the methods that clients send, by revision;
//! - [`sse`]: the framing of streamed answers.
//!
//! ```
//! use http::{HeaderMap, HeaderValue};
//! use portcullis_mcp::{Envelope, Era, EnvelopeLimits, Revision, Revisions, classify, encode_mirrored, header};
//!
//! let body = br#"{
//!     "jsonrpc": "2.0", "id": 1, "method": "tools/call",
//!     "params": {
//!         "name": "w\u00e4hrung", "arguments": {"amount": 3},
//!         "_meta": {
//!             "io.modelcontextprotocol/protocolVersion": "2026-07-28",
//!             "io.modelcontextprotocol/clientCapabilities": {}
//!         }
//!     }
//! }"#;
//! let envelope = Envelope::parse(body, EnvelopeLimits::default())?;
//! assert_eq!((envelope.method(), envelope.name()), (Some("tools/call"), Some("währung")));
//!
//! let mut headers = HeaderMap::new();
//! headers.insert(header::PROTOCOL_VERSION, HeaderValue::from_static("2026-07-28"));
//! headers.insert(header::METHOD, HeaderValue::from_static("tools/call"));
//! headers.insert(header::NAME, encode_mirrored("währung"));
//! assert_eq!(classify(Ok(&envelope), &headers, Revisions::ALL), Ok(Era::Modern(Revision::V2026_07_28)));
//!
//! // A header that says something else than the body is refused.
//! headers.insert(header::NAME, encode_mirrored("other"));
//! assert!(classify(Ok(&envelope), &headers, Revisions::ALL).is_err());
//! # Ok::<(), portcullis_mcp::EnvelopeError>(())
//! ```

mod envelope;
mod era;
mod error_code;
pub mod header;
pub mod meta;
mod methods;
mod mirror;
mod revision;
pub mod sse;

pub use envelope::{Envelope, EnvelopeError, EnvelopeLimits, MessageType, Name, TargetType};
pub use era::{Era, EraError, checks_name_header, classify, legacy_version};
pub use error_code::{ErrorCode, error_body};
pub use methods::client_methods;
pub use mirror::{MirrorError, decode_mirrored, encode_mirrored, mirrored_member};
pub use revision::{Revision, Revisions};
