//! The members of an authorization server's metadata (RFC 8414 section 2).

use portcullis_client::provider::KnownIssuer;
use portcullis_discovery::{ChainPolicy, insecure_endpoints};
use portcullis_metadata::AuthorizationServerMetadata;
use url::Url;

use super::ENDPOINTS;
use crate::{Finding, Rule, broker_remedy, registration, text};

const CODE: Rule = Rule {
    id: "issuer.response_types",
    source: "RFC 8414 section 2",
};
const GRANTS: Rule = Rule {
    id: "issuer.grant_types",
    source: "RFC 8414 section 2",
};
const PKCE: Rule = Rule {
    id: "issuer.pkce",
    source: "RFC 7636 section 4.2, MCP authorization code protection",
};
const KNOWN: Rule = Rule {
    id: "issuer.known",
    source: "MCP authorization",
};
const ISS: Rule = Rule {
    id: "issuer.iss_parameter",
    source: "RFC 9207 section 3",
};
const PUBLIC: Rule = Rule {
    id: "issuer.public_clients",
    source: "RFC 8414 section 2",
};

/// Checks the members of the document. `assume_pkce` is the name of the setting that assumes PKCE
/// if the document does not list its methods; `None` if it is not assumed.
pub(crate) fn check_document(
    metadata: &AuthorizationServerMetadata,
    policy: &ChainPolicy,
    assume_pkce: Option<&str>,
) -> Vec<Finding> {
    let known = KnownIssuer::find(&metadata.issuer);
    let mut findings = vec![
        check_endpoint(
            "authorization_endpoint",
            metadata.authorization_endpoint.as_ref(),
            policy,
        ),
        check_endpoint("token_endpoint", metadata.token_endpoint.as_ref(), policy),
        check_code(metadata),
    ];
    findings.extend(insecure_others(metadata, policy));
    findings.extend(check_grants(metadata));
    findings.extend(known.map(|known| Finding::note(KNOWN, format!("clients adapt to {known}"))));
    findings.push(check_pkce(metadata, known, assume_pkce));
    findings.extend(registration::check(metadata, policy));
    findings.push(check_public_clients(metadata, known));
    findings.push(if metadata.authorization_response_iss_parameter_supported {
        Finding::met(ISS, "authorization responses have `iss`, which prevents mix-up attacks")
    } else {
        Finding::note(
            ISS,
            "authorization responses have no `iss`: clients of several servers are open to mix-up attacks",
        )
    });
    findings
}

/// Checks an endpoint that every client needs.
fn check_endpoint(member: &'static str, url: Option<&Url>, policy: &ChainPolicy) -> Finding {
    match url {
        None => Finding::problem(
            ENDPOINTS,
            format!("`{member}` is missing"),
            "add it to the issuer's metadata",
        ),
        Some(url) => match policy.of(url).check(url) {
            Ok(()) => Finding::met(ENDPOINTS, format!("{member}: {}", text::url(url))),
            Err(error) => Finding::problem(
                ENDPOINTS,
                format!("`{member}` cannot be used: {error}"),
                "publish an https URL of a public host",
            ),
        },
    }
}

/// The endpoints that have findings of their own.
const CHECKED_SEPARATELY: [&str; 3] = [
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
];

/// The problem with the other endpoints, if any. A strict client rejects the whole document for one
/// insecure endpoint, even if it never uses that endpoint.
fn insecure_others(
    metadata: &AuthorizationServerMetadata,
    policy: &ChainPolicy,
) -> Option<Finding> {
    let insecure = insecure_endpoints(metadata, policy);
    let insecure: Vec<_> = insecure
        .iter()
        .map(|it| it.member.as_str())
        .filter(|member| !CHECKED_SEPARATELY.contains(member))
        .collect();
    (!insecure.is_empty()).then(|| {
        let text = format!(
            "neither https nor http to loopback: {}",
            text::list(insecure)
        );
        Finding::problem(
            ENDPOINTS,
            text,
            "publish https URLs in every member of the document",
        )
    })
}

/// Checks that the server issues codes.
fn check_code(metadata: &AuthorizationServerMetadata) -> Finding {
    if metadata
        .response_types_supported
        .iter()
        .any(|response_type| response_type == "code")
    {
        Finding::met(CODE, "it issues authorization codes")
    } else {
        Finding::problem(
            CODE,
            "`response_types_supported` has no `code`",
            "add `code`: no other type is safe",
        )
    }
}

/// Checks the grants, if they are listed.
fn check_grants(metadata: &AuthorizationServerMetadata) -> Option<Finding> {
    let grants = metadata.grant_types_supported.as_ref()?;
    if !grants.iter().any(|grant| grant == "authorization_code") {
        let fix = "support the grant authorization_code, so that users can sign in";
        return Some(Finding::problem(
            GRANTS,
            "`grant_types_supported` has no `authorization_code`",
            fix,
        ));
    }
    Some(if grants.iter().any(|grant| grant == "refresh_token") {
        Finding::met(GRANTS, "it accepts authorization codes and refresh tokens")
    } else {
        Finding::note(
            GRANTS,
            "it issues no refresh tokens: users sign in again when a token expires",
        )
    })
}

/// Checks the PKCE methods.
fn check_pkce(
    metadata: &AuthorizationServerMetadata,
    known: Option<&KnownIssuer>,
    assume_pkce: Option<&str>,
) -> Finding {
    if metadata.code_challenge_methods_supported.is_none() {
        if known.is_some_and(|known| known.assumes_pkce) {
            return Finding::note(
                PKCE,
                "its metadata does not list PKCE; its documentation does",
            );
        }
        if let Some(setting) = assume_pkce {
            return Finding::warning(
                PKCE,
                format!("its metadata does not list PKCE; it is assumed ({setting})"),
                "list `S256` in code_challenge_methods_supported: other clients reject the server without it",
            );
        }
    }
    let methods = metadata
        .code_challenge_methods_supported
        .as_deref()
        .unwrap_or_default();
    if methods.iter().any(|method| method == "S256") {
        return Finding::met(PKCE, "it supports PKCE with S256");
    }
    let text = if methods.is_empty() {
        "its metadata does not list PKCE"
    } else {
        "it does not support PKCE with S256"
    };
    let fix = "list `S256` in code_challenge_methods_supported: MCP clients must reject the server without it";
    if registration::is_offered(metadata) {
        return Finding::problem(PKCE, text, fix);
    }
    // Its operator cannot always change the metadata, and clients could not register even then.
    let remedy = broker_remedy::broker(&metadata.issuer);
    match broker_remedy::provider_without_registration(&metadata.issuer) {
        Some(provider) => Finding::problem(
            PKCE,
            format!("{text}, so that MCP clients must reject it: {provider} is not made for them"),
            remedy,
        ),
        None => Finding::problem(
            PKCE,
            text,
            format!("{fix}; or, because clients cannot register there either, {remedy}"),
        ),
    }
}

/// Checks whether clients without a secret are accepted.
fn check_public_clients(
    metadata: &AuthorizationServerMetadata,
    known: Option<&KnownIssuer>,
) -> Finding {
    let methods = metadata.token_endpoint_auth_methods_supported.as_deref();
    if methods.is_some_and(|methods| methods.iter().any(|method| method == "none")) {
        Finding::met(PUBLIC, "it accepts public clients")
    } else if known.is_some() {
        Finding::note(PUBLIC, "it does not list `none` as client authentication")
    } else {
        Finding::warning(
            PUBLIC,
            "it does not list `none` as client authentication: clients that can keep no secret, such as desktop \
             applications, may not sign in",
            "list `none` in token_endpoint_auth_methods_supported, if it accepts public clients",
        )
    }
}
