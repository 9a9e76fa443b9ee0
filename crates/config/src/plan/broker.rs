//! The broker: validation of `[broker]`.

mod claims;
mod client_ids;
mod clients;
mod lifetimes;
mod notes;
mod pages;
mod provider;
mod provider_issuer;
mod provider_rules;
mod resources;
mod uncertain_claims;
mod unmapped_claims;
mod unmet_rules;
mod unmet_scopes;
mod warnings;
mod wide_rules;

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use portcullis_broker::{BrokerKeys, BrokerSettings};
use portcullis_discovery::FetchSettings;
use portcullis_metadata::{Issuer, IssuerError};
use url::Url;

use super::{Fingerprint, ResourcePlan, fingerprint, resources::convert_each};
use crate::{Config, Diagnostics, SecretSource, file::Broker};
use resources::BrokerResources;

pub use notes::redirect_uri_setting;

pub(super) use client_ids::is_at_entra;
pub(super) use notes::notes;
pub(super) use provider_rules::provider_rules;
pub(super) use unmapped_claims::plain_name;
pub(super) use warnings::warnings;

/// The most providers.
const MAX_PROVIDERS: usize = 16;
/// The most resource servers elsewhere.
const MAX_INTROSPECTION_CLIENTS: usize = 256;

/// The authorization server of this server.
pub struct BrokerPlan {
    /// What it needs.
    pub settings: BrokerSettings,
    /// How each provider is reached, in the order of the providers.
    pub fetch: Vec<FetchSettings>,
    /// Its keys. `None` if they are generated in the state directory.
    pub keys: Option<Arc<BrokerKeys>>,
    /// The fingerprint of its settings, of its resources, and of the content of its files.
    pub fingerprint: Fingerprint,
}

/// Returns the issuer of the broker's tokens: the base URL without the slash at its end.
pub(super) fn issuer(base_url: &Url) -> Result<Issuer, IssuerError> {
    Issuer::parse(base_url.as_str().trim_end_matches('/'))
}

/// Validates the table. `resources` are the plans of the resources; `None` if one is invalid.
///
/// Adds an error for each invalid value, and returns `None` if there is one.
pub(super) fn plan(
    config: &Config,
    broker: &Broker,
    issuer: &Issuer,
    resources: Option<&[ResourcePlan]>,
    errors: &mut Diagnostics<'_>,
) -> Option<BrokerPlan> {
    let fingerprint = fingerprint::broker(config, broker, issuer.as_str());
    check_replicas(config, broker, errors);
    let resources = BrokerResources::new(config, resources, errors);
    let default_resource = errors.take(
        "default_resource",
        resources.default_resource(broker.default_resource.as_deref()),
    );
    let providers = providers(broker, &resources, errors);
    let clients = clients::plan(&broker.clients, &mut errors.table("clients"));
    let lifetimes = lifetimes::plan(broker, errors);
    let claims = claims::plan(&broker.claims, errors);
    let pages = pages::plan(broker, &resources, errors);
    let introspection = convert_each(
        &broker.introspection,
        "introspection",
        errors,
        |client, errors| resources.introspection_client(client, errors),
    );
    check_introspection_clients(broker, errors);
    let keys = errors.take("keys", broker.keys.as_ref().map(keys).transpose());
    let (providers, fetch) = providers?.into_iter().unzip();
    Some(BrokerPlan {
        settings: BrokerSettings {
            issuer: issuer.clone(),
            resources: resources.into_settings()?,
            default_resource: default_resource?,
            providers,
            clients: clients?,
            pages: pages?,
            lifetimes: lifetimes?,
            claims: claims?,
            introspection_clients: introspection?,
            max_token: config.limits.max_token,
        },
        fetch,
        keys: keys?,
        fingerprint,
    })
}

/// Requires common keys of all replicas.
fn check_replicas(config: &Config, broker: &Broker, errors: &mut Diagnostics<'_>) {
    if config.shared.is_some() && broker.keys.is_none() {
        errors.add(
            "keys",
            "with [shared], all replicas must have the same keys; set keys to the source of them, such as { file = \"/path\" }: the \
             content of the file broker-keys that a server without [shared] generates in its state directory",
        );
    }
}

fn providers(
    broker: &Broker,
    resources: &BrokerResources<'_>,
    errors: &mut Diagnostics<'_>,
) -> Option<Vec<(portcullis_broker::BrokerProvider, FetchSettings)>> {
    let count = broker.provider.len();
    if count == 0 {
        errors.add(
            "",
            "no [[broker.provider]] is configured; add one with `kind`, `client_id` and `client_secret`",
        );
    }
    if count > MAX_PROVIDERS {
        errors.add(
            "provider",
            format!("there are {count} providers; remove all but {MAX_PROVIDERS}"),
        );
    }
    for (position, provider) in broker.provider.iter().enumerate() {
        let earlier = &broker.provider[..position];
        if let Some(first) = earlier
            .iter()
            .position(|earlier| earlier.name() == provider.name())
        {
            errors.add(
                &format!("provider[{position}].name"),
                format!(
                    "broker.provider[{first}] has the name {:?}, too; set name to another one in one of them",
                    provider.name()
                ),
            );
        }
    }
    convert_each(&broker.provider, "provider", errors, |provider, errors| {
        provider::plan(provider, resources, errors)
    })
}

fn check_introspection_clients(broker: &Broker, errors: &mut Diagnostics<'_>) {
    let count = broker.introspection.len();
    if count > MAX_INTROSPECTION_CLIENTS {
        errors.add(
            "introspection",
            format!(
                "there are {count} resource servers; remove all but {MAX_INTROSPECTION_CLIENTS}"
            ),
        );
    }
    for (position, client) in broker.introspection.iter().enumerate() {
        let earlier = &broker.introspection[..position];
        if earlier
            .iter()
            .any(|earlier| earlier.client_id == client.client_id)
        {
            errors.add(
                &format!("introspection[{position}].client_id"),
                format!(
                    "client_id = {:?} is configured twice; use another one for each resource server",
                    client.client_id
                ),
            );
        }
    }
}

/// Reads the keys.
fn keys(source: &SecretSource) -> anyhow::Result<Arc<BrokerKeys>> {
    let secret = source.read()?;
    let keys = BrokerKeys::parse(secret.secret())
        .map_err(|error| anyhow!("{error}; write the content of a file broker-keys there, which a server without broker.keys generates in its state directory"))
        .with_context(|| source.to_string())?;
    Ok(Arc::new(keys))
}
