use std::fmt;

use serde_json::Map;

use crate::{
    DocumentError, EscapedText,
    json::{Members, ObjectBuilder},
};

/// The most characters of a server's text that [`OAuthError`] shows.
const MAX_SHOWN: usize = 300;

/// An error response of a token endpoint (RFC 6749 section 5.2) and of the endpoints modelled on it.
///
/// `Display` shows the code and the description as [`EscapedText`], 300 characters of each at most, so that it is safe
/// on a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthError {
    /// The code: `invalid_grant` and others. Printable ASCII without quote and backslash.
    pub error: String,
    /// A text for developers.
    pub error_description: Option<String>,
    /// A page for developers.
    pub error_uri: Option<String>,
}

impl OAuthError {
    /// An error with a code and a description.
    pub fn new(error: impl Into<String>, description: impl Into<String>) -> Self {
        Self { error: error.into(), error_description: Some(description.into()), error_uri: None }
    }

    /// Reads a response body. Unknown members are ignored.
    ///
    /// # Errors
    /// When the bytes are not one JSON object with each member once, when `error` is missing, empty or has
    /// a character that RFC 6749 does not allow, and when a known member is no string.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        let mut members = Members::parse(body)?;
        let error = members.required_string("error")?;
        if !error.bytes().all(|b| matches!(b, 0x20..=0x21 | 0x23..=0x5B | 0x5D..=0x7E)) {
            return Err(DocumentError::Malformed { member: "error" });
        }
        Ok(Self {
            error,
            error_description: members.string("error_description")?,
            error_uri: members.string("error_uri")?,
        })
    }

    /// Writes the response body.
    pub fn to_json(&self) -> Vec<u8> {
        let mut object = ObjectBuilder::over(&Map::new());
        object.string("error", Some(&self.error));
        object.string("error_description", self.error_description.as_deref());
        object.string("error_uri", self.error_uri.as_deref());
        object.into_json()
    }
}

impl fmt::Display for OAuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", EscapedText::first(&self.error, MAX_SHOWN))?;
        if let Some(description) = &self.error_description {
            write!(f, ": {}", EscapedText::first(description, MAX_SHOWN))?;
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
    fn a_response_is_read() {
        let body = br#"{"error":"invalid_grant","error_description":"Code not valid","trace":1}"#;
        let error = OAuthError::parse(body).unwrap();
        assert_eq!(error, OAuthError::new("invalid_grant", "Code not valid"));
        assert_eq!(error.to_string(), "invalid_grant: Code not valid");
    }

    #[test]
    fn malformed_responses_are_refused() {
        for body in ["", "{}", "[]", r#"{"error":5}"#, r#"{"error":""}"#, r#"{"error":"a\nb"}"#, r#"{"error":"a\"b"}"#]
        {
            assert!(OAuthError::parse(body.as_bytes()).is_err(), "{body}");
        }
    }

    /// J8: what a server wrote cannot draw on the terminal, turn the text or fill the screen.
    #[test]
    fn display_is_bounded_and_escaped() {
        let shown = OAuthError::new("x", format!("\u{1b}[2J\u{202e}{}", "a".repeat(1000))).to_string();
        assert_eq!(shown, format!(r"x: \u{{1b}}[2J\u{{202e}}{}", "a".repeat(295)));
    }

    proptest! {
        #[test]
        fn what_is_built_reads_back(
            error in "[ !#-\\[\\]-~]{1,20}",
            error_description: Option<String>,
            error_uri: Option<String>,
        ) {
            let built = OAuthError { error, error_description, error_uri };
            prop_assert_eq!(OAuthError::parse(&built.to_json()), Ok(built));
        }
    }
}
