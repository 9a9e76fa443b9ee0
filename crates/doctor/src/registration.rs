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
    if let Err(error) = policy.of(endpoint).check(endpoint) {
        let text = format!("`registration_endpoint` cannot be used: {error}");
        findings.push(Finding::problem(ENDPOINT, text, "publish an https URL of a public host"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use portcullis_discovery::UrlPolicy;
    use portcullis_metadata::Issuer;

    use super::*;
    use crate::Verdict;

    #[test]
    fn every_way_to_register_is_reported() {
        for (name, by_document, endpoint, expected) in [
            ("none", false, None, &[Verdict::Warning][..]),
            ("a document", true, None, &[Verdict::Note]),
            ("dynamic", false, Some("https://auth.example.com/register"), &[Verdict::Met]),
            ("both", true, Some("https://auth.example.com/register"), &[Verdict::Met]),
            ("an insecure endpoint", true, Some("http://auth.example.com/register"), &[Verdict::Met, Verdict::Problem]),
        ] {
            let mut metadata = AuthorizationServerMetadata::new(Issuer::parse("https://auth.example.com").unwrap());
            metadata.client_id_metadata_document_supported = by_document;
            metadata.registration_endpoint = endpoint.map(|url| url.parse().unwrap());
            let findings = check(&metadata, &ChainPolicy::from(UrlPolicy::StartOrigin));
            assert_eq!(findings.iter().map(|finding| finding.verdict).collect::<Vec<_>>(), expected, "{name}");
        }
    }
}
