//! What to register at the providers.

use portcullis_broker::BrokerProvider;

use super::BrokerPlan;

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
        provider.kind.redirect_uri_setting()
    );
    if provider.kind.may_send_logout_tokens() {
        text += &format!(
            "; the back-channel logout URI, if you use it, is {}",
            plan.settings.logout_uri(&provider.name)
        );
    }
    text
}
