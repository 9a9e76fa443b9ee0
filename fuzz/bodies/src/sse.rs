//! Feeds input to the event stream parser.

use portcullis_mcp::sse::{DecodeError, Decoder, Event};

const MAX_EVENT: usize = 64 * 1024;

/// The input is a stream. It has the same events however it is cut into pieces, and each of them is the same after
/// it was written and read once more.
pub fn sse(data: &[u8]) {
    let whole = decode([data]);
    for size in [1, 2, 7] {
        let pieces = decode(data.chunks(size));
        // A stream that fails loses the events of the piece in which it does.
        assert_eq!(pieces.is_ok(), whole.is_ok());
        if whole.is_ok() {
            assert_eq!(pieces, whole);
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

fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Event>, DecodeError> {
    let mut decoder = Decoder::new(MAX_EVENT);
    let mut events = Vec::new();
    for piece in pieces {
        events.extend(decoder.push(piece)?);
    }
    Ok(events)
}
