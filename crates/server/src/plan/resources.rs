//! Resources: validation of `[[resource]]`.

mod context;
mod issuers;
mod requirements;
mod together;

use anyhow::{Context as _, ensure};
use http::HeaderName;
use portcullis_endpoint::{MessageRule, SessionMode};
use portcullis_guard::{ClaimRule, OriginPolicy, Rate, RouteRule, ScopeImplications};
use portcullis_mcp::{Revision, Revisions};
use portcullis_metadata::{ProtectedResourceMetadata, ResourceUri, Scopes};
use url::Url;

use super::{Fingerprint, IssuerPlan, RESERVED_PATHS, UpstreamPlan, fingerprint, rates, upstream};
use crate::config::{self, Authorization, Config, Diagnostics, Limits, Resource};
use context::Context;
use issuers::{check_application_audiences, issuers_of};
use requirements::{all, claim, implications, required, route, rule};

/// One protected endpoint.
pub(crate) struct ResourcePlan {
    /// The endpoint's path.
    pub(crate) endpoint: String,
    pub(crate) authorization: Authorization,
    /// Positions in [`Plan::issuers`](super::Plan::issuers).
    pub(crate) issuers: Vec<usize>,
    pub(crate) realm: String,
    pub(crate) metadata: ProtectedResourceMetadata,
    /// Whether the metadata is also served at the root path.
    pub(crate) root_metadata: bool,
    pub(crate) required_scopes: Scopes,
    pub(crate) scope_implications: ScopeImplications,
    pub(crate) claims: Vec<ClaimRule>,
    pub(crate) routes: Vec<RouteRule>,
    pub(crate) rules: Vec<MessageRule>,
    /// The rate limit of each rule.
    pub(crate) rates: Vec<Option<Rate>>,
    pub(crate) origins: OriginPolicy,
    pub(crate) revisions: Revisions,
    pub(crate) session_header: HeaderName,
    pub(crate) session_mode: SessionMode,
    pub(crate) upstream: UpstreamPlan,
    /// The fingerprint of the resource without its issuers.
    pub(crate) fingerprint: Fingerprint,
    pub(crate) upstream_fingerprint: Fingerprint,
    /// The fingerprints of the rules, in their order.
    pub(crate) rule_fingerprints: Vec<Fingerprint>,
}

/// Validates the resources, and adds an error for each invalid value. Returns `None` if one is invalid. `issuers` are the
/// plans of the issuers, `None` for an invalid one.
pub(super) fn plan(
    config: &Config,
    base_url: &Url,
    issuers: &[Option<IssuerPlan>],
    limits: &Limits,
    errors: &mut Diagnostics<'_>,
) -> Option<Vec<ResourcePlan>> {
    if config.resource.is_empty() {
        errors.add("resource", "no [[resource]] is configured; add one with `endpoint` and `upstream`");
    }
    together::check(config, errors);
    let context = Context { config, base_url, issuers, limits };
    let plans = config.resource.iter().enumerate().map(|(position, resource)| {
        resource_plan(resource, &context, &mut errors.table(&format!("resource[{position}]")))
    });
    plans.collect::<Vec<_>>().into_iter().collect()
}

/// Validates one resource. Adds an error for each invalid value, and returns `None` if there is one.
fn resource_plan(resource: &Resource, context: &Context<'_>, errors: &mut Diagnostics<'_>) -> Option<ResourcePlan> {
    let Context { config, base_url, limits, .. } = context;
    let is_only = config.resource.len() == 1;
    let fingerprint = fingerprint::resource(resource, base_url.as_str(), is_only);
    let upstream_fingerprint = fingerprint::upstream(resource, base_url.as_str(), limits);
    let endpoint = errors.take("endpoint", check_endpoint(&resource.endpoint));
    let issuers = issuers_of(resource, context, errors);
    let metadata = endpoint.and_then(|()| errors.take("endpoint", metadata(resource, base_url)));
    let required_scopes = required(&resource.required_scopes, "required_scopes", errors);
    let supported_scopes = required(&resource.scopes_supported, "scopes_supported", errors);
    let implications = implications(&resource.scope_implies, errors);
    let claims = all(&resource.claim, "claim", errors, claim);
    let routes = all(&resource.route, "route", errors, route);
    let rules = all(&resource.rule, "rule", errors, rule);
    let rates =
        all(&resource.rule, "rule", errors, |rule, errors| errors.take("limit", rates::rate(rule.limit.as_ref())));
    let revisions = revisions(resource.revisions.as_deref(), errors);
    let session_header = errors.take("proto", session_header(&resource.proto));
    let hosts = hosts(resource, base_url, errors);
    let origins = origins(&[resource], base_url);
    let realm = errors.take("realm", check_realm(&resource.realm));
    let upstream = upstream::plan(resource, base_url, limits, errors);
    let issuers = issuers?;
    let audiences = check_application_audiences(resource, issuers.iter().map(|(_, plan)| *plan), errors);
    let mut metadata = metadata?;
    metadata.authorization_servers = issuers.iter().map(|(_, plan)| plan.settings.issuer.clone()).collect();
    hosts.and(realm).and(audiences).and(supported_scopes)?;
    Some(ResourcePlan {
        endpoint: resource.endpoint.clone(),
        authorization: resource.auth,
        issuers: issuers.iter().map(|(position, _)| *position).collect(),
        realm: resource.realm.clone(),
        metadata,
        root_metadata: is_only || resource.default,
        required_scopes: required_scopes?,
        scope_implications: implications?,
        claims: claims?,
        routes: routes?,
        rules: rules?,
        rates: rates?,
        // `hosts` has added the error.
        origins: origins.ok()?,
        revisions: revisions?,
        session_header: session_header?,
        session_mode: match resource.sessions {
            config::Sessions::On => SessionMode::On,
            config::Sessions::Off => SessionMode::Off,
        },
        upstream: upstream?,
        fingerprint,
        upstream_fingerprint,
        rule_fingerprints: resource.rule.iter().map(|rule| fingerprint::rule(rule, limits)).collect(),
    })
}

/// Returns the policy that accepts the hosts and origins of any of these resources. Origins are restricted only if
/// every resource has a list of them, which may be empty.
pub(super) fn origins(resources: &[&Resource], base_url: &Url) -> anyhow::Result<OriginPolicy> {
    let mut policy = OriginPolicy::for_base_url(base_url)?;
    for host in resources.iter().flat_map(|resource| &resource.allowed_hosts) {
        policy = policy.allow_host(host)?;
    }
    let lists: Option<Vec<_>> = resources.iter().map(|resource| resource.allowed_origins.as_ref()).collect();
    if let Some(lists) = lists {
        policy = policy.only_listed_origins();
        for origin in lists.into_iter().flatten() {
            policy = policy.allow_origin(origin)?;
        }
    }
    Ok(policy)
}

/// Checks each accepted host and origin.
fn hosts(resource: &Resource, base_url: &Url, errors: &mut Diagnostics<'_>) -> Option<()> {
    let policy = errors.take("allowed_hosts", OriginPolicy::for_base_url(base_url))?;
    let hosts = resource.allowed_hosts.iter().map(|host| policy.clone().allow_host(host));
    let hosts = errors.take_all("allowed_hosts", hosts);
    let listed = resource.allowed_origins.iter().flatten();
    let origins = listed.map(|origin| policy.clone().only_listed_origins().allow_origin(origin));
    let origins = errors.take_all("allowed_origins", origins);
    hosts.and(origins).map(drop)
}

/// Checks the realm as the guard does, so that the error has a key.
fn check_realm(realm: &str) -> anyhow::Result<()> {
    let is_printable = realm.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    ensure!(
        (1..=256).contains(&realm.len()) && is_printable,
        "realm must be 1 to 256 printable ASCII characters; shorten or rename it"
    );
    Ok(())
}

/// Checks that the path of the endpoint is written as clients send it, and that it is not reserved.
///
/// URL parsers and proxies remove dot segments, and decode `%` and two digits that stand for unreserved characters. Requests
/// are compared with the path byte for byte, so the endpoint must be written without them.
fn check_endpoint(endpoint: &str) -> anyhow::Result<()> {
    ensure!(endpoint.starts_with('/'), "endpoint = {endpoint:?} must start with a slash; write it as \"/mcp\"");
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@%".contains(&byte);
    ensure!(
        endpoint.bytes().all(plain),
        "endpoint = {endpoint:?} must be a plain path; remove query, fragment, spaces and other special characters"
    );
    check_escapes(endpoint)?;
    ensure!(
        !endpoint.contains("//") && !endpoint.split('/').any(|segment| matches!(segment, "." | "..")),
        "endpoint = {endpoint:?} has an empty or a dot segment, which clients rewrite; remove it"
    );
    ensure!(
        !endpoint.starts_with("/.well-known/") && !RESERVED_PATHS.contains(&endpoint),
        "endpoint = {endpoint:?} is a path that this server reserves; choose another one"
    );
    Ok(())
}

/// Checks that each `%` begins a valid escape, which stands for a character that needs one (RFC 3986 sections 2.1 and 2.3).
fn check_escapes(endpoint: &str) -> anyhow::Result<()> {
    for after in endpoint.split('%').skip(1) {
        let digits = after.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let digits = digits.with_context(|| {
            format!("endpoint = {endpoint:?} has a % without two hexadecimal digits; write the character % as %25")
        })?;
        let character = char::from(u8::from_str_radix(digits, 16)?);
        ensure!(
            !character.is_ascii_alphanumeric() && !"-._~".contains(character),
            "endpoint = {endpoint:?} has %{digits}, which clients rewrite to {character:?}; write {character:?} itself"
        );
    }
    Ok(())
}

/// Returns the metadata without the issuers.
fn metadata(resource: &Resource, base_url: &Url) -> anyhow::Result<ProtectedResourceMetadata> {
    let origin = base_url.as_str().trim_end_matches('/');
    let uri = ResourceUri::parse(&format!("{origin}{}", resource.endpoint))?;
    let mut metadata = ProtectedResourceMetadata::new(uri, Vec::new());
    metadata.scopes_supported.clone_from(&resource.scopes_supported);
    metadata.resource_name.clone_from(&resource.resource_name);
    metadata.resource_documentation.clone_from(&resource.resource_documentation);
    Ok(metadata)
}

/// Parses the served revisions. Default: all. Adds an error for each unknown one, and returns `None` if there is one.
fn revisions(names: Option<&[String]>, errors: &mut Diagnostics<'_>) -> Option<Revisions> {
    let Some(names) = names else { return Some(Revisions::default()) };
    if names.is_empty() {
        errors.add("revisions", "revisions = [] serves no client; omit it to serve all revisions");
        return None;
    }
    let revisions = names.iter().map(|name| {
        Revision::parse(name).with_context(|| {
            format!("revisions has {name:?}; known are 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28")
        })
    });
    Some(errors.take_all("revisions", revisions)?.into_iter().collect())
}

/// Returns the name of the session header.
fn session_header(proto: &str) -> anyhow::Result<HeaderName> {
    ensure!(!proto.is_empty(), "proto is empty; use letters, such as \"Mcp\"");
    portcullis_mcp::header::session(proto)
        .with_context(|| format!("proto = {proto:?} cannot be part of a header name; use letters, such as \"Mcp\""))
}
