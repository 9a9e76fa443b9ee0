//! Resources: validation of `[[resource]]`.

mod claim_domains;
mod context;
mod cross_checks;
mod endpoint_path;
mod issuers;
mod origins;
mod requirements;

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use http::HeaderName;
use portcullis_endpoint::{MessageRule, SessionMode};
use portcullis_guard::{
    GuardSettings, OriginPolicy,
    authorize::{ClaimRule, RouteRule, ScopeImplications},
    limit::Rate,
};
use portcullis_mcp::{Revision, Revisions};
use portcullis_metadata::{
    Issuer, ProtectedResourceMetadata, ResourceUri, ResourceUriError, Scopes,
};
use url::Url;

pub(super) use self::{
    origins::origins,
    requirements::{claim, convert_each, resource_scopes},
};
use super::{Fingerprint, IssuerPlan, UpstreamPlan, fingerprint, rates, upstream};
use crate::{
    Config, Diagnostics, Span,
    file::{self, Authorization, Limits, Resource},
};
use context::Context;
use endpoint_path::check_endpoint;
use issuers::{check_application_audiences, issuers_of};
use origins::check_origins;
use requirements::{implications, route, rule};

/// What follows `proto` in the name of the session header.
const SESSION_SUFFIX: &str = "-Session-Id";
/// The longest `response_grace`.
const LONGEST_GRACE: Span = Span::secs(24 * 60 * 60);

/// One protected endpoint.
pub struct ResourcePlan {
    /// The endpoint's path.
    pub endpoint: String,
    /// Whether a token is required.
    pub authorization: Authorization,
    /// Positions in [`Plan::issuers`](super::Plan::issuers).
    pub issuers: Vec<usize>,
    /// Whether the tokens of the broker are accepted. Its issuer is the first in the metadata.
    pub accepts_broker: bool,
    /// The realm of challenges.
    pub realm: String,
    /// The metadata with the issuers.
    pub metadata: ProtectedResourceMetadata,
    /// Whether the metadata is also served at the root path.
    pub root_metadata: bool,
    /// The scopes that every request needs.
    pub required_scopes: Scopes,
    /// The scopes that count as others.
    pub scope_implications: ScopeImplications,
    /// The claims that every token needs.
    pub claims: Vec<ClaimRule>,
    /// The rules for methods and paths.
    pub routes: Vec<RouteRule>,
    /// The rules for MCP messages.
    pub rules: Vec<MessageRule>,
    /// The rate limit of each rule.
    pub rates: Vec<Option<Rate>>,
    /// The accepted hosts and origins.
    pub origins: OriginPolicy,
    /// The served revisions of MCP.
    pub revisions: Revisions,
    /// The name of the session header.
    pub session_header: HeaderName,
    /// Whether the resource has sessions.
    pub session_mode: SessionMode,
    /// For how long a response that is an event stream continues after its token has expired.
    pub response_grace: Duration,
    /// Where admitted requests are sent.
    pub upstream: UpstreamPlan,
    /// The fingerprint of the resource without its issuers.
    pub fingerprint: Fingerprint,
    /// The fingerprint of the upstream and its limits.
    pub upstream_fingerprint: Fingerprint,
    /// The fingerprints of the rules, in their order.
    pub rule_fingerprints: Vec<Fingerprint>,
}

/// Validates the resources, and adds an error for each invalid value. Returns `None` if one is
/// invalid. `issuers` are the plans of the issuers, `None` for an invalid one. `broker` is the
/// issuer of the broker, if there is one.
pub(super) fn plan(
    config: &Config,
    base_url: &Url,
    issuers: &[Option<IssuerPlan>],
    broker: Option<&Issuer>,
    limits: &Limits,
    errors: &mut Diagnostics<'_>,
) -> Option<Vec<ResourcePlan>> {
    if config.resource.is_empty() {
        errors.add(
            "resource",
            "no [[resource]] is configured; add one with `endpoint` and `upstream`",
        );
    }
    cross_checks::check(config, broker, errors);
    let context = Context {
        config,
        base_url,
        issuers,
        broker,
        limits,
    };
    convert_each(&config.resource, "resource", errors, |resource, errors| {
        resource_plan(resource, &context, errors)
    })
}

/// Validates one resource. Adds an error for each invalid value, and returns `None` if there is
/// one.
fn resource_plan(
    resource: &Resource,
    context: &Context<'_>,
    errors: &mut Diagnostics<'_>,
) -> Option<ResourcePlan> {
    let Context {
        config,
        base_url,
        broker,
        limits,
        ..
    } = context;
    let is_only = config.resource.len() == 1;
    let fingerprint = fingerprint::resource(resource, base_url.as_str(), is_only);
    let upstream_fingerprint = fingerprint::upstream(resource, base_url.as_str(), limits);
    let endpoint = errors.take("endpoint", check_endpoint(&resource.endpoint));
    let issuers = issuers_of(resource, context, errors);
    let metadata = endpoint.and_then(|()| errors.take("endpoint", metadata(resource, base_url)));
    let required_scopes = resource_scopes(&resource.required_scopes, "required_scopes", errors);
    let supported_scopes = resource_scopes(&resource.scopes_supported, "scopes_supported", errors);
    let implications = implications(&resource.scope_implies, errors);
    let claims = convert_each(&resource.claim, "claim", errors, claim);
    let routes = convert_each(&resource.route, "route", errors, route);
    let rules = convert_each(&resource.rule, "rule", errors, rule);
    let rates = convert_each(&resource.rule, "rule", errors, |rule, errors| {
        errors.take("limit", rates::rate(rule.limit.as_ref()))
    });
    let revisions = revisions(resource.revisions.as_deref(), errors);
    let session_header = errors.take("proto", session_header(&resource.proto));
    let origins_checked = check_origins(resource, base_url, errors);
    let origins = origins(&[resource], base_url);
    let realm = errors.take("realm", check_realm(&resource.realm));
    let grace = errors.take("response_grace", check_grace(resource.response_grace));
    let upstream = upstream::plan(resource, base_url, session_header.as_ref(), limits, errors);
    let issuers = issuers?;
    let audiences = metadata.as_ref().and_then(|metadata| {
        let plans = issuers.plans.iter().map(|(_, plan)| *plan);
        check_application_audiences(resource, &metadata.resource, plans, errors)
    });
    let mut metadata = metadata?;
    let own = broker.filter(|_| issuers.accepts_broker).cloned();
    let others = issuers
        .plans
        .iter()
        .map(|(_, plan)| plan.settings.issuer.clone());
    metadata.authorization_servers = own.into_iter().chain(others).collect();
    origins_checked
        .and(realm)
        .and(grace)
        .and(audiences)
        .and(supported_scopes)?;
    Some(ResourcePlan {
        endpoint: resource.endpoint.clone(),
        authorization: resource.auth,
        issuers: issuers
            .plans
            .iter()
            .map(|(position, _)| *position)
            .collect(),
        accepts_broker: issuers.accepts_broker,
        realm: resource.realm.clone(),
        metadata,
        root_metadata: is_only || resource.default,
        required_scopes: required_scopes?,
        scope_implications: implications?,
        claims: claims?,
        routes: routes?,
        rules: rules?,
        rates: rates?,
        // `check_origins` has added the error.
        origins: origins.ok()?,
        revisions: revisions?,
        session_header: session_header?,
        session_mode: match resource.sessions {
            file::Sessions::On => SessionMode::On,
            file::Sessions::Off => SessionMode::Off,
        },
        response_grace: resource.response_grace.0,
        upstream: upstream?,
        fingerprint,
        upstream_fingerprint,
        rule_fingerprints: resource
            .rule
            .iter()
            .map(|rule| fingerprint::rule(rule, limits))
            .collect(),
    })
}

/// Checks the realm as the guard does, so that the error has a key.
fn check_realm(realm: &str) -> anyhow::Result<()> {
    let fix = if realm.is_empty() {
        "write a name, or remove it"
    } else if realm.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        "shorten it"
    } else {
        "write it without other characters"
    };
    GuardSettings::check_realm(realm).map_err(|error| anyhow!("{error}; {fix}"))
}

/// Returns the URL of a resource.
pub(super) fn uri(base_url: &Url, endpoint: &str) -> Result<ResourceUri, ResourceUriError> {
    let origin = base_url.as_str().trim_end_matches('/');
    ResourceUri::parse(&format!("{origin}{endpoint}"))
}

fn check_grace(grace: Span) -> anyhow::Result<()> {
    ensure!(
        grace <= LONGEST_GRACE,
        "response_grace = \"{grace}\" is outside 0s to 24h"
    );
    Ok(())
}

/// Returns the metadata without the issuers.
fn metadata(resource: &Resource, base_url: &Url) -> anyhow::Result<ProtectedResourceMetadata> {
    let uri = uri(base_url, &resource.endpoint)?;
    let mut metadata = ProtectedResourceMetadata::new(uri, Vec::new());
    metadata
        .scopes_supported
        .clone_from(&resource.scopes_supported);
    metadata.resource_name.clone_from(&resource.resource_name);
    metadata
        .resource_documentation
        .clone_from(&resource.resource_documentation);
    Ok(metadata)
}

/// Parses the served revisions. Default: all. Adds an error for each unknown one, and returns
/// `None` if there is one.
fn revisions(names: Option<&[String]>, errors: &mut Diagnostics<'_>) -> Option<Revisions> {
    let Some(names) = names else {
        return Some(Revisions::default());
    };
    if names.is_empty() {
        errors.add(
            "revisions",
            "revisions = [] serves no client; omit it to serve all revisions",
        );
        return None;
    }
    let revisions = names.iter().map(|name| {
        Revision::parse(name)
            .with_context(|| format!("revisions has {name:?}; known are {}", Revisions::ALL))
    });
    Some(
        errors
            .take_all("revisions", revisions)?
            .into_iter()
            .collect(),
    )
}

fn session_header(proto: &str) -> anyhow::Result<HeaderName> {
    ensure!(
        !proto.is_empty(),
        "proto is empty; use letters, such as \"Mcp\""
    );
    let start = proto.len().saturating_sub(SESSION_SUFFIX.len());
    if let Some((word, suffix)) = proto.split_at_checked(start)
        && suffix.eq_ignore_ascii_case(SESSION_SUFFIX)
    {
        let word = if word.is_empty() { "Mcp" } else { word };
        bail!(
            "proto = {proto:?} is the name of a header, and the session header is `<proto>{SESSION_SUFFIX}`; write {word:?}"
        );
    }
    portcullis_mcp::header::session(proto).with_context(|| {
        format!("proto = {proto:?} cannot be part of a header name; use letters, such as \"Mcp\"")
    })
}
