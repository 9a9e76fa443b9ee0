//! Issuers: validation of `[[issuer]]`.

use std::{fs, path::Path};

use anyhow::{Context as _, bail, ensure};
use portcullis_discovery::FetchSettings;
use portcullis_jose::{Algorithm, AlgorithmSet};
use portcullis_metadata::{JwkSet, ResourceUri, is_https_or_loopback_http};
use portcullis_verifier::{ApplicationAudience, IssuerSettings, KeySource};
use url::Url;

use super::{Fingerprint, entra, fingerprint, introspection};
use crate::config::Issuer;

/// One issuer, and how it is reached.
pub(crate) struct IssuerPlan {
    pub(crate) settings: IssuerSettings,
    pub(crate) fetch: FetchSettings,
    pub(crate) fingerprint: Fingerprint,
}

pub(super) fn plan(configured: &[Issuer]) -> anyhow::Result<Vec<IssuerPlan>> {
    let mut plans: Vec<IssuerPlan> = Vec::new();
    for issuer in configured {
        let plan = issuer_plan(issuer).with_context(|| format!("issuer {:?}", issuer.issuer))?;
        ensure!(
            plans.iter().all(|earlier| earlier.settings.issuer != plan.settings.issuer),
            "issuer {:?} is configured twice; remove one",
            issuer.issuer
        );
        plans.push(plan);
    }
    Ok(plans)
}

/// The plan of one issuer.
pub(super) fn issuer_plan(issuer: &Issuer) -> anyhow::Result<IssuerPlan> {
    let fingerprint = fingerprint::issuer(issuer);
    entra::check_template(&issuer.issuer)?;
    let mut settings = IssuerSettings::new(portcullis_metadata::Issuer::parse(&issuer.issuer)?);
    settings.validation = introspection::validation(issuer)?;
    settings.algorithms = algorithms(&issuer.algorithms)?;
    settings.keys = keys(issuer)?;
    settings.cooldown = issuer.jwks.cooldown.0;
    settings.max_stale = issuer.jwks.max_stale.0;
    settings.leeway = issuer.leeway.0;
    settings.max_lifetime = issuer.max_lifetime.map(|span| span.0);
    settings.require_at_jwt = issuer.require_at_jwt;
    settings.subjectless_client = issuer.subjectless.is_some();
    for audience in &issuer.audiences {
        add_audience(audience, &mut settings)?;
    }
    settings.scope_claims.clone_from(&issuer.scope_claims);
    settings.check()?;

    let mut fetch = FetchSettings::default();
    fetch.ca_file.clone_from(&issuer.ca_file);
    fetch.proxy = issuer.proxy.as_deref().map(Url::parse).transpose().context("proxy is not a URL")?;
    Ok(IssuerPlan { settings, fetch, fingerprint })
}

fn algorithms(names: &[String]) -> anyhow::Result<AlgorithmSet> {
    names
        .iter()
        .map(|name| {
            name.parse::<Algorithm>().with_context(|| {
                format!("algorithms has {name:?}; known are RS256/384/512, PS256/384/512, ES256/384/512, EdDSA")
            })
        })
        .collect()
}

fn keys(issuer: &Issuer) -> anyhow::Result<KeySource> {
    match (&issuer.jwks_uri, &issuer.jwks_file) {
        (Some(_), Some(_)) => bail!("jwks_uri and jwks_file are both set; remove one"),
        (Some(uri), None) => {
            let uri = Url::parse(uri).with_context(|| format!("jwks_uri = {uri:?} is not a URL"))?;
            ensure!(is_https_or_loopback_http(&uri), "jwks_uri = \"{uri}\" is neither https nor http on loopback");
            Ok(KeySource::Uri(uri))
        }
        (None, Some(file)) => Ok(KeySource::Fixed(key_file(file)?)),
        (None, None) => Ok(KeySource::Discovered),
    }
}

fn key_file(file: &Path) -> anyhow::Result<JwkSet> {
    let text = fs::read(file).with_context(|| format!("jwks_file = {} cannot be read", file.display()))?;
    let set = JwkSet::parse(&text).with_context(|| format!("jwks_file = {} is not a JWK set", file.display()))?;
    ensure!(!set.keys.is_empty(), "jwks_file = {} has no public key that can be used", file.display());
    Ok(set)
}

fn add_audience(audience: &str, settings: &mut IssuerSettings) -> anyhow::Result<()> {
    if let Ok(name) = ApplicationAudience::parse(audience) {
        settings.application_audiences.push(name);
        return Ok(());
    }
    let address = ResourceUri::parse(audience).with_context(|| {
        format!(
            "audiences has {audience:?}; each entry is an absolute URL of the same resource, or the issuer's own name for \
             it: a UUID or an api:// URI"
        )
    })?;
    settings.audiences.push(address);
    Ok(())
}
