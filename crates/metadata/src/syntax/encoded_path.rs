//! [`has_encoded_path_syntax`]: paths that servers resolve in different ways.

use percent_encoding::percent_decode;

/// The number of times that a path is decoded. One that is still encoded then is not one of an
/// honest server.
const MAX_DECODINGS: usize = 4;

/// Whether a path has `\` or an encoded `/`, `\` or `.`. Some servers decode these before they
/// resolve dot segments: to them, `/a/..%2Fb` is `/b`. Proxies before a server decode again, so
/// that `/a/%252e%252e/b` is `/b` behind one. Returns true also for a path that is encoded more
/// than four times.
pub fn has_encoded_path_syntax(path: &str) -> bool {
    let mut path = path.as_bytes().to_ascii_lowercase();
    for _ in 0..=MAX_DECODINGS {
        if path.contains(&b'\\')
            || path
                .windows(3)
                .any(|piece| matches!(piece, b"%2f" | b"%5c" | b"%2e"))
        {
            return true;
        }
        let decoded = percent_decode(&path)
            .collect::<Vec<u8>>()
            .to_ascii_lowercase();
        if decoded == path {
            return false;
        }
        path = decoded;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I9: characters with a meaning in paths are found in every spelling.
    #[test]
    fn encoded_separators_and_dots_are_found() {
        for path in [
            "/a/..%2fb",
            "/a/..%2Fb",
            "/a/..%5cb",
            "/a/..%5Cb",
            "/a/%2e%2E/b",
            "/a\\b",
        ] {
            assert!(has_encoded_path_syntax(path), "{path}");
        }
        for path in [
            "",
            "/",
            "/a.b/c",
            "/a%20b",
            "/a/100%25",
            "/a/%2525",
            "/a%",
            "/%25zz",
        ] {
            assert!(!has_encoded_path_syntax(path), "{path}");
        }
    }

    /// I9: they are found also when they, or the digits of their encoding, are encoded several
    /// times.
    #[test]
    fn repeated_encodings_are_found() {
        for path in [
            "/a/%252e%252E/b",
            "/a/..%252fb",
            "/a/..%25255cb",
            "/a/%2%65%2%65/b",
            "/a/%25%32%45/b",
            "/a%25252525252520b",
        ] {
            assert!(has_encoded_path_syntax(path), "{path}");
        }
    }
}
