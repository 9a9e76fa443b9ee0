//! Event streams (HTML standard, section 9.2).

mod decoder;
mod encoder;

pub use decoder::{DecodeError, Decoder};
pub use encoder::EncodeError;

/// An event of a stream.
///
/// Unlike browsers, this crate keeps events with empty data: legacy servers send an `id` with empty data so that clients can
/// resume the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The type of the event; `None` means `message`.
    pub event: Option<String>,
    /// The data. `\n` separates the lines.
    pub data: String,
    /// The id of the event, if it sets one.
    pub id: Option<String>,
    /// The reconnection time, in milliseconds.
    pub retry: Option<u64>,
}

impl Event {
    /// Returns an event of the default type with only data.
    pub fn message(data: impl Into<String>) -> Self {
        Self { data: data.into(), ..Self::default() }
    }
}
