//! The resource's metadata document (RFC 9728).

use http::{StatusCode, header::CONTENT_TYPE};
use portcullis_discovery::{FetchResponse, ResourceMatch};
use portcullis_metadata::{DocumentError, ProtectedResourceMetadata, syntax::has_media_type};
use url::Url;

use crate::{
    Finding, Rule, malformed, page, probe,
    search::{Search, outcome},
    text,
};

/// A document is found.
pub(crate) const FOUND: Rule = Rule {
    id: "resource.found",
    source: "RFC 9728 section 3.1",
};
const CONTENT: Rule = Rule {
    id: "resource.content_type",
    source: "RFC 9728 section 3.2",
};
const DOCUMENT: Rule = Rule {
    id: "resource.document",
    source: "RFC 9728 section 2",
};
const MATCH: Rule = Rule {
    id: "resource.match",
    source: "RFC 9728 section 3.3",
};
const HEADER_METHOD: Rule = Rule {
    id: "resource.bearer_methods",
    source: "RFC 9728 section 2, RFC 6750 section 2.1",
};
const OFFLINE: Rule = Rule {
    id: "resource.offline_access",
    source: "MCP 2026-07-28 authorization, refresh tokens",
};
const SCOPES: Rule = Rule {
    id: "resource.scopes_supported",
    source: "RFC 9728 section 2",
};

/// A URL at which clients look for the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The URL in the challenge.
    Challenge,
    /// The well-known URL with the resource's path.
    Path,
    /// The well-known URL of the origin.
    Root,
}

impl Place {
    /// The title of the step.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Challenge => "the metadata at the URL of the challenge",
            Self::Path => "the metadata at the well-known URL of the resource",
            Self::Root => "the metadata at the well-known URL of the origin",
        }
    }
}

/// A place, and the state of the search for the document.
pub(crate) struct Lookup<'a> {
    pub(crate) place: Place,
    pub(crate) url: &'a Url,
    /// Whether no place before it had the document.
    pub(crate) is_needed: bool,
    /// Whether there is no place after it.
    pub(crate) is_last: bool,
}

/// Checks the response of one place. Returns the document, if there is one; it can have problems.
pub(crate) fn check(
    lookup: &Lookup<'_>,
    requested: &Url,
    response: &FetchResponse,
    search: &mut Search,
    findings: &mut Vec<Finding>,
) -> Option<ProtectedResourceMetadata> {
    if response.status != StatusCode::OK {
        search.add(lookup.url, response);
        findings.push(absent(lookup, response, search));
        return None;
    }
    match ProtectedResourceMetadata::parse(&response.body) {
        Ok(metadata) => {
            findings.push(check_content_type(response));
            findings.push(check_match(requested, &metadata));
            check_members(&metadata, findings);
            findings.extend(malformed::check_document(&response.body));
            Some(metadata)
        }
        Err(DocumentError::NotJson) => {
            search.add(lookup.url, response);
            findings.push(not_json(lookup, response, search));
            None
        }
        Err(error) => {
            findings.extend(malformed::check_document(&response.body));
            let fix = "serve a JSON object with `resource` and `authorization_servers`";
            findings.push(Finding::problem(DOCUMENT, error.to_string(), fix));
            None
        }
    }
}

/// Replaces the fix if a URL of the challenge cannot be reached and has another origin than the
/// resource, as it happens behind a proxy.
pub(crate) fn explain_unreachable(lookup: &Lookup<'_>, asked: &Url, findings: &mut [Finding]) {
    if lookup.place != Place::Challenge || lookup.url.origin() == asked.origin() {
        return;
    }
    let origin = text::quoted(&lookup.url.origin().ascii_serialization());
    for finding in findings
        .iter_mut()
        .filter(|finding| finding.rule == probe::REACHABLE)
    {
        finding.text = format!(
            "the challenge names metadata at {origin}, and not at the origin of the resource: {}",
            finding.text
        );
        let fix = "write the public URL into resource_metadata; behind a proxy, configure the public base URL of the server";
        finding.fix = Some(fix.to_owned());
    }
}

/// The finding for a response with 200 that is not JSON. Clients that check the content try the
/// next place; others stop.
fn not_json(lookup: &Lookup<'_>, response: &FetchResponse, search: &Search) -> Finding {
    let outcome = outcome(response);
    let fix = "answer with the document, or with 404: several clients stop at such a response";
    match (lookup.is_needed, lookup.is_last) {
        (true, true) => {
            let fix = "serve the document as JSON at the first of these URLs";
            Finding::problem(FOUND, search.summary(), fix).at(search.web_page())
        }
        (true, false) => Finding::warning(FOUND, format!("no document: {outcome}"), fix),
        (false, _) => Finding::note(FOUND, format!("no document: {outcome}")),
    }
}

/// What else helps if a proxy passes only the endpoint.
const PASS_WELL_KNOWN: &str =
    "behind a proxy, let it pass /.well-known/oauth-protected-resource too";

/// The finding for a response with another status than 200.
fn absent(lookup: &Lookup<'_>, response: &FetchResponse, search: &Search) -> Finding {
    let (
        &Lookup {
            place, is_needed, ..
        },
        status,
    ) = (lookup, response.status);
    let text = format!("no document: {}", outcome(response));
    if status.is_redirection() && place == Place::Challenge {
        let fix = "serve the document at the URL of the challenge: clients do not follow redirects of metadata";
        return Finding::problem(FOUND, text, fix);
    }
    if is_needed && page::blocking_firewall(response).is_some() {
        return Finding::problem(FOUND, text, page::FIREWALL_FIX);
    }
    if is_needed && status.is_server_error() {
        return Finding::problem(
            FOUND,
            text,
            "repair the server: clients end their search at such a response",
        );
    }
    match place {
        Place::Challenge => Finding::problem(
            FOUND,
            text,
            format!("serve the document at the URL of the challenge; {PASS_WELL_KNOWN}"),
        ),
        Place::Path if is_needed => Finding::note(FOUND, text),
        Place::Path => Finding::warning(
            FOUND,
            text,
            "serve it here too, for clients that have no challenge",
        ),
        Place::Root if is_needed => Finding::problem(
            FOUND,
            search.summary(),
            format!("serve the document at the well-known URL of the resource; {PASS_WELL_KNOWN}"),
        )
        .at(search.web_page()),
        Place::Root => Finding::note(FOUND, text),
    }
}

/// Checks the media type of the document.
fn check_content_type(response: &FetchResponse) -> Finding {
    if has_media_type(&response.headers, "application/json") {
        Finding::met(CONTENT, "it is served as application/json")
    } else {
        let content_type = response
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        Finding::warning(
            CONTENT,
            format!("it is served as `{}`", text::quoted(media_type)),
            "serve it as application/json",
        )
    }
}

/// Compares the resource of the document with the requested URL.
fn check_match(requested: &Url, metadata: &ProtectedResourceMetadata) -> Finding {
    let named = text::quoted(metadata.resource.as_str());
    match ResourceMatch::of(&metadata.resource, requested) {
        Some(ResourceMatch::Same) if metadata.resource.url().path() != requested.path() => {
            Finding::warning(
                MATCH,
                format!(
                    "it is the metadata of {named}, which differs from the requested URL by a final slash"
                ),
                format!(
                    "use the URL {named}, or set `resource` to exactly the URL that clients use: several clients compare it as a \
                     string"
                ),
            )
        }
        Some(ResourceMatch::Same) => Finding::met(
            MATCH,
            format!("it is the metadata of this resource: {named}"),
        ),
        Some(ResourceMatch::PathPrefix) => Finding::warning(
            MATCH,
            format!(
                "it is the metadata of {named}, of which the URL is only a part: a token for it is also valid for the other paths"
            ),
            "set `resource` to the URL that clients use: VS Code and others reject a broader one, and strict clients ask the user first",
        ),
        Some(_) => Finding::note(
            MATCH,
            format!("it is the metadata of {named}, which is the URL without its query"),
        ),
        None => Finding::problem(
            MATCH,
            format!("it is the metadata of another resource: {named}"),
            format!(
                "use the URL {named} if it is of this server, or set `resource` to the URL that clients use; behind a proxy, \
                 configure the public base URL"
            ),
        ),
    }
}

/// Checks the other members of the document.
fn check_members(metadata: &ProtectedResourceMetadata, findings: &mut Vec<Finding>) {
    let methods = metadata.bearer_methods_supported.as_ref();
    if methods.is_some_and(|methods| !methods.iter().any(|method| method == "header")) {
        findings.push(Finding::problem(
            HEADER_METHOD,
            "tokens in the Authorization header are not accepted",
            "add `header` to bearer_methods_supported",
        ));
    }
    let scopes = &metadata.scopes_supported;
    findings.push(if scopes.is_empty() {
        Finding::note(
            SCOPES,
            "it lists no scopes: clients without a challenge request none",
        )
    } else {
        Finding::met(
            SCOPES,
            format!("scopes: {}", text::list(scopes.iter().map(String::as_str))),
        )
    });
    if scopes.iter().any(|scope| scope == "offline_access") {
        findings.push(Finding::warning(
            OFFLINE,
            "scopes_supported has offline_access",
            "remove it: refresh tokens concern only the client and the authorization server",
        ));
    }
}
