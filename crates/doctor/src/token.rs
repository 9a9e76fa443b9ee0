//! Checks a token against every rule of the resource's chain, and shows how a guard would respond.

mod guard_response;
mod rule_finding;
mod unverified_token;

use std::sync::Arc;

use portcullis_discovery::Fetch;
use portcullis_jose::Algorithm;
use portcullis_metadata::{AccessToken, Clock, Issuer, JwkSet, ProtectedResourceMetadata, Scopes, UnixTime};
use portcullis_verifier::{IssuerSettings, KeySource, RuleCheck, TokenRule, TrustedIssuer, Verifier, VerifierSettings};
use tracing::{instrument::WithSubscriber as _, subscriber::NoSubscriber};

use self::{guard_response::ask_guard, rule_finding::rule_finding, unverified_token::UnverifiedToken};
use crate::{Finding, Rule, Step, text};

const OPAQUE: Rule = Rule { id: "token.opaque", source: "RFC 7662 section 2" };
const SCOPES: Rule = Rule { id: "token.scopes", source: "RFC 6750 section 3.1" };
/// How a guard responds.
pub(crate) const ANSWER: Rule = Rule { id: "token.answer", source: "RFC 6750 section 3.1" };
const SETTINGS: Rule = Rule { id: "token.settings", source: "RFC 9728 section 2" };

const OPAQUE_TEXT: &str = "it is not a JWT: only its issuer can validate it, by introspection";

/// The parts of the chain that a token is checked against.
pub(crate) struct Chain {
    /// The resource's metadata.
    pub(crate) metadata: ProtectedResourceMetadata,
    /// The scopes that the challenge requires.
    pub(crate) needed: Scopes,
    /// The issuers whose keys were found.
    pub(crate) keys: Vec<(Issuer, JwkSet)>,
}

impl Chain {
    /// Checks the token against every rule. No request is sent, and the guard and the verifier write no log lines.
    pub(crate) async fn explain(
        &self,
        token: &AccessToken,
        fetch: &Arc<dyn Fetch>,
        clock: &Arc<dyn Clock>,
    ) -> [Step; 2] {
        self.steps(token, fetch, clock).with_subscriber(NoSubscriber::new()).await
    }

    /// The two steps: the rules, and the response of a guard.
    async fn steps(&self, token: &AccessToken, fetch: &Arc<dyn Fetch>, clock: &Arc<dyn Clock>) -> [Step; 2] {
        let mut rules = Step::for_token("the token, rule by rule");
        let mut answer = Step::for_token("how a guard of this resource would respond");
        if self.keys.is_empty() {
            rules.findings = match UnverifiedToken::parse(token) {
                Some(unverified) => unverified.findings(clock.now()),
                None => vec![Finding::note(OPAQUE, OPAQUE_TEXT)],
            };
            let text = "it cannot verify a token: no authorization server of the resource publishes keys. Only a guard with \
                        introspection accepts tokens; any other responds with 401";
            answer.findings.push(Finding::problem(ANSWER, text, UNEXPLAINED));
            return [rules, answer];
        }
        match self.verifier(fetch, clock) {
            Ok(verifier) => {
                rules.findings = self.check(token, &verifier, clock.now()).await;
                ask_guard(self, token, verifier, rules.has_problem(), &mut answer).await;
            }
            Err(finding) => rules.findings.push(finding),
        }
        [rules, answer]
    }

    /// A verifier with the published keys and all algorithms, because the resource's own list is unknown.
    fn verifier(&self, fetch: &Arc<dyn Fetch>, clock: &Arc<dyn Clock>) -> Result<Arc<Verifier>, Finding> {
        let unusable = |error: &dyn std::fmt::Display| {
            Finding::problem(SETTINGS, error.to_string(), "correct the resource's metadata")
        };
        let trusted = self.keys.iter().map(|(issuer, keys)| {
            let mut settings = IssuerSettings::new(issuer.clone());
            settings.algorithms = Algorithm::ALL.into_iter().collect();
            settings.keys = KeySource::Fixed(keys.clone());
            TrustedIssuer::new(settings, Arc::clone(fetch), Arc::clone(clock), tokio::runtime::Handle::current())
        });
        let trusted = trusted.collect::<Result<Vec<_>, _>>().map_err(|error| unusable(&error))?;
        Verifier::new(VerifierSettings::new(self.metadata.resource.clone()), trusted, Arc::clone(clock))
            .map_err(|error| unusable(&error))
    }

    /// The findings for the rules. An opaque token has one finding.
    async fn check(&self, token: &AccessToken, verifier: &Verifier, now: UnixTime) -> Vec<Finding> {
        let unverified = UnverifiedToken::parse(token);
        let checks = verifier.explain(token).await;
        if unverified.is_none()
            && matches!(checks.as_slice(), [RuleCheck { rule: TokenRule::Form, result: Err(_), .. }])
        {
            return vec![Finding::note(OPAQUE, OPAQUE_TEXT)];
        }
        let mut findings: Vec<_> = unverified.iter().flat_map(|token| token.findings(now)).collect();
        findings.extend(checks.into_iter().map(rule_finding));
        findings.extend(unverified.map(|token| self.check_scopes(&token.claims.scope)));
        findings
    }

    /// Compares the scopes of the token with those that the challenge requires.
    fn check_scopes(&self, granted: &Scopes) -> Finding {
        if granted.covers(&self.needed) {
            return Finding::met(SCOPES, "it has the scopes that the challenge requires");
        }
        let missing = self.needed.iter().filter(|scope| !granted.contains(scope));
        Finding::problem(
            SCOPES,
            format!("it lacks: {}", text::list(missing)),
            "request these scopes, or configure the authorization server to grant them to the client",
        )
    }
}

/// The fix for a rejection whose reason no rule shows.
pub(crate) const UNEXPLAINED: &str = "an opaque token needs a guard with introspection (RFC 7662): configure introspection at the \
                           resource, or let the authorization server issue JWTs";
