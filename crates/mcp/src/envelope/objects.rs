//! The objects of a message, and the members of them that are read.
//!
//! A value stays as written until it is used. `ref`, `notifications` and the related task are
//! objects too, but only some methods have them, so they are read in a second step.

use super::error::EnvelopeError;
use crate::meta;

/// An object of which some members are read. `null` is read as an empty object.
pub(super) trait Object<'a>: Default {
    /// The nesting depth of the object. The message has depth 1.
    const DEPTH: usize;
    /// The error for a value that is neither an object nor `null`.
    const IF_NO_OBJECT: EnvelopeError;
    /// The names of the members that must not have a look-alike.
    const MEMBERS: &'static [&'static str];

    /// Returns the field of a member, or `None` if the member is not read.
    fn field(&mut self, name: &str) -> Option<Field<'_, 'a>>;

    /// Handles a member that some parsers would read as this one of `MEMBERS`.
    fn receive_look_alike(&mut self, _member: &'static str) -> Result<(), EnvelopeError> {
        Err(EnvelopeError::LookAlikeMember)
    }
}

/// Where the value of a member is stored.
pub(super) enum Field<'f, 'a> {
    /// The value as written.
    Value(&'f mut Option<&'a str>),
    Params(&'f mut Option<Params<'a>>),
    Result(&'f mut Option<ResultMembers<'a>>),
    Meta(&'f mut Option<Meta<'a>>),
    /// Whether the member is present. It can be repeated.
    Presence(&'f mut bool),
}

/// A JSON-RPC message.
#[derive(Default)]
pub(super) struct Message<'a> {
    pub(super) jsonrpc: Option<&'a str>,
    pub(super) id: Option<&'a str>,
    pub(super) method: Option<&'a str>,
    pub(super) params: Option<Params<'a>>,
    pub(super) result: Option<ResultMembers<'a>>,
    pub(super) error: Option<&'a str>,
}

impl<'a> Object<'a> for Message<'a> {
    const DEPTH: usize = 1;
    const IF_NO_OBJECT: EnvelopeError = EnvelopeError::NotJsonRpc;
    const MEMBERS: &'static [&'static str] =
        &["jsonrpc", "id", "method", "params", "result", "error"];

    fn field(&mut self, name: &str) -> Option<Field<'_, 'a>> {
        Some(match name {
            "jsonrpc" => Field::Value(&mut self.jsonrpc),
            "id" => Field::Value(&mut self.id),
            "method" => Field::Value(&mut self.method),
            "params" => Field::Params(&mut self.params),
            "result" => Field::Result(&mut self.result),
            "error" => Field::Value(&mut self.error),
            _ => return None,
        })
    }
}

/// The message again, to find the `id` of a request that is rejected for another reason.
#[derive(Default)]
pub(super) struct RejectedMessage<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) has_method: bool,
}

impl<'a> Object<'a> for RejectedMessage<'a> {
    const DEPTH: usize = 1;
    const IF_NO_OBJECT: EnvelopeError = EnvelopeError::NotJsonRpc;
    const MEMBERS: &'static [&'static str] = &["id"];

    fn field(&mut self, name: &str) -> Option<Field<'_, 'a>> {
        Some(match name {
            "id" => Field::Value(&mut self.id),
            "method" => Field::Presence(&mut self.has_method),
            _ => return None,
        })
    }
}

#[derive(Default)]
pub(super) struct Params<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) uri: Option<&'a str>,
    pub(super) task_id: Option<&'a str>,
    /// A [`Reference`].
    pub(super) reference: Option<&'a str>,
    /// A [`SubscriptionFilter`].
    pub(super) notifications: Option<&'a str>,
    pub(super) protocol_version: Option<&'a str>,
    pub(super) meta: Option<Meta<'a>>,
    /// The members of which there is a look-alike, each once. This is an error only if the method
    /// uses the member.
    look_alikes: Vec<&'static str>,
}

impl Params<'_> {
    /// Returns whether there is a look-alike of a member.
    pub(super) fn has_look_alike(&self, member: &str) -> bool {
        self.look_alikes.contains(&member)
    }
}

impl<'a> Object<'a> for Params<'a> {
    const DEPTH: usize = 2;
    const IF_NO_OBJECT: EnvelopeError = EnvelopeError::NotJsonRpc;
    const MEMBERS: &'static [&'static str] = &[
        "name",
        "uri",
        "taskId",
        "ref",
        "notifications",
        "protocolVersion",
        "_meta",
    ];

    fn field(&mut self, name: &str) -> Option<Field<'_, 'a>> {
        Some(match name {
            "name" => Field::Value(&mut self.name),
            "uri" => Field::Value(&mut self.uri),
            "taskId" => Field::Value(&mut self.task_id),
            "ref" => Field::Value(&mut self.reference),
            "notifications" => Field::Value(&mut self.notifications),
            "protocolVersion" => Field::Value(&mut self.protocol_version),
            "_meta" => Field::Meta(&mut self.meta),
            _ => return None,
        })
    }

    fn receive_look_alike(&mut self, member: &'static str) -> Result<(), EnvelopeError> {
        if member == "_meta" {
            return Err(EnvelopeError::LookAlikeMember);
        }
        if !self.has_look_alike(member) {
            self.look_alikes.push(member);
        }
        Ok(())
    }
}

/// `result`. A result that is not an object has no members.
#[derive(Default)]
pub(super) struct ResultMembers<'a> {
    pub(super) meta: Option<Meta<'a>>,
}

impl<'a> Object<'a> for ResultMembers<'a> {
    const DEPTH: usize = 2;
    const IF_NO_OBJECT: EnvelopeError = EnvelopeError::NotJsonRpc;
    const MEMBERS: &'static [&'static str] = &["_meta"];

    fn field(&mut self, name: &str) -> Option<Field<'_, 'a>> {
        (name == "_meta").then_some(Field::Meta(&mut self.meta))
    }
}

/// `_meta` of `params` or `result`.
#[derive(Default)]
pub(super) struct Meta<'a> {
    pub(super) protocol_version: Option<&'a str>,
    pub(super) client_capabilities: Option<&'a str>,
    /// A [`RelatedTask`].
    pub(super) related_task: Option<&'a str>,
}

impl<'a> Object<'a> for Meta<'a> {
    const DEPTH: usize = 3;
    const IF_NO_OBJECT: EnvelopeError = EnvelopeError::InvalidParams;
    const MEMBERS: &'static [&'static str] = &[
        meta::PROTOCOL_VERSION,
        meta::CLIENT_CAPABILITIES,
        meta::RELATED_TASK,
    ];

    fn field(&mut self, name: &str) -> Option<Field<'_, 'a>> {
        Some(match name {
            meta::PROTOCOL_VERSION => Field::Value(&mut self.protocol_version),
            meta::CLIENT_CAPABILITIES => Field::Value(&mut self.client_capabilities),
            meta::RELATED_TASK => Field::Value(&mut self.related_task),
            _ => return None,
        })
    }
}

/// `params.ref` of `completion/complete`.
#[derive(Default)]
pub(super) struct Reference<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) uri: Option<&'a str>,
}

impl<'a> Object<'a> for Reference<'a> {
    const DEPTH: usize = 3;
    const IF_NO_OBJECT: EnvelopeError = EnvelopeError::InvalidParams;
    const MEMBERS: &'static [&'static str] = &["name", "uri"];

    fn field(&mut self, name: &str) -> Option<Field<'_, 'a>> {
        Some(match name {
            "name" => Field::Value(&mut self.name),
            "uri" => Field::Value(&mut self.uri),
            _ => return None,
        })
    }
}

/// `params.notifications` of `subscriptions/listen`.
#[derive(Default)]
pub(super) struct SubscriptionFilter<'a> {
    pub(super) resource_subscriptions: Option<&'a str>,
}

impl<'a> Object<'a> for SubscriptionFilter<'a> {
    const DEPTH: usize = 3;
    const IF_NO_OBJECT: EnvelopeError = EnvelopeError::InvalidParams;
    const MEMBERS: &'static [&'static str] = &["resourceSubscriptions"];

    fn field(&mut self, name: &str) -> Option<Field<'_, 'a>> {
        (name == "resourceSubscriptions").then_some(Field::Value(&mut self.resource_subscriptions))
    }
}

/// `io.modelcontextprotocol/related-task` in `_meta`.
#[derive(Default)]
pub(super) struct RelatedTask<'a> {
    pub(super) task_id: Option<&'a str>,
}

impl<'a> Object<'a> for RelatedTask<'a> {
    const DEPTH: usize = 4;
    const IF_NO_OBJECT: EnvelopeError = EnvelopeError::InvalidParams;
    const MEMBERS: &'static [&'static str] = &["taskId"];

    fn field(&mut self, name: &str) -> Option<Field<'_, 'a>> {
        (name == "taskId").then_some(Field::Value(&mut self.task_id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_fields<'a, T: Object<'a>>() {
        for member in T::MEMBERS {
            assert!(T::default().field(member).is_some(), "{member}");
        }
    }

    /// Each member that must not have a look-alike is read under the same name.
    #[test]
    fn each_member_has_a_field() {
        assert_fields::<Message<'_>>();
        assert_fields::<RejectedMessage<'_>>();
        assert_fields::<Params<'_>>();
        assert_fields::<ResultMembers<'_>>();
        assert_fields::<Meta<'_>>();
        assert_fields::<Reference<'_>>();
        assert_fields::<SubscriptionFilter<'_>>();
        assert_fields::<RelatedTask<'_>>();
    }
}
