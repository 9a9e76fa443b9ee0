use portcullis_mcp::{Envelope, TargetType};

use super::{
    MessageRule,
    name_glob::NameGlob,
    uri_spellings::{Spellings, UriError, check_characters},
};

/// The method and names of a request. A GET or DELETE has neither.
#[derive(Default)]
pub(crate) struct Subject<'a> {
    envelope: Option<&'a Envelope<'a>>,
    /// The spellings of the message's resource URIs. Empty unless a rule with a name could match
    /// the message.
    spellings: Spellings,
}

impl<'a> Subject<'a> {
    /// Returns the subject of a message. Fails if a rule has a name and the message has a resource
    /// URI that servers read in different ways.
    pub(crate) fn new(envelope: &'a Envelope<'a>, rules: &[MessageRule]) -> Result<Self, UriError> {
        let mut subject = Self {
            envelope: Some(envelope),
            spellings: Spellings::default(),
        };
        for name in envelope
            .names()
            .filter(|name| name.target_type() == TargetType::Resource)
        {
            let mut with_name = rules.iter().filter(|rule| rule.name.is_some()).peekable();
            if with_name.peek().is_none() {
                break;
            }
            check_characters(name.as_str())?;
            if with_name.any(|rule| subject.matches_method(rule)) {
                subject.spellings.add(name.as_str())?;
            }
        }
        Ok(subject)
    }

    /// Returns whether the rule applies to this method and one of these names.
    pub(crate) fn matches(&self, rule: &MessageRule) -> bool {
        self.matches_method(rule)
            && rule
                .name
                .as_ref()
                .is_none_or(|glob| self.matches_name(glob))
    }

    fn matches_method(&self, rule: &MessageRule) -> bool {
        let method = self.envelope.and_then(Envelope::method);
        rule.method
            .as_ref()
            .is_none_or(|glob| method.is_some_and(|method| glob.matches(method)))
    }

    fn matches_name(&self, glob: &NameGlob) -> bool {
        self.envelope
            .is_some_and(|envelope| envelope.names().any(|name| glob.matches(name.as_str())))
            || self.spellings.iter().any(|spelling| glob.matches(spelling))
    }
}
