//! [`TokenResponse`]: a successful response of a token endpoint.

use std::fmt;

use serde_json::{Map, Value};

use crate::{
    json::{DocumentError, Members, ObjectBuilder},
    secret::{AccessToken, Secret},
};

/// A token response (RFC 6749 section 5.1). `Debug` prints neither tokens nor the values of unknown
/// members.
#[derive(Clone, PartialEq)]
pub struct TokenResponse {
    /// The access token.
    pub access_token: AccessToken,
    /// The token type, such as `Bearer` in any letter case. It is not checked.
    pub token_type: String,
    /// The access token's lifetime in seconds.
    pub expires_in: Option<u64>,
    /// The refresh token.
    pub refresh_token: Option<Secret>,
    /// The granted scopes, if they differ from the requested ones. The string is neither split nor
    /// checked.
    pub scope: Option<String>,
    /// The OpenID Connect ID token. It is for the client, not for resources.
    pub id_token: Option<Secret>,
    /// All other members.
    pub extra: Map<String, Value>,
}

impl TokenResponse {
    /// Creates a response that has only a bearer token.
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

    /// Returns whether `token_type` is `Bearer` in any letter case.
    pub fn is_bearer(&self) -> bool {
        self.token_type.eq_ignore_ascii_case("Bearer")
    }

    /// Parses the body of a successful response.
    ///
    /// # Errors
    /// Fails if the body is not a JSON object without duplicate members, `access_token` or
    /// `token_type` is missing or empty, the access or refresh token has characters other than
    /// printable ASCII (RFC 6749 appendix A.12 and A.17), `expires_in` is negative, or a known
    /// member has the wrong type.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        let mut members = Members::parse(body)?;
        Ok(Self {
            access_token: AccessToken::new(check_printable(
                "access_token",
                members.required_string("access_token")?,
            )?),
            token_type: members.required_string("token_type")?,
            expires_in: members.seconds("expires_in")?,
            refresh_token: members
                .string("refresh_token")?
                .map(|token| check_printable("refresh_token", token))
                .transpose()?
                .map(Secret::new),
            scope: members.string("scope")?,
            id_token: members.string("id_token")?.map(Secret::new),
            extra: members.remaining(),
        })
    }

    /// Serializes the response body, including the tokens.
    pub fn to_json(&self) -> Vec<u8> {
        let Self {
            access_token,
            token_type,
            expires_in,
            refresh_token,
            scope,
            id_token,
            extra,
        } = self;
        let mut object = ObjectBuilder::new(extra);
        object.string("access_token", Some(access_token.secret()));
        object.string("token_type", Some(token_type));
        object.value("expires_in", expires_in.map(Value::from));
        object.string("refresh_token", refresh_token.as_ref().map(Secret::secret));
        object.string("scope", scope.as_deref());
        object.string("id_token", id_token.as_ref().map(Secret::secret));
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

/// Returns a token if it is printable ASCII. Tokens are sent in headers and printed for scripts, so
/// they must not end a line or control a terminal.
fn check_printable(member: &'static str, token: String) -> Result<String, DocumentError> {
    let is_printable = token.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if is_printable {
        Ok(token)
    } else {
        Err(DocumentError::Malformed { member })
    }
}

#[cfg(test)]
mod tests {
    use proptest::{option, prelude::*};

    use super::*;
    use crate::json::arbitrary;

    fn parse(body: &str) -> Result<TokenResponse, DocumentError> {
        TokenResponse::parse(body.as_bytes())
    }

    /// Every member is parsed into its field.
    #[test]
    fn a_response_is_parsed() {
        let response = parse(
            r#"{"access_token":"at","token_type":"bearer","expires_in":299.9,"refresh_token":"rt","scope":"a b","id_token":"it",
                "not-before-policy":0}"#,
        )
        .unwrap();
        assert_eq!(response.access_token.secret(), "at");
        assert!(response.is_bearer());
        assert_eq!(response.expires_in, Some(299));
        assert_eq!(response.refresh_token, Some(Secret::new("rt")));
        assert_eq!(response.scope.as_deref(), Some("a b"));
        assert_eq!(response.id_token, Some(Secret::new("it")));
        assert_eq!(response.extra["not-before-policy"], 0);
        assert!(
            !parse(r#"{"access_token":"at","token_type":"DPoP"}"#)
                .unwrap()
                .is_bearer()
        );
    }

    #[test]
    fn malformed_responses_are_rejected() {
        for body in [
            "",
            "[]",
            "access_token=at&token_type=bearer",
            r#"{"token_type":"Bearer"}"#,
            r#"{"access_token":"a\u001b[2Jb","token_type":"Bearer"}"#,
            r#"{"access_token":"a\r\nX-Evil: 1","token_type":"Bearer"}"#,
            r#"{"access_token":"é","token_type":"Bearer"}"#,
            r#"{"access_token":"a","token_type":"Bearer","refresh_token":"b\n"}"#,
            r#"{"access_token":"at"}"#,
            r#"{"access_token":"","token_type":"Bearer"}"#,
            r#"{"access_token":"at","token_type":"Bearer","expires_in":-1}"#,
            r#"{"access_token":"at","token_type":"Bearer","expires_in":"300"}"#,
            r#"{"access_token":"at","token_type":"Bearer","access_token":"at2"}"#,
        ] {
            assert!(parse(body).is_err(), "{body}");
        }
    }

    /// J2, J3: `Debug` prints no token, not even in an unknown member.
    #[test]
    fn debug_prints_no_token() {
        let shown = format!(
            "{:?}",
            parse(r#"{"access_token":"hush","token_type":"Bearer","refresh_token":"hush","id_token":"hush","device_secret":"hush"}"#)
                .unwrap()
        );
        assert!(!shown.contains("hush"), "{shown}");
    }

    proptest! {
        /// Any response round-trips.
        #[test]
        fn responses_round_trip(
            access_token in "[ -~]{1,20}",
            refresh_token in option::of("[ -~]{0,20}"),
            expires_in in option::of(0..1_000_000u64),
            scope: Option<String>,
            extra in arbitrary::extra(),
        ) {
            let built = TokenResponse {
                refresh_token: refresh_token.map(Secret::new),
                expires_in,
                scope,
                extra,
                ..TokenResponse::bearer(AccessToken::new(access_token))
            };
            prop_assert_eq!(TokenResponse::parse(&built.to_json()), Ok(built));
        }
    }
}
