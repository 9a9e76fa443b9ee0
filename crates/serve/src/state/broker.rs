//! [`ConfiguredBroker`]: the broker of one configuration, and the issuer of its tokens.

use std::sync::Arc;

use anyhow::anyhow;
use portcullis_broker::{Broker, BrokerKeys, BrokerParts};
use portcullis_config::{
    Diagnostic, KeyPath,
    plan::{BrokerPlan, Fingerprint},
};
use portcullis_discovery::{Fetch, FetchSettings, HttpFetch};
use portcullis_jose::Algorithm;
use portcullis_verifier::{IssuerSettings, KeySource, TrustedIssuer};
use tokio::runtime::Handle;

use super::{configured_issuer::ConfiguredIssuer, process::Process};
use crate::broker::{observer::BrokerEvents, persistence::KeysOrigin, process::BrokerProcess};

/// The broker of one configuration.
#[derive(Clone)]
pub(crate) struct ConfiguredBroker {
    fingerprint: Fingerprint,
    keys: Arc<BrokerKeys>,
    pub(crate) broker: Arc<Broker>,
    /// The issuer that verifies its tokens.
    pub(super) issuer: ConfiguredIssuer,
}

impl ConfiguredBroker {
    /// Builds the broker of a plan, without network access, or returns the previous one if neither
    /// the plan nor the keys have changed. Its issuer is the previous one as long as the public
    /// keys are the same: its verified tokens stay cached. Fails with the key of what cannot be
    /// used.
    pub(super) fn new(
        plan: &BrokerPlan,
        process: &Process,
        previous: Option<&Self>,
    ) -> anyhow::Result<Self> {
        let parts = process
            .broker
            .as_ref()
            .ok_or_else(|| anyhow!("a broker needs a restart of the server"))?;
        let keys = parts.keys.current(plan.keys.as_ref())?;
        let unchanged = previous.filter(|previous| {
            // Configured keys are a part of the fingerprint, and are read again for each plan.
            previous.fingerprint == plan.fingerprint
                && (plan.keys.is_some() || Arc::ptr_eq(&previous.keys, &keys))
        });
        if let Some(unchanged) = unchanged {
            return Ok(unchanged.clone());
        }
        let broker = broker(plan, process, parts, &keys)?;
        let previous = previous.map(|previous| &previous.issuer);
        let issuer = issuer(plan, process, parts, &keys, previous)?;
        Ok(Self {
            fingerprint: plan.fingerprint,
            keys,
            broker,
            issuer,
        })
    }

    /// Returns whether the file in the state directory has other keys than these, or cannot be
    /// used.
    pub(super) fn has_other_stored_keys(&self, process: &BrokerProcess) -> bool {
        match &process.keys {
            KeysOrigin::Stored(stored) => stored
                .read()
                .map_or(true, |stored| !Arc::ptr_eq(&stored, &self.keys)),
            KeysOrigin::Configured | KeysOrigin::Generated(_) => false,
        }
    }
}

fn broker(
    plan: &BrokerPlan,
    process: &Process,
    parts: &BrokerProcess,
    keys: &Arc<BrokerKeys>,
) -> anyhow::Result<Arc<Broker>> {
    let fetch = |mut settings: FetchSettings| {
        settings.user_agent = Some(process.product.to_string());
        HttpFetch::new(settings).map(|fetch| Arc::new(fetch) as Arc<dyn Fetch>)
    };
    let of_provider = |(position, settings): (usize, &FetchSettings)| {
        fetch(settings.clone())
            .map_err(|error| diagnostic(&format!("broker.provider[{position}]"), &error.into()))
    };
    let provider_fetches = plan
        .fetch
        .iter()
        .enumerate()
        .map(of_provider)
        .collect::<Result<_, _>>()?;
    let document_fetch =
        fetch(FetchSettings::default()).map_err(|error| diagnostic("broker", &error.into()))?;
    let parts = BrokerParts {
        keys: Arc::clone(keys),
        records: Arc::clone(&parts.records),
        ends: Arc::clone(&parts.ends),
        provider_fetches,
        document_fetch,
        clock: Arc::clone(&process.clock),
        control: parts.control.clone(),
        observer: Arc::new(BrokerEvents::new(process, plan.settings.issuer.clone())),
    };
    let broker = Broker::new(plan.settings.clone(), parts);
    Ok(broker.map_err(|error| diagnostic("broker", &error.into()))?)
}

/// Returns the issuer of the broker's tokens, whose keys are those of the broker itself.
fn issuer(
    plan: &BrokerPlan,
    process: &Process,
    parts: &BrokerProcess,
    keys: &BrokerKeys,
    previous: Option<&ConfiguredIssuer>,
) -> anyhow::Result<ConfiguredIssuer> {
    let issuer = plan.settings.issuer.clone();
    let fingerprint =
        Fingerprint::of_derived(&[issuer.as_str().as_bytes(), &keys.public_jwks()].concat());
    if let Some(previous) = previous.filter(|previous| previous.fingerprint == fingerprint) {
        return Ok(previous.clone());
    }
    let mut settings = IssuerSettings::new(issuer);
    settings.keys = KeySource::Fixed(keys.public_keys());
    settings.algorithms = [Algorithm::Es256].into_iter().collect();
    settings.require_at_jwt = true;
    settings.revoked = Some(Arc::clone(&parts.ends) as _);
    let unusable = |error: anyhow::Error| diagnostic("broker", &error);
    // The keys are fixed, so that nothing is fetched.
    let fetch = HttpFetch::new(FetchSettings::default()).map_err(|error| unusable(error.into()))?;
    let issuer = TrustedIssuer::new(
        settings,
        Arc::new(fetch),
        Arc::clone(&process.clock),
        Handle::current(),
    );
    Ok(ConfiguredIssuer {
        fingerprint,
        issuer: issuer.map_err(|error| unusable(error.into()))?,
    })
}

fn diagnostic(key: &str, error: &anyhow::Error) -> Diagnostic {
    Diagnostic::new(&KeyPath::parse(key), &format!("{error:#}"))
}
