//! Checks a token against every rule of the resource's chain, and shows how a guard would respond.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
};

use http::{
    HeaderValue, Request, Response,
    header::{AUTHORIZATION, HOST, WWW_AUTHENTICATE},
};
use portcullis_discovery::Fetch;
use portcullis_guard::{Authentication, Decision, DecisionSink, GuardLayer, GuardSettings, ProtectedResource};
use portcullis_jose::{Algorithm, CompactJws};
use portcullis_metadata::{
    AccessToken, AccessTokenClaims, Clock, Issuer, JwkSet, ProtectedResourceMetadata, Scopes, UnixTime,
};
use portcullis_verifier::{
    IssuerSettings, KeySource, RuleCheck, TokenRule, TrustedIssuer, Verifier, VerifierSettings, VerifyError,
};

use tower::{Layer as _, ServiceExt as _, service_fn};
use tracing::{instrument::WithSubscriber as _, subscriber::NoSubscriber};

use crate::{Finding, ResponseSummary, Rule, Step, text};

const SHOWN: Rule = Rule { id: "token.shown", source: "RFC 9068 section 2" };
const OPAQUE: Rule = Rule { id: "token.opaque", source: "RFC 7662 section 2" };
const SCOPES: Rule = Rule { id: "token.scopes", source: "RFC 6750 section 3.1" };
const ANSWER: Rule = Rule { id: "token.answer", source: "RFC 6750 section 3.1" };
const SETTINGS: Rule = Rule { id: "token.settings", source: "RFC 9728 section 2" };

const OPAQUE_TEXT: &str = "it is not a JWT: only its issuer can validate it, by introspection";

/// The maximum length of a token, in bytes.
const MAX_TOKEN: usize = 16 * 1024;

/// The parts of the chain that a token is checked against.
pub(crate) struct Chain {
    pub(crate) metadata: ProtectedResourceMetadata,
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

    async fn steps(&self, token: &AccessToken, fetch: &Arc<dyn Fetch>, clock: &Arc<dyn Clock>) -> [Step; 2] {
        let mut rules = Step::for_token("the token, rule by rule");
        let mut answer = Step::for_token("how a guard of this resource would respond");
        if self.keys.is_empty() {
            rules.findings = match Shown::of(token) {
                Some(shown) => shown.findings(clock.now()),
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
                self.ask_guard(token, verifier, rules.has_problem(), &mut answer).await;
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

    async fn check(&self, token: &AccessToken, verifier: &Verifier, now: UnixTime) -> Vec<Finding> {
        let shown = Shown::of(token);
        let checks = verifier.explain(token).await;
        if shown.is_none() && matches!(checks.as_slice(), [RuleCheck { rule: TokenRule::Form, result: Err(_), .. }]) {
            return vec![Finding::note(OPAQUE, OPAQUE_TEXT)];
        }
        let mut findings: Vec<_> = shown.iter().flat_map(|shown| shown.findings(now)).collect();
        findings.extend(checks.into_iter().map(finding));
        findings.extend(shown.map(|shown| self.check_scopes(&shown.claims.scope)));
        findings
    }

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

    /// Sends the token through a guard that is configured as the metadata says.
    /// `is_explained`: an earlier finding has the reason for which the guard rejects the token.
    async fn ask_guard(&self, token: &AccessToken, verifier: Arc<Verifier>, is_explained: bool, step: &mut Step) {
        let resource = self.metadata.resource.url().clone();
        let reason = Arc::new(ReasonCode::default());
        let sink = Arc::clone(&reason);
        let guard =
            GuardSettings::new(self.metadata.clone(), Authentication::Required(verifier)).and_then(|settings| {
                let mut settings = settings;
                settings.required_scopes = self.needed.clone();
                settings.sink = sink;
                ProtectedResource::new(settings)
            });
        let guard = match guard {
            Ok(guard) => guard,
            Err(error) => return step.findings.push(Finding::note(ANSWER, error.to_string())),
        };
        let admitted = service_fn(async |_: Request<String>| Ok::<_, Infallible>(Response::new(String::new())));
        let mut request = Request::new(String::new());
        *request.method_mut() = http::Method::POST;
        if let Ok(path) = resource.path().parse() {
            *request.uri_mut() = path;
        }
        let host = HeaderValue::from_str(resource.authority()).unwrap_or(HeaderValue::from_static("localhost"));
        request.headers_mut().insert(HOST, host);
        let Ok(bearer) = HeaderValue::from_str(&format!("Bearer {}", token.secret())) else {
            let text = "it cannot be sent: it has characters that a header cannot contain";
            return step.findings.push(Finding::problem(
                ANSWER,
                text,
                "copy the token again: all of it, and nothing else",
            ));
        };
        request.headers_mut().insert(AUTHORIZATION, bearer);
        let Ok(response) = GuardLayer::new(guard).layer(admitted).oneshot(request).await;

        step.response = Some(ResponseSummary { status: response.status(), content_type: None, location: None });
        if response.status().is_success() {
            return step.findings.push(Finding::met(ANSWER, "it accepts the request"));
        }
        let code = reason.0.get().copied().unwrap_or("unknown");
        let text = format!("it responds with {}, and its log has the reason code {code}", response.status());
        step.findings.push(match is_explained {
            true => Finding::note(ANSWER, text),
            false => Finding::problem(ANSWER, text, UNEXPLAINED),
        });
        if let Some(challenge) = response.headers().get(WWW_AUTHENTICATE) {
            let challenge = text::line(&String::from_utf8_lossy(challenge.as_bytes()));
            step.findings.push(Finding::note(ANSWER, format!("WWW-Authenticate: {challenge}")));
        }
    }
}

const UNEXPLAINED: &str = "an opaque token needs a guard with introspection (RFC 7662): configure introspection at the \
                           resource, or let the authorization server issue JWTs";

/// Keeps the reason code of the guard's decision.
#[derive(Default)]
struct ReasonCode(OnceLock<&'static str>);

impl DecisionSink for ReasonCode {
    fn decided(&self, decision: &Decision<'_>) {
        if let Some(code) = decision.code {
            // There is only one request, so the cell is empty.
            let _ = self.0.set(code);
        }
    }
}

/// The unverified header and claims of the token.
struct Shown {
    header: String,
    claims: AccessTokenClaims,
}

impl Shown {
    fn of(token: &AccessToken) -> Option<Self> {
        let jws = CompactJws::parse(token.secret(), MAX_TOKEN).ok()?;
        let header = jws.header();
        let (kid, typ) = (header.kid().unwrap_or("none"), header.typ().unwrap_or("none"));
        let header = format!("alg {}, kid {}, typ {}", header.alg(), text::quoted(kid), text::quoted(typ));
        Some(Self { header, claims: AccessTokenClaims::parse(jws.unverified_payload()).ok()? })
    }

    fn findings(&self, now: UnixTime) -> Vec<Finding> {
        let claims = &self.claims;
        let note = |name: &str, value: Option<String>| {
            Finding::note(SHOWN, format!("{name}: {}", value.unwrap_or("none".into())))
        };
        let quoted = |value: &Option<String>| value.as_deref().map(text::quoted);
        vec![
            note("header", Some(self.header.clone())),
            note("iss", quoted(&claims.iss)),
            note("sub", quoted(&claims.sub)),
            note("aud", claims.aud.as_ref().map(|audience| text::list(audience.iter()))),
            note("client", quoted(&claims.client_id).or_else(|| quoted(&claims.azp))),
            note("scope", Some(text::list(claims.scope.iter())).filter(|scopes| !scopes.is_empty())),
            note("exp", claims.exp.map(|exp| distance(exp, now))),
        ]
    }
}

fn distance(exp: UnixTime, now: UnixTime) -> String {
    if exp > now {
        format!("{} ({} s from now)", exp.as_secs(), exp.saturating_duration_since(now).as_secs())
    } else {
        format!("{} ({} s ago)", exp.as_secs(), now.saturating_duration_since(exp).as_secs())
    }
}

fn finding(check: RuleCheck) -> Finding {
    let (id, source) = (check.rule.id(), check.rule.source());
    let rule = Rule { id, source };
    match check.result {
        Ok(()) => Finding::met(rule, kept(check.rule)),
        Err(error) => Finding::problem(rule, error.to_string(), fix(check.rule, &error)),
    }
}

fn kept(rule: TokenRule) -> &'static str {
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
