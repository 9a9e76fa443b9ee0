//! [`RequestId`]: the identifier of a JSON-RPC request.

use serde_json::{Number, Value, value::RawValue};

/// A request's identifier, as normalized JSON: identifiers with the same value are equal, even if
/// the server's JSON library writes them in another way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestId(String);

/// The maximum length of an identifier, in bytes of JSON text.
const MAX_ID: usize = 64 * 1024;

impl RequestId {
    /// Parses an identifier from its JSON text. `None` unless it is a string or a number of at most
    /// 64 KiB.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        Self::from_json(serde_json::from_slice(text).ok()?)
    }

    /// Converts an identifier from JSON. `None` unless it is a string or a number of at most 64
    /// KiB.
    pub(super) fn from_json(raw: &RawValue) -> Option<Self> {
        if raw.get().len() > MAX_ID || raw.get().starts_with(['[', '{']) {
            return None;
        }
        match serde_json::from_str(raw.get()).ok()? {
            Value::String(text) => Some(Self(Value::from(text).to_string())),
            Value::Number(number) => {
                Some(Self(integer(&number).unwrap_or_else(|| number.to_string())))
            }
            _ => None,
        }
    }

    /// Creates an identifier for a request of the bridge itself. Nothing prevents a client from
    /// using the same one.
    pub(crate) fn own(number: u64) -> Self {
        Self(format!("\"portcullis:{number}\""))
    }

    /// The identifier as JSON.
    pub(super) fn as_json(&self) -> &str {
        &self.0
    }
}

/// Converts a number without a fraction, such as `1.0`, to an integer, as other JSON libraries do.
fn integer(number: &Number) -> Option<String> {
    /// The largest range in which a floating-point number represents every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let value = number
        .as_f64()
        .filter(|value| number.is_f64() && value.fract() == 0.0 && value.abs() <= EXACT)?;
    // Through an integer, because -0.0 equals 0.
    format!("{value:.0}")
        .parse()
        .ok()
        .map(|integer: i64| integer.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids are compared by value, because servers can serialize them differently.
    #[test]
    fn ids_are_compared_by_value() {
        let id = |text: &str| RequestId::parse(text.as_bytes());
        for (one, other) in [
            (r#""a/b""#, r#""a\/b""#),
            (r#""\u00e4""#, r#""ä""#),
            ("1", "1.0"),
            ("100", "1e2"),
            ("-0.0", "0"),
            ("9007199254740992", "9007199254740992.0"),
            ("1.50", "1.5"),
        ] {
            assert!(id(one).is_some(), "{one} {other}");
            assert!(id(one) == id(other), "{one} {other}");
        }
        for (one, other) in [
            ("1", r#""1""#),
            ("1", "2"),
            ("1.5", "1"),
            ("18446744073709551615", "18446744073709551614"),
            ("-1", "1"),
        ] {
            assert_ne!(id(one), id(other), "{one} {other}");
        }
        assert!(id(&format!("\"{}\"", "x".repeat(MAX_ID - 2))).is_some());
        assert!(id(&format!("\"{}\"", "x".repeat(MAX_ID))).is_none());
        for foreign in ["true", "{}", "[1]", "null"] {
            assert_eq!(id(foreign), None, "{foreign}");
        }
    }
}
