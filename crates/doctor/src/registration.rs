//! How unknown clients can register (RFC 7591, client ID metadata documents).

use portcullis_discovery::ChainPolicy;
use portcullis_metadata::AuthorizationServerMetadata;

use crate::{Finding, Rule};

const PATHS: Rule = Rule { id: "registration.paths", source: "MCP authorization, client registration" };
const ENDPOINT: Rule = Rule { id: "registration.endpoint", source: "RFC 7591 section 3" };

/// Checks the ways of registration that the server supports.
pub(crate) fn check(metadata: &AuthorizationServerMetadata, policy: &ChainPolicy) -> Vec<Finding> {
    let by_document = metadata.client_id_metadata_document_supported;
    let Some(endpoint) = &metadata.registration_endpoint else {
        return vec![if by_document {
            Finding::note(PATHS, "clients register only by a client ID metadata document")
        } else {
            Finding::warning(
                PATHS,
                "clients cannot register themselves",
                "support client ID metadata documents or registration (RFC 7591), or register clients for your users",
            )
        }];
    };
    let paths = if by_document {
        "clients register by a client ID metadata document, or dynamically"
    } else {
        "clients register dynamically; client ID metadata documents are not supported"
    };
    let mut findings = vec![Finding::met(PATHS, paths)];
    if let Err(refusal) = policy.of(endpoint).check(endpoint) {
        let text = format!("`registration_endpoint` cannot be used: {refusal}");
        findings.push(Finding::problem(ENDPOINT, text, "publish an https URL of a public host"));
    }
    findings
}
