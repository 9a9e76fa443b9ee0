//! [`MessageId`]: the id of a JSON-RPC message without the message.

use std::fmt;

use serde_json::value::RawValue;

/// The `id` of a JSON-RPC message as written: a JSON string or integer. It does not borrow from the
/// message.
///
/// An id of up to 38 bytes, such as a UUID, needs no allocation.
#[derive(Clone, PartialEq, Eq)]
pub struct MessageId(Text);

const MAX_INLINE: usize = 38;

#[derive(Clone, PartialEq, Eq)]
enum Text {
    Inline { bytes: [u8; MAX_INLINE], length: u8 },
    Boxed(Box<str>),
}

impl MessageId {
    /// Keeps a checked id as written.
    pub(crate) fn new(id: &str) -> Self {
        let mut bytes = [0; MAX_INLINE];
        match (bytes.get_mut(..id.len()), u8::try_from(id.len())) {
            (Some(start), Ok(length)) => {
                start.copy_from_slice(id.as_bytes());
                Self(Text::Inline { bytes, length })
            }
            _ => Self(Text::Boxed(id.into())),
        }
    }

    /// Returns the id as JSON, for a response. It is never `None` for an id that
    /// [`Envelope::message_id`](crate::Envelope::message_id) returns.
    pub fn to_json(&self) -> Option<&RawValue> {
        serde_json::from_str(self.as_str()).ok()
    }

    fn as_str(&self) -> &str {
        match &self.0 {
            // `new` has copied a `str`, so neither conversion fails.
            Text::Inline { bytes, length } => {
                let written = bytes.get(..usize::from(*length)).unwrap_or_default();
                std::str::from_utf8(written).unwrap_or_default()
            }
            Text::Boxed(text) => text,
        }
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MessageId").field(&self.as_str()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E5: an id of any length is returned as written.
    #[test]
    fn ids_are_returned_as_written() {
        let texts = ["7", "-12345678901234567890123", r#""""#, r#""a\u0022é""#].map(str::to_owned);
        let lengths =
            [MAX_INLINE - 1, MAX_INLINE, MAX_INLINE + 1, 300].map(|length| "1".repeat(length));
        for text in texts.into_iter().chain(lengths) {
            let id = MessageId::new(&text);
            assert_eq!(id.to_json().map(RawValue::get), Some(&*text));
            assert_eq!(
                matches!(id.0, Text::Inline { .. }),
                text.len() <= MAX_INLINE,
                "{text}"
            );
            assert_eq!(id.clone(), id);
            assert_eq!(format!("{id:?}"), format!("MessageId({text:?})"));
        }
    }
}
