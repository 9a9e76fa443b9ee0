use super::Challenge;
use crate::Scopes;

/// What a bearer challenge says (RFC 6750 section 3, RFC 9728 section 5.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BearerChallenge {
    /// The protection space, a text for people.
    pub realm: Option<String>,
    /// The URL of the resource's metadata, as it was sent: neither parsed nor checked.
    pub resource_metadata: Option<String>,
    /// The scopes that are needed. `None` also when the parameter is empty or malformed.
    pub scope: Option<Scopes>,
    /// `invalid_request`, `invalid_token`, `insufficient_scope`, or another code.
    pub error: Option<String>,
    /// A text for developers.
    pub error_description: Option<String>,
    /// A page for developers.
    pub error_uri: Option<String>,
}

impl BearerChallenge {
    /// The first bearer challenge of a response, if there is one. Unknown parameters are ignored.
    pub fn from_challenges(challenges: &[Challenge]) -> Option<Self> {
        let challenge = challenges.iter().find(|challenge| challenge.is_scheme("Bearer"))?;
        let text = |name| challenge.param(name).map(str::to_owned);
        Some(Self {
            realm: text("realm"),
            resource_metadata: text("resource_metadata"),
            scope: challenge.param("scope").and_then(|scope| Scopes::parse(scope).ok()).filter(|s| !s.is_empty()),
            error: text("error"),
            error_description: text("error_description"),
            error_uri: text("error_uri"),
        })
    }
}
