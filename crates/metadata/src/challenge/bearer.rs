//! [`BearerChallenge`]: the parameters of a bearer challenge.

use super::Challenge;
use crate::identifier::Scopes;

/// The parameters of a bearer challenge (RFC 6750 section 3, RFC 9728 section 5.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BearerChallenge {
    /// The protection space, for people.
    pub realm: Option<String>,
    /// The URL of the resource's metadata. It is neither parsed nor checked.
    pub resource_metadata: Option<String>,
    /// The required scopes. `None` if the parameter is missing, empty or malformed.
    pub scope: Option<Scopes>,
    /// The error code: `invalid_request`, `invalid_token`, `insufficient_scope` or another one.
    pub error: Option<String>,
    /// A description for developers.
    pub error_description: Option<String>,
    /// The URL of a page for developers.
    pub error_uri: Option<String>,
}

impl BearerChallenge {
    /// Returns the first bearer challenge, if any. Unknown parameters are ignored.
    pub fn from_challenges(challenges: &[Challenge]) -> Option<Self> {
        let challenge = challenges
            .iter()
            .find(|challenge| challenge.is_scheme("Bearer"))?;
        let param = |name| challenge.param(name).map(str::to_owned);
        Some(Self {
            realm: param("realm"),
            resource_metadata: param("resource_metadata"),
            scope: challenge
                .param("scope")
                .and_then(|scope| Scopes::parse(scope).ok())
                .filter(|s| !s.is_empty()),
            error: param("error"),
            error_description: param("error_description"),
            error_uri: param("error_uri"),
        })
    }
}
