//! [`CheckedHeaders`]: which mirrored headers were compared with the body.

use http::HeaderMap;
use portcullis_mcp::header;

/// The headers of `Mcp-Method` and `Mcp-Name` that match the body. The others are not forwarded, because an upstream
/// could use them instead of the body.
#[derive(Clone, Copy)]
pub(crate) enum CheckedHeaders {
    None,
    Method,
    MethodAndName,
}

impl CheckedHeaders {
    /// Removes the headers that were not checked.
    pub(crate) fn remove_others(self, headers: &mut HeaderMap) {
        if matches!(self, Self::None) {
            headers.remove(header::METHOD);
        }
        if !matches!(self, Self::MethodAndName) {
            headers.remove(header::NAME);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// F5: a header that was not compared with the body does not reach the inner service.
    #[test]
    fn other_headers_are_removed() {
        for (checked, expected) in [
            (CheckedHeaders::None, [false, false]),
            (CheckedHeaders::Method, [true, false]),
            (CheckedHeaders::MethodAndName, [true, true]),
        ] {
            let mut headers = HeaderMap::new();
            for name in [header::METHOD, header::NAME] {
                headers.insert(name, HeaderValue::from_static("x"));
            }
            checked.remove_others(&mut headers);
            assert_eq!([header::METHOD, header::NAME].map(|name| headers.contains_key(name)), expected);
        }
    }
}
