//! Whether the authorization server knows the scopes that the resource requires.

use std::collections::HashSet;

use portcullis_metadata::{
    AuthorizationServerMetadata, BearerChallenge, ProtectedResourceMetadata,
};

use crate::{Finding, Rule, text};

const KNOWN: Rule = Rule {
    id: "scopes.known",
    source: "RFC 8414 section 2",
};
const OFFLINE: Rule = Rule {
    id: "scopes.offline_access",
    source: "OpenID Connect Core 1.0 section 11",
};

/// Compares the scopes that a client will request with those that the server lists.
pub(crate) fn check(
    challenge: Option<&BearerChallenge>,
    resource: &ProtectedResourceMetadata,
    server: &AuthorizationServerMetadata,
) -> Vec<Finding> {
    let Some(known) = &server.scopes_supported else {
        return vec![Finding::note(KNOWN, "the server does not list its scopes")];
    };
    // Both lists can have tens of thousands of names.
    let known: HashSet<&str> = known.iter().map(String::as_str).collect();
    let challenged = challenge.and_then(|challenge| challenge.scope.as_ref());
    let wanted: Vec<&str> = match challenged {
        Some(scopes) => scopes.iter().collect(),
        None => resource
            .scopes_supported
            .iter()
            .map(String::as_str)
            .collect(),
    };
    let missing: Vec<&str> = wanted
        .into_iter()
        .filter(|scope| !known.contains(scope))
        .collect();
    let mut findings = vec![if missing.is_empty() {
        Finding::met(
            KNOWN,
            "the server knows the scopes that clients will request",
        )
    } else {
        Finding::warning(
            KNOWN,
            format!("the server does not list: {}", text::list(missing)),
            "define these scopes at the authorization server, or correct their names at the resource",
        )
    }];
    findings.push(if known.contains("offline_access") {
        Finding::note(
            OFFLINE,
            "clients can request offline_access, for refresh tokens",
        )
    } else {
        Finding::note(
            OFFLINE,
            "the server does not list offline_access; it may issue refresh tokens anyway",
        )
    });
    findings
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::{Issuer, ResourceUri, Scopes};

    use super::*;
    use crate::Verdict;

    /// The scopes of the challenge, of the resource's metadata and of the server's, and the finding
    /// about them.
    struct Case<'a> {
        name: &'a str,
        challenged: Option<&'a str>,
        published: &'a [&'a str],
        listed: Option<&'a [&'a str]>,
        expected: Verdict,
    }

    #[test]
    fn the_requested_scopes_are_compared() {
        let known = Case {
            name: "all known",
            challenged: None,
            published: &["a"],
            listed: Some(&["a", "b"]),
            expected: Verdict::Met,
        };
        for Case {
            name,
            challenged,
            published,
            listed,
            expected,
        } in [
            Case {
                name: "no list",
                listed: None,
                expected: Verdict::Note,
                ..known
            },
            Case {
                name: "one unknown",
                published: &["a", "c"],
                expected: Verdict::Warning,
                ..known
            },
            Case {
                name: "the challenge replaces the metadata",
                challenged: Some("b"),
                published: &["c"],
                ..known
            },
            Case {
                name: "an unknown one in the challenge",
                challenged: Some("c"),
                expected: Verdict::Warning,
                ..known
            },
            Case {
                name: "no scopes",
                published: &[],
                listed: Some(&[]),
                ..known
            },
            known,
        ] {
            let names = |list: &[&str]| {
                list.iter()
                    .map(|name| (*name).to_owned())
                    .collect::<Vec<_>>()
            };
            let issuer = Issuer::parse("https://auth.example.com").unwrap();
            let resource = ResourceUri::parse("https://mcp.example.com/mcp").unwrap();
            let mut metadata = ProtectedResourceMetadata::new(resource, vec![issuer.clone()]);
            metadata.scopes_supported = names(published);
            let mut server = AuthorizationServerMetadata::new(issuer);
            server.scopes_supported = listed.map(names);
            let scope = challenged.map(|scopes| Scopes::parse(scopes).unwrap());
            let challenge = BearerChallenge {
                scope,
                ..BearerChallenge::default()
            };
            let findings = check(Some(&challenge), &metadata, &server);
            assert_eq!(findings[0].verdict, expected, "{name}");
        }
    }
}
