//! Compares the scopes of a token with those that were requested or are needed.

use portcullis_metadata::Scopes;

use crate::{ResourceToken, offline_access::OFFLINE_ACCESS};

impl ResourceToken {
    /// Returns the scopes that were requested and not granted. `offline_access` counts as granted
    /// if there is a refresh token (OpenID Connect Core 1.0 section 11). If the response has no
    /// scopes, all were granted (RFC 6749 section 5.1). Empty if the scopes of the response are not
    /// valid.
    pub fn ungranted_scopes(&self) -> Scopes {
        let Some(granted) = self.scopes() else {
            return Scopes::empty();
        };
        let is_granted = |scope: &str| {
            granted.contains(scope) || (scope == OFFLINE_ACCESS && self.refresh_token().is_some())
        };
        self.asked().filter(|scope| !is_granted(scope))
    }

    /// Returns the scopes of `wanted` that the token lacks: all of them if the server did not
    /// confirm its scopes. A grant of `api://ID/NAME` is also one of `NAME`: Microsoft Entra ID
    /// accepts the first form in requests, and writes the second into tokens.
    pub fn missing_scopes(&self, wanted: &Scopes) -> Scopes {
        let Some(granted) = self.scopes() else {
            return wanted.clone();
        };
        let has_long_form = |name: &str| {
            granted
                .iter()
                .any(|granted| Scopes::is_long_form(granted, name))
        };
        wanted.filter(|name| !granted.contains(name) && !has_long_form(name))
    }
}
