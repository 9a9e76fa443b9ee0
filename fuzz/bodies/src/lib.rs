//! The bodies of the fuzz targets: functions that feed bytes to a parser and panic if one of its
//! properties does not hold.
//!
//! cargo-fuzz links them to libFuzzer; the tests of this crate and `cargo xtask fuzz-smoke` replay
//! the committed corpora through them with the stable compiler.

mod broker;
mod challenge;
mod compact_token;
mod envelope;
mod http1;
mod metadata_documents;
mod mutation;
mod provider_responses;
mod sse;
mod well_known;

pub use broker::{
    broker_authorization, broker_callback, broker_client_document, broker_consent, broker_cookies,
    broker_keys, broker_logout_token, broker_refresh_token, broker_registration,
    broker_sealed_form, broker_token_forms,
};
pub use challenge::challenge;
pub use compact_token::compact_token;
pub use envelope::envelope;
pub use http1::{http1_chunked_body, http1_response};
pub use metadata_documents::metadata_documents;
pub use mutation::Mutator;
pub use provider_responses::provider_responses;
pub use sse::sse;
pub use well_known::well_known;

/// The function that a target calls with each input.
pub type Body = fn(&[u8]);

/// Every target: its name, which is also the name of its corpus folder, and its body.
pub const TARGETS: &[(&str, Body)] = &[
    ("broker_authorization", broker_authorization),
    ("broker_callback", broker_callback),
    ("broker_client_document", broker_client_document),
    ("broker_consent", broker_consent),
    ("broker_cookies", broker_cookies),
    ("broker_keys", broker_keys),
    ("broker_logout_token", broker_logout_token),
    ("broker_refresh_token", broker_refresh_token),
    ("broker_registration", broker_registration),
    ("broker_sealed_form", broker_sealed_form),
    ("broker_token_forms", broker_token_forms),
    ("challenge", challenge),
    ("compact_token", compact_token),
    ("envelope", envelope),
    ("http1_chunked_body", http1_chunked_body),
    ("http1_response", http1_response),
    ("metadata_documents", metadata_documents),
    ("provider_responses", provider_responses),
    ("sse", sse),
    ("well_known", well_known),
];
