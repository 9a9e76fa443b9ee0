//! Resources: validation of `[[resource]]`.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail, ensure};
use http::{HeaderName, Method};
use portcullis_endpoint::{MessageRule, NameGlob, SessionMode};
use portcullis_guard::{ClaimRule, ClaimTest, OriginPolicy, PathGlob, Rate, RouteRule, ScopeImplications};
use portcullis_mcp::{Revision, Revisions};
use portcullis_metadata::{ProtectedResourceMetadata, ResourceUri, Scopes};
use url::Url;

use super::{Fingerprint, IssuerPlan, RESERVED_PATHS, UpstreamPlan, fingerprint, rates, upstream};
use crate::config::{self, Authorization, Config, Limits, Resource};

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

pub(super) fn plan(config: &Config, base_url: &Url, issuers: &[IssuerPlan]) -> anyhow::Result<Vec<ResourcePlan>> {
    ensure!(!config.resource.is_empty(), "no [[resource]] is configured; add one with `endpoint` and `upstream`");
    check_all(config)?;
    let alone = config.resource.len() == 1;
    config
        .resource
        .iter()
        .map(|resource| {
            resource_plan(resource, base_url, issuers, &config.limits, alone)
                .with_context(|| format!("resource {:?}", resource.endpoint))
        })
        .collect()
}

/// Checks the settings that concern several resources.
pub(super) fn check_all(config: &Config) -> anyhow::Result<()> {
    for (position, resource) in config.resource.iter().enumerate() {
        let twin = config.resource[..position].iter().find(|earlier| {
            let bare = |endpoint: &str| endpoint.trim_end_matches('/').to_ascii_lowercase();
            bare(&earlier.endpoint) == bare(&resource.endpoint)
        });
        if let Some(twin) = twin {
            bail!(
                "the endpoints {:?} and {:?} differ at most by letter case and a trailing slash; rename one",
                twin.endpoint,
                resource.endpoint
            );
        }
        if resource.auth == Authorization::None
            && !config.listen.ip().is_loopback()
            && !config.dangerous_allow_unauthenticated_network
        {
            bail!(
                "resource {:?} has auth = \"none\" and listen = \"{}\" is open to the network; listen on 127.0.0.1, or set \
                 dangerous_allow_unauthenticated_network = true",
                resource.endpoint,
                config.listen
            );
        }
    }
    if let Some(issuer) = config.issuer.iter().find(|issuer| !issuer.audiences.is_empty())
        && config.resource.len() > 1
    {
        bail!(
            "issuer {:?} has audiences, and there are {} resources: each audience would count for all of them; remove \
             audiences, or serve one resource",
            issuer.issuer,
            config.resource.len()
        );
    }
    let defaults = config.resource.iter().filter(|resource| resource.default).count();
    ensure!(
        defaults <= 1,
        "{defaults} resources have default = true; only one may have it, because it is served at the root metadata path"
    );
    Ok(())
}

/// The plan of one resource. `alone`: it is the only one.
pub(super) fn resource_plan(
    resource: &Resource,
    base_url: &Url,
    issuers: &[IssuerPlan],
    limits: &Limits,
    alone: bool,
) -> anyhow::Result<ResourcePlan> {
    check_endpoint(&resource.endpoint)?;
    let fingerprint = fingerprint::resource(resource, base_url.as_str(), alone);
    let upstream_fingerprint = fingerprint::upstream(resource, base_url.as_str(), limits);
    let issuers_used = issuers_of(resource, issuers)?;
    check_application_audiences(resource, issuers_used.iter().map(|position| &issuers[*position]))?;
    let metadata = metadata(resource, base_url, issuers_used.iter().map(|position| &issuers[*position]))?;
    Ok(ResourcePlan {
        endpoint: resource.endpoint.clone(),
        authorization: resource.auth,
        issuers: issuers_used,
        realm: resource.realm.clone(),
        metadata,
        root_metadata: alone || resource.default,
        required_scopes: scopes(&resource.required_scopes).context("required_scopes")?,
        scope_implications: implications(&resource.scope_implies).context("scope_implies")?,
        claims: claims(&resource.claim)?,
        routes: resource.route.iter().map(route).collect::<Result<_, _>>()?,
        rules: resource
            .rule
            .iter()
            .enumerate()
            .map(|(position, configured)| rule(configured).with_context(|| format!("rule[{position}]")))
            .collect::<Result<_, _>>()?,
        rates: resource
            .rule
            .iter()
            .map(|rule| {
                rates::rate(rule.limit.as_ref()).with_context(|| format!("the limit of the rule for {:?}", rule.method))
            })
            .collect::<Result<_, _>>()?,
        origins: origins(&[resource], base_url)?,
        revisions: revisions(resource.revisions.as_deref())?,
        session_header: session_header(&resource.proto)?,
        session_mode: match resource.sessions {
            config::Sessions::On => SessionMode::On,
            config::Sessions::Off => SessionMode::Off,
        },
        upstream: upstream::plan(resource, base_url, limits)?,
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

fn check_endpoint(endpoint: &str) -> anyhow::Result<()> {
    ensure!(endpoint.starts_with('/'), "endpoint must start with a slash, such as \"/mcp\"");
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@%".contains(&byte);
    ensure!(endpoint.bytes().all(plain), "endpoint must be a plain path without query, fragment or space");
    ensure!(
        !endpoint.contains("//") && !endpoint.split('/').any(|segment| matches!(segment, "." | "..")),
        "endpoint has an empty or a dot segment, which clients rewrite"
    );
    ensure!(
        !endpoint.starts_with("/.well-known/") && !RESERVED_PATHS.contains(&endpoint),
        "endpoint is a path that this server reserves; choose another one"
    );
    Ok(())
}

fn issuers_of(resource: &Resource, issuers: &[IssuerPlan]) -> anyhow::Result<Vec<usize>> {
    let used = match &resource.issuers {
        None => (0..issuers.len()).collect(),
        Some(names) => names
            .iter()
            .map(|name| {
                issuers.iter().position(|plan| plan.settings.issuer.as_str() == name).with_context(|| {
                    format!("issuers has {name:?}, and no [[issuer]] has exactly this identifier; add or correct it")
                })
            })
            .collect::<Result<Vec<_>, _>>()?,
    };
    ensure!(
        !used.is_empty() || resource.auth == Authorization::None,
        "it has no issuer; add an [[issuer]], or disable authorization with auth = \"none\""
    );
    Ok(used)
}

/// An ID token can have the same audience as an access token if `aud` is the issuer's own name for the resource. Required
/// scopes exclude it, because an ID token has none.
fn check_application_audiences<'a>(
    resource: &Resource,
    mut issuers: impl Iterator<Item = &'a IssuerPlan>,
) -> anyhow::Result<()> {
    let named = issuers.find_map(|plan| Some((plan, plan.settings.application_audiences.first()?)));
    let Some((plan, name)) = named else { return Ok(()) };
    ensure!(
        !resource.required_scopes.is_empty(),
        "issuer \"{}\" has \"{name}\" in audiences, which ID tokens can have as well, and required_scopes is empty; set \
         required_scopes to a scope of the access tokens",
        plan.settings.issuer
    );
    Ok(())
}

fn metadata<'a>(
    resource: &Resource,
    base_url: &Url,
    issuers: impl Iterator<Item = &'a IssuerPlan>,
) -> anyhow::Result<ProtectedResourceMetadata> {
    let origin = base_url.as_str().trim_end_matches('/');
    let uri = ResourceUri::parse(&format!("{origin}{}", resource.endpoint))?;
    let issuers = issuers.map(|plan| plan.settings.issuer.clone()).collect();
    let mut metadata = ProtectedResourceMetadata::new(uri, issuers);
    metadata.scopes_supported.clone_from(&resource.scopes_supported);
    metadata.resource_name.clone_from(&resource.resource_name);
    metadata.resource_documentation.clone_from(&resource.resource_documentation);
    Ok(metadata)
}

fn scopes(names: &[String]) -> anyhow::Result<Scopes> {
    Ok(Scopes::from_names(names.iter().map(String::as_str))?)
}

fn route(route: &config::Route) -> anyhow::Result<RouteRule> {
    let methods = route.methods.iter().map(|method| method.parse::<Method>()).collect::<Result<Vec<_>, _>>()?;
    let path = PathGlob::parse(&route.path).with_context(|| format!("route.path = {:?}", route.path))?;
    Ok(RouteRule::new(path, scopes(&route.scopes).context("route.scopes")?).methods(methods))
}

fn rule(rule: &config::Rule) -> anyhow::Result<MessageRule> {
    check_method_pattern(&rule.method)?;
    let glob = |text: &str| NameGlob::parse(text).with_context(|| format!("rule has the pattern {text:?}"));
    ensure!(
        !rule.scopes.is_empty() || !rule.claims.is_empty() || rule.limit.is_some(),
        "the rule for {:?} requires nothing; add scopes, claims or a limit",
        rule.method
    );
    let mut message_rule = MessageRule::for_method(glob(&rule.method)?);
    message_rule.name = rule.name.as_deref().map(glob).transpose()?;
    message_rule.scopes = scopes(&rule.scopes).context("rule.scopes")?;
    message_rule.claims = claims(&rule.claims).with_context(|| format!("the rule for {:?}", rule.method))?;
    Ok(message_rule)
}

/// Rejects a pattern with characters that are special in other pattern languages and that no method has.
fn check_method_pattern(pattern: &str) -> anyhow::Result<()> {
    let is_strange =
        |character: char| "[]{}()?|\\".contains(character) || character.is_whitespace() || character.is_control();
    if let Some(character) = pattern.chars().find(|character| is_strange(*character)) {
        bail!(
            "method = {pattern:?} has {character:?}, which occurs in no method and has no meaning in a pattern; write \
             one method or a pattern with `*`, and another rule for each further method"
        );
    }
    Ok(())
}

fn implications(implies: &BTreeMap<String, Vec<String>>) -> anyhow::Result<ScopeImplications> {
    let pairs = implies.iter().map(|(broad, narrow)| Ok((broad.as_str(), scopes(narrow)?)));
    Ok(ScopeImplications::new(pairs.collect::<anyhow::Result<Vec<_>>>()?)?)
}

fn claims(claims: &[config::Claim]) -> anyhow::Result<Vec<ClaimRule>> {
    claims.iter().map(|rule| claim(rule).with_context(|| format!("claim = {:?}", rule.claim))).collect()
}

fn claim(rule: &config::Claim) -> anyhow::Result<ClaimRule> {
    let test = match (&rule.one_of, &rule.domain) {
        (None, None) => ClaimTest::Present,
        (Some(values), None) => ClaimTest::OneOf(values.clone()),
        (None, Some(domains)) => ClaimTest::Domain(domains.clone()),
        (Some(_), Some(_)) => bail!("a claim rule cannot have both one_of and domain; write two rules"),
    };
    let wanted = ClaimRule::new(&rule.claim, test)?;
    Ok(if rule.report_only { wanted.report_only() } else { wanted })
}

fn revisions(names: Option<&[String]>) -> anyhow::Result<Revisions> {
    let Some(names) = names else { return Ok(Revisions::default()) };
    ensure!(!names.is_empty(), "revisions = [] serves no client; omit it to serve all revisions");
    names
        .iter()
        .map(|name| {
            Revision::parse(name).with_context(|| {
                format!("revisions has {name:?}; known are 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28")
            })
        })
        .collect()
}

fn session_header(proto: &str) -> anyhow::Result<HeaderName> {
    ensure!(!proto.is_empty(), "proto is empty; use letters, such as \"Mcp\"");
    portcullis_mcp::header::session(proto)
        .with_context(|| format!("proto = {proto:?} cannot be part of a header name; use letters, such as \"Mcp\""))
}
