//! [`EnvelopeError`]: why a message is rejected.

use portcullis_reason_codes::ReasonCodes;

use crate::ErrorCode;

/// The reason why a message is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// The bytes are not UTF-8.
    #[error("the message is not UTF-8")]
    #[code = "message.not_utf8"]
    NotUtf8,
    /// The text is not one JSON value.
    #[error("the message is not JSON")]
    #[code = "message.not_json"]
    NotJson,
    /// Arrays and objects nest deeper than
    /// [`EnvelopeLimits::max_depth`](crate::EnvelopeLimits::max_depth).
    #[error("the message nests too deep")]
    #[code = "message.too_deep"]
    TooDeep,
    /// The message is an array: JSON-RPC batches are not part of these revisions.
    #[error("the message is a batch")]
    #[code = "message.batch"]
    Batch,
    /// The value is not a JSON-RPC 2.0 request, notification or response.
    #[error("the message is not JSON-RPC 2.0")]
    #[code = "message.not_json_rpc"]
    NotJsonRpc,
    /// A member that is read is repeated.
    #[error("a member of the message is repeated")]
    #[code = "message.duplicate_member"]
    DuplicateMember,
    /// A member differs from one that is read only in letter case or after a NUL.
    #[error("a member of the message could be taken for a known one")]
    #[code = "message.look_alike_member"]
    LookAlikeMember,
    /// A name of a tool, prompt, resource or task, `params._meta`, or a member of `_meta` is
    /// missing although the method requires it, or has the wrong type.
    #[error("a parameter of the message is missing or of the wrong type")]
    #[code = "message.invalid_params"]
    InvalidParams,
    /// The method is longer than 8,192 bytes.
    #[error("the method of the message is too long")]
    #[code = "message.method_too_long"]
    MethodTooLong,
    /// A name of a tool, prompt, resource or task is longer than 8,192 bytes.
    #[error("a name in the message is too long")]
    #[code = "message.name_too_long"]
    NameTooLong,
    /// The message has more than 1,000 names of tools, prompts, resources and tasks, or more than 1
    /// MiB of them.
    #[error("the message names too many tools, prompts, resources or tasks")]
    #[code = "message.too_many_names"]
    TooManyNames,
}

impl EnvelopeError {
    /// Returns the JSON-RPC error code of the response.
    pub const fn rpc_code(self) -> ErrorCode {
        match self {
            Self::NotUtf8 | Self::NotJson => ErrorCode::ParseError,
            Self::InvalidParams | Self::NameTooLong | Self::TooManyNames => {
                ErrorCode::InvalidParams
            }
            Self::TooDeep
            | Self::Batch
            | Self::NotJsonRpc
            | Self::DuplicateMember
            | Self::LookAlikeMember
            | Self::MethodTooLong => ErrorCode::InvalidRequest,
        }
    }
}
