//! [`OversizedLine`]: finds the request identifier of a message that is too large to hold.

use crate::bridge::message::RequestId;

/// Finds the identifier of a JSON-RPC message while its bytes are discarded. Only the members of the outermost object
/// count.
///
/// It does not check that the text is JSON, because the text is not used for anything else.
#[derive(Debug, Default)]
pub(crate) struct OversizedLine {
    /// The number of open objects and arrays.
    depth: u32,
    is_in_string: bool,
    /// Whether the previous byte is a backslash that escapes the next one.
    is_escaped: bool,
    /// Whether the next string of the outermost object is a member's name.
    expects_name: bool,
    /// The field that the next byte is added to.
    recording: Recording,
    /// The name of the current member.
    name: Vec<u8>,
    /// The value of `id` as written.
    id: Vec<u8>,
    has_method: bool,
    /// Whether the line cannot be an object.
    is_other: bool,
}

/// The field that a byte is added to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Recording {
    #[default]
    Nothing,
    /// The name of a member.
    Name,
    /// The value of `id`.
    Id,
}

/// What is known about a message that is too large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OversizedMessage {
    /// A request with this identifier.
    Request(RequestId),
    /// A response to the request with this identifier.
    Response(RequestId),
    /// A notification, or text that is not a message.
    Other,
}

/// The maximum size of a member's name that is compared, in bytes.
const MAX_NAME: usize = 16;
/// The maximum size of an identifier, in bytes. A message with a longer one counts as one without.
const MAX_ID: usize = 1024;

impl OversizedLine {
    /// Reads the next piece of the line.
    pub(crate) fn push(&mut self, mut piece: &[u8]) {
        while let Some((&byte, rest)) = piece.split_first() {
            if self.is_other {
                return;
            }
            // A string that is not recorded is skipped up to its end or its next escape.
            if self.is_in_string && self.recording == Recording::Nothing && !self.is_escaped {
                let Some(end) = memchr::memchr2(b'"', b'\\', piece) else { return };
                if end > 0 {
                    piece = &piece[end..];
                    continue;
                }
            }
            self.push_byte(byte);
            piece = rest;
        }
    }

    /// Returns what is known about the message, at the end of the line.
    pub(crate) fn finish(self) -> OversizedMessage {
        match RequestId::parse(&self.id) {
            Some(id) if self.depth == 0 && !self.is_other && self.has_method => OversizedMessage::Request(id),
            Some(id) if self.depth == 0 && !self.is_other => OversizedMessage::Response(id),
            _ => OversizedMessage::Other,
        }
    }

    fn push_byte(&mut self, byte: u8) {
        if self.is_in_string {
            return self.push_string_byte(byte);
        }
        match byte {
            b'"' => {
                self.is_in_string = true;
                if self.depth == 1 && self.expects_name {
                    self.name.clear();
                    self.recording = Recording::Name;
                    return;
                }
            }
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                if self.depth == 1 {
                    self.is_other = byte == b'[';
                    self.expects_name = true;
                }
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.recording = Recording::Nothing;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 && self.expects_name => {
                self.expects_name = false;
                self.has_method |= self.name == b"method";
                if self.name == b"id" {
                    self.id.clear();
                    self.recording = Recording::Id;
                }
                return;
            }
            b',' if self.depth == 1 => {
                self.expects_name = true;
                self.recording = Recording::Nothing;
            }
            byte if self.depth == 0 && !byte.is_ascii_whitespace() => self.is_other = true,
            _ => {}
        }
        self.record(byte);
    }

    fn push_string_byte(&mut self, byte: u8) {
        let ends = byte == b'"' && !self.is_escaped;
        self.is_escaped = byte == b'\\' && !self.is_escaped;
        self.is_in_string = !ends;
        if ends && self.recording == Recording::Name {
            self.recording = Recording::Nothing;
            return;
        }
        self.record(byte);
    }

    fn record(&mut self, byte: u8) {
        match self.recording {
            Recording::Nothing => {}
            // One byte beyond the maximum is kept, so that a longer one does not match.
            Recording::Name if self.name.len() <= MAX_NAME => self.name.push(byte),
            Recording::Id if self.id.len() <= MAX_ID => self.id.push(byte),
            Recording::Name | Recording::Id => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str, piece: usize) -> OversizedMessage {
        let mut line = OversizedLine::default();
        for piece in text.as_bytes().chunks(piece) {
            line.push(piece);
        }
        line.finish()
    }

    fn id(text: &str) -> RequestId {
        RequestId::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_identifier_is_found_wherever_it_is() {
        let long = "x\\\"id\\\":5,{[".repeat(100);
        for text in [
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"id":8,"a":"{long}"}}}}"#),
            format!(r#"{{"method":"m","params":{{"id":8,"a":["{long}",{{"id":9}}]}},"jsonrpc":"2.0","id":7}}"#),
            format!(r#" {{ "params" : "{long}" , "id" : 7 , "method" : "m" }} "#),
        ] {
            for piece in [1, 3, 1000] {
                assert_eq!(read(&text, piece), OversizedMessage::Request(id("7")), "{text}");
            }
        }
        let text = r#"{"id":"a,}\"b","method":"m"}"#;
        assert_eq!(read(text, 2), OversizedMessage::Request(id(r#""a,}\"b""#)));
        assert_eq!(read(r#"{"id":1,"result":{"method":"m"}}"#, 5), OversizedMessage::Response(id("1")));
    }

    #[test]
    fn other_text_has_no_identifier() {
        let endless = format!(r#"{{"method":"m","id":"{}"}}"#, "x".repeat(5000));
        for text in [
            r#"{"method":"m","params":{"id":1}}"#,
            r#"[{"id":1,"method":"m"}]"#,
            r#"{"id":1,"method":"m""#,
            r#"{"id":{"a":1},"method":"m"}"#,
            r#"{"id":null,"method":"m"}"#,
            r#""id":1,"method":"m"}"#,
            "xxxx",
            "",
            &endless,
        ] {
            assert_eq!(read(text, 4), OversizedMessage::Other, "{text}");
        }
    }

    proptest! {
        /// Any JSON in the other members leaves the identifier as it is.
        #[test]
        fn other_members_do_not_confuse(texts in proptest::collection::vec(".*", 0..5), number in any::<i64>(), cut in 1_usize..9) {
            let params: Value = texts.iter().map(|text| json!({ text.as_str(): [text, { "id": 1 }] })).collect();
            let text = json!({ "a": params, "id": number, "method": "m", "params": params }).to_string();
            prop_assert_eq!(read(&text, cut), OversizedMessage::Request(id(&number.to_string())));
        }

        #[test]
        fn no_bytes_panic_or_are_kept(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..64), 0..40)) {
            let mut line = OversizedLine::default();
            for piece in &pieces {
                line.push(piece);
            }
            prop_assert!(line.name.len() <= MAX_NAME + 1 && line.id.len() <= MAX_ID + 1);
            let _ = line.finish();
        }
    }
}
