//! The messages in a response of the inner service, read while it passes.

use http::HeaderMap;
use portcullis_mcp::sse;
use portcullis_metadata::syntax::{has_media_type, is_event_stream};

use crate::message::{BudgetShare, is_encoded};

/// The maximum number of bytes in which a message is searched. The responses of interest have a few
/// kilobytes.
const MAX_READ: usize = 256 << 10;

/// Reads a response until one of its messages has the wanted value. Events of a stream whose type
/// is not `message` are skipped, as clients do.
pub(crate) struct MessageReader {
    format: Format,
    kept: Vec<u8>,
    /// The kept bytes count against the budget of all bodies, except the first ones.
    share: BudgetShare,
    uncounted: usize,
}

enum Format {
    Json,
    EventStream(sse::Decoder),
}

/// The progress of a [`MessageReader`].
pub(crate) enum Progress<T> {
    /// The reader needs more of the response.
    Unfinished,
    /// A message has the value.
    Found(T),
    /// No message has the value, or the response is too long.
    NotFound,
    /// The budget is exhausted.
    NoBudget,
}

impl MessageReader {
    /// Returns a reader for a response with these headers. `None` if the response is neither JSON
    /// nor an event stream, or has a content coding.
    pub(crate) fn new(headers: &HeaderMap, share: BudgetShare) -> Option<Self> {
        let format = if is_encoded(headers) {
            return None;
        } else if is_event_stream(headers) {
            Format::EventStream(sse::Decoder::new(MAX_READ))
        } else if has_media_type(headers, "application/json") {
            Format::Json
        } else {
            return None;
        };
        Some(Self {
            format,
            kept: Vec::new(),
            share,
            uncounted: 0,
        })
    }

    /// Does not count the first bytes against the budget, so that a short response is read even if
    /// it is exhausted.
    pub(crate) fn with_uncounted(mut self, bytes: usize) -> Self {
        self.uncounted = bytes;
        self
    }

    /// Reads the next piece. `is_last` means that no piece follows. `find` returns the wanted value
    /// of a message.
    pub(crate) fn read<T>(
        &mut self,
        piece: &[u8],
        is_last: bool,
        find: impl Fn(&[u8]) -> Option<T>,
    ) -> Progress<T> {
        let is_too_long = self.kept.len() + piece.len() > MAX_READ;
        let uncounted = piece.len().min(self.uncounted);
        self.uncounted -= uncounted;
        let has_budget = is_too_long || self.share.grow(piece.len() - uncounted);
        // Also a piece that does not fit: the client gets all bytes that were read.
        self.kept.extend_from_slice(piece);
        if is_too_long {
            return Progress::NotFound;
        }
        if !has_budget {
            return Progress::NoBudget;
        }
        let found = match &mut self.format {
            Format::Json if is_last => find(&self.kept),
            Format::Json => None,
            Format::EventStream(decoder) => match decoder.push(piece) {
                Ok(events) => events
                    .iter()
                    .filter(|event| event.is_message())
                    .find_map(|event| find(event.data.as_bytes())),
                Err(_) => return Progress::NotFound,
            },
        };
        match found {
            Some(found) => Progress::Found(found),
            None if is_last => Progress::NotFound,
            None => Progress::Unfinished,
        }
    }

    /// Returns all bytes that were read.
    pub(crate) fn into_kept(self) -> Vec<u8> {
        self.kept
    }
}
