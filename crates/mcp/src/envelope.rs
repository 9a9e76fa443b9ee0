//! A JSON-RPC message, parsed in one pass.

mod members;
mod names;
mod scanner;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::value::RawValue;

use self::names::Names;
pub use self::names::{Name, TargetType};
use crate::{ErrorCode, MessageId, Revision};

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

/// The envelope of a JSON-RPC message, borrowed from the message. It does not depend on the method's parameters.
///
/// A value of this type guarantees:
///
/// - The bytes are UTF-8 and exactly one JSON object, which does not exceed the depth limit.
/// - The object is exactly one of a request, a notification and a response.
/// - No member that is read is repeated, in any escaped form. No other member differs from it only in letter case (Unicode
///   simple case folding) or after a NUL. Some parsers would use that member instead.
/// - Neither the method nor a name contains a NUL. There are at most 1,000 names.
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

/// The reason why a message is rejected.
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
    /// The value is not a JSON-RPC 2.0 request, notification or response.
    #[error("the message is not JSON-RPC 2.0")]
    NotJsonRpc,
    /// A member that is read is repeated.
    #[error("a member of the message is repeated")]
    DuplicateMember,
    /// A member differs from one that is read only in letter case or after a NUL.
    #[error("a member of the message could be taken for a known one")]
    LookAlikeMember,
    /// A name of a tool, prompt, resource or task, `params._meta`, or a member of `_meta` is missing although the method
    /// requires it, or has the wrong type.
    #[error("a parameter of the message is missing or of the wrong type")]
    InvalidParams,
    /// The message has more than 1,000 names of tools, prompts, resources and tasks.
    #[error("the message names too many tools, prompts, resources or tasks")]
    TooManyNames,
}

impl EnvelopeError {
    /// Returns the stable reason code.
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

    /// Returns the JSON-RPC error code of the response.
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
    /// Parses a message.
    ///
    /// # Errors
    /// Fails if the message does not have the [guaranteed properties](Envelope).
    pub fn parse(body: &'a [u8], limits: EnvelopeLimits) -> Result<Self, EnvelopeError> {
        let text = std::str::from_utf8(body).map_err(|_| EnvelopeError::NotUtf8)?;
        let members = members::read(text, limits.max_depth)?;
        if members.jsonrpc.and_then(members::text).as_deref() != Some("2.0") {
            return Err(EnvelopeError::NotJsonRpc);
        }
        match members.method {
            Some(method) => Self::call(text_without_nul(method).ok_or(EnvelopeError::NotJsonRpc)?, members, limits),
            None => Self::response(members, limits),
        }
    }

    /// Returns the `id` of a request that [`parse`](Self::parse) rejects, as written, for the error response. `None` if there
    /// is no single valid `id`, and for a message without a method, whose `id` belongs to the other side.
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
        // An error may have no id, or null, if the request's id could not be read.
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
    /// - `params.name` of `tools/call` and `prompts/get`, and `params.uri` of `resources/read`, which are always present;
    /// - `params.uri` of `resources/subscribe` and `resources/unsubscribe`, which are always present in legacy revisions;
    /// - `params.ref.name` and `params.ref.uri` of `completion/complete`;
    /// - each of `params.notifications.resourceSubscriptions` of `subscriptions/listen`;
    /// - `params.taskId` of `tasks/get`, `tasks/result`, `tasks/cancel`, `tasks/update` and `notifications/tasks/status`;
    /// - the `taskId` of `io.modelcontextprotocol/related-task` in the `_meta` of any message or result.
    pub fn names(&self) -> impl Iterator<Item = &Name<'a>> {
        self.names.iter()
    }

    /// Returns the version in the request's `_meta`, which modern revisions require.
    pub fn protocol_version(&self) -> Option<&str> {
        self.protocol_version.as_deref()
    }

    /// Returns whether the request's `_meta` has an object of client capabilities, which modern revisions require.
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

/// Returns a decoded string that selects rules. It has no NUL, at which some parsers would end it.
fn text_without_nul(value: &str) -> Option<Cow<'_, str>> {
    members::text(value).filter(|text| !text.contains('\0'))
}

fn is_identifier(id: &str) -> bool {
    id.starts_with('"') || id.strip_prefix('-').unwrap_or(id).bytes().all(|b| b.is_ascii_digit())
}
