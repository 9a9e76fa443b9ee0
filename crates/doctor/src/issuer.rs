//! The search for an authorization server's metadata (RFC 8414 section 3, OpenID Connect Discovery
//! 1.0).

mod document;

use http::StatusCode;
use portcullis_discovery::{FetchResponse, LookupContent, LookupResponse};
use portcullis_metadata::{AuthorizationServerMetadata, Issuer};
use url::Url;

pub(crate) use self::document::check_document;
use crate::{
    Finding, Rule, malformed, page,
    search::{Search, outcome},
    text,
};

/// A document is found.
pub(crate) const FOUND: Rule = Rule {
    id: "issuer.found",
    source: "RFC 8414 section 3",
};
pub(crate) const DOCUMENT: Rule = Rule {
    id: "issuer.document",
    source: "RFC 8414 section 2",
};
/// Endpoints are secure.
pub(crate) const ENDPOINTS: Rule = Rule {
    id: "issuer.endpoints",
    source: "RFC 8414 section 2",
};
pub(crate) const IDENTITY: Rule = Rule {
    id: "issuer.identity",
    source: "RFC 8414 section 3.3",
};

/// A URL at which clients look for the metadata of an issuer.
pub(crate) struct Place<'a> {
    /// The issuer, as the resource's metadata names it.
    pub(crate) issuer: &'a Issuer,
    pub(crate) url: &'a Url,
    /// Whether there is no URL after it.
    pub(crate) is_last: bool,
}

/// Checks what one URL has. Returns the document if it is that of the issuer.
pub(crate) fn check(
    place: &Place<'_>,
    found: LookupResponse<AuthorizationServerMetadata>,
    search: &mut Search,
    findings: &mut Vec<Finding>,
) -> Option<Box<AuthorizationServerMetadata>> {
    let LookupResponse {
        content, response, ..
    } = found;
    match content {
        LookupContent::Document(metadata) if metadata.issuer == *place.issuer => {
            findings.push(Finding::met(IDENTITY, "the document is of this issuer"));
            return Some(metadata);
        }
        LookupContent::Document(metadata) => findings.push(Finding::problem(
            IDENTITY,
            format!("the document is of another issuer: {}", text::quoted(metadata.issuer.as_str())),
            "make both identical, including a trailing slash: correct the resource's metadata, or the issuer's",
        )),
        LookupContent::Absent => {
            search.add(place.url, &response);
            findings.push(absent(place, &response, search));
        }
        LookupContent::Malformed(error) => {
            findings.extend(malformed::check_document(&response.body));
            let fix = "fix that member of the document; behind a proxy, tell the authorization server its public https \
                       address";
            findings.push(Finding::problem(DOCUMENT, error.to_string(), fix));
        }
        _ => {
            let fix = "answer with the document, or with 404 if there is none";
            findings.push(Finding::problem(FOUND, format!("the response is {}", outcome(&response)), fix));
        }
    }
    None
}

/// The finding for a response without the document.
fn absent(place: &Place<'_>, response: &FetchResponse, search: &Search) -> Finding {
    if place.is_last {
        let fix = match search.web_page() {
            _ if page::blocking_firewall(response).is_some() => page::FIREWALL_FIX.to_owned(),
            _ if place.issuer.as_str().contains("/.well-known/") => {
                "write the issuer into authorization_servers, not the URL of its metadata: without /.well-known/ and what follows"
                    .to_owned()
            }
            Some(url) => format!("serve the document as JSON at {url} instead of a web page"),
            None => "correct the issuer in the resource's metadata, or publish the document at the first of these URLs"
                .into(),
        };
        return Finding::problem(FOUND, search.summary(), fix).at(search.web_page());
    }
    let text = format!("no document: {}", outcome(response));
    if response.status == StatusCode::OK {
        let fix =
            "serve the document here, or answer with 404: several clients stop at such a response";
        Finding::warning(FOUND, text, fix)
    } else {
        Finding::note(FOUND, text)
    }
}
