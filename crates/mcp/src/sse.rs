//! Server-sent events, the framing of streamed answers (HTML standard, section 9.2).

mod decoder;
mod encoder;

pub use decoder::{DecodeError, Decoder};
pub use encoder::EncodeError;

/// One event of a stream.
///
/// Unlike a browser, this crate keeps events whose data is empty: legacy servers send an `id` with empty data
/// to prime a client for resuming.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The event's type; `None` means `message`.
    pub event: Option<String>,
    /// The data, lines separated by `\n`.
    pub data: String,
    /// The event's id; `None` where the event does not set one.
    pub id: Option<String>,
    /// How many milliseconds to wait before connecting again.
    pub retry: Option<u64>,
}

impl Event {
    /// An event of the default type, with data alone.
    pub fn message(data: impl Into<String>) -> Self {
        Self { data: data.into(), ..Self::default() }
    }
}
