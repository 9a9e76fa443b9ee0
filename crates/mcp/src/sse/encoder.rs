//! The encoding of an [`Event`].

use std::fmt::Write;

use super::Event;

/// The reason why an event cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The type has a line break, which would end its field.
    #[error("the type of an event must not have a line break")]
    LineBreakInType,
    /// The id has a line break, or a NUL, with which readers ignore the id.
    #[error("the id of an event must not have a line break or a NUL")]
    UnsafeId,
}

impl EncodeError {
    /// Returns the stable reason code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::LineBreakInType => "stream.type_line_break",
            Self::UnsafeId => "stream.unsafe_id",
        }
    }
}

impl Event {
    /// Encodes the event, including the empty line at its end.
    ///
    /// Data with several lines becomes several fields. Every line break decodes as `\n`.
    ///
    /// # Errors
    /// Fails if the type or the id has a character that would end the field or make readers ignore
    /// it.
    pub fn encode(&self) -> Result<String, EncodeError> {
        let mut out = String::with_capacity(self.data.len() + 32);
        if let Some(event) = &self.event {
            if event.contains(['\r', '\n']) {
                return Err(EncodeError::LineBreakInType);
            }
            push_field(&mut out, "event", event);
        }
        if let Some(id) = &self.id {
            if id.contains(['\r', '\n', '\0']) {
                return Err(EncodeError::UnsafeId);
            }
            push_field(&mut out, "id", id);
        }
        if let Some(retry) = self.retry {
            // Writing to a string does not fail.
            let _ = writeln!(out, "retry: {retry}");
        }
        for line in self.data.replace("\r\n", "\n").split(['\r', '\n']) {
            push_field(&mut out, "data", line);
        }
        out.push('\n');
        Ok(out)
    }
}

fn push_field(out: &mut String, name: &str, value: &str) {
    for part in [name, ": ", value, "\n"] {
        out.push_str(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_written_field_by_field() {
        let event = Event {
            event: Some("message".into()),
            data: "{\"a\":1}\nb\r\nc\rd".into(),
            id: Some("s1-7".into()),
            retry: Some(3000),
        };
        assert_eq!(
            event.encode().unwrap(),
            "event: message\nid: s1-7\nretry: 3000\ndata: {\"a\":1}\ndata: b\ndata: c\ndata: d\n\n"
        );
        assert_eq!(Event::message("").encode().unwrap(), "data: \n\n");
    }

    #[test]
    fn errors_have_stable_codes() {
        let codes = [EncodeError::LineBreakInType, EncodeError::UnsafeId].map(EncodeError::code);
        assert_eq!(codes, ["stream.type_line_break", "stream.unsafe_id"]);
    }

    #[test]
    fn neither_type_nor_id_can_start_a_new_field() {
        for bad in ["a\nb", "a\rb", "\n\ndata: x"] {
            let by_type = Event {
                event: Some(bad.into()),
                ..Event::default()
            };
            assert_eq!(by_type.encode(), Err(EncodeError::LineBreakInType));
            let by_id = Event {
                id: Some(bad.into()),
                ..Event::default()
            };
            assert_eq!(by_id.encode(), Err(EncodeError::UnsafeId));
        }
        assert_eq!(
            Event {
                id: Some("a\0".into()),
                ..Event::default()
            }
            .encode(),
            Err(EncodeError::UnsafeId)
        );
    }
}
