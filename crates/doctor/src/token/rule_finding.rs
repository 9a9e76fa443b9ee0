//! The finding for each rule of a token.

use portcullis_verifier::{RuleCheck, TokenRule, VerifyError};

use crate::{Finding, Rule};

/// Converts the verifier's check of a rule.
pub(super) fn rule_finding(check: RuleCheck) -> Finding {
    let id = check.rule.id();
    let source = check.rule.source();
    let rule = Rule { id, source };
    match check.result {
        Ok(()) => Finding::met(rule, met_text(check.rule)),
        Err(error) => Finding::problem(rule, error.to_string(), fix(check.rule, &error)),
    }
}

/// What a token that meets a rule is.
fn met_text(rule: TokenRule) -> &'static str {
    match rule {
        TokenRule::Form => "it is a signed token with well-formed claims",
        TokenRule::Issuer => "its issuer is one of the resource's",
        TokenRule::Signature => "its signature is the issuer's",
        TokenRule::Type => "its type is that of an access token",
        TokenRule::AccessTokenClaims => "its claims are those of an access token",
        TokenRule::Audience => "it is for this resource",
        TokenRule::Times => "it is valid now",
        _ => "it is met",
    }
}

/// What to change if a token violates a rule.
fn fix(rule: TokenRule, error: &VerifyError) -> &'static str {
    match rule {
        TokenRule::Issuer => "get a token from an issuer that the resource's metadata names, written the same way",
        TokenRule::Signature => "publish the signing key at the issuer's jwks_uri, with the token's kid and alg",
        TokenRule::Type | TokenRule::AccessTokenClaims => {
            "send the access token, not the ID token or the refresh token"
        }
        TokenRule::Audience => {
            "request the token with `resource` set to this resource, or configure the authorization server to add its URL to `aud`"
        }
        TokenRule::Times if matches!(error, VerifyError::Expired) => {
            "get a new token, and refresh it before it expires"
        }
        TokenRule::Times => "synchronize the clocks of issuer and resource (NTP)",
        _ => "copy the token again: all of it, and nothing else",
    }
}
