//! Durations in configuration values: `30m`, `24h`, `5s`.

use std::{borrow::Cow, fmt, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A length of time in the configuration, written as `250ms`, `5s`, `30m` or `24h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// A number of seconds.
    pub const fn secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(SpanVisitor)
    }
}

struct SpanVisitor;

impl de::Visitor<'_> for SpanVisitor {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration with a unit")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
        humantime::parse_duration(text).map(Span).map_err(|_| {
            E::custom(format!(
                "{text:?} is not a duration; write a number and a unit, such as \"30m\""
            ))
        })
    }
}

impl JsonSchema for Span {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^\\s*(\\d+\\s*[a-zA-Z]+\\s*)+$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read_back() {
        for text in ["250ms", "5s", "30m", "1day"] {
            let span: Span = serde_json::from_value(text.into()).unwrap();
            assert_eq!(span.to_string(), text);
        }
    }

    #[test]
    fn a_number_without_a_unit_is_refused_with_the_fix() {
        let error = serde_json::from_value::<Span>("30".into()).unwrap_err();
        assert!(error.to_string().contains("\"30m\""), "{error}");
    }
}
