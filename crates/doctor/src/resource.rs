//! The resource's metadata document (RFC 9728).

use http::{StatusCode, header::CONTENT_TYPE};
use portcullis_discovery::{FetchResponse, ResourceMatch};
use portcullis_metadata::ProtectedResourceMetadata;
use url::Url;

use crate::{Finding, Rule, text};

const FOUND: Rule = Rule { id: "resource.found", source: "RFC 9728 section 3.1" };
const CONTENT: Rule = Rule { id: "resource.content_type", source: "RFC 9728 section 3.2" };
const DOCUMENT: Rule = Rule { id: "resource.document", source: "RFC 9728 section 2" };
const MATCH: Rule = Rule { id: "resource.match", source: "RFC 9728 section 3.3" };
const HEADER_METHOD: Rule = Rule { id: "resource.bearer_methods", source: "RFC 9728 section 2, RFC 6750 section 2.1" };
const OFFLINE: Rule = Rule { id: "resource.offline_access", source: "MCP 2026-07-28 authorization, refresh tokens" };
const SCOPES: Rule = Rule { id: "resource.scopes_supported", source: "RFC 9728 section 2" };

/// Where a document may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where the challenge says.
    Challenge,
    /// The well-known URL with the resource's path.
    Path,
    /// The well-known URL of the origin.
    Root,
}

impl Place {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Challenge => "the metadata where the challenge says",
            Self::Path => "the metadata at the well-known URL of the resource",
            Self::Root => "the metadata at the well-known URL of the origin",
        }
    }
}

/// Judges what a place answered. `needed`: no place before it had the document.
pub(crate) fn check(
    place: Place,
    needed: bool,
    asked: &Url,
    response: &FetchResponse,
    findings: &mut Vec<Finding>,
) -> Option<ProtectedResourceMetadata> {
    if response.status != StatusCode::OK {
        findings.push(absent(place, needed, response.status));
        return None;
    }
    findings.push(check_content_type(response));
    match ProtectedResourceMetadata::parse(&response.body) {
        Ok(metadata) => {
            findings.push(check_match(asked, &metadata));
            check_members(&metadata, findings);
            Some(metadata)
        }
        Err(error) => {
            let fix = "serve a JSON object with `resource` and `authorization_servers`";
            findings.push(Finding::problem(DOCUMENT, error.to_string(), fix));
            None
        }
    }
}

fn absent(place: Place, needed: bool, status: StatusCode) -> Finding {
    let text = format!("no document: {status}");
    if needed && status.is_server_error() {
        return Finding::problem(FOUND, text, "mend the server: clients end their search at such an answer");
    }
    match place {
        Place::Challenge => Finding::problem(FOUND, text, "serve the document at the URL that the challenge names"),
        Place::Path if needed => Finding::note(FOUND, text),
        Place::Path => Finding::warning(FOUND, text, "serve it here too, for clients that have seen no challenge"),
        Place::Root if needed => {
            Finding::problem(FOUND, text, "serve the document at the well-known URL of the resource")
        }
        Place::Root => Finding::note(FOUND, text),
    }
}

fn check_content_type(response: &FetchResponse) -> Finding {
    let content_type = response.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        Finding::met(CONTENT, "it is served as application/json")
    } else {
        Finding::warning(
            CONTENT,
            format!("it is served as `{}`", text::quoted(essence)),
            "serve it as application/json",
        )
    }
}

fn check_match(asked: &Url, metadata: &ProtectedResourceMetadata) -> Finding {
    let named = text::quoted(metadata.resource.as_str());
    match ResourceMatch::of(&metadata.resource, asked) {
        Some(ResourceMatch::Same) => Finding::met(MATCH, format!("it is about this resource: {named}")),
        Some(ResourceMatch::PathPrefix) => Finding::warning(
            MATCH,
            format!("it is about {named}, of which the URL is only a part: a token for it also opens the other paths"),
            "let `resource` be the URL that clients use: careful clients refuse a broader one, or ask the person first",
        ),
        Some(_) => Finding::note(MATCH, format!("it is about {named}, which is the URL without its query")),
        None => Finding::problem(
            MATCH,
            format!("it is about another resource: {named}"),
            "let `resource` be the URL that clients use; behind a proxy, set the public base URL",
        ),
    }
}

fn check_members(metadata: &ProtectedResourceMetadata, findings: &mut Vec<Finding>) {
    let methods = &metadata.bearer_methods_supported;
    if !methods.is_empty() && !methods.iter().any(|method| method == "header") {
        findings.push(Finding::problem(
            HEADER_METHOD,
            "tokens are not taken in the Authorization header",
            "add `header` to bearer_methods_supported",
        ));
    }
    let scopes = &metadata.scopes_supported;
    findings.push(if scopes.is_empty() {
        Finding::note(SCOPES, "it lists no scopes: clients without a challenge ask for none")
    } else {
        Finding::met(SCOPES, format!("scopes: {}", text::list(scopes.iter().map(String::as_str))))
    });
    if scopes.iter().any(|scope| scope == "offline_access") {
        findings.push(Finding::warning(
            OFFLINE,
            "scopes_supported has offline_access",
            "take it out: refresh tokens are between client and authorization server",
        ));
    }
}
