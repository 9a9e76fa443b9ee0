//! The messages in an answer of the inner service, read while they pass.

use http::HeaderMap;
use portcullis_mcp::sse;
use portcullis_metadata::{has_media_type, is_event_stream};

use crate::{budget::Share, content_coding};

/// How many bytes of an answer are kept. The answers that are read have a few kilobytes.
const MAX_KEPT: usize = 256 << 10;

/// Reads an answer until one of its messages has what is looked for.
pub(crate) struct AnswerReader {
    form: Form,
    kept: Vec<u8>,
    /// What is kept counts against the budget of all bodies.
    share: Share,
}

enum Form {
    Json,
    Events(sse::Decoder),
}

/// How far the reading is.
pub(crate) enum Progress<T> {
    /// More of the answer has to come.
    Unfinished,
    /// A message had it.
    Found(T),
    /// No message had it, or the answer is too long, or the budget is spent.
    Nothing,
}

impl AnswerReader {
    /// A reader for an answer with these headers; `None` for one that is neither JSON nor an event stream, or has a content coding.
    pub(crate) fn new(headers: &HeaderMap, share: Share) -> Option<Self> {
        let form = if content_coding::is_encoded(headers) {
            return None;
        } else if is_event_stream(headers) {
            Form::Events(sse::Decoder::new(MAX_KEPT))
        } else if has_media_type(headers, "application/json") {
            Form::Json
        } else {
            return None;
        };
        Some(Self { form, kept: Vec::new(), share })
    }

    /// Takes the next piece; `last` tells that nothing follows. `find` looks for something in a message.
    pub(crate) fn take<T>(&mut self, piece: &[u8], last: bool, find: impl Fn(&[u8]) -> Option<T>) -> Progress<T> {
        let fits = self.kept.len() + piece.len() <= MAX_KEPT && self.share.grow(piece.len());
        self.kept.extend_from_slice(piece);
        let found = match &mut self.form {
            _ if !fits => return Progress::Nothing,
            Form::Json if last => find(&self.kept),
            Form::Json => None,
            Form::Events(decoder) => match decoder.push(piece) {
                Ok(events) => events.iter().find_map(|event| find(event.data.as_bytes())),
                Err(_) => return Progress::Nothing,
            },
        };
        match found {
            Some(found) => Progress::Found(found),
            None if last => Progress::Nothing,
            None => Progress::Unfinished,
        }
    }

    /// Everything that was taken.
    pub(crate) fn into_kept(self) -> Vec<u8> {
        self.kept
    }
}
