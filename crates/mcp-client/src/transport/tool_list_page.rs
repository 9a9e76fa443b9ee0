//! The pages of a tool list.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{json, tool_headers::MAX_TOOL_NAME};

/// The maximum number of pages that are searched for one tool.
pub const MAX_PAGES: u32 = 32;
/// The maximum length of a cursor, in bytes of JSON text. It is sent in the request for the next
/// page.
const MAX_CURSOR: usize = 64 * 1024;

/// The members of a page that are used.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow, rename = "nextCursor")]
    next_cursor: Option<&'a RawValue>,
}

/// Returns the cursor of the page after this one. `None` if this page is the last one, or contains
/// the tool.
pub fn next_cursor(page: &RawValue, tool: &str) -> Option<String> {
    let Page { tools, next_cursor } = json::object(page)?;
    let mut names = tools
        .and_then(json::items)
        .into_iter()
        .flatten()
        .filter_map(|tool| json::member(tool, "name"));
    if names.any(|name| json::string(name, MAX_TOOL_NAME).is_some_and(|name| name == tool)) {
        return None;
    }
    json::string(next_cursor?, MAX_CURSOR)
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::*;

    #[test]
    fn pages_are_read_until_the_tool_is_found() {
        let tools = json!([{ "name": "a" }, { "name": "b" }]);
        for (name, page, tool, expected) in [
            (
                "not found",
                json!({ "tools": tools, "nextCursor": "2" }),
                "c",
                Some("2"),
            ),
            (
                "found",
                json!({ "tools": tools, "nextCursor": "2" }),
                "b",
                None,
            ),
            ("the last page", json!({ "tools": tools }), "c", None),
            (
                "no cursor",
                json!({ "tools": tools, "nextCursor": null }),
                "c",
                None,
            ),
            (
                "a tool without a name",
                json!({ "tools": [{}], "nextCursor": "2" }),
                "c",
                Some("2"),
            ),
            ("no tools", json!({ "nextCursor": "2" }), "c", Some("2")),
        ] {
            assert_eq!(
                next_cursor(&to_raw_value(&page).unwrap(), tool).as_deref(),
                expected,
                "{name}"
            );
        }
    }
}
