//! [`Message`]: a JSON-RPC message whose text is forwarded unchanged.

use std::{borrow::Cow, collections::HashMap};

use bytes::Bytes;
use portcullis_mcp::{ErrorCode, error_body, meta};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value, value::RawValue};

/// A JSON-RPC message, as far as a bridge has to understand it. The text passes on as it is.
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
    /// Without an id where the other side could not read the request's.
    Response {
        id: Option<RequestId>,
    },
}

/// A request's identifier, as JSON. Those of the same meaning are the same, however they were written: an answer brings
/// the identifier back as the server's JSON library writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestId(String);

/// Why a text is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MessageError {
    #[error("the message is not JSON")]
    NotJson,
    #[error("the message is no JSON-RPC 2.0 request, notification or response")]
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

/// A member that is there, `null` included.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

impl Message {
    /// Reads one message.
    pub(crate) fn parse(text: Bytes) -> Result<Self, MessageError> {
        let text = on_one_line(text);
        let kind = kind(&text)?;
        Ok(Self { text, kind })
    }

    /// Reads what a server sends: one message, or several in an array as 2025-03-26 allows it.
    pub(crate) fn parse_all(text: Bytes) -> Result<Vec<Self>, MessageError> {
        match Self::parse(text.clone()) {
            Err(MessageError::Batch) => {}
            one => return one.map(|one| vec![one]),
        }
        let batch: Vec<&RawValue> = serde_json::from_slice(&text).map_err(|_| MessageError::NotJson)?;
        batch.into_iter().map(|one| Self::parse(text.slice_ref(one.get().as_bytes()))).collect()
    }

    /// The parameters, where there are any and they are an object.
    pub(crate) fn params(&self) -> Params<'_> {
        let members: Option<Members<'_>> = serde_json::from_slice(&self.text).ok();
        Params(members.and_then(|members| members.params).filter(|params| params.get().starts_with('{')))
    }

    /// The `error` member of a response, as it was written.
    pub(crate) fn error(&self) -> Option<&RawValue> {
        serde_json::from_slice::<Members<'_>>(&self.text).ok()?.error
    }

    /// The `result` member of a response, as it was written.
    pub(crate) fn result(&self) -> Option<&RawValue> {
        serde_json::from_slice::<Members<'_>>(&self.text).ok()?.result
    }
}

fn kind(text: &[u8]) -> Result<MessageKind, MessageError> {
    // The members that are passed over are not looked into otherwise.
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

/// A line break in JSON stands between its tokens alone, where a space does as well.
fn on_one_line(text: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    let line: Vec<u8> = text.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    Bytes::from(line.trim_ascii().to_vec())
}

impl RequestId {
    /// Reads an identifier from its JSON text.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        Self::of(serde_json::from_slice(text).ok()?)
    }

    /// A text or a number.
    fn of(raw: &RawValue) -> Option<Self> {
        match serde_json::from_str(raw.get()).ok()? {
            Value::String(text) => Some(Self(Value::from(text).to_string())),
            Value::Number(number) => Some(Self(whole(&number).map_or_else(|| number.to_string(), |it| it.to_string()))),
            _ => None,
        }
    }

    /// An identifier of this side's own.
    pub(crate) fn own(number: u64) -> Self {
        Self(format!("\"portcullis:{number}\""))
    }
}

/// A number without a fraction, such as `1.0`, as other JSON libraries write it: `1`.
fn whole(number: &Number) -> Option<i64> {
    /// Up to here every whole number has a floating-point number of its own.
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

    /// The revision of a modern request.
    pub(crate) fn protocol_version(self) -> Option<String> {
        let meta = self.known()._meta.filter(|meta| meta.get().starts_with('{'))?;
        let members: HashMap<Cow<'a, str>, &'a RawValue> = serde_json::from_str(meta.get()).ok()?;
        serde_json::from_str(members.get(meta::PROTOCOL_VERSION)?.get()).ok()
    }

    pub(crate) fn meta(self) -> Option<&'a RawValue> {
        self.known()._meta
    }

    /// A member that the header mirrors.
    pub(crate) fn mirrored(self, member: &str) -> Option<String> {
        let known = self.known();
        let value = if member == "name" { known.name } else { known.uri };
        serde_json::from_str(value?.get()).ok()
    }

    /// The level of log messages that the client wants.
    pub(crate) fn level(self) -> Option<String> {
        serde_json::from_str(self.known().level?.get()).ok()
    }

    /// What a cancellation is about.
    pub(crate) fn request_id(self) -> Option<RequestId> {
        self.known().request_id.and_then(RequestId::of)
    }
}

/// A request of this side's own.
pub(crate) fn request(id: &RequestId, method: &str, params: Option<&str>) -> Message {
    let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
    let text = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"{method}"{params}}}"#, id.0);
    Message { text: text.into(), kind: MessageKind::Request { id: id.clone(), method: method.to_owned() } }
}

/// An answer that takes the place of the server's.
pub(crate) fn error_answer(id: Option<&RequestId>, code: ErrorCode, message: &str, reason: &str) -> Bytes {
    let id = id.and_then(|id| serde_json::from_str::<Box<RawValue>>(&id.0).ok());
    let data = (!reason.is_empty()).then(|| serde_json::json!({ "reason": reason }));
    error_body(code, message, id.as_deref(), data.as_ref()).into()
}

/// An error that came without the request's id, with it.
pub(crate) fn with_id(id: &RequestId, error: &RawValue) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{},"error":{}}}"#, id.0, error.get()).into()
}

#[cfg(test)]
mod tests;
