//! The pages of a tool list.

use serde_json::Value;

/// The maximum number of pages that are searched for one tool.
pub(crate) const MAX_PAGES: u32 = 32;

/// Returns the cursor of the page after this one. `None` if this page is the last one, or contains the tool.
pub(crate) fn next_cursor(page: &Value, tool: &str) -> Option<Value> {
    let mut tools = page.get("tools").and_then(Value::as_array).into_iter().flatten();
    if tools.any(|listed| listed.get("name").is_some_and(|name| name == tool)) {
        return None;
    }
    page.get("nextCursor").filter(|cursor| cursor.is_string()).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pages_are_read_until_the_tool_is_found() {
        let tools = json!([{ "name": "a" }, { "name": "b" }]);
        for (name, page, tool, expected) in [
            ("not found", json!({ "tools": tools, "nextCursor": "2" }), "c", Some(json!("2"))),
            ("found", json!({ "tools": tools, "nextCursor": "2" }), "b", None),
            ("the last page", json!({ "tools": tools }), "c", None),
            ("no cursor", json!({ "tools": tools, "nextCursor": null }), "c", None),
            ("a tool without a name", json!({ "tools": [{}], "nextCursor": "2" }), "c", Some(json!("2"))),
            ("no tools", json!({ "nextCursor": "2" }), "c", Some(json!("2"))),
        ] {
            assert_eq!(next_cursor(&page, tool), expected, "{name}");
        }
    }
}
