//! [`MessageHead`]: the members of a message that decide what it is.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{error::McpError, transport::json};

/// The members of a message that decide what it is, as JSON text. All are absent if the message is
/// not an object.
#[derive(Default, Deserialize)]
pub(super) struct MessageHead<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(super) method: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(super) result: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub(super) error: Option<&'a RawValue>,
}

/// Deserializes a member that is present, including `null`.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

/// The maximum length of an identifier of this client, in digits.
const MAX_ID: usize = 20;
/// The maximum length of a method that is answered, in bytes of JSON text.
const MAX_METHOD: usize = 1024;

impl<'a> MessageHead<'a> {
    /// Parses the text of a message. Fails with [`McpError::InvalidResponse`] if it is not JSON, or
    /// one of these members is duplicated.
    pub(super) fn parse(text: &'a [u8]) -> Result<Self, McpError> {
        let raw: &RawValue = serde_json::from_slice(text).map_err(|_| McpError::InvalidResponse)?;
        if !raw.get().starts_with('{') {
            return Ok(Self::default());
        }
        json::object(raw).ok_or(McpError::InvalidResponse)
    }

    /// Whether the message is the response to a request. An error can lack the id (JSON-RPC 2.0
    /// section 5).
    pub(super) fn is_response_to(&self, request: Option<u64>) -> bool {
        match self.id {
            _ if self.method.is_some() => false,
            None => self.error.is_some(),
            Some(id) => id.get().len() <= MAX_ID && serde_json::from_str(id.get()).ok() == request,
        }
    }

    /// The method of a request or notification.
    pub(super) fn method_name(&self) -> Option<String> {
        json::string(self.method?, MAX_METHOD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_has_the_id_or_is_an_error_without_one() {
        for (text, expected) in [
            (r#"{"id":7,"result":1}"#, true),
            (r#"{"id":7}"#, true),
            (r#"{"id":null,"error":{}}"#, true),
            (r#"{"error":null}"#, true),
            (r#"{"id":7,"method":null,"result":1}"#, false),
            (r#"{"id":8,"result":1}"#, false),
            (r#"{"id":"7","result":1}"#, false),
            (r#"{"id":7.0,"result":1}"#, false),
            (r#"{"result":1}"#, false),
            ("[7]", false),
        ] {
            assert_eq!(
                MessageHead::parse(text.as_bytes())
                    .unwrap()
                    .is_response_to(Some(7)),
                expected,
                "{text}"
            );
        }
        for invalid in ["", "{", r#"{"id":7,"result":1,"result":2}"#] {
            assert!(MessageHead::parse(invalid.as_bytes()).is_err(), "{invalid}");
        }
    }
}
