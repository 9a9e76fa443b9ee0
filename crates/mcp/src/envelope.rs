//! One JSON-RPC message, read in one pass.

mod members;
mod names;
mod scanner;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::value::RawValue;

use self::names::Names;
pub use self::names::{Name, TargetType};
use crate::{ErrorCode, Revision};

/// The limits of [`Envelope::parse`]. The caller limits the length of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnvelopeLimits {
    /// The maximum nesting depth of arrays and objects. The message itself has depth 1. Default: 64.
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

/// What sort of JSON-RPC message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageType {
    /// A method with an `id`: an answer is expected.
    Request,
    /// A method without an `id`.
    Notification,
    /// A `result` or an `error`.
    Response,
}

/// What can be told from one JSON-RPC message without understanding its method: read in one pass, borrowed
/// from the message, nothing else kept.
///
/// A value of this type means: the bytes are UTF-8 and one JSON object with nothing behind it, no deeper than
/// the limit; it is a request, a notification or a response and not two of them; no member that is read here
/// stands there twice, under whatever escapes, or beside one that differs from it only in letter case (Unicode simple
/// case folding) or behind a NUL (readers exist that would take the other one); neither the method nor a name has a
/// NUL; and it carries at most 1,000 names. It says nothing of the members that are not read.
#[derive(Clone, Debug)]
pub struct Envelope<'a> {
    message_type: MessageType,
    method: Option<Cow<'a, str>>,
    /// As it was written.
    id: Option<&'a str>,
    names: Names<'a>,
    initialize_version: Option<Cow<'a, str>>,
    protocol_version: Option<Cow<'a, str>>,
    has_client_capabilities: bool,
}

/// Why bytes are no message that can be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// The bytes are not UTF-8.
    #[error("the message is not UTF-8")]
    NotUtf8,
    /// The text is not one JSON value.
    #[error("the message is not JSON")]
    NotJson,
    /// Arrays and objects nest deeper than [`EnvelopeLimits::max_depth`].
    #[error("the message nests too deep")]
    TooDeep,
    /// The message is an array: JSON-RPC batches are not part of these revisions.
    #[error("the message is a batch")]
    Batch,
    /// The value is no JSON-RPC 2.0 request, notification or response.
    #[error("the message is not JSON-RPC 2.0")]
    NotJsonRpc,
    /// A member that decides something stands there twice.
    #[error("a member of the message is repeated")]
    DuplicateMember,
    /// A member differs from one that decides something in letter case only, or in what follows a NUL.
    #[error("a member of the message could be taken for a known one")]
    LookAlikeMember,
    /// A member that names a tool, prompt, resource or task, or `params._meta` or a member of that, is missing where the
    /// method needs it, or of the wrong type.
    #[error("a parameter of the message is missing or of the wrong type")]
    InvalidParams,
    /// It names more than 1,000 tools, prompts, resources and tasks.
    #[error("the message names too many tools, prompts, resources or tasks")]
    TooManyNames,
}

impl EnvelopeError {
    /// The stable reason code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotUtf8 => "message.not_utf8",
            Self::NotJson => "message.not_json",
            Self::TooDeep => "message.too_deep",
            Self::Batch => "message.batch",
            Self::NotJsonRpc => "message.not_json_rpc",
            Self::DuplicateMember => "message.duplicate_member",
            Self::LookAlikeMember => "message.look_alike_member",
            Self::InvalidParams => "message.invalid_params",
            Self::TooManyNames => "message.too_many_names",
        }
    }

    /// The JSON-RPC error that answers it.
    pub const fn rpc_code(self) -> ErrorCode {
        match self {
            Self::NotUtf8 | Self::NotJson => ErrorCode::ParseError,
            Self::InvalidParams | Self::TooManyNames => ErrorCode::InvalidParams,
            Self::TooDeep | Self::Batch | Self::NotJsonRpc | Self::DuplicateMember | Self::LookAlikeMember => {
                ErrorCode::InvalidRequest
            }
        }
    }
}

impl<'a> Envelope<'a> {
    /// Reads a message.
    ///
    /// # Errors
    /// When the bytes are no message as [described](Envelope).
    pub fn parse(body: &'a [u8], limits: EnvelopeLimits) -> Result<Self, EnvelopeError> {
        let text = std::str::from_utf8(body).map_err(|_| EnvelopeError::NotUtf8)?;
        let members = members::read(text, limits.max_depth)?;
        if members.jsonrpc.and_then(members::text).as_deref() != Some("2.0") {
            return Err(EnvelopeError::NotJsonRpc);
        }
        match members.method {
            Some(method) => Self::call(decisive(method).ok_or(EnvelopeError::NotJsonRpc)?, members, limits),
            None => Self::response(members, limits),
        }
    }

    /// The `id` of a request that [`parse`](Self::parse) refuses, as it is written, for the error that answers it. `None` where
    /// no single valid `id` can be read, and for a message without a method: its `id` belongs to the other side.
    pub fn refused_id(body: &'a [u8]) -> Option<&'a RawValue> {
        let id = members::read_id(std::str::from_utf8(body).ok()?).filter(|id| is_identifier(id))?;
        serde_json::from_str(id).ok()
    }

    fn call(
        method: Cow<'a, str>,
        members: members::Message<'a>,
        limits: EnvelopeLimits,
    ) -> Result<Self, EnvelopeError> {
        if members.result.is_some() || members.error.is_some() || members.id.is_some_and(|id| !is_identifier(id)) {
            return Err(EnvelopeError::NotJsonRpc);
        }
        let params = members.params.unwrap_or_default();
        let initializes = method == "initialize";
        if initializes && params.has_look_alike("protocolVersion") {
            return Err(EnvelopeError::LookAlikeMember);
        }
        let initialize_version = if initializes { params.protocol_version.and_then(members::text) } else { None };
        let no_meta = members::Meta::default();
        let meta = params.meta.as_ref().unwrap_or(&no_meta);
        let protocol_version = match meta.protocol_version {
            Some(version) => Some(members::text(version).ok_or(EnvelopeError::InvalidParams)?),
            None => None,
        };
        let is_modern = protocol_version.as_deref().and_then(Revision::parse).is_some_and(Revision::is_modern);
        Ok(Self {
            message_type: if members.id.is_some() { MessageType::Request } else { MessageType::Notification },
            names: Names::read(&method, &params, meta, is_modern, limits.max_depth)?,
            method: Some(method),
            id: members.id,
            initialize_version,
            has_client_capabilities: meta.client_capabilities.is_some_and(|value| value.starts_with('{')),
            protocol_version,
        })
    }

    fn response(members: members::Message<'a>, limits: EnvelopeLimits) -> Result<Self, EnvelopeError> {
        let id = members.id.filter(|id| is_identifier(id));
        let answers = match (&members.result, members.error) {
            (Some(_), None) => id.is_some(),
            (None, Some(_)) => true,
            _ => false,
        };
        // An error may come without an id, or with null, where the request's could not be read.
        let odd_id = members.id.is_some_and(|id| !is_identifier(id) && id != "null");
        if !answers || odd_id || members.params.is_some() {
            return Err(EnvelopeError::NotJsonRpc);
        }
        let mut names = Names::default();
        if let Some(meta) = members.result.and_then(|outcome| outcome.meta) {
            names.read_related(&meta, limits.max_depth)?;
        }
        Ok(Self {
            message_type: MessageType::Response,
            method: None,
            id,
            names,
            initialize_version: None,
            protocol_version: None,
            has_client_capabilities: false,
        })
    }

    /// What sort of message it is.
    pub fn message_type(&self) -> MessageType {
        self.message_type
    }

    /// The method, with its escapes decoded; `None` for a response. It can hold any character.
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// The `id` as it was written: a JSON string or integer.
    pub fn id(&self) -> Option<&'a RawValue> {
        self.id.and_then(|id| serde_json::from_str(id).ok())
    }

    /// The first of its [names](Self::names): what the method acts on, where it acts on one thing.
    pub fn name(&self) -> Option<&str> {
        self.names.first().map(Name::as_str)
    }

    /// Every name of a tool, prompt, resource or task that the message carries, at most 1,000:
    ///
    /// - `params.name` of `tools/call` and `prompts/get`, and `params.uri` of `resources/read`, which are always there;
    /// - `params.uri` of `resources/subscribe` and `resources/unsubscribe`, which are always there in revisions with sessions;
    /// - `params.ref.name` and `params.ref.uri` of `completion/complete`;
    /// - each of `params.notifications.resourceSubscriptions` of `subscriptions/listen`;
    /// - `params.taskId` of `tasks/get`, `tasks/result`, `tasks/cancel`, `tasks/update` and `notifications/tasks/status`;
    /// - the `taskId` of `io.modelcontextprotocol/related-task` in the `_meta` of any message or result.
    pub fn names(&self) -> impl Iterator<Item = &Name<'a>> {
        self.names.iter()
    }

    /// The version in the request's own `_meta`, which modern revisions require.
    pub fn protocol_version(&self) -> Option<&str> {
        self.protocol_version.as_deref()
    }

    /// Whether the request's own `_meta` has an object of client capabilities, which modern revisions require.
    pub fn has_client_capabilities(&self) -> bool {
        self.has_client_capabilities
    }

    /// Whether it is the request that opens a legacy session.
    pub fn is_initialize(&self) -> bool {
        self.message_type == MessageType::Request && self.method() == Some("initialize")
    }

    /// The version that an `initialize` message asks for.
    pub fn initialize_version(&self) -> Option<&str> {
        self.initialize_version.as_deref()
    }
}

/// A text that rules are chosen by. It has no NUL, at which some readers would end it.
fn decisive(value: &str) -> Option<Cow<'_, str>> {
    members::text(value).filter(|text| !text.contains('\0'))
}

fn is_identifier(id: &str) -> bool {
    id.starts_with('"') || id.strip_prefix('-').unwrap_or(id).bytes().all(|b| b.is_ascii_digit())
}
