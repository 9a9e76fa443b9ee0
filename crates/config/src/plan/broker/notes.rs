//! What to register at the providers.

use portcullis_broker::BrokerProvider;
use portcullis_identity_provider::{ProviderKind, ProviderSettings};
use portcullis_metadata::syntax::is_loopback;

use super::{BrokerPlan, provider_issuer::GITHUB};
use crate::plan::entra;

/// Returns what to register at each provider.
pub(in crate::plan) fn notes(plan: &BrokerPlan) -> Vec<String> {
    let providers = plan.settings.providers.iter().enumerate();
    providers
        .map(|(position, provider)| note(plan, position, provider))
        .collect()
}

fn note(plan: &BrokerPlan, position: usize, provider: &BrokerProvider) -> String {
    let provider = &provider.settings;
    let mut text = format!(
        "broker.provider[{position}]: its redirect URI is {}; register it in {}",
        plan.settings.redirect_uri(&provider.name),
        redirect_uri_setting(provider)
    );
    if provider.kind.may_send_logout_tokens() {
        text += &format!(
            "; the back-channel logout URI, if you use it, is {}",
            plan.settings.logout_uri(&provider.name)
        );
    }
    text
}

/// Returns where the redirect URI is registered: at the host of the provider, if it has several. An
/// imitation on loopback has no such page.
fn redirect_uri_setting(provider: &ProviderSettings) -> String {
    let setting = provider.kind.redirect_uri_setting();
    let issuer = &provider.issuer;
    match provider.kind {
        ProviderKind::GitHub if !is_loopback(issuer.url()) => {
            setting.replacen(GITHUB, issuer.as_str(), 1)
        }
        ProviderKind::Entra => {
            let (own, global) = entra::portals(issuer.as_str());
            setting.replacen(global, own, 1)
        }
        _ => setting.to_owned(),
    }
}
