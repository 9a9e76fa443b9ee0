//! Judges the authorization chain of a protected resource, ours or not: which step of discovery works, which rule of
//! which document is met or broken, and what to change where.
//!
//! A [`Doctor`] walks the way of a client that knows nothing but the resource's URL: the challenge (RFC 6750, RFC 9728),
//! the resource's metadata, the authorization servers' metadata (RFC 8414, OpenID Connect Discovery) and their keys.
//! Each [`Step`] says what was asked, what came back, and its [`Finding`]s. A step that breaks the chain is the last one:
//! the first cause is reported, never a cascade.
//!
//! With a token, it also judges that by every rule, and says what a guard of the resource would answer.
//!
//! It sends no credentials, registers nothing and authorizes nobody.
//!
//! ```
//! use std::sync::Arc;
//!
//! use portcullis_doctor::{Doctor, Verdict};
//! use portcullis_metadata::SystemClock;
//! # use portcullis_testkit::ScriptedFetch;
//! use url::Url;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let fetch = ScriptedFetch::new();
//! // `fetch` is any `portcullis_discovery::Fetch`, such as its `HttpFetch`.
//! let doctor = Doctor::new(Arc::new(fetch), Arc::new(SystemClock::new()));
//! let resource = Url::parse("https://mcp.example.com/mcp")?;
//! let report = doctor.examine(&resource, None, &mut |step| eprintln!("{}", step.title)).await;
//!
//! // Nothing is there: the first cause is that the resource asks for no token.
//! let first = report.first_problem().ok_or("a problem")?;
//! assert_eq!(first.rule.id, "challenge.status");
//! assert_eq!(first.verdict, Verdict::Problem);
//! # Ok(())
//! # }
//! ```

mod challenge;
mod cors;
mod doctor;
mod issuer;
mod keys;
mod probe;
mod registration;
mod report;
mod resource;
mod scopes;
mod text;
mod time;
mod token;

pub use doctor::Doctor;
pub use report::{Finding, Report, RequestSummary, ResponseSummary, Rule, Step, Verdict};

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
