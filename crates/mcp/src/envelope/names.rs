//! The members of messages that name a tool, prompt, resource or task.

use std::borrow::Cow;

use super::{
    EnvelopeError,
    members::{self, Meta, Params},
};

/// The maximum number of names in a message.
const MAX_NAMES: usize = 1000;

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

/// The names of a message, in the order of the table. A message with at most one name allocates no list.
#[derive(Clone, Debug, Default)]
pub(super) struct Names<'a> {
    first: Option<Name<'a>>,
    more: Vec<Name<'a>>,
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

/// The condition under which a message must have the member. Otherwise the server decides what its absence means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Required {
    Always,
    /// In legacy revisions only: 2026-07-28 does not have the method.
    InLegacy,
    Never,
}

/// The members of client messages that name a tool, prompt, resource or task. In addition,
/// `io.modelcontextprotocol/related-task` in `_meta` is read for all methods and for results.
///
/// Sources: `schema.ts` of 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28, and the tasks extension (SEP-2663). Data
/// is not listed: `arguments`, and the results of sampling, elicitation and `roots/list`, in a response or in
/// `inputResponses`. Data selects nothing at the server.
const TABLE: [(&str, Place, TargetType, Required); 13] = [
    ("tools/call", Place::Name, TargetType::Tool, Required::Always),
    ("prompts/get", Place::Name, TargetType::Prompt, Required::Always),
    ("resources/read", Place::Uri, TargetType::Resource, Required::Always),
    ("resources/subscribe", Place::Uri, TargetType::Resource, Required::InLegacy),
    ("resources/unsubscribe", Place::Uri, TargetType::Resource, Required::InLegacy),
    ("completion/complete", Place::RefName, TargetType::Prompt, Required::Never),
    ("completion/complete", Place::RefUri, TargetType::Resource, Required::Never),
    ("subscriptions/listen", Place::Subscriptions, TargetType::Resource, Required::Never),
    ("tasks/get", Place::TaskId, TargetType::Task, Required::Never),
    ("tasks/result", Place::TaskId, TargetType::Task, Required::Never),
    ("tasks/cancel", Place::TaskId, TargetType::Task, Required::Never),
    ("tasks/update", Place::TaskId, TargetType::Task, Required::Never),
    ("notifications/tasks/status", Place::TaskId, TargetType::Task, Required::Never),
];

impl<'a> Names<'a> {
    /// Reads the names of a message with a method. The letter case of the method is ignored, because a server could
    /// ignore it.
    pub(super) fn read(
        method: &str,
        params: &Params<'a>,
        meta: &Meta<'a>,
        is_modern: bool,
        max_depth: usize,
    ) -> Result<Self, EnvelopeError> {
        let mut names = Self::default();
        for (_, place, of, required) in TABLE.iter().filter(|(known, ..)| method.eq_ignore_ascii_case(known)) {
            let is_missing = !names.read_place(*place, *of, params, max_depth)?;
            let is_required = match required {
                Required::Always => true,
                Required::InLegacy => !is_modern,
                Required::Never => false,
            };
            if is_missing && is_required {
                return Err(EnvelopeError::InvalidParams);
            }
        }
        names.read_related(meta, max_depth)?;
        Ok(names)
    }

    /// Reads the related task from `_meta` (2025-11-25).
    pub(super) fn read_related(&mut self, meta: &Meta<'a>, max_depth: usize) -> Result<(), EnvelopeError> {
        let Some(related) = meta.related_task else { return Ok(()) };
        let related: members::RelatedTask<'_> = members::nested(related, max_depth)?;
        self.push_text(TargetType::Task, related.task_id).map(drop)
    }

    pub(super) fn first(&self) -> Option<&Name<'a>> {
        self.first.as_ref()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Name<'a>> {
        self.first.iter().chain(&self.more)
    }

    /// Reads one member. Returns whether it is present.
    fn read_place(
        &mut self,
        place: Place,
        of: TargetType,
        params: &Params<'a>,
        max_depth: usize,
    ) -> Result<bool, EnvelopeError> {
        let member = match place {
            Place::Name => "name",
            Place::Uri => "uri",
            Place::TaskId => "taskId",
            Place::RefName | Place::RefUri => "ref",
            Place::Subscriptions => "notifications",
        };
        if params.has_look_alike(member) {
            return Err(EnvelopeError::LookAlikeMember);
        }
        match place {
            Place::Name => self.push_text(of, params.name),
            Place::Uri => self.push_text(of, params.uri),
            Place::TaskId => self.push_text(of, params.task_id),
            Place::RefName | Place::RefUri => {
                let Some(reference) = params.reference else { return Ok(false) };
                let reference: members::Reference<'_> = members::nested(reference, max_depth)?;
                self.push_text(of, if place == Place::RefName { reference.name } else { reference.uri })
            }
            Place::Subscriptions => {
                let Some(filter) = params.notifications else { return Ok(false) };
                let filter: members::SubscriptionFilter<'_> = members::nested(filter, max_depth)?;
                let Some(list) = filter.resource_subscriptions else { return Ok(false) };
                members::each_element(list, |element| self.push_text(of, Some(element)).map(drop))?;
                Ok(true)
            }
        }
    }

    /// Adds a member's value, if the member is present. Returns whether it is.
    fn push_text(&mut self, of: TargetType, value: Option<&'a str>) -> Result<bool, EnvelopeError> {
        let Some(value) = value else { return Ok(false) };
        let text = super::text_without_nul(value).ok_or(EnvelopeError::InvalidParams)?;
        let name = Name { target_type: of, text };
        if self.first.is_none() {
            self.first = Some(name);
        } else if self.more.len() + 1 < MAX_NAMES {
            self.more.push(name);
        } else {
            return Err(EnvelopeError::TooManyNames);
        }
        Ok(true)
    }
}

/// Returns whether the table contains a method, in any letter case.
#[cfg(test)]
pub(super) fn is_listed(method: &str) -> bool {
    TABLE.iter().any(|(known, ..)| method.eq_ignore_ascii_case(known))
}

#[cfg(test)]
impl Names<'_> {
    /// Returns whether there is one name, and neither it nor a list was allocated.
    pub(super) fn is_borrowed(&self) -> bool {
        matches!(&self.first, Some(Name { text: Cow::Borrowed(_), .. })) && self.more.capacity() == 0
    }
}
