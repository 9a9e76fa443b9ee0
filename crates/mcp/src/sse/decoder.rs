//! [`Decoder`]: decodes an event stream that arrives in pieces.

use memchr::{memchr, memchr2};

use super::Event;

const BYTE_ORDER_MARK: &str = "\u{FEFF}";
/// The size from which a buffer grows faster, in bytes.
const LARGE: usize = 1024 * 1024;

/// Decodes an event stream that arrives in pieces.
///
/// An event is complete after an empty line; an incomplete event at the end of the stream is
/// discarded. Comments and unknown fields are ignored. Bytes that are not UTF-8 are replaced by
/// U+FFFD, as the standard requires.
#[derive(Debug)]
pub struct Decoder {
    max_event: usize,
    /// The size of the current event, including its incomplete line.
    held: usize,
    /// The incomplete line.
    line: Vec<u8>,
    /// The fields of the current event; `None` before the first one.
    fields: Option<Event>,
    /// Whether the current event has a field with data, which can be empty.
    has_data: bool,
    /// Whether the first line, which can begin with a byte order mark, is not complete.
    at_start: bool,
    /// Whether the last byte was a CR. A LF that follows belongs to the same line break.
    after_carriage_return: bool,
    /// Whether an event has exceeded the limit.
    failed: bool,
}

/// The reason why a stream cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// An event or a line is larger than the decoder's limit.
    #[error("an event of the stream is too large")]
    EventTooLarge,
}

impl DecodeError {
    /// Returns the stable reason code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::EventTooLarge => "stream.event_too_large",
        }
    }
}

impl Decoder {
    /// Returns a decoder for a new stream. An event may have at most `max_event` bytes in UTF-8.
    pub fn new(max_event: usize) -> Self {
        Self {
            max_event,
            held: 0,
            line: Vec::new(),
            fields: None,
            has_data: false,
            at_start: true,
            after_carriage_return: false,
            failed: false,
        }
    }

    /// Decodes the next piece of the stream. Returns the events that it completes.
    ///
    /// # Errors
    /// Fails if an event exceeds the limit. The other events of the piece are lost, and every later
    /// call fails.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<Event>, DecodeError> {
        let mut events = Vec::new();
        let mut rest = piece;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_carriage_return) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = memchr2(b'\r', b'\n', rest);
            let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
            self.hold(part)?;
            rest = after;
            if let Some((line_break, after)) = rest.split_first() {
                self.after_carriage_return = *line_break == b'\r';
                rest = after;
                events.extend(self.end_line()?);
            }
        }
        Ok(events)
    }

    /// Returns the size of the current event so far, in bytes.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Adds bytes to the incomplete line.
    fn hold(&mut self, part: &[u8]) -> Result<(), DecodeError> {
        self.failed |= part.len() > self.max_event - self.held;
        if self.failed {
            return Err(DecodeError::EventTooLarge);
        }
        self.held += part.len();
        self.line
            .reserve(self.capacity_for(self.line.len(), self.line.capacity(), part.len()));
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// Returns how many bytes to reserve before this many are added to a buffer. A large buffer
    /// becomes four times as large: its earlier memory, which is not returned to the system at
    /// once, is then small.
    fn capacity_for(&self, length: usize, capacity: usize, added: usize) -> usize {
        if length < LARGE || added <= capacity - length {
            return added;
        }
        added.max((3 * length).min(self.max_event.saturating_sub(length)))
    }

    /// Completes the line. Returns the event that an empty line completes.
    fn end_line(&mut self) -> Result<Option<Event>, DecodeError> {
        let line = std::mem::take(&mut self.line);
        let size = self.count_replacements(&line)?;
        let mut text = into_text(line);
        if std::mem::take(&mut self.at_start) && text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len());
        }
        if text.is_empty() {
            self.held = 0;
            self.has_data = false;
            return Ok(self.fields.take());
        }
        if !self.field(text) {
            // Ignored lines do not count.
            self.held -= size;
        }
        Ok(None)
    }

    /// Counts what the line grows by, because U+FFFD has three bytes. Returns the line's size in
    /// UTF-8.
    fn count_replacements(&mut self, line: &[u8]) -> Result<usize, DecodeError> {
        if std::str::from_utf8(line).is_ok() {
            return Ok(line.len());
        }
        let replaced = |chunk: std::str::Utf8Chunk<'_>| {
            chunk.valid().len()
                + if chunk.invalid().is_empty() {
                    0
                } else {
                    char::REPLACEMENT_CHARACTER.len_utf8()
                }
        };
        let size: usize = line.utf8_chunks().map(replaced).sum();
        // Several invalid bytes can be replaced by one character, which makes the line shorter.
        let held = self.held - line.len() + size;
        self.failed |= held > self.max_event;
        if self.failed {
            return Err(DecodeError::EventTooLarge);
        }
        self.held = held;
        Ok(size)
    }

    /// Adds a field to the event. Returns false for a comment or an unknown field. The first line
    /// of data becomes the event's data without a copy.
    fn field(&mut self, mut line: String) -> bool {
        let name_end = memchr(b':', line.as_bytes()).unwrap_or(line.len());
        let value = line.get(name_end + 1..).unwrap_or_default();
        let value = value.strip_prefix(' ').unwrap_or(value);
        let data = self.fields.as_ref().map(|fields| &fields.data);
        let capacity = data.map_or(0, |data| {
            self.capacity_for(data.len(), data.capacity(), value.len() + 1)
        });
        match &line[..name_end] {
            "data" => {
                let fields = self.fields.get_or_insert_default();
                if std::mem::replace(&mut self.has_data, true) {
                    fields.data.reserve(capacity);
                    fields.data.push('\n');
                    fields.data.push_str(value);
                } else {
                    let value_start = line.len() - value.len();
                    line.drain(..value_start);
                    fields.data = line;
                }
            }
            "event" => {
                self.fields.get_or_insert_default().event =
                    Some(value.to_owned()).filter(|v| !v.is_empty())
            }
            "id" if !value.contains('\0') => {
                self.fields.get_or_insert_default().id = Some(value.to_owned())
            }
            "retry" if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) => {
                self.fields.get_or_insert_default().retry = value.parse().ok();
            }
            _ => return false,
        }
        true
    }
}

/// Returns the line as text, without a copy if it is UTF-8.
fn into_text(line: Vec<u8>) -> String {
    String::from_utf8(line)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn read(pieces: &[&str]) -> Vec<Event> {
        let mut decoder = Decoder::new(1024);
        pieces
            .iter()
            .flat_map(|piece| decoder.push(piece.as_bytes()).unwrap())
            .collect()
    }

    #[test]
    fn the_examples_of_the_standard() {
        let data = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| Event::message(*text))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            read(&["data: YHOO\ndata: +2\ndata: 10\n\n"]),
            data(&["YHOO\n+2\n10"])
        );
        assert_eq!(read(&["data\n\ndata\ndata\n\ndata:"]), data(&["", "\n"]));
        assert_eq!(
            read(&["data:test\n\ndata: test\n\n"]),
            data(&["test", "test"])
        );
        let ids = read(&[
            ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
        ]);
        assert_eq!(
            ids[0],
            Event {
                id: Some("1".into()),
                ..Event::message("first event")
            }
        );
        assert_eq!(
            ids[1],
            Event {
                id: Some(String::new()),
                ..Event::message("second event")
            }
        );
        assert_eq!(ids[2], Event::message(" third event"));
    }

    #[test]
    fn every_line_break_ends_a_line_once() {
        assert_eq!(
            read(&["data: a\r\ndata: b\rdata: c\n\r\n"]),
            [Event::message("a\nb\nc")]
        );
        assert_eq!(
            read(&["data: a\r", "\n\r", "\ndata: b\n\n"]),
            [Event::message("a"), Event::message("b")]
        );
    }

    #[test]
    fn an_event_with_empty_data_is_returned_and_an_incomplete_one_is_not() {
        assert_eq!(
            read(&["id: 4\ndata:\n\n"]),
            [Event {
                id: Some("4".into()),
                ..Event::default()
            }]
        );
        assert_eq!(
            read(&["id: 4\n\n"]),
            [Event {
                id: Some("4".into()),
                ..Event::default()
            }]
        );
        assert_eq!(
            read(&["\n\n: only a comment\n\nunknown: field\n\n", "data: cut"]),
            []
        );
    }

    #[test]
    fn unknown_and_malformed_fields_are_ignored() {
        let events = read(&[
            "\u{FEFF}retry: 1x\nretry: 99999999999999999999999\nid: a\0b\nevent:\ndata: d\n\n",
        ]);
        assert_eq!(events, [Event::message("d")]);
        assert_eq!(
            read(&["data: a\n\n\u{FEFF}data: b\n\n"]),
            [Event::message("a")]
        );
        assert_eq!(
            read(&["retry\n\nretry: +5\n\nretry: x\n\nid: a\0b\n\n"]),
            [],
            "ignored fields make no event"
        );
    }

    #[test]
    fn an_event_over_the_limit_ends_the_stream() {
        let mut decoder = Decoder::new(16);
        assert_eq!(
            decoder.push(b"data: 1234567890\n\n").unwrap(),
            [Event::message("1234567890")]
        );
        assert_eq!(decoder.push(b"data: 12\ndata: 3"), Ok(vec![]));
        assert_eq!(decoder.push(b"45"), Err(DecodeError::EventTooLarge));
        assert_eq!(
            decoder.push(b"\n\ndata: 1\n\n"),
            Err(DecodeError::EventTooLarge)
        );
    }

    /// A replaced byte takes three.
    #[test]
    fn replacements_count() {
        let line = |bytes: usize| [b"data:".as_slice(), &vec![0xFF; bytes], b"\n\n"].concat();
        let mut decoder = Decoder::new(35);
        assert_eq!(decoder.push(&line(10)).unwrap()[0].data.len(), 30);
        assert_eq!(decoder.push(&line(10)).unwrap()[0].data.len(), 30);
        assert_eq!(decoder.push(&line(11)), Err(DecodeError::EventTooLarge));
        assert_eq!(
            decoder.push(b"data: 1\n\n"),
            Err(DecodeError::EventTooLarge)
        );
    }

    #[test]
    fn the_error_has_a_stable_code() {
        assert_eq!(DecodeError::EventTooLarge.code(), "stream.event_too_large");
    }

    /// The data of an event uses the buffer of its line.
    #[test]
    fn a_large_text_is_stored_once() {
        let mut decoder = Decoder::new(1 << 20);
        decoder.push(b"data: ").unwrap();
        for _ in 0..8 {
            assert_eq!(decoder.push(&[b'x'; 1 << 16]), Ok(vec![]));
        }
        let held = decoder.line.as_ptr();
        assert_eq!(decoder.held(), 6 + (8 << 16));
        let events = decoder.push(b"\n\n").unwrap();
        assert_eq!(events[0].data.len(), 8 << 16);
        assert_eq!(events[0].data.as_ptr(), held);
        assert_eq!(decoder.held(), 0, "no buffer remains");
        assert_eq!(decoder.line.capacity(), 0, "no buffer remains");
    }

    #[test]
    fn comments_do_not_use_up_the_limit() {
        let mut decoder = Decoder::new(8);
        for _ in 0..100 {
            assert_eq!(decoder.push(b": ping\n").unwrap(), []);
        }
    }

    #[test]
    fn a_comment_releases_only_its_own_size() {
        let mut decoder = Decoder::new(64);
        let comment = [b":".as_slice(), &[0xFF; 30], b"\n"].concat();
        let mut outcome = Ok(vec![]);
        for _ in 0..4 {
            outcome = outcome
                .and(decoder.push(b"data: 0123456789012345\n"))
                .and(decoder.push(&comment));
        }
        assert_eq!(outcome, Err(DecodeError::EventTooLarge));
    }

    prop_compose! {
        fn event()(
            event in proptest::option::of("[^\r\n]{1,8}"),
            data in "[^\r]{0,40}",
            id in proptest::option::of("[^\r\n\0]{0,8}"),
            retry in proptest::option::of(any::<u64>()),
        ) -> Event {
            Event { event, data, id, retry }
        }
    }

    proptest! {
        #[test]
        fn encoded_events_can_be_split_anywhere(events in vec(event(), 0..4), cuts in vec(1_usize..20, 1..8)) {
            let stream: String = events.iter().map(|event| event.encode().unwrap()).collect();
            let mut decoder = Decoder::new(4096);
            let mut read = Vec::new();
            let mut rest = stream.as_bytes();
            for cut in cuts.iter().cycle() {
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                read.extend(decoder.push(piece).unwrap());
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(read, events);
        }

        #[test]
        fn no_bytes_panic_or_outgrow_the_limit(pieces in vec(vec(any::<u8>(), 0..64), 0..8)) {
            let mut decoder = Decoder::new(64);
            for piece in &pieces {
                let _ = decoder.push(piece);
                prop_assert!(decoder.line.len() <= 64);
                prop_assert!(decoder.held <= 64);
            }
        }
    }
}
