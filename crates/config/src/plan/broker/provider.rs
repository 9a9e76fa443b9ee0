//! One provider, and who of its users gets which scopes.

use anyhow::{Context as _, bail, ensure};
use portcullis_broker::{BrokerProvider, ScopeGrant};
use portcullis_discovery::{FetchSettings, UrlPolicy};
use portcullis_guard::authorize::ClaimRule;
use portcullis_identity_provider::{ProviderKind, ProviderSettings};
use portcullis_metadata::{Scopes, syntax::is_https_or_loopback_http};
use url::Url;

use super::{provider_issuer, resources::BrokerResources};
use crate::{
    Diagnostics,
    file::{self, BrokerGrant, Claim},
    plan::{
        issuers,
        resources::{claim, convert_each, resource_scopes},
    },
    shown_url,
};

/// The longest name of a provider, which is in every `sub`.
const MAX_NAME: usize = 32;
/// The most rules in `allow`, and in `grant`.
const MAX_RULES: usize = 256;

/// Validates a provider. Adds an error for each invalid value, and returns `None` if there is one.
pub(super) fn plan(
    provider: &file::BrokerProvider,
    resources: &BrokerResources<'_>,
    errors: &mut Diagnostics<'_>,
) -> Option<(BrokerProvider, FetchSettings)> {
    let kind = ProviderKind::from(provider.kind);
    let name = errors.take("name", check_name(provider.name()));
    let source = provider_issuer::plan(provider, errors);
    let client_id = errors.take("client_id", check_client_id(&provider.client_id));
    let secret = errors.take("client_secret", provider.client_secret.read());
    let scopes = errors.take_all(
        "scopes",
        provider.scopes.iter().map(|scope| check_scope(scope)),
    );
    let has_openid = errors.take("scopes", check_openid(kind, &provider.scopes));
    let api_url = errors.take("api_url", api_url(provider));
    let allow = allow(provider, errors);
    let grants = convert_each(provider.grant(), "grant", errors, |grant, errors| {
        scope_grant(grant, resources, errors)
    });
    let has_grants = errors.take("grant", check_grant(provider));
    let lengths = [
        ("allow", provider.allow().len()),
        ("grant", provider.grant().len()),
    ];
    for (key, length) in lengths
        .into_iter()
        .filter(|(_, length)| *length > MAX_RULES)
    {
        errors.add(
            key,
            format!("{key} has {length} entries; remove all but {MAX_RULES}"),
        );
    }
    let fetch =
        issuers::fetch_settings(provider.ca_file.as_ref(), provider.proxy.as_deref(), errors);
    let source = source?;
    let mut settings = ProviderSettings::new(
        provider.name(),
        kind,
        source.issuer,
        provider.client_id.as_str(),
        secret?,
    );
    settings.tenants = source.tenants;
    settings.scopes = scopes?;
    settings.api_url = api_url?;
    settings.url_policy = UrlPolicy::Operator;
    name.and(client_id).and(has_openid).and(has_grants)?;
    Some((
        BrokerProvider {
            settings,
            allow: allow?,
            grants: grants?,
        },
        fetch,
    ))
}

fn check_name(name: &str) -> anyhow::Result<()> {
    let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    ensure!(
        (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_valid),
        "name = {name:?} must have 1 to {MAX_NAME} lower-case letters, digits and hyphens; rename it"
    );
    Ok(())
}

fn check_client_id(id: &str) -> anyhow::Result<()> {
    ensure!(
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic()),
        "client_id = {id:?} is not an identifier; write that of the application at the provider"
    );
    Ok(())
}

fn check_scope(name: &str) -> anyhow::Result<Box<str>> {
    ensure!(
        Scopes::is_name(name),
        "scopes has {name:?}, which is not a scope; write one scope in each string"
    );
    Ok(name.into())
}

/// Without `openid`, an OpenID provider does not say who the user is.
fn check_openid(kind: ProviderKind, scopes: &[String]) -> anyhow::Result<()> {
    ensure!(
        scopes.is_empty()
            || kind == ProviderKind::GitHub
            || scopes.iter().any(|scope| scope == "openid"),
        "scopes has no \"openid\", without which the provider does not identify the user; add it"
    );
    Ok(())
}

fn api_url(provider: &file::BrokerProvider) -> anyhow::Result<Option<Url>> {
    let Some(text) = &provider.api_url else {
        return Ok(None);
    };
    ensure!(
        provider.kind == file::BrokerProviderKind::GitHub,
        "api_url is for kind = \"github\" only; remove it"
    );
    let shown = shown_url(text);
    let url = Url::parse(text)
        .with_context(|| format!("api_url = {shown:?} is not a URL; write one with https"))?;
    ensure!(
        is_https_or_loopback_http(&url),
        "api_url = {shown:?} is neither https nor http on loopback; use https"
    );
    ensure!(
        url.username().is_empty() && url.password().is_none() && url.query().is_none(),
        "api_url = {shown:?} has a user name, a password or a query; remove it"
    );
    Ok(Some(url))
}

/// Validates `allow`. It is required if anyone can have an account at the provider.
fn allow(provider: &file::BrokerProvider, errors: &mut Diagnostics<'_>) -> Option<Vec<ClaimRule>> {
    let rules = convert_each(provider.allow(), "allow", errors, |rule, errors| {
        if rule.report_only {
            errors.add(
                "report_only",
                "report_only = true has no effect on who may sign in; remove it",
            );
        }
        claim(rule, errors)
    });
    let checked = errors.take("allow", check_allow(provider));
    checked.and(rules)
}

fn check_allow(provider: &file::BrokerProvider) -> anyhow::Result<()> {
    let example = provider.kind.example_of_allow();
    let Some(reason) = reason_for_allow(provider) else {
        let is_empty_list = provider.allow.as_ref().is_some_and(Vec::is_empty);
        ensure!(
            !is_empty_list,
            "allow = [] lets all users of the provider sign in; remove it if that is meant, or list who may sign in: allow = [{example}]"
        );
        return Ok(());
    };
    ensure!(
        !provider.allow().is_empty(),
        "allow is missing, and {reason}; list who may sign in: allow = [{example}]"
    );
    let selects = |rule: &Claim| rule.one_of.is_some() || rule.domain.is_some();
    ensure!(
        provider.allow().iter().any(selects),
        "allow has no rule with one_of or domain, and {reason}; list who may sign in: allow = [{example}]"
    );
    Ok(())
}

/// Returns why the provider needs `allow`.
fn reason_for_allow(provider: &file::BrokerProvider) -> Option<&'static str> {
    match ProviderKind::from(provider.kind) {
        ProviderKind::Google => Some("anyone can have a Google account"),
        ProviderKind::GitHub => Some("anyone can have a GitHub account"),
        ProviderKind::Entra if provider.tenants.as_ref().is_some_and(|all| all.len() > 1) => {
            Some("all users and guests of several tenants could sign in")
        }
        _ => None,
    }
}

/// Rejects a list that looks as if no user got a scope.
fn check_grant(provider: &file::BrokerProvider) -> anyhow::Result<()> {
    ensure!(
        !provider.grant.as_ref().is_some_and(Vec::is_empty),
        "grant = [] gives all users all scopes; remove it if that is meant, or list the scopes that users get, such as \
         grant = [{{ scopes = [\"mcp:tools\"] }}]"
    );
    Ok(())
}

fn scope_grant(
    grant: &BrokerGrant,
    resources: &BrokerResources<'_>,
    errors: &mut Diagnostics<'_>,
) -> Option<ScopeGrant> {
    let rule = match &grant.claim {
        Some(name) => {
            let rule = Claim {
                claim: name.clone(),
                one_of: grant.one_of.clone(),
                domain: grant.domain.clone(),
                report_only: false,
            };
            claim(&rule, errors).map(Some)
        }
        None => errors.take("", check_unconditional(grant)).map(|()| None),
    };
    let scopes = resource_scopes(&grant.scopes, "scopes", errors);
    let known = errors.take_all(
        "scopes",
        grant
            .scopes
            .iter()
            .filter(|scope| Scopes::is_name(scope) && *scope != "offline_access")
            .map(|scope| resources.check_scope("scopes", scope)),
    );
    let grants_something = errors.take("scopes", check_grants_something(grant));
    known.and(grants_something)?;
    Some(ScopeGrant {
        rule: rule?,
        scopes: scopes?,
    })
}

fn check_unconditional(grant: &BrokerGrant) -> anyhow::Result<()> {
    if grant.one_of.is_some() || grant.domain.is_some() {
        bail!(
            "one_of and domain need a claim; add claim = \"groups\", or remove them to grant the scopes to all users"
        )
    }
    Ok(())
}

fn check_grants_something(grant: &BrokerGrant) -> anyhow::Result<()> {
    ensure!(
        !grant.scopes.is_empty(),
        "scopes = [] grants nothing; list scopes, or remove the entry"
    );
    Ok(())
}
