//! [`has_encoded_path_syntax`]: paths that servers resolve in different ways.

/// Whether a path has `\` or an encoded `/`, `\` or `.`. Some servers decode these before they resolve dot segments: to them,
/// `/a/..%2Fb` is `/b`.
pub fn has_encoded_path_syntax(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    ["%2f", "%5c", "%2e", "\\"].iter().any(|syntax| path.contains(syntax))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I9: characters with a meaning in paths are found in every spelling.
    #[test]
    fn encoded_separators_and_dots_are_found() {
        for path in ["/a/..%2fb", "/a/..%2Fb", "/a/..%5cb", "/a/..%5Cb", "/a/%2e%2E/b", "/a\\b"] {
            assert!(has_encoded_path_syntax(path), "{path}");
        }
        // An escaped percent sign is not an escaped dot.
        for path in ["", "/", "/a.b/c", "/a/%252e", "/a%20b"] {
            assert!(!has_encoded_path_syntax(path), "{path}");
        }
    }
}
