//! [`MethodError`]: why a method has no result.

use portcullis_mcp::ErrorCode;

/// The JSON-RPC error of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MethodError {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}
