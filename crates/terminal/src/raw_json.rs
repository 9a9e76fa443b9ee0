//! [`RawJson`]: prints JSON text without building a value.

use std::fmt::{self, Display};

use serde_json::value::RawValue;

use crate::escaped_json::write_escaped;

/// JSON text, escaped for a terminal as the results of other commands are. Only the white space
/// between its tokens is changed.
pub struct RawJson<'a> {
    json: &'a str,
    is_pretty: bool,
}

/// The depth up to which values are written on lines of their own. Deeper ones are written on one
/// line, because every line begins with spaces for its depth.
const MAX_INDENTED: usize = 64;

impl<'a> RawJson<'a> {
    /// Shows it on several lines.
    pub fn pretty(json: &'a RawValue) -> Self {
        Self {
            json: json.get(),
            is_pretty: true,
        }
    }

    /// Shows it on one line.
    pub fn compact(json: &'a RawValue) -> Self {
        Self {
            json: json.get(),
            is_pretty: false,
        }
    }

    fn new_line(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        if self.is_pretty && depth <= MAX_INDENTED {
            write!(f, "\n{:1$}", "", 2 * depth)
        } else {
            Ok(())
        }
    }
}

impl Display for RawJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut depth = 0_usize;
        let mut rest = self.json.trim_ascii_start();
        while let Some(first) = rest.as_bytes().first() {
            let length = token_length(rest);
            let (token, after) = rest.split_at(length);
            rest = after.trim_ascii_start();
            match first {
                b'{' | b'[' => {
                    f.write_str(token)?;
                    depth += 1;
                    if !rest.starts_with(['}', ']']) {
                        self.new_line(f, depth)?;
                    }
                }
                b'}' | b']' => {
                    // The depth of valid JSON is positive here.
                    depth = depth.saturating_sub(1);
                    f.write_str(token)?;
                }
                b',' => {
                    f.write_str(token)?;
                    self.new_line(f, depth)?;
                }
                b':' => f.write_str(if self.is_pretty { ": " } else { ":" })?,
                _ => write_escaped(f, token)?,
            }
            let is_empty = matches!(first, b'{' | b'[');
            if rest.starts_with(['}', ']']) && !is_empty {
                self.new_line(f, depth.saturating_sub(1))?;
            }
        }
        Ok(())
    }
}

/// The length of the first token of a text.
fn token_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes.first() {
        Some(b'"') => {
            let mut is_escaped = false;
            let end = bytes.iter().skip(1).position(|byte| {
                let ends = *byte == b'"' && !is_escaped;
                is_escaped = *byte == b'\\' && !is_escaped;
                ends
            });
            end.map_or(bytes.len(), |end| end + 2)
        }
        Some(b'{' | b'}' | b'[' | b']' | b',' | b':') => 1,
        _ => {
            let ends =
                |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b':' | b'}' | b']');
            bytes.iter().position(ends).unwrap_or(bytes.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_testkit::strategies::any_json;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn numbers_and_order_are_unchanged() {
        let text = "{ \"b\" :[1.50, 1e400 ,{}, [ ] ],\r\n\"a\":\"\\ud800 \\\\\" }";
        let pretty = "{\n  \"b\": [\n    1.50,\n    1e400,\n    {},\n    []\n  ],\n  \"a\": \"\\ud800 \\\\\"\n}";
        assert_eq!(RawJson::pretty(raw(text)).to_string(), pretty);
        let compact = "{\"b\":[1.50,1e400,{},[]],\"a\":\"\\ud800 \\\\\"}";
        assert_eq!(RawJson::compact(raw(text)).to_string(), compact);
    }

    /// Neither the stack nor the output grows with the square of the depth.
    #[test]
    fn depth_is_bounded() {
        let depth = 1_000_000;
        let deep = "[".repeat(depth) + &"]".repeat(depth);
        let shown = RawJson::pretty(raw(&deep)).to_string();
        assert!(shown.len() < 2 * depth + 20_000, "{}", shown.len());
        assert!(shown.starts_with("[\n  [\n    ["));
        assert!(shown.ends_with("]\n  ]\n]"));
    }

    proptest! {
        /// J8: the text is that of serde_json, escaped.
        #[test]
        fn the_text_is_that_of_a_value(value in any_json()) {
            let escaped = |json: &str| {
                let mut escaped = String::new();
                write_escaped(&mut escaped, json).unwrap();
                escaped
            };
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(RawJson::pretty(raw(&pretty)).to_string(), escaped(&pretty));
            prop_assert_eq!(RawJson::compact(raw(&pretty)).to_string(), escaped(&json!(value).to_string()));
        }
    }
}
