//! The metadata of an issuer (RFC 8414): its place, its issuer, its endpoints, its scopes.

use http::StatusCode;
use portcullis_discovery::{Fetch as _, FetchRequest, FetchResponse, UrlPolicy, insecure_endpoints};
use portcullis_doctor::{Finding, Rule, Step, blocking_firewall, describe_response};
use portcullis_metadata::{
    AuthorizationServerMetadata, Clock as _, DocumentError, EscapedText, Issuer, authorization_server_urls,
};
use portcullis_verifier::KeySource;

use super::{FIREWALL_FIX, IssuerContext, REQUEST_TIMEOUT, Steps, clock, failure, providers};
use crate::plan::ResourcePlan;

const FOUND: Rule = Rule::new("issuer.found", "RFC 8414 section 3");
const DOCUMENT: Rule = Rule::new("issuer.document", "RFC 8414 section 2");
const IDENTITY: Rule = Rule::new("issuer.identity", "RFC 8414 section 3.3");
const ENDPOINTS: Rule = Rule::new("issuer.endpoints", "RFC 8414 section 2");
const SCOPES: Rule = Rule::new("issuer.scopes", "RFC 8414 section 2");
const RESOURCE: Rule = Rule::new("issuer.resource", "RFC 9728 section 4, RFC 8707");

/// Scopes that every OpenID provider lists. A list of nothing else does not have the scopes of APIs.
const OPENID_SCOPES: [&str; 7] = ["openid", "profile", "email", "address", "phone", "offline_access", "groups"];
/// The most characters of a peer's text that are shown.
const MAX_SHOWN: usize = 200;

/// Finds the metadata as the server and its clients do.
pub(super) async fn examine(context: &IssuerContext<'_>, steps: &mut Steps<'_>) -> Option<AuthorizationServerMetadata> {
    let issuer = &context.issuer.settings.issuer;
    let places = authorization_server_urls(issuer);
    let mut failed = Vec::new();
    for url in &places {
        let mut step = Step::new(format!("the metadata of {}", context.key));
        let request = FetchRequest::get(url.clone(), UrlPolicy::Operator);
        let Some(response) = failure::send(context.fetch, request, &context.key, &mut step).await else {
            steps.add(step);
            return None;
        };
        let found = match parse(&response) {
            Place::Found(metadata) => Some(metadata),
            Place::Absent => None,
            Place::Broken(finding) => {
                step.findings.push(finding);
                steps.add(step);
                return None;
            }
        };
        let Some(metadata) = found else {
            failed.push(format!("{url} ({})", describe_response(&response)));
            if failed.len() == places.len() {
                step.findings.push(not_found(context, &failed, &response).await);
            }
            steps.add(step);
            continue;
        };
        if metadata.issuer != *issuer {
            step.findings.push(other_issuer(context, &metadata.issuer));
            steps.add(step);
            return None;
        }
        step.findings.push(Finding::met(IDENTITY, "the metadata is of this issuer"));
        check_document(context, &metadata, &mut step.findings);
        let leeway = context.issuer.settings.leeway;
        step.findings.extend(clock::check(&response.headers, context.clock.now(), leeway));
        steps.add(step);
        return Some(*metadata);
    }
    None
}

/// What is at one place.
enum Place {
    Found(Box<AuthorizationServerMetadata>),
    /// The search continues.
    Absent,
    /// The search ends.
    Broken(Finding),
}

fn parse(response: &FetchResponse) -> Place {
    if response.status.is_server_error() {
        let text = format!("the issuer answers {}", describe_response(response));
        return Place::Broken(Finding::problem(FOUND, text, "see the issuer's log"));
    }
    if response.status != StatusCode::OK {
        return Place::Absent;
    }
    match AuthorizationServerMetadata::parse(&response.body) {
        Ok(metadata) => Place::Found(Box::new(metadata)),
        Err(DocumentError::NotJson) => Place::Absent,
        Err(error) => Place::Broken(Finding::problem(DOCUMENT, error.to_string(), "correct that member at the issuer")),
    }
}

/// The metadata is at none of the places. Clients need it even if the server has the keys from elsewhere.
async fn not_found(context: &IssuerContext<'_>, failed: &[String], last: &FetchResponse) -> Finding {
    let settings = &context.issuer.settings;
    let text = format!("there is no metadata of this issuer at {}", failed.join(", "));
    let key = format!("{}.issuer", context.key);
    let fix = match similar_issuer(context).await {
        None if blocking_firewall(last).is_some() => FIREWALL_FIX.to_owned(),
        None if matches!(last.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            "let the issuer, or a proxy in front of it, answer there without authorization".to_owned()
        }
        None if last.status.is_redirection() => format!(
            "write {key} as the `issuer` of the metadata to which the issuer redirects: redirects of metadata are not followed"
        ),
        Some(found) => format!("write {key} = {:?}, whose metadata is there", found.as_str()),
        None => format!(
            "write {key} as `iss` in the tokens: with the path of the realm or tenant, and without /.well-known; or publish the \
             metadata there"
        ),
    };
    let needs_it = settings.validation.introspection().is_some_and(|client| client.endpoint.is_none())
        || (settings.validation.verifies_signature() && matches!(settings.keys, KeySource::Discovered));
    if needs_it {
        Finding::problem(FOUND, text, fix)
    } else {
        Finding::warning(FOUND, format!("{text}: clients cannot sign in"), fix)
    }
}

/// An issuer with a similar URL that has metadata: with another trailing slash, or with Keycloak's former path.
async fn similar_issuer(context: &IssuerContext<'_>) -> Option<Issuer> {
    let text = context.issuer.settings.issuer.as_str();
    let bare = text.trim_end_matches('/');
    let well_known = ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"];
    let mut candidates = Vec::new();
    if let Some(end) = well_known.iter().find_map(|suffix| bare.strip_suffix(suffix)) {
        candidates.push(end.to_owned());
    }
    candidates.push(if bare == text { format!("{bare}/") } else { bare.to_owned() });
    if bare.contains("/auth/realms/") {
        candidates.push(bare.replacen("/auth/realms/", "/realms/", 1));
    } else if bare.contains("/realms/") {
        candidates.push(bare.replacen("/realms/", "/auth/realms/", 1));
    }
    let url = context.issuer.settings.issuer.url();
    if url.path().trim_matches('/').is_empty() {
        candidates.extend(["/oauth2/default", "/v2.0", "/oidc", "/realms/master"].map(|path| format!("{bare}{path}")));
    } else {
        candidates.push(url[..url::Position::BeforePath].to_owned());
    }
    for candidate in candidates {
        let Ok(candidate) = Issuer::parse(&candidate) else { continue };
        for url in authorization_server_urls(&candidate).into_iter().rev().take(2) {
            let mut request = FetchRequest::get(url, UrlPolicy::Operator);
            request.timeout = REQUEST_TIMEOUT / 4;
            let Ok(response) = context.fetch.fetch(request).await else { continue };
            if let Place::Found(metadata) = parse(&response) {
                return Some(metadata.issuer);
            }
        }
    }
    None
}

fn other_issuer(context: &IssuerContext<'_>, found: &Issuer) -> Finding {
    let configured = &context.issuer.settings.issuer;
    let shown = EscapedText::first(found.as_str(), MAX_SHOWN).to_string();
    let text = format!("the metadata is of the issuer {shown:?}");
    let write = format!("write {}.issuer = {shown:?}", context.key);
    let (has, is) = (configured.url(), found.url());
    let fix = if shown.contains("{tenantid}") {
        format!("write the ID of your tenant into {}.issuer: this metadata is a template for all tenants", context.key)
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

fn check_document(context: &IssuerContext<'_>, metadata: &AuthorizationServerMetadata, findings: &mut Vec<Finding>) {
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
        providers::opaque_tokens(&metadata.issuer, &context.key)
            .filter(|_| context.issuer.settings.validation.verifies_signature()),
    );
    let resources = context.plan.resources.iter().filter(|resource| resource.issuers.contains(&context.position));
    for resource in resources {
        findings.extend(check_scopes(resource, metadata));
        findings.extend(check_resource(resource, metadata));
    }
}

/// Compares the scopes that a resource requires or lists with those that the issuer lists.
fn check_scopes(resource: &ResourcePlan, metadata: &AuthorizationServerMetadata) -> Option<Finding> {
    let listed = metadata.scopes_supported.as_ref()?;
    let rules = resource.rules.iter().map(|rule| &rule.scopes);
    let routes = resource.routes.iter().map(|route| &route.scopes);
    let required = rules.chain(routes).chain([&resource.required_scopes]).flat_map(|scopes| scopes.iter());
    let mut needed: Vec<&str> = required.chain(resource.metadata.scopes_supported.iter().map(String::as_str)).collect();
    needed.sort_unstable();
    needed.dedup();
    let missing: Vec<&str> = needed.into_iter().filter(|scope| !listed.iter().any(|name| name == scope)).collect();
    let endpoint = &resource.endpoint;
    if missing.is_empty() {
        return Some(Finding::met(SCOPES, format!("the issuer lists the scopes of {endpoint}")));
    }
    let text = format!("the issuer does not list scopes of {endpoint}: {}", missing.join(", "));
    let lists_apis = listed.iter().any(|scope| !OPENID_SCOPES.contains(&scope.as_str()));
    Some(if lists_apis {
        Finding::warning(
            SCOPES,
            text,
            "define these scopes at the issuer and allow clients to request them, or correct their names here",
        )
    } else {
        Finding::note(SCOPES, format!("{text}; it lists only those of OpenID Connect"))
    })
}

/// Whether the issuer says that it issues tokens for the resource.
fn check_resource(resource: &ResourcePlan, metadata: &AuthorizationServerMetadata) -> Option<Finding> {
    let uri = &resource.metadata.resource;
    let listed = metadata.extra.get("protected_resources").and_then(serde_json::Value::as_array);
    let Some(listed) = listed else { return providers::audience_note(&metadata.issuer, metadata, uri) };
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
