use portcullis_mcp::Envelope;
use portcullis_metadata::Scopes;
use portcullis_verifier::Principal;

use crate::NameGlob;

/// Scopes that some messages need beside those that every request needs. All rules that match count together.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// The methods it counts for, such as `tools/*`; `None` means every request, streams and responses too.
    pub method: Option<NameGlob>,
    /// The names it counts for: of a tool or prompt, or the URI of a resource. `None` means all, and those messages
    /// that name nothing.
    pub name: Option<NameGlob>,
    /// What those messages need.
    pub scopes: Scopes,
}

/// What a request is about, as far as rules look at it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Subject<'a> {
    method: Option<&'a str>,
    name: Option<&'a str>,
}

impl<'a> From<&'a Envelope<'_>> for Subject<'a> {
    fn from(envelope: &'a Envelope<'_>) -> Self {
        Self { method: envelope.method(), name: envelope.name() }
    }
}

/// The scopes that requests need, by what they are about.
pub(crate) struct Rules {
    required: Scopes,
    rules: Vec<Rule>,
    /// All scopes that the endpoint speaks of.
    named: Scopes,
}

/// Scopes are missing.
#[derive(Debug)]
pub(crate) struct Missing {
    /// All that the request needs, and those that the principal has of the ones that the endpoint names: clients
    /// replace the scopes they hold by what a challenge lists.
    pub(crate) needed: Scopes,
    pub(crate) granted: Scopes,
}

impl Rules {
    pub(crate) fn new(required: Scopes, rules: Vec<Rule>) -> Self {
        let named = rules.iter().fold(required.clone(), |named, rule| named.union(&rule.scopes));
        Self { required, rules, named }
    }

    /// Whether the principal's scopes are enough; without a principal, where authentication is off, they are.
    /// Where they are, nothing is allocated.
    pub(crate) fn judge(&self, subject: Subject<'_>, principal: Option<&Principal>) -> Result<(), Missing> {
        let Some(principal) = principal else { return Ok(()) };
        let granted = principal.scopes();
        let matching = || self.rules.iter().filter(|rule| rule.counts_for(subject));
        if granted.covers(&self.required) && matching().all(|rule| granted.covers(&rule.scopes)) {
            return Ok(());
        }
        let needed = matching().fold(self.required.clone(), |needed, rule| needed.union(&rule.scopes));
        Err(Missing { needed: needed.union(&granted.intersection(&self.named)), granted: granted.clone() })
    }
}

impl Rule {
    fn counts_for(&self, subject: Subject<'_>) -> bool {
        let fits = |glob: &Option<NameGlob>, text: Option<&str>| match glob {
            Some(glob) => text.is_some_and(|text| glob.matches(text)),
            None => true,
        };
        fits(&self.method, subject.method) && fits(&self.name, subject.name)
    }
}
