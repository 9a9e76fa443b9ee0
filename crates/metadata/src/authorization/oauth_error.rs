//! [`OAuthError`]: an OAuth error response.

use std::fmt;

use serde_json::Map;

use crate::{
    json::{DocumentError, Members, ObjectBuilder},
    untrusted_text::EscapedText,
};

/// The maximum number of characters that `Display` prints of each member.
const MAX_DISPLAYED: usize = 300;

/// An error response of a token endpoint (RFC 6749 section 5.2) or of an endpoint with the same
/// error format.
///
/// `Display` prints the code and the description as [`EscapedText`], and at most 300 characters of
/// each, so the output is safe on a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthError {
    /// The error code, such as `invalid_grant`: printable ASCII without quotes and backslashes.
    pub error: String,
    /// A description for developers.
    pub error_description: Option<String>,
    /// The URL of a page for developers.
    pub error_uri: Option<String>,
}

impl OAuthError {
    /// Creates an error from a code and a description.
    pub fn new(error: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            error_description: Some(description.into()),
            error_uri: None,
        }
    }

    /// Parses a response body. Unknown members are ignored.
    ///
    /// # Errors
    /// Fails if the body is not a JSON object without duplicate members, `error` is missing, empty
    /// or has a character that RFC 6749 does not allow, or a known member is not a string.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        let mut members = Members::parse(body)?;
        let error = members.required_string("error")?;
        if !error
            .bytes()
            .all(|b| matches!(b, 0x20..=0x21 | 0x23..=0x5B | 0x5D..=0x7E))
        {
            return Err(DocumentError::Malformed { member: "error" });
        }
        Ok(Self {
            error,
            error_description: members.string("error_description")?,
            error_uri: members.string("error_uri")?,
        })
    }

    /// Serializes the response body.
    pub fn to_json(&self) -> Vec<u8> {
        let Self {
            error,
            error_description,
            error_uri,
        } = self;
        let mut object = ObjectBuilder::new(&Map::new());
        object.string("error", Some(error));
        object.string("error_description", error_description.as_deref());
        object.string("error_uri", error_uri.as_deref());
        object.into_json()
    }
}

impl fmt::Display for OAuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", EscapedText::first(&self.error, MAX_DISPLAYED))?;
        if let Some(description) = &self.error_description {
            write!(f, ": {}", EscapedText::first(description, MAX_DISPLAYED))?;
        }
        Ok(())
    }
}

impl std::error::Error for OAuthError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_response_is_parsed() {
        let body = br#"{"error":"invalid_grant","error_description":"Code not valid","trace":1}"#;
        let error = OAuthError::parse(body).unwrap();
        assert_eq!(error, OAuthError::new("invalid_grant", "Code not valid"));
        assert_eq!(error.to_string(), "invalid_grant: Code not valid");
    }

    #[test]
    fn malformed_responses_are_rejected() {
        for body in [
            "",
            "{}",
            "[]",
            r#"{"error":5}"#,
            r#"{"error":""}"#,
            r#"{"error":"a\nb"}"#,
            r#"{"error":"a\"b"}"#,
        ] {
            assert!(OAuthError::parse(body.as_bytes()).is_err(), "{body}");
        }
    }

    /// J8: the output is escaped and bounded.
    #[test]
    fn display_is_bounded_and_escaped() {
        let displayed =
            OAuthError::new("x", format!("\u{1b}[2J\u{202e}{}", "a".repeat(1000))).to_string();
        assert_eq!(
            displayed,
            format!(r"x: \u{{1b}}[2J\u{{202e}}{}", "a".repeat(295))
        );
    }

    proptest! {
        #[test]
        fn errors_round_trip(
            error in "[ !#-\\[\\]-~]{1,20}",
            error_description: Option<String>,
            error_uri: Option<String>,
        ) {
            let built = OAuthError { error, error_description, error_uri };
            prop_assert_eq!(OAuthError::parse(&built.to_json()), Ok(built));
        }
    }
}
