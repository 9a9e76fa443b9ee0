//! [`ResourceOptions`]: what a caller knows about a resource before the search for its metadata.

use portcullis_metadata::{BearerChallenge, ProtectedResourceMetadata};

/// What a caller knows about a resource before the search for its metadata. By default nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResourceOptions<'a> {
    pub(super) challenge: Option<&'a BearerChallenge>,
    pub(super) configured: Option<&'a ProtectedResourceMetadata>,
}

impl<'a> ResourceOptions<'a> {
    /// Sets the challenge of the resource. Its `resource_metadata` URL is the first of the search.
    #[must_use]
    pub fn challenge(mut self, challenge: impl Into<Option<&'a BearerChallenge>>) -> Self {
        self.challenge = challenge.into();
        self
    }

    /// Sets the metadata to use if the resource publishes none.
    #[must_use]
    pub fn configured(
        mut self,
        metadata: impl Into<Option<&'a ProtectedResourceMetadata>>,
    ) -> Self {
        self.configured = metadata.into();
        self
    }
}
