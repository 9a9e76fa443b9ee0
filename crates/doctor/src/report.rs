//! [`Report`]: the steps of an examination and their findings.

use std::fmt;

use http::{Method, StatusCode};
use portcullis_discovery::{FetchRequest, FetchResponse};
use serde::{Serialize, Serializer};
use url::Url;

use crate::{Hop, page, text};

/// A rule of a specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Rule {
    /// The stable name, such as `challenge.status`.
    pub id: &'static str,
    /// The source, such as `RFC 9728 section 5.1`.
    pub source: &'static str,
}

/// The result of checking a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Verdict {
    /// The rule is met.
    Met,
    /// Information; no rule is violated.
    Note,
    /// Some clients fail, or a recommendation is not followed.
    Warning,
    /// Clients that follow the standards fail.
    Problem,
}

/// The finding for one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The result.
    pub verdict: Verdict,
    /// The rule.
    pub rule: Rule,
    /// The finding as text. Text of the peer is shortened, and has no control characters.
    pub text: String,
    /// The URL that the finding is about, if it is not the URL of the step's request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What to change, and where. Present for warnings and problems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Rule {
    /// Creates a rule.
    pub const fn new(id: &'static str, source: &'static str) -> Self {
        Self { id, source }
    }
}

impl Finding {
    /// The rule is met.
    pub fn met(rule: Rule, text: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Met,
            rule,
            text: text.into(),
            url: None,
            fix: None,
        }
    }

    /// Information.
    pub fn note(rule: Rule, text: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Note,
            rule,
            text: text.into(),
            url: None,
            fix: None,
        }
    }

    /// Some clients fail, or a recommendation is not followed.
    pub fn warning(rule: Rule, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Warning,
            rule,
            text: text.into(),
            url: None,
            fix: Some(fix.into()),
        }
    }

    /// Clients that follow the standards fail.
    pub fn problem(rule: Rule, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Problem,
            rule,
            text: text.into(),
            url: None,
            fix: Some(fix.into()),
        }
    }

    /// Sets the URL that the finding is about.
    pub(crate) fn at(mut self, url: Option<&str>) -> Self {
        self.url = url.map(str::to_owned);
        self
    }
}

/// One step of an examination: a request, its response, and the findings.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// The title of the step.
    pub title: String,
    /// The request, if the step sends one.
    #[serde(rename = "asked", skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestSummary>,
    /// The response, if there is one.
    #[serde(rename = "answered", skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseSummary>,
    /// Why there is no response, if the request failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The findings, in the order of the checks.
    pub findings: Vec<Finding>,
    /// Whether the step checks the token, not the chain.
    #[serde(rename = "of_token")]
    pub is_about_token: bool,
    /// The hop of the chain that the step examines, if it is one of a chain. Not in the JSON form.
    #[serde(skip)]
    pub hop: Option<Hop>,
}

impl Step {
    /// Creates a step without a request and findings.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            request: None,
            response: None,
            failure: None,
            findings: Vec::new(),
            is_about_token: false,
            hop: None,
        }
    }

    /// Sets the hop that the step examines.
    #[must_use]
    pub fn at_hop(mut self, hop: Hop) -> Self {
        self.hop = Some(hop);
        self
    }

    /// Creates a step that checks the token.
    pub(crate) fn for_token(title: impl Into<String>) -> Self {
        Self {
            is_about_token: true,
            ..Self::new(title)
        }
    }

    /// Whether any finding is a problem.
    pub fn has_problem(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.verdict == Verdict::Problem)
    }
}

/// A request of an examination. The URL has no query and no user information.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RequestSummary {
    /// The method.
    #[serde(serialize_with = "as_text")]
    pub method: Method,
    /// The URL.
    pub url: String,
}

impl RequestSummary {
    pub(crate) fn get(url: &Url) -> Self {
        Self {
            method: Method::GET,
            url: text::url(url),
        }
    }
}

impl From<&FetchRequest> for RequestSummary {
    fn from(request: &FetchRequest) -> Self {
        Self {
            method: request.method.clone(),
            url: text::url(&request.url),
        }
    }
}

/// The response to a request of an examination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ResponseSummary {
    /// The status.
    #[serde(serialize_with = "as_number")]
    pub status: StatusCode,
    /// The content type, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The target of a redirect, without its query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

impl From<&FetchResponse> for ResponseSummary {
    fn from(response: &FetchResponse) -> Self {
        let content_type = response.headers.get(http::header::CONTENT_TYPE);
        Self {
            status: response.status,
            content_type: content_type
                .map(|value| text::quoted(&String::from_utf8_lossy(value.as_bytes()))),
            location: page::redirect_target(response),
        }
    }
}

/// Writes the status, the content type and the target of a redirect.
impl fmt::Display for ResponseSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.status.fmt(f)?;
        if let Some(content_type) = &self.content_type {
            write!(f, " {content_type}")?;
        }
        match &self.location {
            Some(location) => write!(f, ", redirect to {location}"),
            None => Ok(()),
        }
    }
}

/// The result of an examination. Its JSON form also has `first_cause`, `summary` and `requests`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The resource's URL, without its query.
    pub resource: String,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

impl Report {
    /// Creates a report of steps that another program has carried out.
    pub fn new(resource: impl Into<String>, steps: Vec<Step>) -> Self {
        Self {
            resource: resource.into(),
            steps,
        }
    }

    /// All findings, in order.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.steps.iter().flat_map(|step| &step.findings)
    }

    /// The first problem, which is the one to fix first.
    pub fn first_problem(&self) -> Option<&Finding> {
        self.findings()
            .find(|finding| finding.verdict == Verdict::Problem)
    }

    /// The number of findings with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.findings()
            .filter(|finding| finding.verdict == verdict)
            .count()
    }
}

fn as_text<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(method.as_str())
}

fn as_number<S: Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}
