//! The JSON form of a [`Report`].

use serde::{Serialize, Serializer};

use crate::{Finding, Report, Rule, Step, Verdict};

/// The members of the document.
#[derive(Serialize)]
struct JsonReport<'a> {
    resource: &'a str,
    /// The problem to fix first, or null.
    first_cause: Option<FirstCause<'a>>,
    summary: Summary,
    /// The request of each step that has one, in order, with its outcome.
    requests: Vec<JsonRequest<'a>>,
    steps: &'a [Step],
}

/// The problem to fix first.
#[derive(Serialize)]
struct FirstCause<'a> {
    step: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    verdict: Verdict,
    rule: Rule,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'a str>,
}

/// The number of findings by verdict.
#[derive(Serialize)]
struct Summary {
    met: usize,
    notes: usize,
    warnings: usize,
    problems: usize,
}

/// A request of the examination.
#[derive(Serialize)]
struct JsonRequest<'a> {
    method: &'a str,
    url: &'a str,
    /// The status and the content type, or why there is no response.
    outcome: String,
    /// The most severe verdict of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        JsonReport {
            resource: &self.resource,
            first_cause: self.first_cause(),
            summary: Summary {
                met: self.count(Verdict::Met),
                notes: self.count(Verdict::Note),
                warnings: self.count(Verdict::Warning),
                problems: self.count(Verdict::Problem),
            },
            requests: self.steps.iter().filter_map(request).collect(),
            steps: &self.steps,
        }
        .serialize(serializer)
    }
}

impl Report {
    /// The first problem, with the URL that it is about.
    fn first_cause(&self) -> Option<FirstCause<'_>> {
        let step = self.steps.iter().find(|step| step.has_problem())?;
        let problem = step
            .findings
            .iter()
            .find(|finding| finding.verdict == Verdict::Problem)?;
        let Finding {
            verdict,
            rule,
            text,
            url,
            fix,
        } = problem;
        let requested = step.request.as_ref().map(|request| &request.url);
        let url = url.as_ref().or(requested).map(String::as_str);
        let fix = fix.as_deref();
        Some(FirstCause {
            step: &step.title,
            url,
            verdict: *verdict,
            rule: *rule,
            text,
            fix,
        })
    }
}

fn request(step: &Step) -> Option<JsonRequest<'_>> {
    let request = step.request.as_ref()?;
    let outcome = match (&step.response, &step.failure) {
        (Some(response), _) => response.to_string(),
        (None, Some(failure)) => failure.clone(),
        (None, None) => "no response".to_owned(),
    };
    let verdict = step.findings.iter().map(|finding| finding.verdict).max();
    Some(JsonRequest {
        method: request.method.as_str(),
        url: &request.url,
        outcome,
        verdict,
    })
}
