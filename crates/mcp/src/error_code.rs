use serde_json::{Value, value::RawValue};

/// The JSON-RPC error codes of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// -32700: the message is not JSON.
    ParseError,
    /// -32600: the message is JSON, but not a valid message.
    InvalidRequest,
    /// -32601: the method is unknown. Modern revisions send it with HTTP status 404.
    MethodNotFound,
    /// -32602: a parameter is missing or of the wrong type.
    InvalidParams,
    /// -32603: the responder failed.
    InternalError,
    /// -32000: an implementation-defined server error, such as "no usable session". Modern requests
    /// never get it.
    ServerError,
    /// -32020 (2026-07-28): headers and body disagree, or a required header is missing or
    /// malformed.
    HeaderMismatch,
    /// -32021 (2026-07-28): the request needs a capability that the client did not declare.
    MissingRequiredClientCapability,
    /// -32022 (2026-07-28): the version is unknown or not served.
    UnsupportedProtocolVersion,
}

impl ErrorCode {
    /// Returns the number of the code.
    pub const fn value(self) -> i64 {
        match self {
            Self::ParseError => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::InternalError => -32603,
            Self::ServerError => -32000,
            Self::HeaderMismatch => -32020,
            Self::MissingRequiredClientCapability => -32021,
            Self::UnsupportedProtocolVersion => -32022,
        }
    }
}

/// Builds a JSON-RPC 2.0 error response.
///
/// `id` is that of the request. `None` writes `null`, as JSON-RPC requires if the request's id
/// could not be read.
pub fn error_body(
    code: ErrorCode,
    message: &str,
    id: Option<&RawValue>,
    data: Option<&Value>,
) -> Vec<u8> {
    let (code, message) = (code.value(), Value::from(message));
    let data = data
        .map(|data| format!(r#","data":{data}"#))
        .unwrap_or_default();
    let id = id.map_or("null", RawValue::get);
    format!(r#"{{"jsonrpc":"2.0","error":{{"code":{code},"message":{message}{data}}},"id":{id}}}"#)
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The numbers of JSON-RPC 2.0 (section 5.1) and of 2026-07-28.
    #[test]
    fn codes_have_their_published_numbers() {
        for (code, number) in [
            (ErrorCode::ParseError, -32700),
            (ErrorCode::InvalidRequest, -32600),
            (ErrorCode::MethodNotFound, -32601),
            (ErrorCode::InvalidParams, -32602),
            (ErrorCode::InternalError, -32603),
            (ErrorCode::ServerError, -32000),
            (ErrorCode::HeaderMismatch, -32020),
            (ErrorCode::MissingRequiredClientCapability, -32021),
            (ErrorCode::UnsupportedProtocolVersion, -32022),
        ] {
            assert_eq!(code.value(), number);
        }
    }

    /// E5: version, error object with code and message, and a null id.
    #[test]
    fn an_error_without_a_request_has_a_null_id() {
        let body = error_body(ErrorCode::ServerError, "No valid session", None, None);
        assert_eq!(
            serde_json::from_slice::<Value>(&body).unwrap(),
            json!({"jsonrpc": "2.0", "error": {"code": -32000, "message": "No valid session"}, "id": null})
        );
    }

    #[test]
    fn the_id_is_written_unchanged() {
        for id in ["7", r#""a\u0022b""#, "-12345678901234567890123"] {
            let raw: &RawValue = serde_json::from_str(id).unwrap();
            let body = error_body(
                ErrorCode::InvalidParams,
                "m\"\n",
                Some(raw),
                Some(&json!({"a": [1]})),
            );
            assert!(
                String::from_utf8(body.clone())
                    .unwrap()
                    .ends_with(&format!("\"id\":{id}}}"))
            );
            let read: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(
                read["error"],
                json!({"code": -32602, "message": "m\"\n", "data": {"a": [1]}})
            );
        }
    }
}
