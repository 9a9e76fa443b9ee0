//! Validation of `allowed_hosts` and `allowed_origins`: protection against DNS rebinding and
//! requests of other sites.

use crate::{Diagnostics, file::Resource, shown_url};
use anyhow::{anyhow, ensure};
use portcullis_guard::{OriginPolicy, OriginPolicyError};
use url::Url;

/// Returns the policy that accepts the hosts and origins of any of these resources. Origins are
/// restricted only if every resource has a list of them, which may be empty.
pub(in crate::plan) fn origins(
    resources: &[&Resource],
    base_url: &Url,
) -> anyhow::Result<OriginPolicy> {
    let mut policy = OriginPolicy::for_base_url(base_url)?;
    for host in resources
        .iter()
        .flat_map(|resource| &resource.allowed_hosts)
    {
        policy = policy.allow_host(host)?;
    }
    let lists: Option<Vec<_>> = resources
        .iter()
        .map(|resource| resource.allowed_origins.as_ref())
        .collect();
    if let Some(lists) = lists {
        policy = policy.only_listed_origins();
        for origin in lists.into_iter().flatten() {
            policy = policy.allow_origin(origin)?;
        }
    }
    Ok(policy)
}

/// Checks each entry of `allowed_hosts` and `allowed_origins` by itself, and adds an error for each
/// invalid one.
pub(super) fn check_origins(
    resource: &Resource,
    base_url: &Url,
    errors: &mut Diagnostics<'_>,
) -> Option<()> {
    let policy = errors.take("allowed_hosts", OriginPolicy::for_base_url(base_url))?;
    let mut are_valid = true;
    for host in &resource.allowed_hosts {
        are_valid &= errors
            .take(
                "allowed_hosts",
                check_wildcard(host)
                    .and_then(|()| Ok(policy.clone().allow_host(host).map_err(without_secrets)?)),
            )
            .is_some();
    }
    for origin in resource.allowed_origins.iter().flatten() {
        let checked = policy
            .clone()
            .only_listed_origins()
            .allow_origin(origin)
            .map_err(without_secrets)
            .map_err(|error| origin_fix(origin).unwrap_or_else(|| error.into()));
        are_valid &= errors.take("allowed_origins", checked).is_some();
    }
    are_valid.then_some(())
}

/// Returns the error about an origin whose mistake is a well-known one.
fn origin_fix(origin: &str) -> Option<anyhow::Error> {
    if origin == "*" {
        return Some(anyhow!(
            "allowed_origins has \"*\"; leave allowed_origins out to accept every origin, or list the origins of the pages"
        ));
    }
    if let Err(error) = check_wildcard(origin) {
        return Some(error);
    }
    let url = Url::parse(origin).ok()?;
    let is_bare = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    (url.path() == "/" && url.origin().is_tuple() && is_bare).then(|| {
        anyhow!(
            "allowed_origins has {origin:?}, and an origin has no slash at its end; write {:?}",
            url.origin().ascii_serialization()
        )
    })
}

/// Rejects a host or an origin with a `*`.
fn check_wildcard(entry: &str) -> anyhow::Result<()> {
    ensure!(
        !entry.contains('*'),
        "{:?} has a `*`, and entries have no wildcards; list each host",
        shown_url(entry)
    );
    Ok(())
}

/// Returns the error without user, password and query of the entry.
fn without_secrets(error: OriginPolicyError) -> OriginPolicyError {
    match error {
        OriginPolicyError::Host(text) => OriginPolicyError::Host(shown_url(&text)),
        OriginPolicyError::Origin(text) => OriginPolicyError::Origin(shown_url(&text)),
        other => other,
    }
}
