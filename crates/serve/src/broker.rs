//! The authorization server of `[broker]`: what of it outlives a configuration, its limits, and
//! what is reported of it.

pub(crate) mod observer;
pub(crate) mod persistence;
pub(crate) mod process;
pub(crate) mod sweep;
#[cfg(test)]
mod tests;

use portcullis_broker::BrokerSettings;

/// Logs what to register at each provider.
pub(crate) fn report(settings: &BrokerSettings) {
    for provider in &settings.providers {
        let provider = &provider.settings;
        tracing::info!(
            provider.name = %provider.name,
            provider.kind = provider.kind.as_str(),
            provider.redirect_uri = settings.redirect_uri(&provider.name),
            "users sign in at an identity provider, where this redirect URI must be registered"
        );
    }
}
