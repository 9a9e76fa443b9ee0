//! What a request is about, as far as rules look at it.

use portcullis_mcp::{Envelope, Name, TargetType};

use crate::{
    NameGlob,
    aliases::{Spellings, UriError, check_characters},
    rules::MessageRule,
};

/// What a request is about. Without a message, for a stream, it has neither method nor names.
#[derive(Default)]
pub(crate) struct Subject<'a> {
    envelope: Option<&'a Envelope<'a>>,
    /// Other spellings of the resources that the message names. Empty unless a rule for names could apply to one.
    spellings: Spellings,
}

impl<'a> Subject<'a> {
    /// What a message is about.
    ///
    /// # Errors
    /// When one of the rules is for a name, and the message names a resource by a URI that readers could take for different ones.
    pub(crate) fn new(envelope: &'a Envelope<'a>, rules: &[MessageRule]) -> Result<Self, UriError> {
        let mut subject = Self { envelope: Some(envelope), spellings: Spellings::default() };
        let mut with_name = rules.iter().filter(|rule| rule.name.is_some()).peekable();
        if with_name.peek().is_none() {
            return Ok(subject);
        }
        let could_apply = with_name.any(|rule| subject.has_method_of(rule));
        for name in envelope.names().filter(|name| name.target_type() == TargetType::Resource) {
            check_characters(name.as_str())?;
            if could_apply {
                subject.spellings.add(name.as_str())?;
            }
        }
        Ok(subject)
    }

    /// Whether a rule is for this method and one of these names.
    pub(crate) fn is_subject_to(&self, rule: &MessageRule) -> bool {
        self.has_method_of(rule) && rule.name.as_ref().is_none_or(|glob| self.has_name_of(glob))
    }

    fn has_method_of(&self, rule: &MessageRule) -> bool {
        let method = self.envelope.and_then(Envelope::method);
        rule.method.as_ref().is_none_or(|glob| method.is_some_and(|method| glob.matches(method)))
    }

    fn has_name_of(&self, glob: &NameGlob) -> bool {
        let mut names = self.envelope.into_iter().flat_map(Envelope::names).map(Name::as_str);
        names.any(|name| glob.matches(name)) || self.spellings.iter().any(|spelling| glob.matches(spelling))
    }
}
