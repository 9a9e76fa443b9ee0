use http::{HeaderMap, HeaderValue};
use portcullis_mcp::{encode_mirrored, header as names};

use crate::error::McpError;

/// Returns the headers that every message of 2026-07-28 needs ("Standard Request Headers"): its
/// protocol version, its method, and the name or URI of its target, if its method has one.
///
/// The headers of tool arguments are not included
/// ([`ToolHeaders`](super::tool_headers::ToolHeaders)).
///
/// # Errors
/// Returns [`McpError::InvalidParams`] if the version contains characters that a header value
/// cannot have.
pub fn mirrored_headers(
    version: &str,
    method: &str,
    target: Option<&str>,
) -> Result<HeaderMap, McpError> {
    let version = HeaderValue::from_str(version).map_err(|_| McpError::InvalidParams)?;
    let mut headers = HeaderMap::new();
    headers.insert(names::PROTOCOL_VERSION, version);
    headers.insert(names::METHOD, encode_mirrored(method));
    headers.extend(target.map(|target| (names::NAME, encode_mirrored(target))));
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_method_and_target_are_repeated() {
        for (name, method, target, expected_method, expected_target) in [
            ("no target", "tools/list", None, "tools/list", None),
            (
                "a target",
                "tools/call",
                Some("add"),
                "tools/call",
                Some("add"),
            ),
            (
                "not ASCII",
                "tools/call",
                Some("ä"),
                "tools/call",
                Some("=?base64?w6Q=?="),
            ),
            (
                "a line break",
                "a\nb",
                Some("c\r\nd"),
                "=?base64?YQpi?=",
                Some("=?base64?Yw0KZA==?="),
            ),
        ] {
            let headers = mirrored_headers("2026-07-28", method, target).unwrap();
            assert_eq!(headers[names::PROTOCOL_VERSION], "2026-07-28", "{name}");
            assert_eq!(headers[names::METHOD], expected_method, "{name}");
            assert_eq!(
                headers
                    .get(names::NAME)
                    .map(|value| value.to_str().unwrap()),
                expected_target,
                "{name}"
            );
        }
    }

    #[test]
    fn a_version_is_never_encoded() {
        for version in ["2026\r\nX: y", "\0", "\u{7f}"] {
            let refused = mirrored_headers(version, "ping", None);
            assert!(
                matches!(refused, Err(McpError::InvalidParams)),
                "{version:?}"
            );
        }
    }
}
