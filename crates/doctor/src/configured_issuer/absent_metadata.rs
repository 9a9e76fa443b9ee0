//! What to change if an issuer has no metadata.

use std::sync::Arc;

use http::StatusCode;
use portcullis_discovery::{Discovery, Fetch, FetchResponse, LookupContent, UrlPolicy};
use portcullis_metadata::{Issuer, authorization_server_urls};
use portcullis_verifier::KeySource;
use url::Url;

use super::{ConfiguredIssuer, FIREWALL_FIX, TIMEOUT};
use crate::{Finding, describe_response, issuer::FOUND, page::blocking_firewall};

/// Returns the finding for an issuer whose metadata is at none of these places, with their
/// responses. Clients need it even if the server has the keys from elsewhere.
pub(super) async fn finding(
    issuer: &ConfiguredIssuer<'_>,
    fetch: &Arc<dyn Fetch>,
    places: &[(Url, FetchResponse)],
) -> Finding {
    let settings = issuer.settings;
    let described = places
        .iter()
        .map(|(url, response)| format!("{url} ({})", describe_response(response)));
    let text = format!(
        "there is no metadata of this issuer at {}",
        described.collect::<Vec<_>>().join(", ")
    );
    let fix = fix(
        issuer,
        similar_issuer(&settings.issuer, fetch).await,
        places,
    );
    let needs_it = settings
        .validation
        .introspection()
        .is_some_and(|client| client.endpoint.is_none())
        || (settings.validation.verifies_signature()
            && matches!(settings.keys, KeySource::Discovered));
    if needs_it {
        Finding::problem(FOUND, text, fix)
    } else {
        Finding::warning(FOUND, format!("{text}: clients cannot sign in"), fix)
    }
}

/// `similar` is an issuer with a similar URL that has metadata.
fn fix(
    issuer: &ConfiguredIssuer<'_>,
    similar: Option<Issuer>,
    places: &[(Url, FetchResponse)],
) -> String {
    // A response that is not 404 says more about the cause.
    let telling = places
        .iter()
        .find(|(_, response)| response.status != StatusCode::NOT_FOUND)
        .or(places.last());
    let status = telling.map_or(StatusCode::NOT_FOUND, |(_, response)| response.status);
    let key = format!("{}.issuer", issuer.key);
    match similar {
        None if telling.is_some_and(|(_, response)| blocking_firewall(response).is_some()) => {
            FIREWALL_FIX.to_owned()
        }
        None if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            "let the issuer, or a proxy in front of it, answer there without authorization"
                .to_owned()
        }
        None if status.is_redirection() => format!(
            "write {key} as the `issuer` of the metadata to which the issuer redirects: redirects of metadata are not followed"
        ),
        Some(found) => format!(
            "write {key} = {:?}, whose metadata is there",
            found.as_str()
        ),
        None => format!(
            "write {key} as `iss` in the tokens: with the path of the realm or tenant, and without /.well-known; or publish the \
             metadata there"
        ),
    }
}

/// Finds an issuer with a similar URL that has metadata.
async fn similar_issuer(issuer: &Issuer, fetch: &Arc<dyn Fetch>) -> Option<Issuer> {
    let discovery = Discovery::new(fetch.clone(), UrlPolicy::Operator).timeout(TIMEOUT / 4);
    for candidate in similar_issuers(issuer) {
        let Ok(candidate) = Issuer::parse(&candidate) else {
            continue;
        };
        for url in authorization_server_urls(&candidate)
            .into_iter()
            .rev()
            .take(2)
        {
            let found = discovery
                .look_up_authorization_server(url)
                .await
                .result
                .map(|found| found.content);
            if let Ok(LookupContent::Document(metadata)) = found {
                return Some(metadata.issuer);
            }
        }
    }
    None
}

/// Returns what may be meant by an issuer: with another trailing slash, without a well-known part,
/// or with the path of another version of Keycloak or of a default authorization server.
fn similar_issuers(issuer: &Issuer) -> Vec<String> {
    let text = issuer.as_str();
    let bare = text.trim_end_matches('/');
    let well_known = [
        "/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server",
    ];
    let mut candidates = Vec::new();
    if let Some(end) = well_known
        .iter()
        .find_map(|suffix| bare.strip_suffix(suffix))
    {
        candidates.push(end.to_owned());
    }
    candidates.push(if bare == text {
        format!("{bare}/")
    } else {
        bare.to_owned()
    });
    if bare.contains("/auth/realms/") {
        candidates.push(bare.replacen("/auth/realms/", "/realms/", 1));
    } else if bare.contains("/realms/") {
        candidates.push(bare.replacen("/realms/", "/auth/realms/", 1));
    }
    let url = issuer.url();
    if url.path().trim_matches('/').is_empty() {
        candidates.extend(
            ["/oauth2/default", "/v2.0", "/oidc", "/realms/master"]
                .map(|path| format!("{bare}{path}")),
        );
    } else {
        candidates.push(url[..url::Position::BeforePath].to_owned());
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_have_similar_ones() {
        for (issuer, similar) in [
            (
                "https://a.example/x/",
                &["https://a.example/x", "https://a.example"][..],
            ),
            (
                "https://a.example/realms/r",
                &[
                    "https://a.example/realms/r/",
                    "https://a.example/auth/realms/r",
                    "https://a.example",
                ],
            ),
            (
                "https://a.example/.well-known/openid-configuration",
                &[
                    "https://a.example",
                    "https://a.example/.well-known/openid-configuration/",
                    "https://a.example",
                ],
            ),
            (
                "https://a.example",
                &[
                    "https://a.example/",
                    "https://a.example/oauth2/default",
                    "https://a.example/v2.0",
                    "https://a.example/oidc",
                    "https://a.example/realms/master",
                ],
            ),
        ] {
            assert_eq!(
                similar_issuers(&Issuer::parse(issuer).unwrap()),
                similar,
                "{issuer}"
            );
        }
    }
}
