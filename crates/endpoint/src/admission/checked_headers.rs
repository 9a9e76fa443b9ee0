//! [`CheckedHeaders`]: which headers that mirror the body were compared with it.

use http::HeaderMap;
use portcullis_mcp::header;

/// Which of `Mcp-Method` and `Mcp-Name` were compared with the body and match it. The other one is
/// not forwarded: an upstream could use it instead of the body.
///
/// Headers that mirror a tool's arguments (`Mcp-Param-*`) are never compared and always forwarded,
/// because only the tool's schema names them (MCP 2026-07-28, "Custom Headers from Tool
/// Parameters"). The upstream must compare them.
#[derive(Clone, Copy)]
pub(crate) enum CheckedHeaders {
    /// Neither: the request has no body, or its message is of a legacy revision, which does not
    /// have these headers.
    None,
    /// `Mcp-Method`: the message is modern, and its method has no name to mirror.
    Method,
    /// Both: the message is modern, and its method has a name.
    MethodAndName,
}

impl CheckedHeaders {
    /// Removes all values of the headers that were not checked.
    pub(crate) fn remove_unchecked(self, headers: &mut HeaderMap) {
        match self {
            Self::None => {
                headers.remove(header::METHOD);
                headers.remove(header::NAME);
            }
            Self::Method => {
                headers.remove(header::NAME);
            }
            Self::MethodAndName => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// F5: no value of a header that was not compared with the body reaches the inner service.
    /// Other headers do.
    #[test]
    fn unchecked_headers_are_removed() {
        for (checked, expected) in [
            (CheckedHeaders::None, [0, 0, 1]),
            (CheckedHeaders::Method, [2, 0, 1]),
            (CheckedHeaders::MethodAndName, [2, 2, 1]),
        ] {
            let mut headers = HeaderMap::new();
            for name in [header::METHOD, header::NAME] {
                headers.insert(&name, HeaderValue::from_static("first"));
                headers.append(&name, HeaderValue::from_static("second"));
            }
            headers.insert("mcp-param-region", HeaderValue::from_static("us-west1"));
            checked.remove_unchecked(&mut headers);
            let count = |name: &str| headers.get_all(name).iter().count();
            assert_eq!(
                ["mcp-method", "mcp-name", "mcp-param-region"].map(count),
                expected
            );
        }
    }
}
