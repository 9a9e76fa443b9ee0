//! The boundaries between the events of a stream (HTML standard, section 9.2.5).

/// Tracks whether the bytes of an event stream end with a complete event, however they are divided.
///
/// CR LF, LF or CR ends a line. An empty line ends an event. The start of the stream is also a
/// boundary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boundary {
    is_line_empty: bool,
    is_after_event: bool,
    is_after_carriage_return: bool,
}

impl Boundary {
    /// Returns the state before the first byte.
    pub(crate) fn at_start() -> Self {
        Self {
            is_line_empty: true,
            is_after_event: true,
            is_after_carriage_return: false,
        }
    }

    /// Returns whether the last event is complete.
    pub(crate) fn is_reached(self) -> bool {
        self.is_after_event
    }

    /// Processes a piece that is sent as a whole. Only the bytes after its last line matter.
    pub(crate) fn pass(&mut self, piece: &[u8]) {
        let last = piece.iter().rposition(|byte| !is_line_end(*byte));
        for &byte in &piece[last.unwrap_or(0)..] {
            self.step(byte);
        }
    }

    /// Processes a piece up to the end of the incomplete event. Returns the length of that part,
    /// which is the whole piece if the event does not end in it.
    pub(crate) fn pass_event(&mut self, piece: &[u8]) -> usize {
        let mut length = 0;
        for &byte in piece {
            // The LF of a CR LF belongs to the line that the CR ended.
            if self.is_after_event && !(self.is_after_carriage_return && byte == b'\n') {
                break;
            }
            self.step(byte);
            length += 1;
        }
        length
    }

    fn step(&mut self, byte: u8) {
        let is_second_half = byte == b'\n' && self.is_after_carriage_return;
        self.is_after_carriage_return = byte == b'\r';
        if !is_second_half {
            self.is_after_event = self.is_line_empty && is_line_end(byte);
            self.is_line_empty = is_line_end(byte);
        }
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same for a whole text.
    fn is_boundary(text: &[u8]) -> bool {
        let text = String::from_utf8_lossy(text)
            .replace("\r\n", "\n")
            .replace('\r', "\n");
        text.ends_with("\n\n") || text.bytes().all(|byte| byte == b'\n')
    }

    #[test]
    fn boundaries_are_empty_lines() {
        for (text, is_reached) in [
            ("", true),
            ("\n", true),
            ("data: 1", false),
            ("data: 1\n", false),
            ("data: 1\r", false),
            ("data: 1\r\n", false),
            ("data: 1\n\n", true),
            ("data: 1\r\r", true),
            ("data: 1\r\n\r\n", true),
            ("data: 1\r\n\r", true),
            ("data: 1\n\r", true),
            ("data: 1\r\n\n", true),
            ("data: 1\n\n: comment", false),
            ("data: 1\n\n: comment\n", false),
            ("data: 1\n\n\n", true),
        ] {
            let mut boundary = Boundary::at_start();
            boundary.pass(text.as_bytes());
            assert_eq!(boundary.is_reached(), is_reached, "{text:?}");
            let mut boundary = Boundary::at_start();
            for byte in text.bytes() {
                boundary.pass(&[byte]);
            }
            assert_eq!(boundary.is_reached(), is_reached, "{text:?}, byte by byte");
        }
    }

    #[test]
    fn the_rest_of_an_event_is_found() {
        for (before, piece, rest) in [
            ("data: 1", "\n\ndata: 2\n\n", "\n\n"),
            ("data: 1\n", "\ndata: 2", "\n"),
            ("data: 1\n", "data: more\n\ndata: 2", "data: more\n\n"),
            ("data: 1", "\r\n\r\ndata: 2", "\r\n\r\n"),
            ("data: 1\r", "\n\r\ndata: 2", "\n\r\n"),
            ("data: 1\r\n\r", "\ndata: 2", "\n"),
            ("data: 1", " and more", " and more"),
            ("data: 1\n\n", "data: 2\n\n", ""),
        ] {
            let mut boundary = Boundary::at_start();
            boundary.pass(before.as_bytes());
            let length = boundary.pass_event(piece.as_bytes());
            assert_eq!(&piece[..length], rest, "{before:?} {piece:?}");
        }
    }

    proptest! {
        /// L3: the division of a stream does not matter.
        #[test]
        fn boundaries_do_not_depend_on_the_division(
            pieces in prop::collection::vec(prop::collection::vec(prop::sample::select(b"\r\nd:x".as_slice()), 0..6), 0..6)
        ) {
            let whole = pieces.concat();
            let mut divided = Boundary::at_start();
            let mut undivided = Boundary::at_start();
            for piece in &pieces {
                divided.pass(piece);
            }
            undivided.pass(&whole);
            prop_assert_eq!(divided.is_reached(), undivided.is_reached());
            prop_assert_eq!(undivided.is_reached(), is_boundary(&whole), "{:?}", String::from_utf8_lossy(&whole));
        }
    }
}
