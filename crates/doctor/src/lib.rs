//! Checks the authorization chain of any protected resource: which step of discovery works, which
//! rule of which document is met or violated, and what to change.
//!
//! A [`Doctor`] does what a client does that knows only the resource's URL. It reads the challenge
//! (RFC 6750, RFC 9728), the resource's metadata, the authorization servers' metadata (RFC 8414,
//! OpenID Connect Discovery) and their keys. Each [`Step`] has a request, its response and
//! [`Finding`]s. A step that prevents the next ones is the last step, so that the report shows the
//! cause and not its consequences.
//!
//! With a token, it also checks the token, and reports how a guard of the resource would respond.
//!
//! [`Doctor::examine_issuer`] checks one issuer as the server that trusts it uses it.
//!
//! It sends no credentials except those of a made-up client, to see how the token endpoint rejects
//! them. It requests no authorization, and registers a client only if [`Doctor::test_registration`]
//! permits it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use portcullis_doctor::{Doctor, Verdict};
//! # use portcullis_testkit::ScriptedFetch;
//! use url::Url;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let fetch = ScriptedFetch::new();
//! // `fetch` is any `portcullis_discovery::Fetch`, such as its `HttpFetch`.
//! let doctor = Doctor::new(Arc::new(fetch));
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

mod broker_remedy;
mod chain;
mod challenge;
mod client_authentication;
mod configured_issuer;
mod cors;
mod examination;
mod issuer;
mod keys;
mod malformed;
mod page;
mod probe;
mod registration;
mod report;
mod report_json;
mod resource;
mod scopes;
mod search;
mod setting_names;
mod test_registration;
mod text;
mod time;
mod token;

pub use chain::{Hop, HopState, Link};
pub use configured_issuer::{
    ConfiguredIssuer, ConfiguredResource, IssuerPurpose, algorithms_to_configure,
};
pub use examination::Doctor;
pub use page::{asks_for_tls, describe_response};
pub use report::{Finding, Report, RequestSummary, ResponseSummary, Rule, Step, Verdict};
pub use setting_names::SettingNames;

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
