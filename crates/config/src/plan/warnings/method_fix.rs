//! [`method_fix`]: what to write instead of an unknown method of a rule.

use crate::nearest;

/// The methods of HTTP (RFC 9110 and RFC 5789) that a configuration can name.
const HTTP_METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Returns the fix for the pattern of a rule that matches no method of MCP: the route for a method
/// of HTTP, or the most similar method. Empty if there is none.
pub(super) fn method_fix(pattern: &str, known: &[&str]) -> String {
    let is_meant = |method: &&&str| method.eq_ignore_ascii_case(pattern);
    match HTTP_METHODS.iter().find(is_meant) {
        Some(method) => {
            format!(
                "; it is a method of HTTP: write [[resource.route]] with methods = [\"{method}\"]"
            )
        }
        None => nearest(pattern, known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B9: no method of MCP is suggested for one of HTTP, and none that is not similar.
    #[test]
    fn methods_of_http_are_recognized() {
        let known = ["prompts/get", "completion/complete", "tools/call"];
        for pattern in ["POST", "post"] {
            assert_eq!(
                method_fix(pattern, &known),
                "; it is a method of HTTP: write [[resource.route]] with methods = [\"POST\"]"
            );
        }
        assert_eq!(
            method_fix("tool/call", &known),
            "; did you mean `tools/call`?"
        );
        for pattern in ["admin/reset", "CONNECT", ""] {
            assert_eq!(method_fix(pattern, &known), "", "{pattern}");
        }
    }
}
