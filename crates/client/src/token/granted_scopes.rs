//! Compares the scopes of a token with those that were requested.

use portcullis_metadata::Scopes;

use crate::{ResourceToken, authorizer::selection::OFFLINE};

impl ResourceToken {
    /// Returns the scopes that were requested and not granted. `offline_access` counts as granted if there is a refresh
    /// token (OpenID Connect Core 1.0 section 11). If the response has no scopes, all were granted (RFC 6749 section
    /// 5.1).
    pub fn ungranted_scopes(&self) -> Scopes {
        let Some(granted) = self.scopes() else { return Scopes::empty() };
        let is_granted =
            |scope: &&str| granted.contains(scope) || (*scope == OFFLINE && self.refresh_token().is_some());
        // The names were validated before.
        Scopes::from_names(self.asked().iter().filter(|scope| !is_granted(scope))).unwrap_or_default()
    }
}
