//! [`VerifierSettings`]: the settings of a verifier, apart from its issuers.

use std::sync::Arc;

use portcullis_metadata::ResourceUri;

use crate::{inactive_tokens::InactiveTokens, observer::VerificationObserver};

/// The settings of a [`Verifier`](crate::Verifier), apart from its issuers. [`new`](Self::new) sets
/// the defaults; assign fields to change them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifierSettings {
    /// The resource that a token's `aud` must contain. It is compared as text: see
    /// [`ResourceUri::matches_audience`].
    pub resource: ResourceUri,
    /// The maximum length of a token in bytes. Longer tokens are rejected before they are parsed.
    /// Default: 16 KiB.
    pub max_token_bytes: usize,
    /// The maximum number of cached verified tokens; 0 disables the cache. Default: 10,000.
    pub cache_entries: usize,
    /// The generation of the resource's configuration, which is a part of the cache's keys.
    /// Default: 0.
    pub generation: u64,
    /// Observes verifications. Default: none.
    pub observer: Option<Arc<dyn VerificationObserver>>,
    /// Receives the ids of tokens that introspection has found inactive. Default: none.
    /// [`Verifier::drop_token`](crate::Verifier::drop_token) has an effect only if it is set.
    pub inactive_tokens: Option<Arc<dyn InactiveTokens>>,
}

impl VerifierSettings {
    /// The default of [`max_token_bytes`](Self::max_token_bytes): 16 KiB.
    pub const DEFAULT_MAX_TOKEN_BYTES: usize = 16 * 1024;
    /// The default of [`cache_entries`](Self::cache_entries): 10,000.
    pub const DEFAULT_CACHE_ENTRIES: usize = 10_000;

    /// Returns the default settings for a resource.
    pub fn new(resource: ResourceUri) -> Self {
        Self {
            resource,
            max_token_bytes: Self::DEFAULT_MAX_TOKEN_BYTES,
            cache_entries: Self::DEFAULT_CACHE_ENTRIES,
            generation: 0,
            observer: None,
            inactive_tokens: None,
        }
    }
}
