//! The JSON-RPC methods of the demo server.

use portcullis_guard::Principal;
use portcullis_mcp::{ErrorCode, Revision, Revisions};
use serde_json::{Value, json};

use super::{method_error::MethodError, tools};

/// Calls a method. `principal` is that of the request; `None` if authorization is off. The resource
/// serves the revisions in `served`. Fails if the era of the request does not have the method, or a
/// parameter is missing or invalid.
pub(super) fn call(
    method: &str,
    params: &Value,
    principal: Option<&Principal>,
    is_modern: bool,
    served: Revisions,
) -> Result<Value, MethodError> {
    let (mut result, is_cacheable) = match (method, is_modern) {
        ("initialize", false) => (initialize(params, served), false),
        ("ping", false) => (json!({}), false),
        ("server/discover", true) => (discover(served), true),
        ("tools/list", _) => (tools::list(params)?, true),
        ("tools/call", _) => (tools::call(params, principal)?, false),
        _ => {
            let message = format!("the demo server has no method {method:?}");
            return Err(MethodError {
                code: ErrorCode::MethodNotFound,
                message,
            });
        }
    };
    // What 2026-07-28 defines for all results, and for cacheable ones.
    if is_modern {
        result["resultType"] = json!("complete");
        result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": server_info() });
        if is_cacheable {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("public");
        }
    }
    Ok(result)
}

/// Negotiates the requested revision if it has sessions and is served, and otherwise the newest one
/// of these.
fn initialize(params: &Value, served: Revisions) -> Value {
    let requested = params["protocolVersion"].as_str().and_then(Revision::parse);
    let has_sessions = |revision: &Revision| !revision.is_modern() && served.contains(*revision);
    let version = requested
        .filter(has_sessions)
        .or_else(|| served.iter().find(has_sessions));
    // The endpoint admits no `initialize` if none is served.
    let version = version.unwrap_or(Revision::V2025_11_25);
    json!({ "protocolVersion": version.as_str(), "capabilities": capabilities(), "serverInfo": server_info() })
}

fn discover(served: Revisions) -> Value {
    let versions: Vec<_> = served.iter().map(Revision::as_str).collect();
    json!({ "supportedVersions": versions, "capabilities": capabilities() })
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

    fn call(method: &str, params: &Value, is_modern: bool) -> Result<Value, MethodError> {
        super::call(method, params, None, is_modern, Revisions::ALL)
    }

    /// E6: a requested revision with sessions is negotiated; for any other, the newest one with
    /// sessions.
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
            let result = call(
                "initialize",
                &json!({ "protocolVersion": requested }),
                false,
            )
            .unwrap();
            assert_eq!(result["protocolVersion"], negotiated, "{requested}");
        }
        assert_eq!(
            call("initialize", &Value::Null, false).unwrap()["protocolVersion"],
            "2025-11-25"
        );
    }

    /// E6, E11: only served revisions are negotiated and listed.
    #[test]
    fn other_revisions_are_not_offered() {
        let served = Revisions::from_iter([
            Revision::V2025_03_26,
            Revision::V2025_06_18,
            Revision::V2026_07_28,
        ]);
        for (requested, negotiated) in [("2025-03-26", "2025-03-26"), ("2025-11-25", "2025-06-18")]
        {
            let params = json!({ "protocolVersion": requested });
            let result = super::call("initialize", &params, None, false, served).unwrap();
            assert_eq!(result["protocolVersion"], negotiated, "{requested}");
        }
        let result = super::call("server/discover", &Value::Null, None, true, served).unwrap();
        assert_eq!(
            result["supportedVersions"],
            json!(["2026-07-28", "2025-06-18", "2025-03-26"])
        );
    }

    /// E11: each era has its own methods, and modern results have the members that 2026-07-28
    /// defines.
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
                match call(method, &Value::Null, is_modern) {
                    Ok(result) => {
                        assert!(exists, "{method}");
                        assert_eq!(
                            result.get("resultType").is_some(),
                            is_modern,
                            "{method}: {result}"
                        );
                        assert_eq!(
                            result.get("ttlMs").is_some(),
                            is_modern,
                            "{method}: {result}"
                        );
                        let server =
                            result.pointer("/_meta/io.modelcontextprotocol~1serverInfo/name");
                        assert_eq!(server.is_some(), is_modern, "{method}: {result}");
                    }
                    Err(error) => {
                        assert!(!exists, "{method}");
                        assert_eq!(error.code, ErrorCode::MethodNotFound, "{method}");
                    }
                }
            }
        }
        let params = json!({ "name": "add", "arguments": { "a": 2, "b": 3 } });
        let result = call("tools/call", &params, true).unwrap();
        assert_eq!(
            (&result["resultType"], result.get("ttlMs")),
            (&json!("complete"), None)
        );
        assert_eq!(
            result["_meta"]["io.modelcontextprotocol/serverInfo"],
            server_info()
        );
    }
}
