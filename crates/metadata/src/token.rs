use std::fmt;

use serde_json::{Map, Value};

use crate::{
    AccessToken, DocumentError, Secret,
    json::{Members, ObjectBuilder},
};

/// A token response (RFC 6749 section 5.1). `Debug` shows no token and no unknown member's value.
#[derive(Clone, PartialEq)]
pub struct TokenResponse {
    /// The token for the resource.
    pub access_token: AccessToken,
    /// How to use it: `Bearer`, in any letter case. Neither known nor unknown types are judged.
    pub token_type: String,
    /// The access token's lifetime in seconds.
    pub expires_in: Option<u64>,
    /// What gets the next access token.
    pub refresh_token: Option<Secret>,
    /// The scopes granted, where they differ from those asked for; neither split nor checked.
    pub scope: Option<String>,
    /// OpenID Connect's statement about the person; not for resources.
    pub id_token: Option<Secret>,
    /// All other members.
    pub extra: Map<String, Value>,
}

impl TokenResponse {
    /// A bearer token and nothing else.
    pub fn bearer(access_token: AccessToken) -> Self {
        Self {
            access_token,
            token_type: "Bearer".to_owned(),
            expires_in: None,
            refresh_token: None,
            scope: None,
            id_token: None,
            extra: Map::new(),
        }
    }

    /// Whether `token_type` is `Bearer`, in any letter case.
    pub fn is_bearer(&self) -> bool {
        self.token_type.eq_ignore_ascii_case("Bearer")
    }

    /// Reads the body of a successful response.
    ///
    /// # Errors
    /// When the bytes are not one JSON object with each member once, when `access_token` or `token_type`
    /// is missing or empty, when `expires_in` is no number of seconds up to the year 9999, and when a
    /// known member has the wrong type.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        let mut members = Members::parse(body)?;
        Ok(Self {
            access_token: AccessToken::new(members.required_string("access_token")?),
            token_type: members.required_string("token_type")?,
            expires_in: members.date("expires_in")?.map(|lifetime| lifetime.as_secs()),
            refresh_token: members.string("refresh_token")?.map(Secret::new),
            scope: members.string("scope")?,
            id_token: members.string("id_token")?.map(Secret::new),
            extra: members.rest(),
        })
    }

    /// Writes the response body, with the tokens in it.
    pub fn to_json(&self) -> Vec<u8> {
        let mut object = ObjectBuilder::over(&self.extra);
        object.string("access_token", Some(self.access_token.secret()));
        object.string("token_type", Some(&self.token_type));
        object.value("expires_in", self.expires_in.map(Value::from));
        object.string("refresh_token", self.refresh_token.as_ref().map(Secret::secret));
        object.string("scope", self.scope.as_deref());
        object.string("id_token", self.id_token.as_ref().map(Secret::secret));
        object.into_json()
    }
}

impl fmt::Debug for TokenResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenResponse")
            .field("access_token", &self.access_token)
            .field("token_type", &self.token_type)
            .field("expires_in", &self.expires_in)
            .field("refresh_token", &self.refresh_token)
            .field("scope", &self.scope)
            .field("id_token", &self.id_token)
            .field("extra", &self.extra.keys())
            .finish()
    }
}
