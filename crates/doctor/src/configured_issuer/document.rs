//! The content of an issuer's metadata.

use portcullis_discovery::{UrlPolicy, insecure_endpoints};
use portcullis_metadata::{AuthorizationServerMetadata, EscapedText, Issuer};

use super::{ConfiguredIssuer, ConfiguredResource, IssuerPurpose, providers};
use crate::{
    Finding, Rule, broker_remedy,
    issuer::{ENDPOINTS, IDENTITY},
    registration,
};

const SCOPES: Rule = Rule::new("issuer.scopes", "RFC 8414 section 2");
const RESOURCE: Rule = Rule::new("issuer.resource", "RFC 9728 section 4, RFC 8707");

/// Scopes that every OpenID provider lists. A list of nothing else does not have the scopes of
/// APIs.
const OPENID_SCOPES: [&str; 7] = [
    "openid",
    "profile",
    "email",
    "address",
    "phone",
    "offline_access",
    "groups",
];
/// The most characters of a peer's text that are shown.
const MAX_SHOWN: usize = 200;

/// Returns the finding for metadata of another issuer.
pub(super) fn other_issuer(issuer: &ConfiguredIssuer<'_>, found: &Issuer) -> Finding {
    let configured = &issuer.settings.issuer;
    let shown = EscapedText::first(found.as_str(), MAX_SHOWN).to_string();
    let text = format!("the metadata is of the issuer {shown:?}");
    let write = format!("write {}.issuer = {shown:?}", issuer.key);
    let has = configured.url();
    let is = found.url();
    let fix = if shown.contains("{tenantid}") {
        format!(
            "write the ID of your tenant into {}.issuer: this metadata is a template for all tenants",
            issuer.key
        )
    } else if has.host_str() == is.host_str() && has.scheme() == is.scheme() {
        format!("{write}, exactly as there")
    } else if has.scheme() != is.scheme() && has.host_str() == is.host_str() {
        format!(
            "tell the issuer its public address, such as with Keycloak's KC_HOSTNAME or KC_PROXY_HEADERS: it does not know that \
             clients use {}; or {write}",
            has.scheme()
        )
    } else {
        format!("{write} if tokens have this `iss`, or tell the issuer its public address")
    };
    Finding::problem(IDENTITY, text, fix)
}

/// Checks the endpoints, and for each resource of the issuer the scopes and the audience.
pub(super) fn check(
    issuer: &ConfiguredIssuer<'_>,
    metadata: &AuthorizationServerMetadata,
    findings: &mut Vec<Finding>,
) {
    let insecure = insecure_endpoints(metadata, &UrlPolicy::Operator.into());
    if let Some(first) = insecure.first() {
        let member = EscapedText::first(&first.member, MAX_SHOWN);
        findings.push(Finding::problem(
            ENDPOINTS,
            format!("the metadata names an insecure {member}, and is not used"),
            "publish https URLs in every member; behind a proxy, tell the issuer its public address",
        ));
    }
    findings.extend(
        providers::opaque_tokens(&metadata.issuer, issuer.key)
            .filter(|_| issuer.purpose == IssuerPurpose::AccessTokens)
            .filter(|_| issuer.settings.validation.verifies_signature()),
    );
    let serves_clients =
        issuer.purpose == IssuerPurpose::AccessTokens && !issuer.resources.is_empty();
    if serves_clients && !registration::is_offered(metadata) {
        findings.push(Finding::note(
            registration::PATHS,
            format!(
                "MCP clients cannot register at this issuer. Register them for your users, or {}",
                broker_remedy::broker(&metadata.issuer)
            ),
        ));
    }
    for resource in &issuer.resources {
        findings.extend(check_scopes(resource, metadata));
        findings.extend(check_resource(resource, metadata));
    }
}

/// Compares the scopes that a resource requires or lists with those that the issuer lists.
fn check_scopes(
    resource: &ConfiguredResource<'_>,
    metadata: &AuthorizationServerMetadata,
) -> Option<Finding> {
    let listed = metadata.scopes_supported.as_ref()?;
    let mut needed = resource.scopes.clone();
    needed.sort_unstable();
    needed.dedup();
    let missing: Vec<&str> = needed
        .into_iter()
        .filter(|scope| !listed.iter().any(|name| name == scope))
        .collect();
    let endpoint = resource.endpoint;
    if missing.is_empty() {
        return Some(Finding::met(
            SCOPES,
            format!("the issuer lists the scopes of {endpoint}"),
        ));
    }
    let text = format!(
        "the issuer does not list scopes of {endpoint}: {}",
        missing.join(", ")
    );
    let lists_apis = listed
        .iter()
        .any(|scope| !OPENID_SCOPES.contains(&scope.as_str()));
    Some(if lists_apis {
        Finding::warning(
            SCOPES,
            text,
            "define these scopes at the issuer and allow clients to request them, or correct their names here",
        )
    } else {
        Finding::note(
            SCOPES,
            format!("{text}; it lists only those of OpenID Connect"),
        )
    })
}

/// Returns whether the issuer lists the resource, or how a known provider gets it into tokens.
fn check_resource(
    resource: &ConfiguredResource<'_>,
    metadata: &AuthorizationServerMetadata,
) -> Option<Finding> {
    let uri = resource.resource;
    let listed = metadata
        .extra
        .get("protected_resources")
        .and_then(serde_json::Value::as_array);
    let Some(listed) = listed else {
        return providers::audience_note(&metadata.issuer, metadata, uri);
    };
    let is_same = |listed: &serde_json::Value| {
        let listed = listed.as_str().unwrap_or_default().trim_end_matches('/');
        listed.eq_ignore_ascii_case(uri.as_str().trim_end_matches('/'))
    };
    Some(if listed.iter().any(is_same) {
        Finding::met(RESOURCE, format!("the issuer lists the resource {uri}"))
    } else {
        Finding::warning(
            RESOURCE,
            format!("the issuer lists its resources, and {uri} is not one of them"),
            format!("add {uri} to the resources of the issuer, or correct base_url and endpoint"),
        )
    })
}
