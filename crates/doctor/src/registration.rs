//! How unknown clients can register (RFC 7591, client ID metadata documents).

use portcullis_discovery::ChainPolicy;
use portcullis_metadata::{AuthorizationServerMetadata, Issuer};

use crate::{Finding, Rule, broker_remedy};

/// Both revisions recommend client ID metadata documents and allow dynamic registration, which
/// 2026-07-28 deprecates.
pub(crate) const PATHS: Rule = Rule {
    id: "registration.paths",
    source: "MCP 2025-11-25 and 2026-07-28 authorization, client registration",
};
const ENDPOINT: Rule = Rule {
    id: "registration.endpoint",
    source: "RFC 7591 section 3",
};

/// Checks how clients that the server does not know can register: by a client ID metadata document,
/// dynamically, in both ways, or not at all.
///
/// A registration endpoint that clients must not use counts as absent. Only its URL is checked
/// here; [`test_registration`](crate::test_registration) requests it.
pub(crate) fn check(metadata: &AuthorizationServerMetadata, policy: &ChainPolicy) -> Vec<Finding> {
    let endpoint = metadata
        .registration_endpoint
        .as_ref()
        .map(|url| policy.of(url).check(url));
    let is_dynamic = matches!(endpoint, Some(Ok(())));
    let unusable = endpoint.and_then(Result::err).map(|error| {
        let text = format!("`registration_endpoint` cannot be used: {error}");
        Finding::problem(ENDPOINT, text, "publish an https URL of a public host")
    });
    unusable
        .into_iter()
        .chain([paths(
            &metadata.issuer,
            metadata.client_id_metadata_document_supported,
            is_dynamic,
        )])
        .collect()
}

/// Returns whether the server offers a way to register.
pub(crate) fn is_offered(metadata: &AuthorizationServerMetadata) -> bool {
    metadata.client_id_metadata_document_supported || metadata.registration_endpoint.is_some()
}

/// Returns the finding about the ways to register.
fn paths(issuer: &Issuer, by_document: bool, is_dynamic: bool) -> Finding {
    match (by_document, is_dynamic) {
        (true, true) => Finding::met(
            PATHS,
            "clients register by a client ID metadata document, or dynamically",
        ),
        (true, false) => Finding::met(
            PATHS,
            "clients register by a client ID metadata document; older clients, which only register dynamically, must be \
             registered for their users",
        ),
        // Not a warning, although the recommendation is not followed: no client fails, because
        // those that prefer documents register dynamically without them, and most authorization
        // servers have no documents that could be switched on.
        (false, true) => Finding::note(
            PATHS,
            "the metadata offers only dynamic registration, which MCP 2026-07-28 deprecates; support client ID metadata documents as well \
             when your authorization server can",
        ),
        (false, false) => {
            let remedy = broker_remedy::broker(issuer);
            match broker_remedy::provider_without_registration(issuer) {
                Some(provider) => Finding::warning(
                    PATHS,
                    format!(
                        "clients cannot register themselves: {provider} does not register MCP clients"
                    ),
                    format!("{remedy}; or register clients for your users"),
                ),
                None => Finding::warning(
                    PATHS,
                    "clients cannot register themselves",
                    format!(
                        "support client ID metadata documents or registration (RFC 7591) if the authorization server can; or \
                         {remedy}; or register clients for your users"
                    ),
                ),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_discovery::UrlPolicy;

    use super::*;
    use crate::Verdict;

    const USABLE: Option<&str> = Some("https://auth.example.com/register");
    const INSECURE: Option<&str> = Some("http://auth.example.com/register");

    #[test]
    fn every_way_to_register_is_reported() {
        for (name, by_document, endpoint, expected) in [
            ("none", false, None, &[(PATHS.id, Verdict::Warning)][..]),
            ("a document", true, None, &[(PATHS.id, Verdict::Met)]),
            ("dynamic", false, USABLE, &[(PATHS.id, Verdict::Note)]),
            ("both", true, USABLE, &[(PATHS.id, Verdict::Met)]),
            (
                "a document and an insecure endpoint",
                true,
                INSECURE,
                &[(ENDPOINT.id, Verdict::Problem), (PATHS.id, Verdict::Met)],
            ),
            (
                "an insecure endpoint only",
                false,
                INSECURE,
                &[
                    (ENDPOINT.id, Verdict::Problem),
                    (PATHS.id, Verdict::Warning),
                ],
            ),
        ] {
            let mut metadata = AuthorizationServerMetadata::new(
                Issuer::parse("https://auth.example.com").unwrap(),
            );
            metadata.client_id_metadata_document_supported = by_document;
            metadata.registration_endpoint = endpoint.map(|url| url.parse().unwrap());
            let findings = check(&metadata, &ChainPolicy::from(UrlPolicy::StartOrigin));
            let found: Vec<_> = findings
                .iter()
                .map(|finding| (finding.rule.id, finding.verdict))
                .collect();
            assert_eq!(found, expected, "{name}");
        }
    }

    /// The cause is named if it is the provider, and the remedy in any case.
    #[test]
    fn providers_without_registration_have_a_remedy() {
        for (issuer, cause, kind) in [
            (
                "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0",
                ": Microsoft Entra ID does not",
                "entra",
            ),
            ("https://accounts.google.com", ": Google does not", "google"),
            ("https://auth.example.com", "clients cannot", "oidc"),
        ] {
            let metadata = AuthorizationServerMetadata::new(Issuer::parse(issuer).unwrap());
            let findings = check(&metadata, &ChainPolicy::from(UrlPolicy::StartOrigin));
            let [finding] = &findings[..] else {
                panic!("{findings:?}")
            };
            let fix = finding.fix.as_deref().unwrap();
            assert!(finding.text.contains(cause), "{finding:?}");
            let remedy = format!("[broker] with a provider of kind = \"{kind}\"");
            assert!(fix.contains(&remedy), "{finding:?}");
        }
    }

    /// The text does not promise a way that the endpoint's problem closes.
    #[test]
    fn an_unusable_endpoint_is_no_way_to_register() {
        let mut metadata =
            AuthorizationServerMetadata::new(Issuer::parse("https://auth.example.com").unwrap());
        metadata.client_id_metadata_document_supported = true;
        metadata.registration_endpoint = INSECURE.map(|url| url.parse().unwrap());
        let findings = check(&metadata, &ChainPolicy::from(UrlPolicy::StartOrigin));
        assert!(
            !findings
                .iter()
                .any(|finding| finding.text.contains("or dynamically")),
            "{findings:?}"
        );
    }
}
