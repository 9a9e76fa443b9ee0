//! The keys of an issuer, and whether the configured algorithms fit them.

use http::StatusCode;
use portcullis_discovery::{FetchRequest, FetchResponse, UrlPolicy};
use portcullis_jose::{Algorithm, AlgorithmSet, KeySet};
use portcullis_metadata::{AuthorizationServerMetadata, JwkSet};
use portcullis_verifier::KeySource;
use url::Url;

use super::{ConfiguredIssuer, Examination, FIREWALL_FIX, IssuerPurpose, request};
use crate::{
    Finding, Rule, Step, describe_response,
    keys::{DOCUMENT, FOUND},
    page::blocking_firewall,
};

const USABLE: Rule = Rule::new("keys.usable", "RFC 7517 section 4, RFC 8725 section 3.1");

impl Examination<'_> {
    /// Fetches the keys and compares them with the algorithms.
    pub(super) async fn keys(&mut self, metadata: Option<&AuthorizationServerMetadata>) {
        let ConfiguredIssuer { key, settings, .. } = self.issuer;
        if !settings.validation.verifies_signature() {
            return;
        }
        let configured = match &settings.keys {
            KeySource::Fixed(keys) => {
                let mut step = Step::new(format!("the keys of {key} (jwks_file)"));
                step.findings.push(check(self.issuer, keys));
                return self.finish_step(step);
            }
            KeySource::Uri(uri) => Some(uri),
            _ => None,
        };
        // Without metadata, the cause is known already.
        if configured.is_none() && metadata.is_none() {
            return;
        }
        let mut step = Step::new(format!("the keys of {key}"));
        let Some(url) = configured
            .or(metadata.and_then(|metadata| metadata.jwks_uri.as_ref()))
            .cloned()
        else {
            let fix = match self.issuer.purpose {
                IssuerPurpose::AccessTokens => format!(
                    "publish jwks_uri, set jwks_uri of {key}, or set validate = \"introspection\" in {key}"
                ),
                IssuerPurpose::SignIn => {
                    format!("correct issuer of {key}: an OpenID provider publishes jwks_uri")
                }
            };
            step.findings
                .push(Finding::problem(FOUND, "the metadata has no jwks_uri", fix));
            return self.finish_step(step);
        };
        // As the server does.
        let policy = match configured {
            Some(_) => UrlPolicy::Operator,
            None => {
                UrlPolicy::Operator
                    .of_named(settings.issuer.url(), &url)
                    .await
            }
        };
        if let Some(response) = request::send(
            &**self.fetch,
            FetchRequest::get(url, policy),
            key,
            &mut step,
        )
        .await
        {
            step.findings
                .push(check_response(self.issuer, configured, &response));
        }
        self.finish_step(step);
    }
}

/// `configured` is the URL of the settings, if it is not that of the metadata.
fn check_response(
    issuer: &ConfiguredIssuer<'_>,
    configured: Option<&Url>,
    response: &FetchResponse,
) -> Finding {
    let key = issuer.key;
    if response.status != StatusCode::OK {
        let (place, fix) = match configured {
            _ if blocking_firewall(response).is_some() => ("jwks_uri", FIREWALL_FIX.to_owned()),
            Some(_) => ("jwks_uri", format!("correct or remove jwks_uri of {key}")),
            None => ("the issuer's jwks_uri", uri_fix(issuer)),
        };
        return Finding::problem(
            FOUND,
            format!("{place} answers {}", describe_response(response)),
            fix,
        );
    }
    match JwkSet::parse(&response.body) {
        Ok(keys) => check(issuer, &keys),
        Err(error) => {
            let fix = format!(
                "let jwks_uri name a JSON object with the array `keys`; {}",
                uri_fix(issuer)
            );
            Finding::problem(
                DOCUMENT,
                format!("{} ({error})", describe_response(response)),
                fix,
            )
        }
    }
}

/// The fix for a `jwks_uri` of the metadata that has no keys.
fn uri_fix(issuer: &ConfiguredIssuer<'_>) -> String {
    match issuer.purpose {
        IssuerPurpose::AccessTokens => format!(
            "correct it at the issuer, or set jwks_uri of {}",
            issuer.key
        ),
        IssuerPurpose::SignIn => "correct it at the provider".to_owned(),
    }
}

fn check(issuer: &ConfiguredIssuer<'_>, keys: &JwkSet) -> Finding {
    let allowed = issuer.settings.algorithms;
    let names = |algorithms: &[Algorithm]| {
        algorithms
            .iter()
            .map(|algorithm| algorithm.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    if is_usable(keys, allowed) {
        let fitting: Vec<Algorithm> = allowed
            .iter()
            .filter(|algorithm| is_usable(keys, [*algorithm].into_iter().collect()))
            .collect();
        return Finding::met(USABLE, format!("there are keys for {}", names(&fitting)));
    }
    let key = issuer.key;
    let others = usable_algorithms(keys);
    if others.is_empty() {
        let text = if keys.keys.is_empty() && keys.rejected.is_empty() {
            "the issuer publishes no keys: it may sign with a shared secret (HS256), or issue opaque tokens"
        } else {
            "no published key can verify a signature"
        };
        let fix = match issuer.purpose {
            IssuerPurpose::AccessTokens => format!(
                "let the issuer sign with RS256 or ES256, or set validate = \"introspection\" in {key}"
            ),
            IssuerPurpose::SignIn => "let the provider sign ID tokens with RS256".to_owned(),
        };
        return Finding::problem(USABLE, text, fix);
    }
    let likely = likely_algorithm(keys, &others);
    let suggestion = likely.map_or_else(String::new, |algorithm| {
        format!("\"{}\"", algorithm.as_str())
    });
    let configured: Vec<Algorithm> = allowed.iter().collect();
    let fix = match issuer.purpose {
        IssuerPurpose::AccessTokens => format!("write algorithms = [{suggestion}] in {key}"),
        IssuerPurpose::SignIn => format!(
            "let the provider sign ID tokens with {}, or write kind = \"oidc\" in {key}",
            names(&configured)
        ),
    };
    Finding::problem(
        USABLE,
        format!(
            "no key is for {}: the keys are for {}",
            names(&configured),
            names(&others)
        ),
        fix,
    )
}

/// Returns the algorithms to configure for an issuer with these keys: those that the keys name, or
/// else the likely one. Empty if the default, RS256, fits, and if no key is usable.
pub fn algorithms_to_configure(keys: &JwkSet) -> Vec<Algorithm> {
    let usable = usable_algorithms(keys);
    let names = |algorithm: &Algorithm| {
        keys.keys
            .iter()
            .any(|key| key.alg.as_deref() == Some(algorithm.as_str()))
    };
    let named: Vec<Algorithm> = usable.iter().copied().filter(names).collect();
    match named.as_slice() {
        [Algorithm::Rs256] => Vec::new(),
        [] if usable.contains(&Algorithm::Rs256) => Vec::new(),
        [] => usable.first().copied().into_iter().collect(),
        _ => named,
    }
}

/// The one of these algorithms with which the issuer probably signs.
fn likely_algorithm(keys: &JwkSet, usable: &[Algorithm]) -> Option<Algorithm> {
    // Of the algorithms for one type of key, providers use the first.
    let listed: Vec<&str> = keys
        .keys
        .iter()
        .filter_map(|key| key.alg.as_deref())
        .collect();
    usable
        .iter()
        .find(|algorithm| listed.contains(&algorithm.as_str()))
        .or(usable.first())
        .copied()
}

fn usable_algorithms(keys: &JwkSet) -> Vec<Algorithm> {
    Algorithm::ALL
        .into_iter()
        .filter(|algorithm| is_usable(keys, [*algorithm].into_iter().collect()))
        .collect()
}

fn is_usable(keys: &JwkSet, algorithms: AlgorithmSet) -> bool {
    KeySet::from_jwks(keys, algorithms).is_ok_and(|(keys, _)| !keys.is_empty())
}

#[cfg(test)]
mod tests {
    use portcullis_jose::SigningKey;
    use portcullis_testkit::TestIssuer;
    use serde_json::Value;

    use super::*;

    /// The algorithms to configure for keys of these algorithms.
    fn configured(algorithms: &[Algorithm], are_named: bool) -> Vec<Algorithm> {
        let keys: Vec<SigningKey> = algorithms
            .iter()
            .map(|algorithm| SigningKey::generate(*algorithm, algorithm.as_str()).unwrap())
            .collect();
        let mut set: Value =
            serde_json::from_str(&TestIssuer::jwks_of(&keys.iter().collect::<Vec<_>>())).unwrap();
        for key in set["keys"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .filter(|_| !are_named)
        {
            key.as_object_mut().unwrap().remove("alg");
        }
        algorithms_to_configure(&JwkSet::parse(set.to_string().as_bytes()).unwrap())
    }

    #[test]
    fn the_keys_name_the_algorithms() {
        use Algorithm::{Es256, Ps256, Rs256};
        assert_eq!(configured(&[Rs256], true), []);
        assert_eq!(configured(&[Rs256], false), []);
        assert_eq!(configured(&[Es256], true), [Es256]);
        assert_eq!(configured(&[Es256], false), [Es256]);
        assert_eq!(configured(&[Ps256], true), [Ps256]);
        assert_eq!(configured(&[Rs256, Es256], true), [Rs256, Es256]);
        assert_eq!(configured(&[], true), []);
    }
}
