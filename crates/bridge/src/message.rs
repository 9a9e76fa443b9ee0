mod own_messages;
mod params;
mod request_id;

use bytes::{Buf as _, Bytes, BytesMut};
use portcullis_mcp::ErrorCode;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

pub(crate) use self::{
    own_messages::{RESULT_END, error_with_id, new_error, new_request, result_start},
    params::Params,
    request_id::RequestId,
};
use portcullis_mcp_client::transport::json::{self, MessageTexts};

/// A JSON-RPC message. Only what the bridge needs is parsed; the text is forwarded unchanged.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// One line of JSON.
    pub(crate) text: Bytes,
    /// The type of the message, with the members that route it.
    pub(crate) kind: MessageKind,
}

/// The type of a JSON-RPC message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    /// A message that is answered.
    Request { id: RequestId, method: String },
    /// A message that is not answered.
    Notification { method: String },
    /// The result or the error of a request. The id is `None` if the other side could not read the
    /// request's id.
    Response { id: Option<RequestId> },
}

/// Why a text is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MessageError {
    /// The text is not one JSON value in UTF-8.
    #[error("the message is not JSON")]
    NotJson,
    /// The members are not those of exactly one message type.
    #[error("the message is not a JSON-RPC 2.0 request, notification or response")]
    NotJsonRpc,
    /// The text is an array.
    #[error("batches are not supported")]
    Batch,
}

impl MessageError {
    /// The code of the error response for it (JSON-RPC 2.0 section 5.1).
    pub(crate) fn rpc_code(self) -> ErrorCode {
        match self {
            Self::NotJson => ErrorCode::ParseError,
            Self::NotJsonRpc | Self::Batch => ErrorCode::InvalidRequest,
        }
    }
}

/// The maximum length of a method, in bytes of JSON text.
const MAX_METHOD: usize = 64 * 1024;

/// The members that distinguish the message types. Others are not parsed.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Deserializes a member that is present, including `null`.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

impl Message {
    /// Parses one message. Line breaks between its tokens become spaces. Fails as the variants of
    /// [`MessageError`] say. Duplicate members are an error, if they are parsed.
    pub(crate) fn parse(text: Bytes) -> Result<Self, MessageError> {
        let text = on_one_line(text);
        let kind = kind(&text)?;
        Ok(Self { text, kind })
    }

    /// Parses a server's message, or several in an array, as 2025-03-26 allows. Each is parsed
    /// again when it is returned, so that only one message of an array takes memory. Fails as
    /// [`parse`](Self::parse) does, if any message of the array is invalid.
    pub(crate) fn parse_all(
        text: Bytes,
    ) -> Result<impl Iterator<Item = Self> + Send, MessageError> {
        let texts = MessageTexts::split(on_one_line(text)).ok_or(MessageError::NotJson)?;
        texts.clone().try_for_each(|text| kind(&text).map(drop))?;
        Ok(texts.filter_map(|text| Self::parse(text).ok()))
    }

    /// The parameters, if they are an object.
    pub(crate) fn params(&self) -> Params<'_> {
        Params::new(self.members().and_then(|members| members.params))
    }

    /// The `error` member of a response, unchanged.
    pub(crate) fn error(&self) -> Option<&RawValue> {
        self.members()?.error
    }

    /// The `result` member of a response, unchanged.
    pub(crate) fn result(&self) -> Option<&RawValue> {
        self.members()?.result
    }

    fn members(&self) -> Option<Members<'_>> {
        serde_json::from_slice(&self.text).ok()
    }
}

/// Determines the type of a message.
fn kind(text: &[u8]) -> Result<MessageKind, MessageError> {
    let text = std::str::from_utf8(text).map_err(|_| MessageError::NotJson)?;
    let members: Members<'_> = match text.trim_ascii_start().as_bytes().first() {
        Some(b'{') => serde_json::from_str(text).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => MessageError::NotJsonRpc,
            _ => MessageError::NotJson,
        })?,
        Some(b'[') => return Err(MessageError::Batch),
        _ => match serde_json::from_str::<&RawValue>(text) {
            Ok(_) => return Err(MessageError::NotJsonRpc),
            Err(_) => return Err(MessageError::NotJson),
        },
    };
    // The number is written in at most 18 characters of escapes, and two quotation marks.
    if members
        .jsonrpc
        .and_then(|version| json::string(version, 20))
        .as_deref()
        != Some("2.0")
    {
        return Err(MessageError::NotJsonRpc);
    }
    let method = match members.method {
        Some(method) => Some(json::string(method, MAX_METHOD).ok_or(MessageError::NotJsonRpc)?),
        None => None,
    };
    let id = match members.id.filter(|id| id.get() != "null") {
        Some(id) => Some(RequestId::from_json(id).ok_or(MessageError::NotJsonRpc)?),
        None => None,
    };
    match (method, id, members.result, members.error) {
        (Some(method), Some(id), None, None) => Ok(MessageKind::Request { id, method }),
        (Some(method), None, None, None) => Ok(MessageKind::Notification { method }),
        (None, Some(id), Some(_), None) => Ok(MessageKind::Response { id: Some(id) }),
        (None, id, None, Some(_)) => Ok(MessageKind::Response { id }),
        _ => Err(MessageError::NotJsonRpc),
    }
}

/// Replaces line breaks by spaces, without a copy if nothing else uses the text. JSON has literal
/// line breaks only between tokens.
fn on_one_line(text: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    let mut line = text
        .try_into_mut()
        .unwrap_or_else(|shared| BytesMut::from(&shared[..]));
    for byte in line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    line.truncate(line.trim_ascii_end().len());
    line.advance(line.len() - line.trim_ascii_start().len());
    line.freeze()
}

#[cfg(test)]
mod tests;
