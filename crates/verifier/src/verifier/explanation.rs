//! Checks a token against every rule, including those after the first violation.

use portcullis_jose::CompactJws;
use portcullis_metadata::{AccessToken, UnverifiedClaims};

use super::Verifier;
use crate::{
    claims::{
        token_type,
        validation::{self, Statement},
    },
    deadline::Deadline,
    error::VerifyError,
};

/// A rule for signed tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenRule {
    /// The token is a JWS in compact serialization, and its payload is a JSON object with well-formed claims.
    Form,
    /// The `iss` claim is one of the resource's issuers.
    Issuer,
    /// The signature is valid for a key of the issuer and uses an allowed algorithm.
    Signature,
    /// The header's `typ` is that of an access token.
    Type,
    /// The claims are not those of another token type, and the token is not sender-constrained.
    Kind,
    /// The `aud` claim contains the resource.
    Audience,
    /// The token is valid now.
    Times,
}

impl TokenRule {
    /// Returns a stable identifier of the rule and its source.
    pub fn id_and_source(self) -> (&'static str, &'static str) {
        match self {
            Self::Form => ("token.form", "RFC 7515 section 3.1, RFC 7519 section 4"),
            Self::Issuer => ("token.issuer", "RFC 9068 section 4"),
            Self::Signature => ("token.signature", "RFC 7515 section 5.2, RFC 8725 section 3"),
            Self::Type => ("token.type", "RFC 9068 section 2.1"),
            Self::Kind => ("token.kind", "RFC 8725 section 3.12"),
            Self::Audience => ("token.audience", "RFC 9068 section 4, RFC 8707 section 2"),
            Self::Times => ("token.times", "RFC 7519 sections 4.1.4 to 4.1.6"),
        }
    }
}

/// The result of checking a token against one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCheck {
    /// The rule.
    pub rule: TokenRule,
    /// The violation, if the token violates the rule.
    pub result: Result<(), VerifyError>,
}

impl Verifier {
    /// Checks a signed token against every rule, in order, to report all violations to a person. The checks end early
    /// if the token is malformed or names no issuer of this resource. The token is neither introspected nor cached.
    ///
    /// It authenticates no one: use [`verify`](Self::verify), which accepts a token only if it satisfies all of these
    /// rules.
    pub async fn explain(&self, token: &AccessToken) -> Vec<RuleCheck> {
        let mut checks = Vec::new();
        let mut add = |rule, result: Result<(), VerifyError>| checks.push(RuleCheck { rule, result });
        let jws = match CompactJws::parse(token.secret(), self.settings.max_token_bytes) {
            Ok(jws) => jws,
            Err(error) => {
                add(TokenRule::Form, Err(error.into()));
                return checks;
            }
        };
        let parsed = UnverifiedClaims::parse(jws.unverified_payload());
        let claims = match &parsed {
            Ok(claims) => claims,
            Err(error) => {
                add(TokenRule::Form, Err(error.clone().into()));
                return checks;
            }
        };
        add(TokenRule::Form, claims.scopes().map(drop).map_err(Into::into));
        let issuer = match self.select_issuer(&jws, &parsed) {
            Ok((_, issuer)) => issuer,
            Err(error) => {
                add(TokenRule::Issuer, Err(error));
                return checks;
            }
        };
        let settings = issuer.settings();
        let signature = issuer.verify_signature(&jws, self.clock.monotonic(), &mut Deadline::default()).await;
        let statement = Statement::of_token(claims, settings, self.resource());
        add(TokenRule::Issuer, validation::check_issuer(&statement, settings));
        add(TokenRule::Signature, signature.map(|signature| signature.permit.accept()));
        add(TokenRule::Type, token_type::check_header_type(jws.header().typ(), settings.require_at_jwt));
        add(TokenRule::Kind, token_type::check_claims(&statement));
        add(TokenRule::Audience, validation::check_audience(&statement));
        add(TokenRule::Times, validation::check_times(&statement, settings, self.clock.now()).map(drop));
        checks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    async fn violations(fixture: &Fixture, token: &str) -> Vec<&'static str> {
        let checks = fixture.verifier.explain(&AccessToken::new(token)).await;
        let verified = fixture.verifier.verify(&AccessToken::new(token)).await;
        let first = checks.iter().find_map(|check| check.result.clone().err());
        assert_eq!(first.is_none(), verified.is_ok(), "the explanation and the verifier agree: {checks:?}");
        checks.iter().filter_map(|check| Some(check.result.as_ref().err()?.code())).collect()
    }

    #[tokio::test]
    async fn all_violations_are_reported() {
        let fixture = Fixture::new();
        let test_issuer = &fixture.test_issuer;
        let none: [&str; 0] = [];
        assert_eq!(violations(&fixture, &test_issuer.token().sign()).await, none);
        let many = test_issuer.token().audience("https://other.example/").expires_in(-60).typ("dpop+jwt").sign();
        assert_eq!(
            violations(&fixture, &many).await,
            ["token.type_not_allowed", "token.audience_mismatch", "token.expired"]
        );
        let forged = portcullis_testkit::flip_signature(&test_issuer.token().claim("at_hash", "x").sign());
        assert_eq!(violations(&fixture, &forged).await, ["token.signature", "token.not_an_access_token"]);
    }

    /// Each rule has its own identifier and a source.
    #[test]
    fn rules_have_identifiers() {
        use TokenRule::{Audience, Form, Issuer, Kind, Signature, Times, Type};
        let rules = [Form, Issuer, Signature, Type, Kind, Audience, Times].map(TokenRule::id_and_source);
        let ids = rules.map(|(id, _)| id);
        let named = ["form", "issuer", "signature", "type", "kind", "audience", "times"];
        assert_eq!(ids.map(|id| id.strip_prefix("token.").unwrap()), named);
        assert!(rules.iter().all(|(_, source)| source.starts_with("RFC ")), "{rules:?}");
    }

    #[tokio::test]
    async fn the_checks_end_without_a_known_issuer() {
        let fixture = Fixture::new();
        let test_issuer = &fixture.test_issuer;
        assert_eq!(violations(&fixture, "opaque").await, ["token.malformed"]);
        assert_eq!(violations(&fixture, &test_issuer.token().raw_payload("[]").sign()).await, ["claims.not_an_object"]);
        assert_eq!(violations(&fixture, &test_issuer.token().without("iss").sign()).await, ["token.issuer_missing"]);
        let other = test_issuer.token().issuer("https://other.example").expires_in(-60).sign();
        assert_eq!(violations(&fixture, &other).await, ["token.issuer_unknown"]);
    }
}
