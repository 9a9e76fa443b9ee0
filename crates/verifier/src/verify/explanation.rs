//! Checks a token against every rule, including those after the first violation.

use portcullis_jose::CompactJws;
use portcullis_metadata::{AccessToken, UnverifiedClaims};

use super::Verifier;
use crate::{
    claims::{Statement, token_type, validation},
    error::VerifyError,
    time::Deadline,
};

/// A rule that [`Verifier::explain`] checks a signed token against, in the order of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenRule {
    /// The token is a JWS in compact serialization, and its payload is a JSON object with
    /// well-formed claims.
    Form,
    /// The `iss` claim is one of the resource's issuers.
    Issuer,
    /// The signature is valid for a key of the issuer and uses an allowed algorithm.
    Signature,
    /// The header's `typ` is that of an access token.
    Type,
    /// The claims are those of a bearer access token: not of another token type, and not
    /// sender-constrained.
    AccessTokenClaims,
    /// The `aud` claim contains the resource.
    Audience,
    /// The token is valid now.
    Times,
}

impl TokenRule {
    /// Returns the stable identifier of the rule, such as `token.audience`.
    pub fn id(self) -> &'static str {
        match self {
            Self::Form => "token.form",
            Self::Issuer => "token.issuer",
            Self::Signature => "token.signature",
            Self::Type => "token.type",
            Self::AccessTokenClaims => "token.kind",
            Self::Audience => "token.audience",
            Self::Times => "token.times",
        }
    }

    /// Returns the sections of the standards that require the rule.
    pub fn source(self) -> &'static str {
        match self {
            Self::Form => "RFC 7515 section 3.1, RFC 7519 section 4",
            Self::Issuer => "RFC 9068 section 4",
            Self::Signature => "RFC 7515 section 5.2, RFC 8725 section 3",
            Self::Type => "RFC 9068 section 2.1",
            Self::AccessTokenClaims => "RFC 8725 section 3.12",
            Self::Audience => "RFC 9068 section 4, RFC 8707 section 2",
            Self::Times => "RFC 7519 sections 4.1.4 to 4.1.6",
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
    /// Checks a signed token against every rule, in order, to report all violations to a person.
    /// The checks end early if the token is malformed or names no issuer of this resource. The
    /// token is neither introspected nor cached, and for an issuer that only introspects, its key
    /// is unknown.
    ///
    /// It authenticates no one: use [`verify`](Self::verify), which accepts a token only if it
    /// satisfies all of these rules.
    ///
    /// ```no_run
    /// # async fn print(verifier: &portcullis_verifier::Verifier, token: &portcullis_verifier::AccessToken) {
    /// for check in verifier.explain(token).await {
    ///     match check.result {
    ///         Ok(()) => println!("{}: satisfied", check.rule.id()),
    ///         Err(error) => println!("{}: {error} ({})", check.rule.id(), check.rule.source()),
    ///     }
    /// }
    /// # }
    /// ```
    pub async fn explain(&self, token: &AccessToken) -> Vec<RuleCheck> {
        let mut checks = Vec::new();
        let mut add =
            |rule, result: Result<(), VerifyError>| checks.push(RuleCheck { rule, result });
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
        add(
            TokenRule::Form,
            claims.scopes().map(drop).map_err(Into::into),
        );
        let issuer = match self.select_issuer(&jws, &parsed) {
            Ok((_, issuer)) => issuer,
            Err(error) => {
                add(TokenRule::Issuer, Err(error));
                return checks;
            }
        };
        let settings = issuer.settings();
        let signature = issuer
            .verify_signature(&jws, self.clock.monotonic(), &mut Deadline::default())
            .await;
        let statement = Statement::of_token(claims, settings, self.resource());
        add(
            TokenRule::Issuer,
            validation::check_issuer(&statement, settings),
        );
        add(
            TokenRule::Signature,
            signature.map(|signature| signature.permit.accept()),
        );
        add(
            TokenRule::Type,
            token_type::check_header_type(jws.header().typ(), settings.require_at_jwt),
        );
        add(
            TokenRule::AccessTokenClaims,
            token_type::check_claims(&statement),
        );
        add(TokenRule::Audience, validation::check_audience(&statement));
        add(
            TokenRule::Times,
            validation::check_times(&statement, settings, self.clock.now()).map(drop),
        );
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
        assert_eq!(
            first.is_none(),
            verified.is_ok(),
            "the explanation and the verifier agree: {checks:?}"
        );
        checks
            .iter()
            .filter_map(|check| Some(check.result.as_ref().err()?.code()))
            .collect()
    }

    #[tokio::test]
    async fn all_violations_are_reported() {
        let fixture = Fixture::new();
        let test_issuer = &fixture.test_issuer;
        let none: [&str; 0] = [];
        assert_eq!(
            violations(&fixture, &test_issuer.token().sign()).await,
            none
        );
        let many = test_issuer
            .token()
            .audience("https://other.example/")
            .expires_in(-60)
            .typ("dpop+jwt")
            .sign();
        assert_eq!(
            violations(&fixture, &many).await,
            [
                "token.type_not_allowed",
                "token.audience_mismatch",
                "token.expired"
            ]
        );
        let forged =
            portcullis_testkit::flip_signature(&test_issuer.token().claim("at_hash", "x").sign());
        assert_eq!(
            violations(&fixture, &forged).await,
            ["token.signature", "token.not_an_access_token"]
        );
    }

    /// The explanation of a valid token has every rule once, each with its own identifier and a
    /// source.
    #[tokio::test]
    async fn rules_have_identifiers() {
        let fixture = Fixture::new();
        let checks = fixture
            .verifier
            .explain(&AccessToken::new(fixture.test_issuer.token().sign()))
            .await;
        let ids: Vec<_> = checks
            .iter()
            .map(|check| check.rule.id().strip_prefix("token.").unwrap())
            .collect();
        assert_eq!(
            ids,
            [
                "form",
                "issuer",
                "signature",
                "type",
                "kind",
                "audience",
                "times"
            ]
        );
        assert!(
            checks
                .iter()
                .all(|check| check.rule.source().starts_with("RFC ")),
            "{checks:?}"
        );
    }

    #[tokio::test]
    async fn the_checks_end_without_a_known_issuer() {
        let fixture = Fixture::new();
        let test_issuer = &fixture.test_issuer;
        assert_eq!(violations(&fixture, "opaque").await, ["token.malformed"]);
        assert_eq!(
            violations(&fixture, &test_issuer.token().raw_payload("[]").sign()).await,
            ["claims.not_an_object"]
        );
        assert_eq!(
            violations(&fixture, &test_issuer.token().without("iss").sign()).await,
            ["token.issuer_missing"]
        );
        let other = test_issuer
            .token()
            .issuer("https://other.example")
            .expires_in(-60)
            .sign();
        assert_eq!(violations(&fixture, &other).await, ["token.issuer_unknown"]);
    }
}
