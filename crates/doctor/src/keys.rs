//! The signing keys of an authorization server (RFC 7517).

use http::StatusCode;
use portcullis_discovery::FetchResponse;
use portcullis_jose::{Algorithm, KeySet};
use portcullis_metadata::JwkSet;

use crate::{Finding, Rule, text};

pub(crate) const FOUND: Rule = Rule {
    id: "keys.found",
    source: "RFC 8414 section 2",
};
pub(crate) const DOCUMENT: Rule = Rule {
    id: "keys.document",
    source: "RFC 7517 section 5",
};
const USABLE: Rule = Rule {
    id: "keys.usable",
    source: "RFC 7517 section 4, RFC 8725 section 3.5",
};

/// Checks the response of `jwks_uri`. Returns the key set, or `None` if no key of it verifies
/// signatures.
pub(crate) fn check(response: &FetchResponse, findings: &mut Vec<Finding>) -> Option<JwkSet> {
    if response.status != StatusCode::OK {
        let text = format!("no keys: {}", response.status);
        findings.push(Finding::problem(
            FOUND,
            text,
            "serve the keys at jwks_uri, or correct it in the metadata",
        ));
        return None;
    }
    let set = match JwkSet::parse(&response.body) {
        Ok(set) => set,
        Err(error) => {
            findings.push(Finding::problem(
                DOCUMENT,
                error.to_string(),
                "serve a JSON object with the array `keys`",
            ));
            return None;
        }
    };
    let (keys, rejected) = match KeySet::from_jwks(&set, Algorithm::ALL.into_iter().collect()) {
        Ok(imported) => imported,
        Err(error) => {
            findings.push(Finding::problem(
                USABLE,
                error.to_string(),
                "publish the keys in use, and no others",
            ));
            return None;
        }
    };
    findings.push(if keys.is_empty() {
        Finding::problem(
            USABLE,
            "no key verifies signatures",
            "publish the public keys that tokens are signed with",
        )
    } else {
        Finding::met(
            USABLE,
            format!(
                "keys: {}",
                text::list(set.keys.iter().filter_map(|key| key.kid.as_deref()))
            ),
        )
    });
    let unreadable = set
        .rejected
        .iter()
        .map(|key| (key.kid.as_deref(), key.reason.to_string()));
    let unusable = rejected
        .iter()
        .map(|key| (key.kid.as_deref(), key.reason.to_string()));
    for (kid, reason) in unreadable.chain(unusable) {
        let name = kid.map_or_else(|| "a key without kid".to_owned(), text::quoted);
        findings.push(Finding::note(
            USABLE,
            format!("{name} is not used: {reason}"),
        ));
    }
    (!keys.is_empty()).then_some(set)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::Verdict;

    /// A response of `jwks_uri`, and the findings about it.
    struct Case<'a> {
        name: &'a str,
        status: StatusCode,
        body: &'a str,
        has_usable_key: bool,
        findings: &'a [(Rule, Verdict)],
    }

    #[test]
    fn faults_of_the_key_set_are_reported() {
        let key = r#"{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
        let secret = r#"{"kty":"oct","kid":"b","k":"AAAA"}"#;
        let no_key = Case {
            name: "no key",
            status: StatusCode::OK,
            body: r#"{"keys":[]}"#,
            has_usable_key: false,
            findings: &[(USABLE, Verdict::Problem)],
        };
        for Case {
            name,
            status,
            body,
            has_usable_key,
            findings,
        } in [
            Case {
                name: "no document",
                status: StatusCode::NOT_FOUND,
                findings: &[(FOUND, Verdict::Problem)],
                ..no_key
            },
            Case {
                name: "no JSON",
                body: "<html>",
                findings: &[(DOCUMENT, Verdict::Problem)],
                ..no_key
            },
            Case {
                name: "a secret key",
                body: &format!(r#"{{"keys":[{secret}]}}"#),
                findings: &[(USABLE, Verdict::Problem), (USABLE, Verdict::Note)],
                ..no_key
            },
            Case {
                name: "a key",
                body: &format!(r#"{{"keys":[{key}]}}"#),
                has_usable_key: true,
                findings: &[(USABLE, Verdict::Met)],
                ..no_key
            },
            Case {
                name: "a key and a secret key",
                body: &format!(r#"{{"keys":[{key},{secret}]}}"#),
                has_usable_key: true,
                findings: &[(USABLE, Verdict::Met), (USABLE, Verdict::Note)],
                ..no_key
            },
            no_key,
        ] {
            let response = FetchResponse {
                status,
                headers: HeaderMap::new(),
                body: body.to_owned().into(),
                sent: Default::default(),
            };
            let mut found = Vec::new();
            assert_eq!(
                check(&response, &mut found).is_some(),
                has_usable_key,
                "{name}"
            );
            let found: Vec<_> = found
                .iter()
                .map(|finding| (finding.rule, finding.verdict))
                .collect();
            assert_eq!(found, findings, "{name}");
        }
    }
}
