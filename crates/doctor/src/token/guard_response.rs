use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
};

use http::{
    Request, Response,
    header::{AUTHORIZATION, HOST, WWW_AUTHENTICATE},
};
use portcullis_guard::{
    Authentication, Decision, DecisionSink, GuardLayer, GuardSettings, ProtectedResource,
};
use portcullis_metadata::AccessToken;
use portcullis_verifier::Verifier;
use tower::{Layer as _, ServiceExt as _, service_fn};
use url::Url;

use super::{ANSWER, Chain, OPAQUE_FIX, rule_finding::COPY_AGAIN};
use crate::{Finding, ResponseSummary, Step, text};

/// Sends the token through a guard that is configured as the metadata says, and records its
/// response in the step. `is_explained`: an earlier finding is the problem for which the guard
/// rejects the token. Without one, the token is opaque.
pub(super) async fn ask_guard(
    chain: &Chain,
    token: &AccessToken,
    verifier: Arc<Verifier>,
    is_explained: bool,
    step: &mut Step,
) {
    let reason = Arc::new(ReasonCode::default());
    let guard = match guard(chain, verifier, Arc::clone(&reason)) {
        Ok(guard) => guard,
        Err(finding) => return step.findings.push(finding),
    };
    let Some(request) = request(chain.metadata.resource.url(), token) else {
        let text = "it cannot be sent: it has characters that a header cannot contain";
        return step
            .findings
            .push(Finding::problem(ANSWER, text, COPY_AGAIN));
    };
    let admitted =
        service_fn(async |_: Request<String>| Ok::<_, Infallible>(Response::new(String::new())));
    let Ok(response) = GuardLayer::new(guard)
        .layer(admitted)
        .oneshot(request)
        .await;

    step.response = Some(ResponseSummary {
        status: response.status(),
        content_type: None,
        location: None,
    });
    if response.status().is_success() {
        return step.findings.push(Finding::met(ANSWER, "it accepts the request if it can reach the issuer and no claim rule of its configuration rejects the token"));
    }
    let code = reason.0.get().copied().unwrap_or("unknown");
    let text = format!(
        "it responds with {}, and its log has the reason code {code}",
        response.status()
    );
    step.findings.push(if is_explained {
        Finding::note(ANSWER, text)
    } else {
        Finding::problem(ANSWER, text, OPAQUE_FIX)
    });
    if let Some(challenge) = response.headers().get(WWW_AUTHENTICATE) {
        let challenge = text::line(&String::from_utf8_lossy(challenge.as_bytes()));
        step.findings.push(Finding::note(
            ANSWER,
            format!("WWW-Authenticate: {challenge}"),
        ));
    }
}

/// Creates a guard that requires the scopes of the challenge. The error is a finding with the
/// reason for which the metadata cannot configure a guard.
fn guard(
    chain: &Chain,
    verifier: Arc<Verifier>,
    reason: Arc<ReasonCode>,
) -> Result<Arc<ProtectedResource>, Finding> {
    let unusable = |error: &dyn std::fmt::Display| Finding::note(ANSWER, error.to_string());
    let settings = GuardSettings::new(chain.metadata.clone(), Authentication::Required(verifier));
    let mut settings = settings.map_err(|error| unusable(&error))?;
    settings.required_scopes = chain.needed.clone();
    settings.sink = reason;
    ProtectedResource::new(settings).map_err(|error| unusable(&error))
}

/// Creates a request to the resource with the token. `None` if a header cannot contain the token.
fn request(resource: &Url, token: &AccessToken) -> Option<Request<String>> {
    let request = Request::post(resource.path()).header(HOST, resource.authority());
    request
        .header(AUTHORIZATION, format!("Bearer {}", token.secret()))
        .body(String::new())
        .ok()
}

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
