//! The signing keys of an authorization server (RFC 7517).

use http::StatusCode;
use portcullis_discovery::FetchResponse;
use portcullis_jose::{Algorithm, KeySet};
use portcullis_metadata::JwkSet;

use crate::{Finding, Rule, text};

const FOUND: Rule = Rule { id: "keys.found", source: "RFC 8414 section 2" };
const DOCUMENT: Rule = Rule { id: "keys.document", source: "RFC 7517 section 5" };
const USABLE: Rule = Rule { id: "keys.usable", source: "RFC 7517 section 4, RFC 8725 section 3.5" };

/// Checks the response of `jwks_uri`, and returns the key set.
pub(crate) fn check(response: &FetchResponse, findings: &mut Vec<Finding>) -> Option<JwkSet> {
    if response.status != StatusCode::OK {
        let text = format!("no keys: {}", response.status);
        findings.push(Finding::problem(FOUND, text, "serve the keys at jwks_uri, or correct it in the metadata"));
        return None;
    }
    let set = match JwkSet::parse(&response.body) {
        Ok(set) => set,
        Err(error) => {
            findings.push(Finding::problem(DOCUMENT, error.to_string(), "serve a JSON object with the array `keys`"));
            return None;
        }
    };
    let (keys, rejected) = match KeySet::from_jwks(&set, Algorithm::ALL.into_iter().collect()) {
        Ok(imported) => imported,
        Err(error) => {
            findings.push(Finding::problem(USABLE, error.to_string(), "publish the keys in use, and no others"));
            return None;
        }
    };
    findings.push(if keys.is_empty() {
        Finding::problem(USABLE, "no key verifies signatures", "publish the public keys that tokens are signed with")
    } else {
        Finding::met(USABLE, format!("keys: {}", text::list(set.keys.iter().filter_map(|key| key.kid.as_deref()))))
    });
    let unreadable = set.rejected.iter().map(|key| (key.kid.as_deref(), key.reason.to_string()));
    let unusable = rejected.iter().map(|key| (key.kid.as_deref(), key.reason.to_string()));
    for (kid, reason) in unreadable.chain(unusable) {
        let name = kid.map_or_else(|| "a key without kid".to_owned(), text::quoted);
        findings.push(Finding::note(USABLE, format!("{name} is not used: {reason}")));
    }
    Some(set)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::Verdict;

    fn checked(status: u16, body: &str) -> (Option<usize>, Vec<(&'static str, Verdict)>) {
        let status = StatusCode::from_u16(status).unwrap();
        let response = FetchResponse { status, headers: HeaderMap::new(), body: body.to_owned().into() };
        let mut findings = Vec::new();
        let keys = check(&response, &mut findings).map(|set| set.keys.len());
        (keys, findings.iter().map(|finding| (finding.rule.id, finding.verdict)).collect())
    }

    #[test]
    fn faults_of_the_key_set_are_reported() {
        let key = r#"{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
        let usable = format!(r#"{{"keys":[{key}]}}"#);
        let mixed = format!(r#"{{"keys":[{key},{{"kty":"oct","kid":"b","k":"AAAA"}}]}}"#);
        for (name, status, body, keys, expected) in [
            ("no document", 404, "", None, &[("keys.found", Verdict::Problem)][..]),
            ("no JSON", 200, "<html>", None, &[("keys.document", Verdict::Problem)]),
            ("no keys", 200, r#"{"keys":[]}"#, Some(0), &[("keys.usable", Verdict::Problem)]),
            ("a key", 200, &usable, Some(1), &[("keys.usable", Verdict::Met)]),
        ] {
            assert_eq!(checked(status, body), (keys, expected.to_vec()), "{name}");
        }
        let (_, findings) = checked(200, &mixed);
        assert_eq!(findings, [("keys.usable", Verdict::Met), ("keys.usable", Verdict::Note)], "a secret key");
    }
}
