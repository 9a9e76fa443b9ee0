//! The JSON-RPC methods of the demo server.

use portcullis_guard::Principal;
use portcullis_mcp::{ErrorCode, Revision, Revisions};
use serde_json::{Value, json};

use super::tools;

/// The JSON-RPC error of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MethodError {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

/// Calls a method. `principal` is that of the request; `None` if authorization is off.
///
/// # Errors
/// Fails if the era of the request does not have the method, or a parameter is missing or invalid.
pub(super) fn call(
    method: &str,
    params: &Value,
    principal: Option<&Principal>,
    is_modern: bool,
) -> Result<Value, MethodError> {
    let (mut result, is_cacheable) = match (method, is_modern) {
        ("initialize", false) => (initialize(params), false),
        ("ping", false) => (json!({}), false),
        ("server/discover", true) => (discover(), true),
        ("tools/list", _) => (tools::list(), true),
        ("tools/call", _) => (tools::call(params, principal)?, false),
        _ => {
            let message = format!("the demo server has no method {method:?}");
            return Err(MethodError { code: ErrorCode::MethodNotFound, message });
        }
    };
    // What 2026-07-28 requires of all results, and of cacheable ones.
    if is_modern {
        result["resultType"] = json!("complete");
        if is_cacheable {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("public");
        }
    }
    Ok(result)
}

/// Negotiates the requested revision if it has sessions, and otherwise the newest one that has.
fn initialize(params: &Value) -> Value {
    let requested = params["protocolVersion"].as_str().and_then(Revision::parse);
    let version = requested.filter(|revision| !revision.is_modern()).unwrap_or(Revision::V2025_11_25);
    json!({ "protocolVersion": version.as_str(), "capabilities": capabilities(), "serverInfo": server_info() })
}

fn discover() -> Value {
    let versions: Vec<_> = Revisions::ALL.iter().map(Revision::as_str).collect();
    json!({
        "supportedVersions": versions,
        "capabilities": capabilities(),
        "_meta": { "io.modelcontextprotocol/serverInfo": server_info() },
    })
}

fn capabilities() -> Value {
    json!({ "tools": {} })
}

fn server_info() -> Value {
    json!({ "name": "portcullis-demo", "version": env!("CARGO_PKG_VERSION") })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E6: a requested revision with sessions is negotiated; for any other, the newest one with sessions.
    #[test]
    fn the_revision_is_negotiated() {
        for (requested, negotiated) in [
            (json!("2025-03-26"), "2025-03-26"),
            (json!("2025-11-25"), "2025-11-25"),
            (json!("2026-07-28"), "2025-11-25"),
            (json!("1999-01-01"), "2025-11-25"),
            (json!(7), "2025-11-25"),
            (Value::Null, "2025-11-25"),
        ] {
            let result = call("initialize", &json!({ "protocolVersion": requested }), None, false).unwrap();
            assert_eq!(result["protocolVersion"], negotiated, "{requested}");
        }
        assert_eq!(call("initialize", &Value::Null, None, false).unwrap()["protocolVersion"], "2025-11-25");
    }

    /// E11: each era has its own methods, and modern results have the members that 2026-07-28 requires.
    #[test]
    fn methods_by_era() {
        for (method, legacy, modern) in [
            ("initialize", true, false),
            ("ping", true, false),
            ("server/discover", false, true),
            ("tools/list", true, true),
            ("resources/list", false, false),
        ] {
            for (is_modern, exists) in [(false, legacy), (true, modern)] {
                match call(method, &Value::Null, None, is_modern) {
                    Ok(result) => {
                        assert!(exists, "{method}");
                        assert_eq!(result.get("resultType").is_some(), is_modern, "{method}: {result}");
                        assert_eq!(result.get("ttlMs").is_some(), is_modern, "{method}: {result}");
                    }
                    Err(error) => {
                        assert!(!exists, "{method}");
                        assert_eq!(error.code, ErrorCode::MethodNotFound, "{method}");
                    }
                }
            }
        }
        let params = json!({ "name": "add", "arguments": { "a": 2, "b": 3 } });
        let result = call("tools/call", &params, None, true).unwrap();
        assert_eq!((&result["resultType"], result.get("ttlMs")), (&json!("complete"), None));
    }
}
