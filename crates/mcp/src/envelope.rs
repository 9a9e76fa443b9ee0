//! [`Envelope`]: a JSON-RPC message, parsed in one pass.

mod error;
mod names;
mod objects;
mod reader;
mod scanner;
mod strings;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::value::RawValue;

pub use self::{
    error::EnvelopeError,
    names::{Name, TargetType, has_target},
};
use self::{
    names::Names,
    objects::{Message, Meta},
    strings::{decode_string, decode_without_nul},
};
use crate::{MessageId, Revision};

/// The limits of [`Envelope::parse`]. The caller limits the length of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnvelopeLimits {
    /// The maximum nesting depth of arrays and objects. The message itself has depth 1. Default:
    /// 64.
    pub max_depth: usize,
}

impl EnvelopeLimits {
    /// Sets [`max_depth`](Self::max_depth).
    #[must_use]
    pub const fn with_max_depth(mut self, max_depth: usize) -> Self {
        self.max_depth = max_depth;
        self
    }
}

impl Default for EnvelopeLimits {
    fn default() -> Self {
        Self { max_depth: 64 }
    }
}

/// The type of a JSON-RPC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageType {
    /// A method with an `id`. The sender expects a response.
    Request,
    /// A method without an `id`.
    Notification,
    /// A `result` or an `error`.
    Response,
}

/// The envelope of a JSON-RPC message, borrowed from the message. It does not depend on the
/// method's parameters.
///
/// A value of this type guarantees:
///
/// - The bytes are UTF-8 and exactly one JSON object, which does not exceed the depth limit.
/// - The object is exactly one of a request, a notification and a response.
/// - No member that is read is repeated, in any escaped form. No other member differs from it only
///   in letter case (Unicode simple case folding) or after a NUL. Some parsers would use that
///   member instead.
/// - Neither the method nor a name contains a NUL or is longer than
///   [`MAX_NAME_BYTES`](Self::MAX_NAME_BYTES). There are at most 1,000 names, of 1 MiB together.
///
/// Members that are not read are not checked.
#[derive(Clone, Debug)]
pub struct Envelope<'a> {
    message_type: MessageType,
    method: Option<Cow<'a, str>>,
    /// The id as written.
    id: Option<&'a str>,
    names: Names<'a>,
    initialize_version: Option<Cow<'a, str>>,
    protocol_version: Option<Cow<'a, str>>,
    has_client_capabilities: bool,
}

impl Envelope<'_> {
    /// The maximum length of the method and of each name, decoded, in bytes.
    pub const MAX_NAME_BYTES: usize = 8192;
}

impl<'a> Envelope<'a> {
    /// Parses a message.
    ///
    /// # Errors
    /// Fails if the message does not have the [guaranteed properties](Envelope).
    pub fn parse(body: &'a [u8], limits: EnvelopeLimits) -> Result<Self, EnvelopeError> {
        let text = std::str::from_utf8(body).map_err(|_| EnvelopeError::NotUtf8)?;
        let message = reader::read_message(text, limits.max_depth)?;
        if message.jsonrpc.and_then(decode_string).as_deref() != Some("2.0") {
            return Err(EnvelopeError::NotJsonRpc);
        }
        match message.method {
            Some(method) => Self::from_call(method, message, limits),
            None => Self::from_response(message, limits),
        }
    }

    /// Returns the `id` of a request that [`parse`](Self::parse) rejects, as written, for the error
    /// response. `None` if there is no single valid `id`, and for a message without a method, whose
    /// `id` belongs to the other side.
    pub fn refused_id(body: &'a [u8]) -> Option<&'a RawValue> {
        let id = reader::read_id(std::str::from_utf8(body).ok()?).filter(|id| is_identifier(id))?;
        serde_json::from_str(id).ok()
    }

    /// Creates the envelope of a request or notification.
    fn from_call(
        method: &'a str,
        message: Message<'a>,
        limits: EnvelopeLimits,
    ) -> Result<Self, EnvelopeError> {
        let method = decode_without_nul(method).ok_or(EnvelopeError::NotJsonRpc)?;
        if method.len() > Self::MAX_NAME_BYTES {
            return Err(EnvelopeError::MethodTooLong);
        }
        if message.result.is_some()
            || message.error.is_some()
            || message.id.is_some_and(|id| !is_identifier(id))
        {
            return Err(EnvelopeError::NotJsonRpc);
        }
        let params = message.params.unwrap_or_default();
        let is_initialize = method == "initialize";
        if is_initialize && params.has_look_alike("protocolVersion") {
            return Err(EnvelopeError::LookAlikeMember);
        }
        let initialize_version = if is_initialize {
            params.protocol_version.and_then(decode_string)
        } else {
            None
        };
        let no_meta = Meta::default();
        let meta = params.meta.as_ref().unwrap_or(&no_meta);
        let protocol_version = match meta.protocol_version {
            Some(version) => Some(decode_string(version).ok_or(EnvelopeError::InvalidParams)?),
            None => None,
        };
        let is_modern = protocol_version
            .as_deref()
            .and_then(Revision::parse)
            .is_some_and(Revision::is_modern);
        Ok(Self {
            message_type: if message.id.is_some() {
                MessageType::Request
            } else {
                MessageType::Notification
            },
            names: Names::of_call(&method, &params, meta, is_modern, limits.max_depth)?,
            method: Some(method),
            id: message.id,
            initialize_version,
            has_client_capabilities: meta
                .client_capabilities
                .is_some_and(|value| value.starts_with('{')),
            protocol_version,
        })
    }

    /// Creates the envelope of a response.
    fn from_response(message: Message<'a>, limits: EnvelopeLimits) -> Result<Self, EnvelopeError> {
        let id = message.id.filter(|id| is_identifier(id));
        let has_answer = match (&message.result, message.error) {
            (Some(_), None) => id.is_some(),
            (None, Some(_)) => true,
            _ => false,
        };
        // An error may have no id, or null, if the request's id could not be read.
        let has_invalid_id = id.is_none() && message.id.is_some_and(|id| id != "null");
        if !has_answer || has_invalid_id || message.params.is_some() {
            return Err(EnvelopeError::NotJsonRpc);
        }
        let meta = message
            .result
            .and_then(|result| result.meta)
            .unwrap_or_default();
        Ok(Self {
            message_type: MessageType::Response,
            method: None,
            id,
            names: Names::of_response(&meta, limits.max_depth)?,
            initialize_version: None,
            protocol_version: None,
            has_client_capabilities: false,
        })
    }

    /// Returns the type of the message.
    pub fn message_type(&self) -> MessageType {
        self.message_type
    }

    /// Returns the decoded method; `None` for a response. It can contain any character except NUL.
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// Returns the `id` as written: a JSON string or integer.
    pub fn id(&self) -> Option<&'a RawValue> {
        self.id.and_then(|id| serde_json::from_str(id).ok())
    }

    /// Returns the [`id`](Self::id) without a reference to the message.
    pub fn message_id(&self) -> Option<MessageId> {
        self.id.map(MessageId::new)
    }

    /// Returns the first of the [names](Self::names).
    pub fn name(&self) -> Option<&str> {
        self.names.first().map(Name::as_str)
    }

    /// Returns every name of a tool, prompt, resource or task in the message, at most 1,000:
    ///
    /// - `params.name` of `tools/call` and `prompts/get`, and `params.uri` of `resources/read`,
    ///   which are always present;
    /// - `params.uri` of `resources/subscribe` and `resources/unsubscribe`, which are always
    ///   present in legacy revisions;
    /// - `params.ref.name` and `params.ref.uri` of `completion/complete`;
    /// - each of `params.notifications.resourceSubscriptions` of `subscriptions/listen`;
    /// - `params.taskId` of `tasks/get`, `tasks/result`, `tasks/cancel`, `tasks/update` and
    ///   `notifications/tasks/status`;
    /// - the `taskId` of `io.modelcontextprotocol/related-task` in the `_meta` of any message or
    ///   result.
    pub fn names(&self) -> impl Iterator<Item = &Name<'a>> {
        self.names.iter()
    }

    /// Returns the version in the request's `_meta`, which modern revisions require.
    pub fn protocol_version(&self) -> Option<&str> {
        self.protocol_version.as_deref()
    }

    /// Returns whether the request's `_meta` has an object of client capabilities, which modern
    /// revisions require.
    pub fn has_client_capabilities(&self) -> bool {
        self.has_client_capabilities
    }

    /// Returns whether this is the request that opens a legacy session.
    pub fn is_initialize(&self) -> bool {
        self.message_type == MessageType::Request && self.method() == Some("initialize")
    }

    /// Returns the version that an `initialize` message requests.
    pub fn initialize_version(&self) -> Option<&str> {
        self.initialize_version.as_deref()
    }
}

/// Returns whether a value can be an `id`: a string or an integer.
fn is_identifier(id: &str) -> bool {
    id.starts_with('"')
        || id
            .strip_prefix('-')
            .unwrap_or(id)
            .bytes()
            .all(|b| b.is_ascii_digit())
}
