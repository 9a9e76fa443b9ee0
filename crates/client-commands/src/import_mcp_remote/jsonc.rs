//! JSON with comments and trailing commas, parsed into spans of the text, so that edits preserve
//! everything else.

use std::ops::Range;

use anyhow::{anyhow, bail};

/// A value and where it is in the text.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Object(Vec<Member>),
    Array(Vec<Item>),
    String(String),
    /// A number, `true`, `false` or `null`.
    Other,
}

/// A member of an object.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) node: Node,
}

/// An element of an array, and the comma after it.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) node: Node,
    pub(super) comma: Option<usize>,
}

/// A parsed text.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) root: Node,
    /// Comments, without the end of the line.
    pub(super) comments: Vec<Range<usize>>,
}

/// The maximum nesting depth.
const MAX_DEPTH: usize = 100;

impl Document {
    /// Parses a text. A byte order mark is skipped. The error has the line and the column, and
    /// nothing of the text.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let mut parser = Parser {
            text,
            at: if text.starts_with('\u{feff}') { 3 } else { 0 },
            comments: Vec::new(),
        };
        let document = parser.document();
        document.map_err(|error| {
            let before = text.get(..parser.at).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            let column = before
                .rsplit('\n')
                .next()
                .unwrap_or_default()
                .chars()
                .count()
                + 1;
            anyhow!("line {line}, column {column}: {error}")
        })
    }
}

impl Node {
    pub(super) fn as_object(&self) -> Option<&[Member]> {
        if let Value::Object(members) = &self.value {
            Some(members)
        } else {
            None
        }
    }

    pub(super) fn as_array(&self) -> Option<&[Item]> {
        if let Value::Array(items) = &self.value {
            Some(items)
        } else {
            None
        }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = &self.value {
            Some(text)
        } else {
            None
        }
    }

    /// The member with this name. None if the name occurs twice, because parsers differ in which
    /// one they use.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        let mut found = self
            .as_object()?
            .iter()
            .filter(|member| member.name == name);
        let first = found.next()?;
        found.next().is_none().then_some(&first.node)
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    comments: Vec<Range<usize>>,
}

impl Parser<'_> {
    fn document(&mut self) -> anyhow::Result<Document> {
        let root = self.node(0)?;
        self.skip()?;
        if self.peek().is_some() {
            bail!("expected the end of the file");
        }
        Ok(Document {
            root,
            comments: std::mem::take(&mut self.comments),
        })
    }

    fn node(&mut self, depth: usize) -> anyhow::Result<Node> {
        if depth > MAX_DEPTH {
            bail!("values are nested too deep");
        }
        self.skip()?;
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Value::String(self.string()?),
            _ => self.other()?,
        };
        Ok(Node {
            span: start..self.at,
            value,
        })
    }

    fn object(&mut self, depth: usize) -> anyhow::Result<Value> {
        self.at += 1;
        let mut members = Vec::new();
        loop {
            self.skip()?;
            if self.take(b'}') {
                return Ok(Value::Object(members));
            }
            if self.peek() != Some(b'"') {
                bail!("expected a member name or `}}`");
            }
            let name = self.string()?;
            self.skip()?;
            if !self.take(b':') {
                bail!("expected `:`");
            }
            let node = self.node(depth + 1)?;
            members.push(Member { name, node });
            self.skip()?;
            if !self.take(b',') && self.peek() != Some(b'}') {
                bail!("expected `,` or `}}`");
            }
        }
    }

    fn array(&mut self, depth: usize) -> anyhow::Result<Value> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip()?;
            if self.take(b']') {
                return Ok(Value::Array(items));
            }
            let node = self.node(depth + 1)?;
            self.skip()?;
            let comma = (self.peek() == Some(b',')).then_some(self.at);
            if !self.take(b',') && self.peek() != Some(b']') {
                bail!("expected `,` or `]`");
            }
            items.push(Item { node, comma });
        }
    }

    fn string(&mut self) -> anyhow::Result<String> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None | Some(b'\n') => bail!("a string does not end"),
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        let literal = self.text.get(start..self.at).unwrap_or_default();
        // serde_json's error would contain the text.
        serde_json::from_str(literal).map_err(|_| anyhow!("a string is invalid"))
    }

    fn other(&mut self) -> anyhow::Result<Value> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = rest
            .find(|next: char| !next.is_ascii_alphanumeric() && !"+-.".contains(next))
            .unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        if serde_json::from_str::<serde::de::IgnoredAny>(word).is_err() {
            bail!("expected a value");
        }
        self.at += end;
        Ok(Value::Other)
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> anyhow::Result<()> {
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let length = if rest.starts_with("//") {
                rest.find(['\n', '\r']).unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                let inner = rest.get(2..).unwrap_or_default();
                4 + inner
                    .find("*/")
                    .ok_or_else(|| anyhow!("a comment does not end"))?
            } else if self.peek().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
                self.at += 1;
                continue;
            } else {
                return Ok(());
            };
            self.comments.push(self.at..self.at + length);
            self.at += length;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_parsed() {
        let text = "\u{feff}// a\n{\"a\": [\"x\\\"\", /* b */ 1.5e3, null,], \"c\": {\"d\": true,},}\n// end";
        let document = Document::parse(text).unwrap();
        let comments: Vec<_> = document
            .comments
            .iter()
            .map(|span| &text[span.clone()])
            .collect();
        assert_eq!(comments, ["// a", "/* b */", "// end"]);
        let items = document.root.get("a").unwrap().as_array().unwrap();
        assert_eq!(items.len(), 3);
        assert_eq!(items[0].node.as_str(), Some("x\""));
        assert_eq!(&text[items[0].node.span.clone()], "\"x\\\"\"");
        assert!(
            items
                .iter()
                .all(|item| text.as_bytes()[item.comma.unwrap()] == b',')
        );
    }

    #[test]
    fn invalid_texts_are_rejected_with_their_position() {
        for (text, expected) in [
            ("", "line 1, column 1"),
            ("{\n \"secret\"", "line 2, column 10"),
            ("{\"secret", "line 1"),
            ("[1 2]", "line 1, column 4"),
            ("[secret]", "line 1, column 2"),
            ("{} {}", "line 1, column 4"),
            ("[/* secret", "line 1, column 2"),
            ("[\"\\", "a string does not end"),
            (",", "expected a value"),
            ("[,]", "expected a value"),
            ("[\"\\x secret\"]", "a string is invalid"),
        ] {
            let error = Document::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("secret"), "{text}: {error}");
        }
        assert!(
            Document::parse(&"[".repeat(100_000))
                .unwrap_err()
                .to_string()
                .contains("too deep")
        );
    }

    #[test]
    fn members_of_the_same_name_are_none() {
        let document = Document::parse(r#"{"a": 1, "b": 2, "a": 3}"#).unwrap();
        assert!(document.root.get("a").is_none());
        assert!(document.root.get("b").is_some());
    }

    proptest! {
        /// No text causes a panic, and texts that a strict parser accepts are accepted.
        #[test]
        fn no_text_panics(text in "[\\[\\]{}\",:/*\\\\a1 \n\u{e9}]{0,40}") {
            let parsed = Document::parse(&text);
            if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
                prop_assert!(parsed.is_ok());
            }
        }
    }
}
