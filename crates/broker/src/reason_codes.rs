//! [`REASON_CODES`]: the list of all reason codes of this crate.

use portcullis_authorization_server::StoreError;

use crate::{
    access::AccessDenial, access_tokens::TokenTooLarge, endpoints::SignInError, problem::Problem,
};

/// The codes for which a sign-in leads to no code for the client, and those of pages about a
/// problem, each with what it means, in Markdown. Those of providers are in
/// [`ProviderError`](portcullis_identity_provider::ProviderError).
pub const REASON_CODES: &[&[(&str, &str)]] = &[
    AccessDenial::REASON_CODES,
    SignInError::REASON_CODES,
    TokenTooLarge::REASON_CODES,
    StoreError::REASON_CODES,
    Problem::REASON_CODES,
];
