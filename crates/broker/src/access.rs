//! [`Access`]: what a user may do, according to the rules of the operator.

use portcullis_guard::authorize::ClaimRule;
use portcullis_identity_provider::Identity;
use portcullis_metadata::Scopes;
use portcullis_reason_codes::ReasonCodes;
use portcullis_verifier::claim_at;
use serde_json::{Map, Value};

use crate::settings::{BrokerProvider, BrokerSettings, ScopeGrant};

/// What a user may do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Access {
    /// The scopes that the user may have.
    pub(crate) scopes: Scopes,
    /// The claims for access tokens.
    pub(crate) claims: Map<String, Value>,
}

/// Why a user gets no access.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
pub(crate) enum AccessDenial {
    /// The user does not meet a rule in `allow` of the provider.
    #[error(
        "the user does not meet the rule for `{claim}` in `allow`: {}",
        if *.is_missing { "the provider did not send the claim" } else { "the claim has another value" }
    )]
    #[code = "broker.user_not_allowed"]
    NotAllowed {
        /// The claim of the rule.
        claim: Box<str>,
        /// Whether the provider did not send the claim.
        is_missing: bool,
    },
    /// The provider left out the groups, on which a rule of the provider depends, because there are
    /// too many.
    #[error("a rule depends on groups that the identity provider left out")]
    #[code = "broker.groups_missing"]
    GroupsMissing,
    /// No rule in `grant` of the provider gives the user one of the requested scopes.
    #[error("the user may have none of the requested scopes")]
    #[code = "broker.no_scope"]
    NoScope,
}

impl Access {
    /// Applies the rules of a provider to a user. A claim that is missing meets no rule.
    pub(crate) fn of(
        settings: &BrokerSettings,
        provider: &BrokerProvider,
        identity: &Identity,
    ) -> Result<Self, AccessDenial> {
        for rule in &provider.allow {
            if !is_met(rule, identity)? {
                let sent = identity.claim(rule.claim()).ok().flatten();
                return Err(AccessDenial::NotAllowed {
                    claim: rule.claim().into(),
                    is_missing: sent.is_none_or(Value::is_null),
                });
            }
        }
        let scopes = if provider.grants.is_empty() {
            let all = settings.resources.iter().map(|resource| &resource.scopes);
            all.fold(Scopes::default(), |scopes, more| scopes.union(more))
        } else {
            granted(&provider.grants, identity)?
        };
        if scopes.is_empty() {
            return Err(AccessDenial::NoScope);
        }
        let mapped = settings.claims.iter().filter_map(|(name, source)| {
            let value = claim_at(&identity.claims, source).filter(|value| !value.is_null())?;
            Some((name.clone(), value.clone()))
        });
        Ok(Self {
            scopes,
            claims: mapped.collect(),
        })
    }
}

/// Returns the scopes of the rules that a user meets.
fn granted(grants: &[ScopeGrant], identity: &Identity) -> Result<Scopes, AccessDenial> {
    let mut scopes = Scopes::default();
    for grant in grants {
        let is_given = match &grant.rule {
            Some(rule) => is_met(rule, identity)?,
            None => true,
        };
        if is_given {
            scopes = scopes.union(&grant.scopes);
        }
    }
    Ok(scopes)
}

/// Returns whether a user meets a rule. A claim that is missing meets no rule. Fails if the
/// provider left the claim out.
fn is_met(rule: &ClaimRule, identity: &Identity) -> Result<bool, AccessDenial> {
    let value = identity
        .claim(rule.claim())
        .map_err(|_| AccessDenial::GroupsMissing)?;
    Ok(rule.check_value(value).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log says which rule excluded a user, and not the value.
    #[test]
    fn a_denial_names_the_claim() {
        let denial = |is_missing| {
            let claim = "hd".into();
            AccessDenial::NotAllowed { claim, is_missing }.to_string()
        };
        assert!(denial(true).ends_with("for `hd` in `allow`: the provider did not send the claim"));
        assert!(denial(false).ends_with("for `hd` in `allow`: the claim has another value"));
    }
}
