use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The status of a request for an ended session by its owner: `"auto"`, or a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndedStatus {
    /// 400 if the owner ended the session, and 404 if the server did.
    #[default]
    Auto,
    /// This status, of which only 400 and 404 are valid.
    Always(u64),
}

const AUTO: &str = "auto";

impl Serialize for EndedStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str(AUTO),
            Self::Always(status) => serializer.serialize_u64(*status),
        }
    }
}

impl<'de> Deserialize<'de> for EndedStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StatusVisitor)
    }
}

struct StatusVisitor;

impl de::Visitor<'_> for StatusVisitor {
    type Value = EndedStatus;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"auto\", 400 or 404")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<EndedStatus, E> {
        if text == AUTO {
            Ok(EndedStatus::Auto)
        } else {
            Err(E::invalid_value(de::Unexpected::Str(text), &self))
        }
    }

    fn visit_u64<E: de::Error>(self, status: u64) -> Result<EndedStatus, E> {
        Ok(EndedStatus::Always(status))
    }

    fn visit_i64<E: de::Error>(self, status: i64) -> Result<EndedStatus, E> {
        u64::try_from(status)
            .map(EndedStatus::Always)
            .map_err(|_| E::invalid_value(de::Unexpected::Signed(status), &self))
    }
}

impl JsonSchema for EndedStatus {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "EndedStatus".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "integer", "enum": [400, 404] }, { "type": "string", "enum": [AUTO] }],
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// E10: a status is a number or `"auto"`, and is written as it was read.
    #[test]
    fn both_forms_are_read() {
        let read = |value: Value| serde_json::from_value::<EndedStatus>(value);
        for value in [json!("auto"), json!(400), json!(404), json!(410)] {
            let status = read(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(status).unwrap(), value);
        }
        for value in [
            json!("404"),
            json!("Auto"),
            json!(-1),
            json!(4.5),
            json!(true),
        ] {
            let error = read(value).unwrap_err().to_string();
            assert!(error.contains("expected \"auto\", 400 or 404"), "{error}");
        }
    }
}
