//! What to register at the providers.

use portcullis_broker::BrokerProvider;
use portcullis_identity_provider::ProviderKind;
use portcullis_metadata::syntax::is_loopback;
use url::{Position, Url};

use super::BrokerPlan;
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
        redirect_uri_setting(provider.kind, Some(provider.issuer.url()))
    );
    if provider.kind.may_send_logout_tokens() {
        text += &format!(
            "; the back-channel logout URI, if you use it, is {}",
            plan.settings.logout_uri(&provider.name)
        );
    }
    text
}

/// Returns where the redirect URI of a provider is registered, for people: at the host or in the
/// cloud of its issuer, if the kind has several. An imitation on loopback has no such page.
pub fn redirect_uri_setting(kind: ProviderKind, issuer: Option<&Url>) -> String {
    let issuer = issuer.filter(|issuer| !is_loopback(issuer));
    let pages = issuer.and_then(|issuer| match kind {
        ProviderKind::GitHub => Some(&issuer[..Position::BeforePath]),
        ProviderKind::Entra => Some(entra::portal(issuer.as_str())),
        _ => None,
    });
    kind.redirect_uri_setting(pages)
}
