//! Feeds input to the event stream parser.

use portcullis_mcp::sse::{DecodeError, Decoder, Event};

const MAX_EVENT: usize = 64 * 1024;

/// Decodes a stream. The events do not depend on the size of the chunks, and do not change when
/// they are encoded and decoded again.
pub fn sse(data: &[u8]) {
    let whole = decode([data]);
    for size in [1, 2, 7] {
        let chunks = decode(data.chunks(size));
        // A stream that fails loses the events of the failing chunk.
        assert_eq!(chunks.is_ok(), whole.is_ok());
        if whole.is_ok() {
            assert_eq!(chunks, whole);
        }
    }
    let _ = Decoder::new(16).push(data);
    for event in whole.unwrap_or_default() {
        if let Ok(written) = event.encode()
            && written.len() <= MAX_EVENT
        {
            assert_eq!(decode([written.as_bytes()]), Ok(vec![event]));
        }
    }
}

fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Event>, DecodeError> {
    let mut decoder = Decoder::new(MAX_EVENT);
    let mut events = Vec::new();
    for chunk in chunks {
        events.extend(decoder.push(chunk)?);
    }
    Ok(events)
}
