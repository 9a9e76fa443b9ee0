//! [`Audience`]: the value of an `aud` claim.

use serde_json::Value;

/// The value of an `aud` claim (RFC 7519 section 4.1.3): one string or an array of strings.
///
/// Array entries that are not strings are dropped, so they never match a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audience(Box<[Box<str>]>);

impl Audience {
    /// Creates an audience from its entries.
    pub fn new<'a>(entries: impl IntoIterator<Item = &'a str>) -> Self {
        Self(entries.into_iter().map(Box::from).collect())
    }

    /// Returns the entries as written in the claim.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| &**entry)
    }

    /// Reads the claim's value. Returns `None` if it is neither a string nor an array.
    pub(crate) fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::String(entry) => Some(Self::new([entry.as_str()])),
            Value::Array(entries) => Some(Self::new(entries.iter().filter_map(Value::as_str))),
            _ => None,
        }
    }

    /// Returns a JSON string for a single entry and an array otherwise.
    pub(crate) fn to_value(&self) -> Value {
        match &*self.0 {
            [entry] => Value::from(&**entry),
            entries => entries.iter().map(|entry| Value::from(&**entry)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::identifier::ResourceUri;

    fn matches(audience: &Value, resource: &str) -> bool {
        let resource = ResourceUri::parse(resource).unwrap();
        Audience::from_value(audience).is_some_and(|audience| {
            audience
                .iter()
                .any(|entry| resource.matches_audience(entry))
        })
    }

    /// C6: a string or any array entry matches; letter case and one trailing slash are ignored.
    #[test]
    fn one_matching_entry_is_enough() {
        let resource = "https://mcp.example.com/mcp";
        assert!(matches(&json!("https://mcp.example.com/mcp"), resource));
        assert!(matches(&json!("https://MCP.example.com/Mcp/"), resource));
        assert!(matches(
            &json!(["api", 7, "https://mcp.example.com/mcp"]),
            resource
        ));
    }

    /// C6: values that only resemble the resource's URL do not match.
    #[test]
    fn similar_urls_do_not_match() {
        for audience in [
            json!([]),
            json!("api"),
            json!(""),
            json!("/"),
            json!("https://mcp.example.com"),
            json!("https://mcp.example.com/"),
            json!("https://mcp.example.com/mcp/more"),
            json!("https://mcp.example.com/mcp//"),
            json!("https://mcp.example.com/%6dcp"),
            json!("https://mcp.example.com:443/mcp"),
            json!("http://mcp.example.com/mcp"),
            json!("https://mcp.example.com/mcp?"),
            json!(" https://mcp.example.com/mcp"),
            json!([["https://mcp.example.com/mcp"]]),
            json!([{"aud": "https://mcp.example.com/mcp"}]),
            json!({"0": "https://mcp.example.com/mcp"}),
            json!(5),
            json!(null),
            json!(true),
        ] {
            assert!(
                !matches(&audience, "https://mcp.example.com/mcp"),
                "{audience}"
            );
        }
    }
}
