//! The messages that the bridge itself creates.

use bytes::Bytes;
use portcullis_mcp::{ErrorCode, error_body};
use serde_json::value::RawValue;

use super::{Message, MessageKind, RequestId};

/// Creates a request of the bridge itself. `params` is JSON.
pub(crate) fn new_request(id: &RequestId, method: &str, params: Option<&str>) -> Message {
    let params = params
        .map(|params| format!(r#","params":{params}"#))
        .unwrap_or_default();
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":{},"method":"{method}"{params}}}"#,
        id.as_json()
    );
    Message {
        text: text.into(),
        kind: MessageKind::Request {
            id: id.clone(),
            method: method.to_owned(),
        },
    }
}

/// Creates an error response of the bridge itself. `reason` is the stable code in the error's data.
pub(crate) fn new_error(
    id: Option<&RequestId>,
    code: ErrorCode,
    message: &str,
    reason: Option<&str>,
) -> Bytes {
    let id = id.and_then(|id| serde_json::from_str::<Box<RawValue>>(id.as_json()).ok());
    let data = reason.map(|reason| serde_json::json!({ "reason": reason }));
    error_body(code, message, id.as_deref(), data.as_ref()).into()
}

/// Creates an error response to a request from the `error` member of another response.
pub(crate) fn error_with_id(id: &RequestId, error: &RawValue) -> Bytes {
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{}}}"#,
        id.as_json(),
        error.get()
    )
    .into()
}

/// The beginning of a response to a request, before the result. [`RESULT_END`] follows the result.
pub(crate) fn result_start(id: &RequestId) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, id.as_json())
}

/// The end of a response, after the result.
pub(crate) const RESULT_END: char = '}';
