use http::{Method, StatusCode};
use portcullis_discovery::{FetchRequest, FetchResponse};
use serde::{Serialize, Serializer};

use crate::text;

/// A rule of a document, by a name of ours and the place where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// A stable name: `challenge.status`.
    pub id: &'static str,
    /// Where it stands: `RFC 9728 section 5.1`.
    pub source: &'static str,
}

/// How a rule fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is met.
    Met,
    /// Nothing is wrong; it is good to know.
    Note,
    /// Some clients will stumble, or a recommendation is not followed.
    Warning,
    /// Clients that keep to the standards fail here.
    Problem,
}

/// What was found of one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How the rule fares.
    pub verdict: Verdict,
    /// The rule.
    pub rule: Rule,
    /// What was found, for people. Texts of the peer in it are shortened, and without control characters.
    pub text: String,
    /// What to change, and where. Only with a warning or a problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    pub(crate) fn met(rule: Rule, text: impl Into<String>) -> Self {
        Self { verdict: Verdict::Met, rule, text: text.into(), fix: None }
    }

    pub(crate) fn note(rule: Rule, text: impl Into<String>) -> Self {
        Self { verdict: Verdict::Note, rule, text: text.into(), fix: None }
    }

    pub(crate) fn warning(rule: Rule, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warning, rule, text: text.into(), fix: Some(fix.into()) }
    }

    pub(crate) fn problem(rule: Rule, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Problem, rule, text: text.into(), fix: Some(fix.into()) }
    }
}

/// One step of the examination: what was asked, what came back, what was found.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// What the step looks at, for people.
    pub title: String,
    /// What was sent, where the step sent something.
    #[serde(rename = "asked", skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestSummary>,
    /// What came back, where something did.
    #[serde(rename = "answered", skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseSummary>,
    /// What was found, in the order in which it was judged.
    pub findings: Vec<Finding>,
    /// Whether the step is about a token, not about the chain.
    #[serde(rename = "of_token")]
    pub is_about_token: bool,
}

impl Step {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), request: None, response: None, findings: Vec::new(), is_about_token: false }
    }

    pub(crate) fn for_token(title: impl Into<String>) -> Self {
        Self { is_about_token: true, ..Self::new(title) }
    }

    /// Whether a rule is broken in a way that clients fail at.
    pub fn has_problem(&self) -> bool {
        self.findings.iter().any(|finding| finding.verdict == Verdict::Problem)
    }
}

/// A request of the examination. Its URL has neither query nor user information.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestSummary {
    /// The method.
    #[serde(serialize_with = "as_text")]
    pub method: Method,
    /// The URL.
    pub url: String,
}

impl From<&FetchRequest> for RequestSummary {
    fn from(request: &FetchRequest) -> Self {
        Self { method: request.method.clone(), url: text::url(&request.url) }
    }
}

/// The answer to a request of the examination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResponseSummary {
    /// The status.
    #[serde(serialize_with = "as_number")]
    pub status: StatusCode,
    /// The content type, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

impl From<&FetchResponse> for ResponseSummary {
    fn from(response: &FetchResponse) -> Self {
        let content_type = response.headers.get(http::header::CONTENT_TYPE);
        Self {
            status: response.status,
            content_type: content_type.map(|value| text::quoted(&String::from_utf8_lossy(value.as_bytes()))),
        }
    }
}

/// A whole examination.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The resource's URL, without its query.
    pub resource: String,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

impl Report {
    /// Every finding, in order.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.steps.iter().flat_map(|step| &step.findings)
    }

    /// The first broken rule: what to mend first.
    pub fn first_problem(&self) -> Option<&Finding> {
        self.findings().find(|finding| finding.verdict == Verdict::Problem)
    }

    /// How many findings have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.findings().filter(|finding| finding.verdict == verdict).count()
    }
}

fn as_text<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(method.as_str())
}

fn as_number<S: Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}
