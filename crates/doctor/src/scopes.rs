//! Whether the authorization server knows the scopes that the resource requires.

use portcullis_metadata::{AuthorizationServerMetadata, BearerChallenge, ProtectedResourceMetadata};

use crate::{Finding, Rule, text};

const KNOWN: Rule = Rule { id: "scopes.known", source: "RFC 8414 section 2" };
const OFFLINE: Rule = Rule { id: "scopes.offline_access", source: "OpenID Connect Core 1.0 section 11" };

/// Compares the scopes that a client will request with those that the server lists.
pub(crate) fn check(
    challenge: Option<&BearerChallenge>,
    resource: &ProtectedResourceMetadata,
    server: &AuthorizationServerMetadata,
) -> Vec<Finding> {
    let Some(known) = &server.scopes_supported else {
        return vec![Finding::note(KNOWN, "the server does not list its scopes")];
    };
    let challenged = challenge.and_then(|challenge| challenge.scope.as_ref());
    let wanted: Vec<&str> = match challenged {
        Some(scopes) => scopes.iter().collect(),
        None => resource.scopes_supported.iter().map(String::as_str).collect(),
    };
    let missing: Vec<&str> = wanted.into_iter().filter(|scope| !known.iter().any(|name| name == scope)).collect();
    let mut findings = vec![if missing.is_empty() {
        Finding::met(KNOWN, "the server knows the scopes that clients will request")
    } else {
        Finding::warning(
            KNOWN,
            format!("the server does not list: {}", text::list(missing)),
            "define these scopes at the authorization server, or correct their names at the resource",
        )
    }];
    findings.push(if known.iter().any(|scope| scope == "offline_access") {
        Finding::note(OFFLINE, "clients can request offline_access, for refresh tokens")
    } else {
        Finding::note(OFFLINE, "the server does not list offline_access; it may issue refresh tokens anyway")
    });
    findings
}
