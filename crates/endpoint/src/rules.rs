//! The requirements for messages: scopes, claims and rate limits by method and name.

mod name_glob;

use std::sync::Arc;

use portcullis_guard::{Caller, ClaimDenial, ClaimDenials, ClaimRule, LimitExceeded, RateLimiter, ScopeImplications};
use portcullis_mcp::Envelope;
use portcullis_metadata::Scopes;
use portcullis_verifier::Principal;

pub use self::name_glob::{NameGlob, NameGlobError};
use crate::{aliases::UriError, subject::Subject};

/// What some messages need beside what every request needs. All rules that match count together.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MessageRule {
    /// The methods it counts for, such as `tools/*`; `None` means every request, streams and responses too.
    pub method: Option<NameGlob>,
    /// The names it counts for: of a tool, prompt or task, or the URI of a resource, under any spelling of it. A message
    /// that carries several names counts if one of them matches. `None` means all, and those messages that name nothing.
    pub name: Option<NameGlob>,
    /// The scopes that those messages need.
    pub scopes: Scopes,
    /// What the token's claims have to say for them, all of it.
    pub claims: Vec<ClaimRule>,
    /// How many of them may come of each principal, once nothing else speaks against them. `None`: any number.
    pub limit: Option<Arc<RateLimiter>>,
}

/// What requests need, by what they are about.
pub(crate) struct Rules {
    required: Scopes,
    implications: ScopeImplications,
    rules: Vec<MessageRule>,
    /// All scopes that the endpoint speaks of.
    named: Scopes,
}

/// Why a principal may not do what it asks for.
#[derive(Debug)]
pub(crate) enum NotAllowed {
    /// Its claims are not what they have to be.
    Claims(ClaimDenial),
    /// It lacks scopes.
    Scopes(Missing),
    /// It asks too often.
    Limited(LimitExceeded),
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
    pub(crate) fn new(required: Scopes, implications: ScopeImplications, rules: Vec<MessageRule>) -> Self {
        let named = rules.iter().fold(required.clone(), |named, rule| named.union(&rule.scopes));
        Self { required, implications, rules, named }
    }

    /// What a message is about, for [`judge`](Self::judge).
    ///
    /// # Errors
    /// When a rule is for a name, and the message names a resource by a URI that readers could take for different ones.
    pub(crate) fn subject<'a>(&self, envelope: &'a Envelope<'a>) -> Result<Subject<'a>, UriError> {
        Subject::new(envelope, &self.rules)
    }

    /// Whether the principal's claims and scopes are enough, and it does not ask too often; without a principal, where
    /// authentication is off, only the latter. Claims come first: nobody is sent for scopes that would not help. Where
    /// nothing is asked of claims, and the scopes are enough, nothing is allocated.
    pub(crate) fn judge(&self, subject: &Subject<'_>, caller: &Caller) -> Result<(), NotAllowed> {
        let principal = caller.principal();
        if let Some(principal) = principal {
            self.judge_principal(subject, principal, caller)?;
        }
        for rule in &self.rules {
            if let Some(limiter) = &rule.limit
                && subject.is_subject_to(rule)
            {
                limiter.check_principal(principal).map_err(NotAllowed::Limited)?;
            }
        }
        Ok(())
    }

    fn judge_principal(&self, subject: &Subject<'_>, principal: &Principal, caller: &Caller) -> Result<(), NotAllowed> {
        let granted = principal.scopes();
        let covers = |needed| self.implications.covers(granted, needed);
        let (mut enough, mut claims) = (covers(&self.required), ClaimDenials::default());
        for rule in self.matching(subject) {
            enough &= covers(&rule.scopes);
            claims.evaluate(&rule.claims, principal);
        }
        if let Some(unmet) = claims.enforced {
            return Err(NotAllowed::Claims(unmet));
        }
        if !enough {
            let needed = self.matching(subject).fold(self.required.clone(), |needed, rule| needed.union(&rule.scopes));
            let needed = needed.union(&granted.intersection(&self.named));
            return Err(NotAllowed::Scopes(Missing { needed, granted: granted.clone() }));
        }
        if let Some(unmet) = claims.report_only {
            caller.record_report_only_denial(unmet.code());
        }
        Ok(())
    }

    fn matching<'a>(&'a self, subject: &'a Subject<'_>) -> impl Iterator<Item = &'a MessageRule> {
        self.rules.iter().filter(move |rule| subject.is_subject_to(rule))
    }
}
