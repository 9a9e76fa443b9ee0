use portcullis_jose::JoseError;
use portcullis_verifier::{TokenRule, VerifyError};

use crate::{Finding, Rule};

/// Returns the finding for the verifier's result of checking a rule.
pub(super) fn rule_finding(rule: TokenRule, result: Result<(), VerifyError>) -> Finding {
    let shown = Rule {
        id: rule.id(),
        source: rule.source(),
    };
    match result {
        Ok(()) => Finding::met(shown, met_text(rule)),
        Err(error) => Finding::problem(shown, error.to_string(), fix(rule, &error)),
    }
}

/// The fix for a token that was changed or cut off on its way.
pub(super) const COPY_AGAIN: &str = "copy the token again: all of it, and nothing else";

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
        TokenRule::Form => fix_of_form(error),
        TokenRule::Issuer => {
            "get a token from an issuer that the resource's metadata names, written the same way"
        }
        TokenRule::Signature => {
            "publish the signing key at the issuer's jwks_uri, with the token's kid and alg"
        }
        TokenRule::AccessTokenClaims if matches!(error, VerifyError::SenderConstrained) => {
            "configure the authorization server to issue bearer tokens, which are not bound to a key or a certificate"
        }
        TokenRule::Type | TokenRule::AccessTokenClaims => {
            "send the access token, not the ID token or the refresh token"
        }
        TokenRule::Audience => {
            "request the token with `resource` set to this resource, or configure the authorization server to add its URL to `aud`"
        }
        TokenRule::Times if matches!(error, VerifyError::Expired) => {
            "get a new token, and refresh it before it expires"
        }
        TokenRule::Times if matches!(error, VerifyError::ExpiryMissing) => {
            "configure the authorization server to add `exp` to its tokens"
        }
        TokenRule::Times => "synchronize the clocks of issuer and resource (NTP)",
        _ => COPY_AGAIN,
    }
}

/// What to change if a token is not a well-formed signed token.
fn fix_of_form(error: &VerifyError) -> &'static str {
    match error {
        VerifyError::Jws(JoseError::Malformed) => COPY_AGAIN,
        VerifyError::Jws(JoseError::TooLarge { .. }) => {
            "configure the authorization server to issue shorter tokens, with fewer claims"
        }
        VerifyError::Jws(JoseError::Encrypted) => {
            "configure the authorization server not to encrypt its tokens"
        }
        VerifyError::Jws(JoseError::UnsupportedAlgorithm) => {
            "configure the authorization server to sign its tokens with an asymmetric algorithm, such as RS256"
        }
        _ => "correct the header and the claims of the authorization server's tokens",
    }
}
