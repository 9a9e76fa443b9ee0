//! Event streams (HTML standard, section 9.2).

mod decoder;
mod encoder;

pub use decoder::{DecodeError, Decoder};
pub use encoder::EncodeError;

/// An event of a stream.
///
/// Unlike browsers, this crate keeps events with empty data: legacy servers send an `id` with empty
/// data so that clients can resume the stream. It also keeps events with other fields and no `data`
/// field; these cannot be told from events with empty data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The type of the event; `None` means `message`. [`encode`](Self::encode) rejects a line
    /// break.
    pub event: Option<String>,
    /// The data. `\n` separates the lines. A `\r` or `\r\n` is encoded as a line break, too, and
    /// decoded as `\n`.
    pub data: String,
    /// The id of the event, if it sets one. An empty id clears the last one: the stream cannot be
    /// resumed after this event. [`encode`](Self::encode) rejects a line break and a NUL.
    pub id: Option<String>,
    /// The reconnection time, in milliseconds. It is not bounded here: whoever waits must set a
    /// minimum and a maximum.
    pub retry: Option<u64>,
}

impl Event {
    /// Returns an event of the default type with only data.
    pub fn message(data: impl Into<String>) -> Self {
        Self {
            data: data.into(),
            ..Self::default()
        }
    }

    /// Returns whether the type is `message`, which is the default, also for an empty type (HTML
    /// standard, section 9.2.6). MCP sends its messages in these events. Events of other types,
    /// such as a server's `ping`, can have any data.
    pub fn is_message(&self) -> bool {
        self.event
            .as_deref()
            .is_none_or(|event_type| matches!(event_type, "" | "message"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_events_of_the_default_type_are_messages() {
        let event = |event: Option<&str>| Event {
            event: event.map(str::to_owned),
            ..Event::message("{}")
        };
        for (event_type, expected) in [
            (None, true),
            (Some(""), true),
            (Some("message"), true),
            (Some("Message"), false),
            (Some("ping"), false),
        ] {
            assert_eq!(event(event_type).is_message(), expected, "{event_type:?}");
        }
    }
}
