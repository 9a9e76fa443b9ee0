//! The search for an authorization server's metadata (RFC 8414 section 3, OpenID Connect Discovery 1.0).

mod document;

use http::StatusCode;
use portcullis_discovery::FetchResponse;
use portcullis_metadata::{AuthorizationServerMetadata, DocumentError, Issuer};
use url::Url;

pub(crate) use self::document::check_document;
use crate::{
    Finding, Rule, malformed, page,
    search::{Search, outcome},
    text,
};

/// A document is found.
pub(crate) const FOUND: Rule = Rule { id: "issuer.found", source: "RFC 8414 section 3" };
const DOCUMENT: Rule = Rule { id: "issuer.document", source: "RFC 8414 section 2" };
const IDENTITY: Rule = Rule { id: "issuer.identity", source: "RFC 8414 section 3.3" };

/// The result of looking at one URL.
pub(crate) enum MetadataLookup {
    /// The document.
    Found(Box<AuthorizationServerMetadata>),
    /// There is no document; a client tries the next URL.
    NotFound,
    /// A client ends its search with an error.
    Failed,
}

/// A URL at which clients look for the metadata of an issuer.
pub(crate) struct Lookup<'a> {
    /// The issuer, as the resource's metadata names it.
    pub(crate) issuer: &'a Issuer,
    pub(crate) url: &'a Url,
    /// Whether there is no URL after it.
    pub(crate) is_last: bool,
}

/// Checks the response of one URL.
pub(crate) fn check(
    lookup: &Lookup<'_>,
    response: &FetchResponse,
    search: &mut Search,
    findings: &mut Vec<Finding>,
) -> MetadataLookup {
    if response.status.is_server_error() {
        let fix = "answer with the document, or with 404 if there is none";
        findings.push(Finding::problem(FOUND, format!("the response is {}", outcome(response)), fix));
        return MetadataLookup::Failed;
    }
    if response.status != StatusCode::OK {
        search.add(lookup.url, response);
        return absent(lookup, response, search, findings);
    }
    match AuthorizationServerMetadata::parse(&response.body) {
        Ok(metadata) if metadata.issuer == *lookup.issuer => {
            findings.push(Finding::met(IDENTITY, "the document is of this issuer"));
            MetadataLookup::Found(Box::new(metadata))
        }
        Ok(metadata) => {
            findings.push(Finding::problem(
                IDENTITY,
                format!("the document is of another issuer: {}", text::quoted(metadata.issuer.as_str())),
                "make both identical, including a trailing slash: correct the resource's metadata, or the issuer's",
            ));
            MetadataLookup::Failed
        }
        Err(DocumentError::NotJson) => {
            search.add(lookup.url, response);
            absent(lookup, response, search, findings)
        }
        Err(error) => {
            findings.extend(malformed::check_document(&response.body));
            let fix = "fix that member of the document; behind a proxy, tell the authorization server its public https \
                       address";
            findings.push(Finding::problem(DOCUMENT, error.to_string(), fix));
            MetadataLookup::Failed
        }
    }
}

/// Reports a response without the document.
fn absent(
    lookup: &Lookup<'_>,
    response: &FetchResponse,
    search: &Search,
    findings: &mut Vec<Finding>,
) -> MetadataLookup {
    if lookup.is_last {
        let fix = match search.web_page() {
            _ if page::blocking_firewall(response).is_some() => page::FIREWALL_FIX.to_owned(),
            _ if lookup.issuer.as_str().contains("/.well-known/") => {
                "write the issuer into authorization_servers, not the URL of its metadata: without /.well-known/ and what follows"
                    .to_owned()
            }
            Some(url) => format!("serve the document as JSON at {url} instead of a web page"),
            None => "correct the issuer in the resource's metadata, or publish the document at the first of these URLs"
                .into(),
        };
        findings.push(Finding::problem(FOUND, search.summary(), fix).at(search.web_page()));
        return MetadataLookup::Failed;
    }
    let text = format!("no document: {}", outcome(response));
    findings.push(if response.status == StatusCode::OK {
        let fix = "serve the document here, or answer with 404: several clients stop at such a response";
        Finding::warning(FOUND, text, fix)
    } else {
        Finding::note(FOUND, text)
    });
    MetadataLookup::NotFound
}
