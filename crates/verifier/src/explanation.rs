//! How a token fares by each rule, also by those behind the first that it breaks.

use std::sync::Arc;

use portcullis_jose::CompactJws;
use portcullis_metadata::{AccessToken, UnverifiedClaims};

use crate::{
    TrustedIssuer, Verifier, VerifyError,
    claims::{self, Statement},
    deadline::Deadline,
    kind,
};

/// A rule that signed tokens are judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenRule {
    /// It is a JWS in compact form, its payload one JSON object of well-formed claims.
    Form,
    /// Its `iss` is one of the resource's issuers.
    Issuer,
    /// A key of that issuer verifies its signature, by an allowed algorithm.
    Signature,
    /// Its header's `typ` is that of an access token.
    Type,
    /// Its claims are not those of another kind of token, and it is not bound to its sender.
    Kind,
    /// Its `aud` names the resource.
    Audience,
    /// It is valid now.
    Times,
}

impl TokenRule {
    /// Its stable name, and where it stands.
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

/// How a token fares by one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCheck {
    /// The rule.
    pub rule: TokenRule,
    /// Whether the token keeps it, and if not, why.
    pub result: Result<(), VerifyError>,
}

impl Verifier {
    /// Judges a signed token by every rule, in order, for a person who wants to know all of what is wrong. A token that
    /// has no form, or names no issuer of this resource, is judged no further. No issuer is asked about the token
    /// (RFC 7662), and nothing is remembered.
    ///
    /// It admits nobody: that is for [`verify`](Self::verify), which says yes only where every rule here is kept.
    pub async fn explain(&self, token: &AccessToken) -> Vec<RuleCheck> {
        let mut checks = Vec::new();
        let mut judge = |rule, result: Result<(), VerifyError>| checks.push(RuleCheck { rule, result });
        let jws = match CompactJws::parse(token.secret(), self.max_token_bytes()) {
            Ok(jws) => jws,
            Err(error) => {
                judge(TokenRule::Form, Err(error.into()));
                return checks;
            }
        };
        let claims = match UnverifiedClaims::parse(jws.unverified_payload()) {
            Ok(claims) => claims,
            Err(error) => {
                judge(TokenRule::Form, Err(error.into()));
                return checks;
            }
        };
        judge(TokenRule::Form, claims.scopes().map(drop).map_err(Into::into));
        let Some(issuer) = self.issuer_of(&claims) else {
            let missing = if claims.iss().is_some() { VerifyError::IssuerUnknown } else { VerifyError::IssuerMissing };
            judge(TokenRule::Issuer, Err(missing));
            return checks;
        };
        let settings = issuer.settings();
        let clock = self.clock();
        let signature = issuer.verify_signature(&jws, clock.monotonic(), &mut Deadline::default()).await;
        let statement = Statement::of_token(&claims, settings, self.resource());
        judge(TokenRule::Issuer, claims::judge_issuer(&statement, settings));
        judge(TokenRule::Signature, signature.map(|signed| signed.turn.accept()));
        judge(TokenRule::Type, kind::judge_type(jws.header().typ(), settings.require_at_jwt));
        judge(TokenRule::Kind, kind::judge_claims(&statement));
        judge(TokenRule::Audience, claims::judge_audience(&statement));
        judge(TokenRule::Times, claims::judge_times(&statement, settings, clock.now()).map(drop));
        checks
    }

    fn issuer_of(&self, claims: &UnverifiedClaims<'_>) -> Option<&Arc<TrustedIssuer>> {
        let claimed = claims.iss()?;
        self.issuers().iter().find(|issuer| issuer.issuer().as_str() == claimed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    async fn broken(bench: &Bench, token: &str) -> Vec<&'static str> {
        let checks = bench.verifier.explain(&AccessToken::new(token)).await;
        let verified = bench.verifier.verify(&AccessToken::new(token)).await;
        let first = checks.iter().find_map(|check| check.result.clone().err());
        assert_eq!(first.is_none(), verified.is_ok(), "the explanation and the verifier agree: {checks:?}");
        checks.iter().filter_map(|check| Some(check.result.as_ref().err()?.code())).collect()
    }

    #[tokio::test]
    async fn everything_that_is_wrong_is_told() {
        let bench = Bench::new();
        let forge = &bench.forge;
        let none: [&str; 0] = [];
        assert_eq!(broken(&bench, &forge.token().sign()).await, none);
        let many = forge.token().audience("https://other.example/").expires_in(-60).typ("dpop+jwt").sign();
        assert_eq!(broken(&bench, &many).await, ["token.type_not_allowed", "token.audience_mismatch", "token.expired"]);
        let forged = portcullis_testkit::flip_signature(&forge.token().claim("at_hash", "x").sign());
        assert_eq!(broken(&bench, &forged).await, ["token.signature", "token.not_an_access_token"]);
    }

    /// Each rule has a name of its own and says where it stands.
    #[test]
    fn rules_are_told_apart() {
        use TokenRule::{Audience, Form, Issuer, Kind, Signature, Times, Type};
        let rules = [Form, Issuer, Signature, Type, Kind, Audience, Times].map(TokenRule::id_and_source);
        let ids = rules.map(|(id, _)| id);
        let named = ["form", "issuer", "signature", "type", "kind", "audience", "times"];
        assert_eq!(ids.map(|id| id.strip_prefix("token.").unwrap()), named);
        assert!(rules.iter().all(|(_, source)| source.starts_with("RFC ")), "{rules:?}");
    }

    #[tokio::test]
    async fn what_has_no_issuer_of_ours_is_judged_no_further() {
        let bench = Bench::new();
        let forge = &bench.forge;
        assert_eq!(broken(&bench, "opaque").await, ["token.malformed"]);
        assert_eq!(broken(&bench, &forge.token().raw_payload("[]").sign()).await, ["claims.not_an_object"]);
        assert_eq!(broken(&bench, &forge.token().without("iss").sign()).await, ["token.issuer_missing"]);
        let other = forge.token().issuer("https://other.example").expires_in(-60).sign();
        assert_eq!(broken(&bench, &other).await, ["token.issuer_unknown"]);
    }
}
