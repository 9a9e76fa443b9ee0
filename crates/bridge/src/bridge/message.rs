//! [`Message`]: a JSON-RPC message whose text is forwarded unchanged.

use std::{borrow::Cow, collections::HashMap};

use bytes::Bytes;
use portcullis_mcp::{ErrorCode, error_body, meta};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value, value::RawValue};

/// A JSON-RPC message. Only what the bridge needs is parsed; the text is forwarded unchanged.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// One line of JSON.
    pub(crate) text: Bytes,
    pub(crate) kind: MessageKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Request {
        id: RequestId,
        method: String,
    },
    Notification {
        method: String,
    },
    /// The id is None if the other side could not read the request's id.
    Response {
        id: Option<RequestId>,
    },
}

/// A request's identifier, as normalized JSON: identifiers with the same value are equal, even if the server's JSON
/// library writes them in another way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestId(String);

/// Why a text is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MessageError {
    #[error("the message is not JSON")]
    NotJson,
    #[error("the message is not a JSON-RPC 2.0 request, notification or response")]
    NotJsonRpc,
    #[error("batches are not supported")]
    Batch,
}

impl MessageError {
    pub(crate) fn rpc_code(self) -> ErrorCode {
        match self {
            Self::NotJson => ErrorCode::ParseError,
            Self::NotJsonRpc | Self::Batch => ErrorCode::InvalidRequest,
        }
    }
}

#[derive(Deserialize)]
struct Members<'a> {
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    method: Option<Cow<'a, str>>,
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
    /// Parses one message.
    pub(crate) fn parse(text: Bytes) -> Result<Self, MessageError> {
        let text = on_one_line(text);
        let kind = kind(&text)?;
        Ok(Self { text, kind })
    }

    /// Parses a server's message, or several in an array, as 2025-03-26 allows.
    pub(crate) fn parse_all(text: Bytes) -> Result<Vec<Self>, MessageError> {
        match Self::parse(text.clone()) {
            Err(MessageError::Batch) => {}
            one => return one.map(|one| vec![one]),
        }
        let batch: Vec<&RawValue> = serde_json::from_slice(&text).map_err(|_| MessageError::NotJson)?;
        batch.into_iter().map(|one| Self::parse(text.slice_ref(one.get().as_bytes()))).collect()
    }

    /// The parameters, if they are an object.
    pub(crate) fn params(&self) -> Params<'_> {
        let members: Option<Members<'_>> = serde_json::from_slice(&self.text).ok();
        Params(members.and_then(|members| members.params).filter(|params| params.get().starts_with('{')))
    }

    /// The `error` member of a response, unchanged.
    pub(crate) fn error(&self) -> Option<&RawValue> {
        serde_json::from_slice::<Members<'_>>(&self.text).ok()?.error
    }

    /// The `result` member of a response, unchanged.
    pub(crate) fn result(&self) -> Option<&RawValue> {
        serde_json::from_slice::<Members<'_>>(&self.text).ok()?.result
    }
}

fn kind(text: &[u8]) -> Result<MessageKind, MessageError> {
    // Other members are not parsed.
    let text = std::str::from_utf8(text).map_err(|_| MessageError::NotJson)?;
    let members: Members<'_> = match text.as_bytes().first() {
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
    if members.jsonrpc.as_deref() != Some("2.0") {
        return Err(MessageError::NotJsonRpc);
    }
    let id = match members.id.filter(|id| id.get() != "null") {
        Some(id) => Some(RequestId::of(id).ok_or(MessageError::NotJsonRpc)?),
        None => None,
    };
    match (members.method, id, members.result, members.error) {
        (Some(method), Some(id), None, None) => Ok(MessageKind::Request { id, method: method.into_owned() }),
        (Some(method), None, None, None) => Ok(MessageKind::Notification { method: method.into_owned() }),
        (None, Some(id), Some(_), None) => Ok(MessageKind::Response { id: Some(id) }),
        (None, id, None, Some(_)) => Ok(MessageKind::Response { id }),
        _ => Err(MessageError::NotJsonRpc),
    }
}

/// Replaces line breaks by spaces. JSON has literal line breaks only between tokens.
fn on_one_line(text: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    let line: Vec<u8> = text.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    Bytes::from(line.trim_ascii().to_vec())
}

impl RequestId {
    /// Parses an identifier from its JSON text.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        Self::of(serde_json::from_slice(text).ok()?)
    }

    /// Accepts a string or a number.
    fn of(raw: &RawValue) -> Option<Self> {
        match serde_json::from_str(raw.get()).ok()? {
            Value::String(text) => Some(Self(Value::from(text).to_string())),
            Value::Number(number) => Some(Self(whole(&number).map_or_else(|| number.to_string(), |it| it.to_string()))),
            _ => None,
        }
    }

    /// An identifier of the bridge itself.
    pub(crate) fn own(number: u64) -> Self {
        Self(format!("\"portcullis:{number}\""))
    }
}

/// Converts a number without a fraction, such as `1.0`, to an integer, as other JSON libraries do.
fn whole(number: &Number) -> Option<i64> {
    /// The largest range in which a floating-point number represents every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let value = number.as_f64().filter(|value| number.is_f64() && value.fract() == 0.0 && value.abs() <= EXACT)?;
    format!("{value:.0}").parse().ok()
}

/// A message's parameters.
#[derive(Clone, Copy)]
pub(crate) struct Params<'a>(Option<&'a RawValue>);

#[derive(Default, Deserialize)]
struct Known<'a> {
    #[serde(borrow)]
    _meta: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow)]
    level: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestId")]
    request_id: Option<&'a RawValue>,
}

impl<'a> Params<'a> {
    pub(crate) fn raw(self) -> Option<&'a RawValue> {
        self.0
    }

    fn known(self) -> Known<'a> {
        self.0.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default()
    }

    /// The protocol version of a modern request.
    pub(crate) fn protocol_version(self) -> Option<String> {
        let meta = self.known()._meta.filter(|meta| meta.get().starts_with('{'))?;
        let members: HashMap<Cow<'a, str>, &'a RawValue> = serde_json::from_str(meta.get()).ok()?;
        serde_json::from_str(members.get(meta::PROTOCOL_VERSION)?.get()).ok()
    }

    pub(crate) fn meta(self) -> Option<&'a RawValue> {
        self.known()._meta
    }

    /// A member that a header repeats.
    pub(crate) fn mirrored(self, member: &str) -> Option<String> {
        let known = self.known();
        let value = if member == "name" { known.name } else { known.uri };
        serde_json::from_str(value?.get()).ok()
    }

    /// The log level that the client requests.
    pub(crate) fn level(self) -> Option<String> {
        serde_json::from_str(self.known().level?.get()).ok()
    }

    /// The request that a cancellation names.
    pub(crate) fn request_id(self) -> Option<RequestId> {
        self.known().request_id.and_then(RequestId::of)
    }
}

/// Creates a request of the bridge itself.
pub(crate) fn request(id: &RequestId, method: &str, params: Option<&str>) -> Message {
    let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
    let text = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"{method}"{params}}}"#, id.0);
    Message { text: text.into(), kind: MessageKind::Request { id: id.clone(), method: method.to_owned() } }
}

/// Creates an error response of the bridge itself.
pub(crate) fn error_answer(id: Option<&RequestId>, code: ErrorCode, message: &str, reason: &str) -> Bytes {
    let id = id.and_then(|id| serde_json::from_str::<Box<RawValue>>(&id.0).ok());
    let data = (!reason.is_empty()).then(|| serde_json::json!({ "reason": reason }));
    error_body(code, message, id.as_deref(), data.as_ref()).into()
}

/// Adds the request's id to an error response that lacks it.
pub(crate) fn with_id(id: &RequestId, error: &RawValue) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{},"error":{}}}"#, id.0, error.get()).into()
}

#[cfg(test)]
mod tests;
