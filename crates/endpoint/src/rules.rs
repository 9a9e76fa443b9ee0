//! The requirements for messages: scopes, claims and rate limits by method and name.

mod name_glob;
mod operation;
mod subject;
mod uri_spellings;

use std::sync::Arc;

use portcullis_guard::{
    Caller,
    authorize::{ClaimDenial, ClaimDenials, ClaimRule, ScopeImplications},
    limit::{LimitExceeded, RateLimiter},
};
use portcullis_mcp::Envelope;
use portcullis_metadata::{EscapedText, Scopes};
use portcullis_reason_codes::ReasonCodes;
use portcullis_verifier::Principal;

pub use self::name_glob::{NameGlob, NameGlobError};
pub(crate) use self::{subject::Subject, uri_spellings::UriError};

/// Requirements for some messages, in addition to those for every request. All matching rules apply
/// together.
///
/// The default matches every request and requires nothing.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MessageRule {
    /// The methods, such as `tools/*`. `None` matches every request, including GET, DELETE and
    /// responses.
    pub method: Option<NameGlob>,
    /// The names of tools, prompts and tasks, and the URIs of resources in any spelling. A message
    /// with several names matches if one of them does. `None` matches every name, and messages
    /// without names.
    pub name: Option<NameGlob>,
    /// The required scopes.
    pub scopes: Scopes,
    /// The claims that the token must have, all of them.
    pub claims: Vec<ClaimRule>,
    /// The rate limit per principal. It counts only requests that meet all other requirements.
    /// `None` means no limit.
    pub limit: Option<Arc<RateLimiter>>,
}

impl MessageRule {
    /// Returns a rule for these methods that requires nothing. Set the requirements afterwards.
    pub fn for_method(method: NameGlob) -> Self {
        Self {
            method: Some(method),
            ..Self::default()
        }
    }
}

/// The requirements of one endpoint.
pub(crate) struct Rules {
    required: Scopes,
    implications: ScopeImplications,
    rules: Vec<MessageRule>,
    /// All scopes that the endpoint requires somewhere.
    known_scopes: Scopes,
}

/// The reason why a principal may not send a message.
#[derive(Debug, ReasonCodes)]
pub(crate) enum RuleViolation {
    /// The claims do not meet a requirement.
    #[code(transparent)]
    Claims(ClaimDenial),
    /// Scopes are missing.
    #[code = "scope.insufficient"]
    Scopes(MissingScopes),
    /// The rate limit is exceeded.
    #[code = "limit.tool"]
    RateLimit(LimitExceeded),
}

/// The scopes of a challenge.
#[derive(Debug)]
pub(crate) struct MissingScopes {
    /// The scopes that the request needs, and the principal's scopes that the endpoint knows.
    /// Clients replace their scopes with those of the challenge.
    pub(crate) needed: Scopes,
    /// The principal's scopes.
    pub(crate) granted: Scopes,
}

impl Rules {
    /// Returns the requirements of an endpoint: `required` for each request, and those of the
    /// rules.
    pub(crate) fn new(
        required: Scopes,
        implications: ScopeImplications,
        rules: Vec<MessageRule>,
    ) -> Self {
        let known_scopes = rules
            .iter()
            .fold(required.clone(), |known, rule| known.union(&rule.scopes));
        Self {
            required,
            implications,
            rules,
            known_scopes,
        }
    }

    /// Returns the subject of a message, for [`authorize`](Self::authorize). Fails if a rule has a
    /// name and the message has a resource URI that servers read in different ways.
    pub(crate) fn subject<'a>(&self, envelope: &'a Envelope<'a>) -> Result<Subject<'a>, UriError> {
        Subject::new(envelope, &self.rules)
    }

    /// Checks claims, scopes and rate limits, in this order: a client gets no challenge for scopes
    /// that would not help.
    ///
    /// Without a principal (authentication is off), only rate limits are checked. Allocates nothing
    /// if no rule has claims and the scopes suffice.
    pub(crate) fn authorize(
        &self,
        subject: &Subject<'_>,
        caller: &Caller,
    ) -> Result<(), RuleViolation> {
        let principal = caller.principal();
        if let Some(principal) = principal {
            self.authorize_principal(subject, principal, caller)?;
        }
        for rule in &self.rules {
            if let Some(limiter) = &rule.limit
                && subject.matches(rule)
            {
                limiter
                    .check_principal(principal)
                    .map_err(RuleViolation::RateLimit)?;
            }
        }
        Ok(())
    }

    fn authorize_principal(
        &self,
        subject: &Subject<'_>,
        principal: &Principal,
        caller: &Caller,
    ) -> Result<(), RuleViolation> {
        let granted = principal.scopes();
        let covers = |needed| self.implications.covers(granted, needed);
        let mut has_scopes = covers(&self.required);
        let mut denials = ClaimDenials::default();
        for rule in self.matching(subject) {
            has_scopes &= covers(&rule.scopes);
            denials.evaluate(&rule.claims, principal);
        }
        if let Some(denial) = denials.enforced {
            return Err(RuleViolation::Claims(denial));
        }
        if !has_scopes {
            let needed = self
                .matching(subject)
                .fold(self.required.clone(), |needed, rule| {
                    needed.union(&rule.scopes)
                });
            tracing::debug!(
                request.id = caller.request_id().as_str(),
                deny.code = "scope.insufficient",
                scope.required = %needed,
                scope.granted = %EscapedText(granted.as_str()),
                "the token lacks scopes"
            );
            let needed = needed.union(&granted.intersection(&self.known_scopes));
            return Err(RuleViolation::Scopes(MissingScopes {
                needed,
                granted: granted.clone(),
            }));
        }
        if let Some(denial) = denials.report_only {
            caller.record().set_report_only_denial(denial.code());
        }
        Ok(())
    }

    fn matching<'a>(&'a self, subject: &'a Subject<'_>) -> impl Iterator<Item = &'a MessageRule> {
        self.rules.iter().filter(move |rule| subject.matches(rule))
    }
}
