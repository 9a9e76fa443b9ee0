//! All reasons why a configuration cannot run.

use anyhow::{Context as _, ensure};
use portcullis_discovery::FetchSettings;
use portcullis_metadata::Issuer;
use portcullis_verifier::IssuerSettings;
use url::Url;

use super::{
    IssuerPlan, TlsFiles, admin, audit, base_url, fingerprint, issuers, limits, rates, replicas, resources, sessions,
    traces, workers,
};
use crate::config::{Config, Limits};

/// Every part that cannot run, with its reason. `first` is the reason that was found first.
pub(super) fn all(config: &Config, first: anyhow::Error) -> Vec<anyhow::Error> {
    let mut reasons = Reasons(limits::errors(&config.limits));
    // Parts that depend on an unusable one are checked with a usable substitute, so that each reason appears once.
    let sound_limits = if reasons.0.is_empty() { config.limits.clone() } else { Limits::default() };
    let base_url = reasons.add(base_url(&config.base_url));
    reasons.add(workers(config.workers));
    reasons.add(rates::plan(config));
    let session = reasons.add(sessions::plan(&config.session));
    if let (Some(shared), Some(base_url), Some(session)) = (&config.shared, &base_url, session) {
        reasons.add(replicas::plan(shared, base_url, &session.settings));
    }
    reasons.add(config.audit.as_ref().map(audit::plan).transpose());
    reasons.add(admin::plan(config));
    reasons.add(config.traces.as_ref().map(traces::plan).transpose());
    if let (Some(files), Some(base_url)) = (&config.tls, &base_url) {
        reasons.add(TlsFiles::new(files, base_url));
    }
    reasons.add_resources(config, base_url, &sound_limits);
    if reasons.0.is_empty() { vec![first] } else { reasons.0 }
}

struct Reasons(Vec<anyhow::Error>);

impl Reasons {
    fn add<T>(&mut self, result: anyhow::Result<T>) -> Option<T> {
        result.map_err(|error| self.0.push(error)).ok()
    }

    fn add_resources(&mut self, config: &Config, base_url: Option<Url>, limits: &Limits) {
        let plans: Vec<IssuerPlan> = config.issuer.iter().filter_map(|issuer| self.issuer(issuer)).collect();
        for (position, plan) in plans.iter().enumerate() {
            let issuer = &plan.settings.issuer;
            let is_first = plans[..position].iter().all(|earlier| earlier.settings.issuer != *issuer);
            let check = || {
                ensure!(is_first, "issuer {:?} is configured twice; remove one", issuer.as_str());
                Ok(())
            };
            self.add(check());
        }
        let has_no_resource = config.resource.is_empty();
        let check = || {
            ensure!(!has_no_resource, "no [[resource]] is configured; add one with `endpoint` and `upstream`");
            resources::check_all(config)
        };
        self.add(check());
        // Without a usable address of the server, or with issuers that cannot be named, a resource cannot be checked.
        let Some(base_url) = base_url.filter(|_| plans.len() == config.issuer.len()) else { return };
        let alone = config.resource.len() == 1;
        for resource in &config.resource {
            let plan = resources::resource_plan(resource, &base_url, &plans, limits, alone);
            self.add(plan.with_context(|| format!("resource {:?}", resource.endpoint)));
        }
        self.add(resources::origins(&config.resource.iter().collect::<Vec<_>>(), &base_url));
    }

    /// The plan of an issuer, with its default settings if its own cannot be used; `None` if it has no usable name.
    fn issuer(&mut self, configured: &crate::config::Issuer) -> Option<IssuerPlan> {
        let plan = issuers::issuer_plan(configured).with_context(|| format!("issuer {:?}", configured.issuer));
        self.add(plan).or_else(|| {
            let settings = IssuerSettings::new(Issuer::parse(&configured.issuer).ok()?);
            let fingerprint = fingerprint::issuer(configured);
            Some(IssuerPlan { settings, fetch: FetchSettings::default(), fingerprint })
        })
    }
}
