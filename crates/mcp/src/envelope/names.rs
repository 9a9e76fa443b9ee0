//! The members of messages that name a tool, prompt, resource or task.

use std::borrow::Cow;

use super::{
    Envelope,
    error::EnvelopeError,
    objects::{Meta, Params, Reference, RelatedTask, SubscriptionFilter},
    reader::{for_each_element, read_nested},
    strings::decode_without_nul,
};

/// The maximum number of names in a message.
const MAX_NAMES: usize = 1000;

/// The maximum size of all names in a message together, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// The type of the thing that a name identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetType {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource or a resource template: the name is a URI or a URI template.
    Resource,
    /// A task.
    Task,
}

/// A name in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    target_type: TargetType,
    text: Cow<'a, str>,
}

impl Name<'_> {
    /// Returns the type of the named thing.
    pub fn target_type(&self) -> TargetType {
        self.target_type
    }

    /// Returns the decoded name. It contains no NUL.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The names of a message, in the order of [`NAMED_MEMBERS`]. A message with at most one name
/// allocates no list.
#[derive(Clone, Debug, Default)]
pub(super) struct Names<'a> {
    first: Option<Name<'a>>,
    more: Vec<Name<'a>>,
    bytes: usize,
}

/// The position of a name in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// `params.name`
    Name,
    /// `params.uri`
    Uri,
    /// `params.taskId`
    TaskId,
    /// `params.ref.name`
    RefName,
    /// `params.ref.uri`
    RefUri,
    /// Each element of `params.notifications.resourceSubscriptions`
    Subscriptions,
}

/// The condition under which a message must have the member. Otherwise the server decides what its
/// absence means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Required {
    Always,
    /// In legacy revisions only: 2026-07-28 does not have the method.
    InLegacy,
    Never,
}

/// A member that names something.
struct NamedMember {
    method: &'static str,
    place: Place,
    target_type: TargetType,
    required: Required,
}

const fn named(
    method: &'static str,
    place: Place,
    target_type: TargetType,
    required: Required,
) -> NamedMember {
    NamedMember {
        method,
        place,
        target_type,
        required,
    }
}

impl NamedMember {
    /// Returns the members of a method. The letter case is ignored, because a server could ignore
    /// it.
    fn of(method: &str) -> impl Iterator<Item = &'static Self> {
        NAMED_MEMBERS
            .iter()
            .filter(move |member| method.eq_ignore_ascii_case(member.method))
    }
}

/// The members of client messages that name a tool, prompt, resource or task. In addition,
/// `io.modelcontextprotocol/related-task` in `_meta` is read for all methods and for results.
///
/// Sources: `schema.ts` of 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28, and the tasks
/// extension (SEP-2663). Data is not listed: `arguments`, and the results of sampling, elicitation
/// and `roots/list`, in a response or in `inputResponses`. Data selects nothing at the server.
const NAMED_MEMBERS: &[NamedMember] = &[
    named(
        "tools/call",
        Place::Name,
        TargetType::Tool,
        Required::Always,
    ),
    named(
        "prompts/get",
        Place::Name,
        TargetType::Prompt,
        Required::Always,
    ),
    named(
        "resources/read",
        Place::Uri,
        TargetType::Resource,
        Required::Always,
    ),
    named(
        "resources/subscribe",
        Place::Uri,
        TargetType::Resource,
        Required::InLegacy,
    ),
    named(
        "resources/unsubscribe",
        Place::Uri,
        TargetType::Resource,
        Required::InLegacy,
    ),
    named(
        "completion/complete",
        Place::RefName,
        TargetType::Prompt,
        Required::Never,
    ),
    named(
        "completion/complete",
        Place::RefUri,
        TargetType::Resource,
        Required::Never,
    ),
    named(
        "subscriptions/listen",
        Place::Subscriptions,
        TargetType::Resource,
        Required::Never,
    ),
    named(
        "tasks/get",
        Place::TaskId,
        TargetType::Task,
        Required::Never,
    ),
    named(
        "tasks/result",
        Place::TaskId,
        TargetType::Task,
        Required::Never,
    ),
    named(
        "tasks/cancel",
        Place::TaskId,
        TargetType::Task,
        Required::Never,
    ),
    named(
        "tasks/update",
        Place::TaskId,
        TargetType::Task,
        Required::Never,
    ),
    named(
        "notifications/tasks/status",
        Place::TaskId,
        TargetType::Task,
        Required::Never,
    ),
];

/// The methods of notifications about another message, whose `_meta` can name its task.
const ABOUT_ANOTHER: &[&str] = &["notifications/cancelled", "notifications/progress"];

/// Returns whether messages of this client method can name a tool, prompt, resource or task. False
/// for methods that the MCP specification does not define.
///
/// ```
/// use portcullis_mcp::has_target;
///
/// assert!(has_target("tools/call"));
/// assert!(!has_target("tools/list"));
/// ```
pub fn has_target(method: &str) -> bool {
    NamedMember::of(method).next().is_some() || ABOUT_ANOTHER.contains(&method)
}

impl<'a> Names<'a> {
    /// Reads the names of a request or notification. Fails if a required member is missing, a name
    /// is not a string, has a NUL or is too long, there is a look-alike of a member that the method
    /// uses, or there are too many names.
    pub(super) fn of_call(
        method: &str,
        params: &Params<'a>,
        meta: &Meta<'a>,
        is_modern: bool,
        max_depth: usize,
    ) -> Result<Self, EnvelopeError> {
        let mut names = Self::default();
        for NamedMember {
            place,
            target_type,
            required,
            ..
        } in NamedMember::of(method)
        {
            let is_present = names.read_place(*place, *target_type, params, max_depth)?;
            let is_required = match required {
                Required::Always => true,
                Required::InLegacy => !is_modern,
                Required::Never => false,
            };
            if is_required && !is_present {
                return Err(EnvelopeError::InvalidParams);
            }
        }
        names.read_related_task(meta, max_depth)?;
        Ok(names)
    }

    /// Reads the names of a response.
    pub(super) fn of_response(meta: &Meta<'a>, max_depth: usize) -> Result<Self, EnvelopeError> {
        let mut names = Self::default();
        names.read_related_task(meta, max_depth)?;
        Ok(names)
    }

    pub(super) fn first(&self) -> Option<&Name<'a>> {
        self.first.as_ref()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Name<'a>> {
        self.first.iter().chain(&self.more)
    }

    /// Reads the related task in `_meta` (2025-11-25).
    fn read_related_task(
        &mut self,
        meta: &Meta<'a>,
        max_depth: usize,
    ) -> Result<(), EnvelopeError> {
        let Some(task) = meta.related_task else {
            return Ok(());
        };
        let task: RelatedTask<'_> = read_nested(task, max_depth)?;
        self.push(TargetType::Task, task.task_id).map(drop)
    }

    /// Reads the member at a place. Returns whether it is present.
    fn read_place(
        &mut self,
        place: Place,
        target_type: TargetType,
        params: &Params<'a>,
        max_depth: usize,
    ) -> Result<bool, EnvelopeError> {
        if params.has_look_alike(place.member()) {
            return Err(EnvelopeError::LookAlikeMember);
        }
        match place {
            Place::Name => self.push(target_type, params.name),
            Place::Uri => self.push(target_type, params.uri),
            Place::TaskId => self.push(target_type, params.task_id),
            Place::RefName | Place::RefUri => {
                let Some(reference) = params.reference else {
                    return Ok(false);
                };
                let reference: Reference<'_> = read_nested(reference, max_depth)?;
                self.push(
                    target_type,
                    if place == Place::RefName {
                        reference.name
                    } else {
                        reference.uri
                    },
                )
            }
            Place::Subscriptions => {
                let Some(filter) = params.notifications else {
                    return Ok(false);
                };
                let filter: SubscriptionFilter<'_> = read_nested(filter, max_depth)?;
                let Some(uris) = filter.resource_subscriptions else {
                    return Ok(false);
                };
                for_each_element(uris, |uri| self.push(target_type, Some(uri)).map(drop))?;
                Ok(true)
            }
        }
    }

    /// Adds a name, if its member is present. Returns whether it is.
    fn push(
        &mut self,
        target_type: TargetType,
        value: Option<&'a str>,
    ) -> Result<bool, EnvelopeError> {
        let Some(value) = value else { return Ok(false) };
        let text = decode_without_nul(value).ok_or(EnvelopeError::InvalidParams)?;
        if text.len() > Envelope::MAX_NAME_BYTES {
            return Err(EnvelopeError::NameTooLong);
        }
        self.bytes += text.len();
        if self.more.len() + 1 >= MAX_NAMES || self.bytes > MAX_BYTES {
            return Err(EnvelopeError::TooManyNames);
        }
        let name = Name { target_type, text };
        if self.first.is_none() {
            self.first = Some(name);
        } else {
            self.more.push(name);
        }
        Ok(true)
    }
}

impl Place {
    /// Returns the member of `params` that has the name or contains it.
    const fn member(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Uri => "uri",
            Self::TaskId => "taskId",
            Self::RefName | Self::RefUri => "ref",
            Self::Subscriptions => "notifications",
        }
    }
}

/// Returns whether the table contains a method, in any letter case.
#[cfg(test)]
pub(super) fn is_listed(method: &str) -> bool {
    NamedMember::of(method).next().is_some()
}

#[cfg(test)]
impl Names<'_> {
    /// Returns whether there is one name, and neither it nor a list was allocated.
    pub(super) fn is_borrowed(&self) -> bool {
        matches!(
            &self.first,
            Some(Name {
                text: Cow::Borrowed(_),
                ..
            })
        ) && self.more.capacity() == 0
    }
}
