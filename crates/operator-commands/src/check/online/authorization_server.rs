//! The metadata of an issuer (RFC 8414): its place, its issuer, its endpoints, its scopes.

mod absent;
mod document;

use http::StatusCode;
use portcullis_discovery::{FetchRequest, FetchResponse, UrlPolicy};
use portcullis_doctor::{Finding, Rule, Step, describe_response};
use portcullis_metadata::{AuthorizationServerMetadata, Clock as _, DocumentError, authorization_server_urls};

use super::{IssuerContext, Steps, clock, failure};

const FOUND: Rule = Rule::new("issuer.found", "RFC 8414 section 3");
const DOCUMENT: Rule = Rule::new("issuer.document", "RFC 8414 section 2");
const IDENTITY: Rule = Rule::new("issuer.identity", "RFC 8414 section 3.3");

/// Finds the metadata as the server and its clients do, and checks it. Returns it if it is that of the issuer.
pub(super) async fn examine(context: &IssuerContext<'_>, steps: &mut Steps<'_>) -> Option<AuthorizationServerMetadata> {
    let mut absent = Vec::new();
    let places = authorization_server_urls(&context.issuer.settings.issuer);
    for (position, url) in places.iter().enumerate() {
        let mut step = Step::new(format!("the metadata of {}", context.key));
        let request = FetchRequest::get(url.clone(), UrlPolicy::Operator);
        let Some(response) = failure::send(context.fetch, request, &context.key, &mut step).await else {
            steps.add(step);
            return None;
        };
        match parse(&response) {
            Place::Found(metadata) => {
                let is_own = check_found(context, &metadata, &response, &mut step);
                steps.add(step);
                return is_own.then_some(*metadata);
            }
            Place::Broken(finding) => {
                step.findings.push(finding);
                steps.add(step);
                return None;
            }
            Place::Absent => absent.push((url, response)),
        }
        if position + 1 == places.len() {
            step.findings.push(absent::finding(context, &absent).await);
        }
        steps.add(step);
    }
    None
}

/// Checks metadata. Returns whether it is that of the issuer.
fn check_found(
    context: &IssuerContext<'_>,
    metadata: &AuthorizationServerMetadata,
    response: &FetchResponse,
    step: &mut Step,
) -> bool {
    let settings = &context.issuer.settings;
    if metadata.issuer != settings.issuer {
        step.findings.push(document::other_issuer(context, &metadata.issuer));
        return false;
    }
    step.findings.push(Finding::met(IDENTITY, "the metadata is of this issuer"));
    document::check(context, metadata, &mut step.findings);
    step.findings.extend(clock::check(&response.headers, context.clock.now(), settings.leeway));
    true
}

/// What is at one place.
enum Place {
    Found(Box<AuthorizationServerMetadata>),
    /// There is none; the search continues.
    Absent,
    /// It cannot be used; the search ends.
    Broken(Finding),
}

/// Returns what is at a place. Some servers answer every path with a page, so a page counts as absent.
fn parse(response: &FetchResponse) -> Place {
    if response.status.is_server_error() {
        let text = format!("the issuer answers {}", describe_response(response));
        return Place::Broken(Finding::problem(FOUND, text, "see the issuer's log"));
    }
    if response.status != StatusCode::OK {
        return Place::Absent;
    }
    match AuthorizationServerMetadata::parse(&response.body) {
        Ok(metadata) => Place::Found(Box::new(metadata)),
        Err(DocumentError::NotJson) => Place::Absent,
        Err(error) => Place::Broken(Finding::problem(DOCUMENT, error.to_string(), "correct that member at the issuer")),
    }
}
