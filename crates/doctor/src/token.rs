//! Checks a token against every rule of the resource's chain, and shows how a guard would respond.

mod guard_response;
mod rule_finding;
mod unverified_token;

use std::sync::Arc;

use portcullis_discovery::Fetch;
use portcullis_jose::Algorithm;
use portcullis_metadata::{AccessToken, Clock, Issuer, JwkSet, ProtectedResourceMetadata, Scopes};
use portcullis_verifier::{
    IssuerSettings, KeySource, TokenRule, TrustedIssuer, Verifier, VerifierSettings,
};
use tracing::{instrument::WithSubscriber as _, subscriber::NoSubscriber};

use self::{
    guard_response::ask_guard,
    rule_finding::rule_finding,
    unverified_token::{NotParsed, UnverifiedToken},
};
use crate::{Finding, Rule, Step, text};

const OPAQUE: Rule = Rule {
    id: "token.opaque",
    source: "RFC 7662 section 2",
};
const SCOPES: Rule = Rule {
    id: "token.scopes",
    source: "RFC 6750 section 3.1",
};
/// How a guard responds.
const ANSWER: Rule = Rule {
    id: "token.answer",
    source: "RFC 6750 section 3.1",
};
const SETTINGS: Rule = Rule {
    id: "token.settings",
    source: "RFC 9728 section 2",
};

const OPAQUE_TEXT: &str = "it is not a JWT: only its issuer can validate it, by introspection";
const OPAQUE_FIX: &str = "an opaque token needs a guard with introspection (RFC 7662): configure introspection at the resource, or let \
                          the authorization server issue JWTs";
const NO_KEYS_TEXT: &str = "it cannot verify a token: no authorization server of the resource has usable keys. Only a guard with \
                            introspection accepts tokens; any other responds with 401";
const NO_KEYS_FIX: &str = "publish the signing keys at the jwks_uri of the authorization server, or configure introspection (RFC 7662) \
                           at the resource";

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
    /// Checks the token against every rule, and then by a guard. If the metadata cannot configure a
    /// verifier, there is only the first step. No request is sent, and the guard and the verifier
    /// write no log lines.
    pub(crate) async fn explain(
        &self,
        token: &AccessToken,
        fetch: &Arc<dyn Fetch>,
        clock: &Arc<dyn Clock>,
    ) -> Vec<Step> {
        self.steps(token, fetch, clock)
            .with_subscriber(NoSubscriber::new())
            .await
    }

    async fn steps(
        &self,
        token: &AccessToken,
        fetch: &Arc<dyn Fetch>,
        clock: &Arc<dyn Clock>,
    ) -> Vec<Step> {
        let unverified = UnverifiedToken::parse(token, clock.now());
        let mut rules = Step::for_token("the token, rule by rule");
        let mut answer = Step::for_token("how a guard of this resource would respond");
        if self.keys.is_empty() {
            let is_opaque = matches!(unverified, Err(NotParsed::Opaque));
            rules.findings = match unverified {
                Ok(unverified) => unverified.notes,
                Err(NotParsed::Opaque) => vec![Finding::note(OPAQUE, OPAQUE_TEXT)],
                Err(NotParsed::Malformed(error)) => vec![rule_finding(TokenRule::Form, Err(error))],
            };
            let fix = if is_opaque { OPAQUE_FIX } else { NO_KEYS_FIX };
            answer
                .findings
                .push(Finding::problem(ANSWER, NO_KEYS_TEXT, fix));
            return vec![rules, answer];
        }
        match self.verifier(fetch, clock) {
            Ok(verifier) => {
                rules.findings = self.check(token, unverified, &verifier).await;
                ask_guard(self, token, verifier, rules.has_problem(), &mut answer).await;
                vec![rules, answer]
            }
            Err(finding) => {
                rules.findings.push(finding);
                vec![rules]
            }
        }
    }

    /// A verifier with the published keys and all algorithms, because the resource's own list is
    /// unknown.
    fn verifier(
        &self,
        fetch: &Arc<dyn Fetch>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Arc<Verifier>, Finding> {
        let unusable = |error: &dyn std::fmt::Display| {
            Finding::problem(
                SETTINGS,
                error.to_string(),
                "correct the resource's metadata",
            )
        };
        let trusted = self.keys.iter().map(|(issuer, keys)| {
            let mut settings = IssuerSettings::new(issuer.clone());
            settings.algorithms = Algorithm::ALL.into_iter().collect();
            settings.keys = KeySource::Fixed(keys.clone());
            TrustedIssuer::new(
                settings,
                Arc::clone(fetch),
                Arc::clone(clock),
                tokio::runtime::Handle::current(),
            )
        });
        let trusted = trusted
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unusable(&error))?;
        Verifier::new(
            VerifierSettings::new(self.metadata.resource.clone()),
            trusted,
            Arc::clone(clock),
        )
        .map_err(|error| unusable(&error))
    }

    /// The findings for the rules. An opaque token has one finding.
    async fn check(
        &self,
        token: &AccessToken,
        unverified: Result<UnverifiedToken, NotParsed>,
        verifier: &Verifier,
    ) -> Vec<Finding> {
        let (mut findings, scopes) = match unverified {
            Ok(UnverifiedToken { notes, scopes }) => (notes, Some(scopes)),
            Err(NotParsed::Opaque) => return vec![Finding::note(OPAQUE, OPAQUE_TEXT)],
            // The verifier reports the error, too.
            Err(NotParsed::Malformed(_)) => (Vec::new(), None),
        };
        let checks = verifier.explain(token).await;
        findings.extend(
            checks
                .into_iter()
                .map(|check| rule_finding(check.rule, check.result)),
        );
        findings.extend(scopes.map(|scopes| self.check_scopes(&scopes)));
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
